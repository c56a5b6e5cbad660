package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tailscale/hujson"
)

// accepted and refused are documents that reader and schema must agree on.
var accepted = map[string]string{
	"built-in rules lifted, and more paths kept": `{"selfProtection":{"lift":["codex-settings","pi-settings"],"paths":["/srv/assent","~/store"]}}`,
	"nothing":                    `{}`,
	"comments, trailing commas":  "{ // note\n \"permission\": {\"*\": \"ask\",}, /* more */ }",
	"an action":                  `{"permission":{"*":"ask","bash":"deny"}}`,
	"a map":                      `{"permission":{"bash":{"*":"ask","git *":"allow"}}}`,
	"a rule object":              `{"permission":{"bash":{"npm *":{"action":"deny","reason":"Use pnpm"}}}}`,
	"a rule for people":          `{"permission":{"bash":{"dd *":{"action":"ask","guidance":"g","humanOnly":true}}}}`,
	"an empty map":               `{"permission":{"bash":{}}}`,
	"the command called action":  `{"permission":{"bash":{"action":"allow","x":"deny"}}}`,
	"a chain":                    `{"authorizerChain":["a","model-judge"]}`,
	"an envelope":                `{"modelDelegation":{"allowedSurfaces":["bash"],"excludedSurfaces":["external_*"]}}`,
	"a terminal":                 `{"terminal":{"kind":"parent","maxWait":"90m"}}`,
	"the rest":                   `{"linkTimeout":"1.5s","yoloMode":true,"debugLog":false,"secretPaths":["*.tfstate"],"limits":{"asksPerSecond":1,"pending":1e2}}`,
	"modules":                    `{"modules":{"onFailure":"deny","callTime":"25ms","strict":true}}`,
	"nothing said of modules":    `{"modules":{}}`,
	"a schema for editors":       `{"$schema":"../docs/policy.schema.json"}`,
	"a home pattern that climbs": `{"permission":{"path":{"~/a/../b":"deny"}}}`,
}

func TestReaderAccepts(t *testing.T) {
	t.Parallel()
	for name, doc := range accepted {
		if _, err := Compile("fleet", []byte(doc)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	t.Parallel()
	for _, r := range []struct{ name, doc, want string }{
		{"an unknown key", "{\n  \"permision\": {}\n}", `f:2:3: unknown key "permision" in the policy; did you mean "permission"?`},
		{"an unknown key like none", `{"zzzzzz":1}`, `f:1:2: unknown key "zzzzzz" in the policy; expected one of permission,`},
		{"a key in another case", `{"Permission":{}}`, `did you mean "permission"?`},
		{"a duplicate key", `{"permission":{"bash":"ask","bash":"allow"}}`, `f:1:29: duplicate key "bash"; it stands already at 1:16`},
		{"a duplicate key in another spelling", `{"permission":{"bash":"ask","b\u0061sh":"allow"}}`, `duplicate key "bash"`},
		{"a duplicate pattern", `{"permission":{"bash":{"x":"ask","x":"allow"}}}`, `duplicate key "x"`},
		{"an unknown action", `{"permission":{"bash":"alow"}}`, `f:1:23: unknown action "alow"; did you mean "allow"?`},
		{"an action that is no text", `{"permission":{"bash":true}}`, `action is true or false; expected one of allow, ask, deny`},
		{"null", `{"permission":{"bash":null}}`, `action is null; expected`},
		{"a rule under the star", `{"permission":{"*":{"action":"deny","reason":"x"}}}`, `write {"*": {"action": …}}`},
		{"a slip in a map under the star", `{"permission":{"*":{"git *":"alow"}}}`, `unknown action "alow"`},
		{"a rule where patterns stand", `{"permission":{"bash":{"action":"deny","reason":"x"}}}`, `write {"*": {"action": …}}`},
		{"a rule without an action", `{"permission":{"bash":{"x":{"reason":"y"}}}}`, `the rule has no action`},
		{"an unknown key in a rule", `{"permission":{"bash":{"x":{"action":"deny","raeson":"y"}}}}`, `did you mean "reason"?`},
		{"a person for a deny", `{"permission":{"bash":{"x":{"action":"deny","humanOnly":true}}}}`, `humanOnly belongs to a rule that asks`},
		{"a tool in its agent's spelling", `{"permission":{"Bash":"deny"}}`, `surface "Bash"; this tool is called "bash" in rules`},
		{"an empty surface", `{"permission":{"":"deny"}}`, `an empty surface`},
		{"a path that climbs behind a star", `{"permission":{"path":{"src/*/../x":"deny"}}}`, `can never match`},
		{"permission that is a list", `{"permission":[]}`, `permission is a list; expected an object`},
		{"a bad duration", `{"linkTimeout":"8"}`, `linkTimeout is "8"; expected a duration as "8s"`},
		{"a duration that is a number", `{"linkTimeout":8}`, `linkTimeout is a number; expected a duration`},
		{"no time at all", `{"linkTimeout":"0s"}`, `expected more than 0 and at most 1m50s`},
		{"more time than there is", `{"linkTimeout":"111s"}`, `at most 1m50s`},
		{"a wait without end", `{"terminal":{"maxWait":"721h"}}`, `at most 720h0m0s`},
		{"an unknown terminal", `{"terminal":{"kind":"hooman"}}`, `unknown terminal kind "hooman"; did you mean "human"?`},
		{"a link twice", `{"authorizerChain":["a","a"]}`, `authorizerChain names "a" twice`},
		{"a link that is no token", `{"authorizerChain":["a.b"]}`, `link name "a.b"; expected 1 to 64 letters`},
		{"a chain that is a text", `{"authorizerChain":"a"}`, `authorizerChain is a text; expected a list of link names`},
		{"half a rate", `{"limits":{"asksPerSecond":0.5}}`, `expected a whole number from 1`},
		{"no pending asks", `{"limits":{"pending":0}}`, `expected a whole number from 1`},
		{"modules that fail open", `{"modules":{"onFailure":"allow"}}`, `f:1:25: unknown onFailure "allow"; expected one of ask, deny`},
		{"modules without time", `{"modules":{"callTime":"0s"}}`, `callTime is "0s"; expected more than 0 and at most 1s`},
		{"modules with all the time", `{"modules":{"callTime":"2s"}}`, `at most 1s`},
		{"a slip in modules", `{"modules":{"onfailure":"deny"}}`, `did you mean "onFailure"?`},
		{"modules by halves", `{"modules":{"strict":"yes"}}`, `strict is a text; expected true or false`},
		{"yolo as a text", `{"yoloMode":"yes"}`, `yoloMode is a text; expected true or false`},
		{"a key of later versions", `{"permissionModules":[]}`, `unknown key "permissionModules"`},
		{"an empty secret", `{"secretPaths":[""]}`, `secretPaths holds an empty text`},
		{"a document that is a list", `[]`, `the policy is a list; expected an object`},
		{"nothing", ``, `f:1:1: the file is empty; write at least {}`},
		{"blanks", " \t\r\n\n", `f:1:1: the file is empty; write at least {}`},
		{"comments alone", "// a\n/* b */ // c", `f:1:1: the file is empty; write at least {}`},
		{"an open comment", "/* a", `the document ends too early`},
		{"a duration in days", `{"terminal":{"maxWait":"1d"}}`, `maxWait is "1d"; the longest unit is the hour: use "24h"`},
		{"a schema that is no text", `{"$schema":{}}`, `f:1:12: $schema is an object; expected a text`},
		{"a schema twice", `{"$schema":"a","$schema":"b"}`, `duplicate key "$schema"`},
		{"two documents", `{}{}`, `after top-level value`},
		{"an open object", "{\n\"permission\": {", `f:2:16: the document ends too early; expected a closing`},
		{"a key without quotes", `{permission: {}}`, `f:1:2: invalid literal: permission; expected a value, and texts and keys in double quotes`},
		{"a missing colon", `{"permission" {}}`, `expected ':'`},
		{"a byte order mark", "\ufeff{}", `byte order mark`},
		{"no UTF-8", "{\"permission\":{\"b\xff\":\"ask\"}}", `f:1:18: this is not UTF-8`},
		{"half a character", `{"permission":{"\ud800":"ask"}}`, `no valid text`},
		{"a deep document", strings.Repeat("[", 100_000), `f:1:17: nested deeper than 16 levels`},
		{"a deep document behind a quote", `{"a":"\"[",` + strings.Repeat(`"a":[`, 50), `nested deeper`},
		{"a large document", strings.Repeat(" ", MaxDocument+1), `expected at most`},
		{"a long pattern", `{"permission":{"bash":{"` + strings.Repeat("x", MaxPattern+1) + `":"ask"}}}`, `a pattern of 1025 bytes`},
	} {
		s, err := Compile("f", []byte(r.doc))
		if err == nil || s != nil || !strings.Contains(err.Error(), r.want) || !errors.Is(err, ErrPolicy) {
			t.Errorf("%s: error %v, want %q", r.name, err, r.want)
		}
	}
}

func TestAllErrorsAreReportedInOrder(t *testing.T) {
	t.Parallel()
	_, err := Compile("p.jsonc", []byte("{\n\"permission\": {\"bash\": \"no\",\n\"read\": 1},\n\"x\": 1,\n\"yoloMode\": 3}"))
	var all Errors
	if !errors.As(err, &all) || len(all) != 4 {
		t.Fatalf("%v", err)
	}
	for i, line := range []int{2, 3, 4, 5} {
		if all[i].Line != line || all[i].File != "p.jsonc" {
			t.Errorf("error %d: %v, want line %d", i, all[i], line)
		}
	}
}

func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, `"k%d":1,`, i)
	}
	_, err := Compile("fleet", []byte("{"+b.String()+"}"))
	var all Errors
	if !errors.As(err, &all) || len(all) != maxErrors+1 || !strings.Contains(all[maxErrors].Message, "450 more") {
		t.Fatalf("%d errors", len(all))
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{"authorizerChain":["b","a"],"linkTimeout":"3s","terminal":{"kind":"deny","maxWait":"1h"},
		"limits":{"asksPerSecond":7,"pending":3},"yoloMode":true,"debugLog":true,"modelDelegation":{"allowedSurfaces":["bash"]},"modules":{"onFailure":"deny","callTime":"20ms","strict":true}}`)
	if c := s.Chain(); len(c) != 2 || c[0] != "b" || c[1] != "a" {
		t.Errorf("chain %v", c)
	}
	if s.LinkTimeout() != 3*time.Second || s.Terminal() != (Terminal{TerminalDeny, time.Hour}) || s.Limits() != (Limits{7, 3}) ||
		!s.Yolo() || !s.DebugLog() {
		t.Errorf("%v %v %v", s.LinkTimeout(), s.Terminal(), s.Limits())
	}
	if d, ok := s.Delegation(); !ok || len(d.AllowedSurfaces) != 1 {
		t.Errorf("delegation %v %v", d, ok)
	}
	if s.Modules() != (Modules{Deny, 20 * time.Millisecond, true}) {
		t.Errorf("modules %+v", s.Modules())
	}
	e := Empty()
	if e.Modules() != (Modules{Ask, 10 * time.Millisecond, false}) {
		t.Errorf("defaults of modules: %+v", e.Modules())
	}
	if _, ok := e.Delegation(); ok || e.LinkTimeout() != 8*time.Second || e.Terminal() != (Terminal{TerminalAuto, 8 * time.Hour}) ||
		e.Limits() != (Limits{50, 32}) || e.Yolo() || len(e.Chain()) != 0 {
		t.Errorf("defaults: %v %v %v", e.LinkTimeout(), e.Terminal(), e.Limits())
	}
}

func TestSnapshotIsNotChangedThroughWhatItReturns(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{"authorizerChain":["a"],"modelDelegation":{"allowedSurfaces":["bash"]}}`)
	s.Chain()[0] = "evil"
	d, _ := s.Delegation()
	d.AllowedSurfaces[0] = "*"
	if again, _ := s.Delegation(); s.Chain()[0] != "a" || again.AllowedSurfaces[0] != "bash" {
		t.Error("a caller changed the snapshot")
	}
	if n := s.WithRevision(9); n.Revision() != 9 || s.Revision() != 0 || n.Digest() != s.Digest() {
		t.Error("WithRevision changed the original or the digest")
	}
}

func TestDigestIsOfTheContent(t *testing.T) {
	t.Parallel()
	a := mustCompile(t, `{"permission":{"bash":{"x":"ask","y":"deny"}}}`)
	same := mustCompile(t, "{ // c\n\"permission\": {\"b\\u0061sh\": {\"x\": \"ask\", \"y\": \"deny\",},},}")
	order := mustCompile(t, `{"permission":{"bash":{"y":"deny","x":"ask"}}}`)
	if a.Digest() != same.Digest() {
		t.Error("comments and blanks changed the digest")
	}
	if schema := mustCompile(t, `{"\u0024schema":"s","permission":{"bash":{"x":"ask","y":"deny"}}}`); a.Digest() != schema.Digest() {
		t.Error("what only editors read changed the digest")
	}
	if inner := mustCompile(t, `{"permission":{"bash":{"x":"ask","y":"deny"},"$schema":"ask"}}`); a.Digest() == inner.Digest() {
		t.Error("a surface of that name is part of the content")
	}
	if a.Digest() == order.Digest() || !strings.HasPrefix(a.Digest(), "sha256:") || len(a.Digest()) != 7+64 {
		t.Error("the order of rules is part of the content")
	}
}

func FuzzCompile(f *testing.F) {
	for _, doc := range accepted {
		f.Add([]byte(doc))
	}
	for _, doc := range []string{"{", `{"permission":{"*":`, "[[[", `{"a":"\ud800"}`, "\ufeff{}", "/*", `{"permission":{"bash":{"action":"ask"}}}`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		s, err := Compile("fleet", doc)
		if err != nil {
			if s != nil || !errors.Is(err, ErrPolicy) || strings.Contains(err.Error(), ":0:") {
				t.Fatalf("a refused document gave %v and %v", s, err)
			}
			return
		}
		formatted, err := hujson.Format(doc)
		if err != nil {
			t.Fatalf("compiles but does not format: %v", err)
		}
		again, err := Compile("fleet", formatted)
		if err != nil || again.Digest() != s.Digest() {
			t.Fatalf("formatting changed the content: %v", err)
		}
		c := bash("git push && cat .env | sudo tee /etc/x")
		if a, b := s.Rule(c), again.Rule(c); a.Action != b.Action || a.Action == None {
			t.Fatalf("rulings %s and %s", a.Action, b.Action)
		}
	})
}

// FuzzRule holds the safety of rulings against whatever a call may hold: never
// a panic, never no answer, the same answer twice, no allow under a deny.
func FuzzRule(f *testing.F) {
	f.Add("bash", `{"command":"git push"}`, "/repo", "/home/dev", "a", "/b")
	f.Add("read", `{"path":"~/x/../.env"}`, "/repo", "", "~/x/../.env", "/y")
	f.Add("mcp__a__b__c", `{}`, "", "", "", "")
	f.Add("glob", `{"pattern":"/etc/*"}`, "/", "/", "", "")
	open, err := Compile("fleet", []byte(`{"permission":{"*":"allow","bash":{"*":"allow","rm *":"deny"},"path":{"*.env":"deny"}}}`))
	if err != nil {
		f.Fatal(err)
	}
	shut, err := Compile("fleet", []byte(`{"permission":{"*":"deny"}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, tool, in, cwd, home, raw, resolved string) {
		c := Call{Tool: tool, Input: []byte(in), Cwd: cwd, Home: home, Paths: []Path{{raw, resolved}}}
		a, b := open.Rule(c), open.Rule(c)
		if a.Action == None || a.Action != b.Action || a.Decisive != b.Decisive {
			t.Fatalf("%+v and %+v", a, b)
		}
		if got := shut.Rule(c); got.Action == Allow {
			t.Fatalf("allowed where everything is denied: %+v", got.Decisive)
		}
		if a.Action == Allow && open.Clamp("x").Rule(c).Action == Allow {
			t.Fatal("allowed under a clamp")
		}
		for _, e := range a.Entries {
			if e.Unit < 0 || e.Unit > 0 && e.Unit >= len(a.Units) {
				t.Fatalf("entry %+v names no unit", e)
			}
		}
	})
}
