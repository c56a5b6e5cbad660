package policy

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// explained is what a row wants to see of an explanation: lines that stand in
// its print.
type explainRow struct {
	name, doc string
	call      Call
	want      Action
	// said, lost: "surface pattern action line" of all that was said, and of all
	// that lost. allow, ask, deny: the edits that lead there, or what blocks.
	said, lost       []string
	allow, ask, deny []string
}

const explainedDoc = `{
  "permission": {
    "*": "ask",
    "read": "allow",
    "bash": {
      "*": "ask",
      "git *": "allow",
      "git push *": "ask",
      "npm *": { "action": "deny", "reason": "Use pnpm." },
    },
    "path": { "*": "allow", "*.env": "deny" },
    "path_write": { "*.lock": "ask" },
    "external_directory": "ask",
    "danger_*": "deny",
  },
}`

func TestExplain(t *testing.T) {
	t.Parallel()
	rows := []explainRow{
		{
			name: "the last rule that matches, and those before it", call: bash("git push origin"), want: Ask,
			said: []string{"bash git push * ask 8"}, lost: []string{"bash * ask 6", "bash git * allow 7"},
			allow: []string{`make "git push *" "allow" at fleet:8:7`}, deny: []string{`make "git push *" "deny" at fleet:8:7`},
		},
		{
			name: "a rule to be added behind the one that counts", call: bash("git status"), want: Allow,
			said: []string{"bash git * allow 7"}, lost: []string{"bash * ask 6"},
			ask: []string{`add "git status *": "ask" to "bash", behind fleet:7:7`}, deny: []string{`add "git status *": "deny" to "bash", behind fleet:7:7`},
		},
		{
			name: "a deny", call: bash("npm i left-pad"), want: Deny, said: []string{"bash npm * deny 9"}, lost: []string{"bash * ask 6"},
			allow: []string{`add "npm i *": "allow" to "bash", behind fleet:9:7`}, ask: []string{`add "npm i *": "ask" to "bash", behind fleet:9:7`},
		},
		{
			name: "the fallback", call: on("webfetch", m{}), want: Ask, said: []string{"webfetch * ask 3"},
			allow: []string{`add "webfetch": "allow" to "permission" of layer fleet`}, deny: []string{`add "webfetch": "deny" to "permission" of layer fleet`},
		},
		{
			name: "every surface", call: on("read", m{"path": "../x/.env"}), want: Deny,
			said: []string{"external_directory * ask 13", "path *.env deny 11", "read * allow 4"}, lost: []string{"path * allow 11"},
			allow: []string{`write "external_directory": {"*": "ask", "/x/.env": "allow"} at fleet:13:27`, `add "/x/.env": "allow" to "path", behind fleet:11:29`},
			ask:   []string{`add "/x/.env": "ask" to "path", behind fleet:11:29`},
		},
		{
			name: "the form of a direction, which wins over the plain one", call: on("write", m{"path": "a.lock"}), want: Ask,
			said: []string{"path_write *.lock ask 12", "write * ask 3"}, lost: []string{"path * allow 11"},
			allow: []string{`add "a.lock": "allow" to "path_write", behind fleet:12:21`, `add "write": {"a.lock": "allow"} to "permission" of layer fleet`},
			deny:  []string{`add "write": {"a.lock": "deny"} to "permission" of layer fleet`},
		},
		{
			name: "a surface that is a pattern", call: on("danger_zone", m{}), want: Deny, said: []string{"danger_zone * deny 14"},
			allow: []string{`add "danger_zone": "allow" to "permission", behind fleet:14:17`}, ask: []string{`add "danger_zone": "ask" to "permission", behind fleet:14:17`},
		},
		{
			name: "a floor, which no rule lifts", call: bash("sudo git status"), want: Ask,
			said: []string{"bash * ask 6", "bash <wrapper:sudo> ask 0", "bash git * allow 7"}, lost: []string{"bash * ask 6"},
			allow: []string{"blocked by <wrapper:sudo>"}, deny: []string{`add "sudo git status": "deny" to "bash", behind fleet:6:7`},
		},
		{
			name: "no rule at all", doc: `{}`, call: bash("ls"), want: Ask, said: []string{"bash * ask 0"},
			allow: []string{`add "bash": {"ls": "allow"} to "permission" of layer fleet`}, deny: []string{`add "bash": {"ls": "deny"} to "permission" of layer fleet`},
		},
		{
			name: "one action for a surface", doc: `{"permission": {"bash": "ask"}}`, call: bash("make all"), want: Ask, said: []string{"bash * ask 1"},
			allow: []string{`write "bash": {"*": "ask", "make *": "allow"} at fleet:1:25`}, deny: []string{`write "bash": {"*": "ask", "make *": "deny"} at fleet:1:25`},
		},
		{
			name: "a rule that stands too early", doc: `{"permission": {"bash": {"make *": "allow", "*": "ask"}}}`, call: bash("make all"), want: Ask,
			said: []string{"bash * ask 1"}, lost: []string{"bash make * allow 1"},
			allow: []string{`move "make *" behind fleet:1:45, as "make *": "allow"`}, deny: []string{`move "make *" behind fleet:1:45, as "make *": "deny"`},
		},
		{name: "a rule of the engine itself", call: on(ToolCanary, m{}), want: Deny, said: []string{ToolCanary + " * deny 0"}},
	}
	for _, r := range rows {
		doc := r.doc
		if doc == "" {
			doc = explainedDoc
		}
		s := mustCompile(t, doc)
		x := s.Explain(r.call, nil)
		if x.Action != r.want || x.Action != s.Rule(r.call).Action {
			t.Errorf("%s: %s, want %s", r.name, x.Action, r.want)
		}
		said, lost := printed(x)
		if !slices.Equal(said, r.said) || !slices.Equal(lost, r.lost) {
			t.Errorf("%s: said %q, want %q; lost %q, want %q", r.name, said, r.said, lost, r.lost)
		}
		for to, want := range map[Action][]string{Allow: r.allow, Ask: r.ask, Deny: r.deny} {
			if got := waysTo(x, to); !slices.Equal(got, want) {
				t.Errorf("%s: to %s %q, want %q", r.name, to, got, want)
			}
		}
	}
}

func printed(x Explanation) (said, lost []string) {
	line := func(r RuleAt) string {
		return strings.Join([]string{r.Surface, r.Pattern, r.Action.String(), strconv.Itoa(r.Place.Line)}, " ")
	}
	for _, s := range x.Said {
		surface := s.Surface
		if s.Rule.Surface != "" && !s.Rule.fallback() && compileWildcard(s.Rule.Surface).literal() {
			surface = s.Rule.Surface
		}
		said = append(said, line(RuleAt{Surface: surface, Pattern: s.MatchedPattern, Action: s.Action, Place: s.Place}))
		for _, r := range s.Lost {
			lost = append(lost, line(r))
		}
	}
	return said, lost
}

func waysTo(x Explanation, to Action) []string {
	var out []string
	for _, w := range x.Ways {
		if w.To != to {
			continue
		}
		for _, b := range w.Blocks {
			out = append(out, "blocked by "+b.MatchedPattern)
		}
		if len(w.Blocks) == 0 {
			for _, e := range w.Edits {
				out = append(out, e.String())
			}
		}
	}
	return out
}

// A layer that is not trusted is named, and its own file is the one to change.
func TestExplainNamesTheLayer(t *testing.T) {
	t.Parallel()
	read := func(l Layer, file, doc string) *Document {
		d, err := Read(l, file, []byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	fleet := read(Fleet(), "fleet.jsonc", `{"permission": {"bash": {"*": "ask", "make *": "allow"}}}`)
	project := read(ProjectLayer("shop"), "shop.jsonc", `{"permission": {"bash": {"make deploy": "deny"}}}`)
	x := Layered(false, fleet, project).Explain(bash("make deploy"), nil)
	said, lost := printed(x)
	if x.Action != Deny || x.Decisive.Place != (Position{"shop.jsonc", 1, 26}) || x.Decisive.Origin != "project/shop" {
		t.Errorf("%s by %+v", x.Action, x.Decisive)
	}
	if !slices.Contains(said, "bash make deploy deny 1") || !slices.Contains(lost, "bash make * allow 1") {
		t.Errorf("said %q, lost %q", said, lost)
	}
	if got := waysTo(x, Allow); !slices.Equal(got, []string{`make "make deploy" "allow" at shop.jsonc:1:26`}) {
		t.Errorf("to allow: %q", got)
	}
}

// Grants and yolo are said to be what lets a call pass.
func TestExplainSaysWhatLetAnAskPass(t *testing.T) {
	t.Parallel()
	g, err := NewGrant("01K", "bash", []string{"make *"})
	if err != nil {
		t.Fatal(err)
	}
	x := mustCompile(t, explainedDoc).Explain(bash("make all"), []Grant{g})
	if x.Action != Allow || len(x.Said) != 1 || x.Said[0].Why() != "the rules ask, and a grant covers it" || x.Said[0].Rule.Place.Line != 6 {
		t.Errorf("a grant: %s, %+v", x.Action, x.Said)
	}
	x = mustCompile(t, `{"yoloMode": true, "permission": {"bash": "ask"}}`).Explain(bash("make all"), nil)
	if x.Action != Allow || len(x.Said) != 1 || x.Said[0].Why() != "the rule asks, and yoloMode allows what rules ask" {
		t.Errorf("yolo: %s, %+v", x.Action, x.Said)
	}
}

// Whatever the engine is told to explain, it rules as it rules, and what it
// proposes does what it says.
func TestExplainRulesAlike(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, explainedDoc)
	texts := []string{"", "git", "git status", "git push && npm i", "rm -rf /", "cat .env", "echo $(npm i)", "( git log | head )", "sudo -u x npm i", "bash -c 'npm i'", "cd .. && ls ../x", "é 'ü", "for i in a; do git $i; done"}
	ways := 0
	for _, text := range texts {
		for _, c := range []Call{bash(text), on("write", m{"path": text}), on("mcp", m{"tool": text}), on("webfetch", m{"url": text})} {
			x, want := s.Explain(c, nil), s.Rule(c)
			if x.Action != want.Action || x.Decisive != want.Decisive || !slices.Equal(x.Entries, want.Entries) || !slices.Equal(x.Suggest, want.Suggest) {
				t.Errorf("%s %q: explained as %s by %+v, ruled %s by %+v", c.Tool, text, x.Action, x.Decisive, want.Action, want.Decisive)
			}
			for _, w := range x.Ways {
				changed, err := s.with(w.Edits)
				if err != nil {
					t.Fatalf("%s %q: %v", c.Tool, text, err)
				}
				if got := changed.Rule(c).Action; got != w.To && len(w.Blocks) == 0 || got == w.To && len(w.Blocks) > 0 {
					t.Errorf("%s %q: %q leads to %s, said to lead to %s", c.Tool, text, w.Edits, got, w.To)
				}
				ways++
			}
		}
	}
	if ways < 50 {
		t.Errorf("%d ways were tried: that shows little", ways)
	}
}

// Explaining changes no ruling, and what is proposed does what it says.
func FuzzExplain(f *testing.F) {
	s := mustCompile(f, explainedDoc)
	for _, text := range []string{"git push && npm i", "cd a; cat .env > b.lock", "timeout 5 sudo git $x", "echo 'a\nb' | tee *.env"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip() // no input holds it
		}
		for _, c := range []Call{bash(text), on("write", m{"path": text})} {
			x, want := s.Explain(c, nil), s.Rule(c)
			if x.Action != want.Action || x.Decisive != want.Decisive || !slices.Equal(x.Entries, want.Entries) {
				t.Fatalf("explained as %s by %+v, ruled %s by %+v", x.Action, x.Decisive, want.Action, want.Decisive)
			}
			for _, w := range x.Ways {
				changed, err := s.with(w.Edits)
				if err != nil {
					t.Fatal(err)
				}
				if got := changed.Rule(c).Action; got != w.To && len(w.Blocks) == 0 {
					t.Fatalf("%q leads to %s, said to lead to %s", w.Edits, got, w.To)
				}
			}
		}
	})
}

// What no rule lifts says what does.
func TestLiftedBy(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, permission(`{"*":"allow","path":{"*":"allow","*.env":"deny"}}`))
	for _, r := range []struct {
		name string
		call Call
		want string
	}{
		{"the agents' settings", on("write", m{"path": ".claude/settings.json"}), `"selfProtection": {"lift": ["claude-settings"]} in the fleet layer`},
		{"Assent's own files", on("read", m{"path": "~/.config/assent/local.json"}), `"selfProtection": {"lift": ["assent-files"]} in the fleet layer`},
		{"a path that nobody knows", bash("cat $x"), "taking out the rules that deny or ask about such paths"},
		{"a search that could come upon more", on("grep", m{"pattern": "x", "output_mode": "content"}), "taking out the rules that deny or ask about such paths"},
		{"a wrapper", bash("sudo ls"), ""},
		{"a text that does not parse", bash("echo 'it"), ""},
	} {
		x := s.Explain(r.call, nil)
		var blocks []Entry
		for _, w := range x.Ways {
			if w.To == Allow {
				blocks = w.Blocks
			}
		}
		if len(blocks) == 0 || blocks[0].LiftedBy() != r.want {
			t.Errorf("%s: %s, blocked by %+v, want lifted by %q", r.name, x.Action, blocks, r.want)
		}
	}
}
