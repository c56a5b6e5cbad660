package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"
)

// filesAt writes files into a folder of their own.
func filesAt(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var testedFiles = map[string]string{
	"policy.jsonc": `{
  "permission": {
    "*": "ask",
    "bash": { "*": "ask", "git *": "allow", "npm *": { "action": "deny", "reason": "Use pnpm." } },
    "path": { "*.env": "deny" },
  },
}`,
	"strict.jsonc":  `{"permission": {"*": "deny"}}`,
	"broken.jsonc":  `{"permission": {"bash": "alow"}}`,
	"project.jsonc": `{"permission": {"bash": {"git *": "deny", "make *": "allow"}}}`,

	"holds.jsonc": `{
  "policy": "policy.jsonc",
  "cases": [
    { "description": "a status", "call": "git status", "want": "allow", "pattern": "git *", "suggest": [] },
    { "description": "npm", "call": { "tool": "bash", "input": { "command": "npm i" } }, "want": "deny", "reason": "Use pnpm." },
    { "description": "make", "call": "make all", "want": "ask", "suggest": ["make *"] },
    { "description": "a grant", "call": { "tool": "bash", "input": { "command": "make all" }, "grants": [{ "surface": "bash", "patterns": ["make *"] }] }, "want": "allow" },
    { "description": "another folder", "call": { "tool": "read", "input": { "path": "/srv/x" }, "cwd": "/srv" }, "want": "ask", "pattern": "*" },
  ],
}`,
	"fails.jsonc": `{
  "policy": "policy.jsonc",
  "cases": [
    { "description": "a status", "call": "git status", "want": "allow" },
    { "description": "the wrong way", "call": "npm i", "want": "allow" },
    { "description": "the wrong words", "call": "npm i", "want": "deny", "pattern": "npm i", "reason": "No." },
    { "description": "the wrong offer", "call": "make all", "want": "ask", "suggest": [] },
  ],
}`,
	"layers.jsonc": `{
  "policy": "policy.jsonc", "layers": { "project/shop": "project.jsonc" },
  "cases": [
    { "description": "a project tightens", "call": "git status", "want": "deny" },
    { "description": "a project does not loosen", "call": "make all", "want": "ask" },
  ],
}`,
	"trusted.jsonc": `{
  "policy": "policy.jsonc", "layers": { "project/shop": "project.jsonc" }, "trusted": true,
  "cases": [{ "description": "a trusted project loosens", "call": "make all", "want": "allow" }],
}`,
	"agents.jsonc": `{
  "policy": "policy.jsonc", "layers": { "agent/careful": "strict.jsonc" },
  "cases": [
    { "description": "whoever wears the name", "call": { "tool": "webfetch", "agent_name": "careful" }, "want": "deny" },
    { "description": "whoever wears another", "call": { "tool": "webfetch", "agent_name": "careless" }, "want": "ask" },
    { "description": "whoever wears none", "call": { "tool": "webfetch" }, "want": "ask" },
  ],
}`,
	"bad-policy.jsonc": `{"policy": "broken.jsonc", "cases": [{"description": "x", "call": "ls", "want": "ask"}]}`,
	"no-policy.jsonc":  `{"cases": [{"description": "x", "call": "ls", "want": "ask"}]}`,
	"no-cases.jsonc":   `{"policy": "policy.jsonc", "cases": []}`,
	"typo.jsonc":       "{\"policy\": \"policy.jsonc\",\n  \"cases\": [{\"description\": \"x\", \"call\": \"ls\", \"wants\": \"ask\"}]}",
	"no-want.jsonc":    "{\"policy\": \"policy.jsonc\",\n  \"cases\": [{\"description\": \"x\", \"call\": \"ls\", \"want\": \"maybe\"}]}",
	"no-call.jsonc":    "{\"policy\": \"policy.jsonc\",\n  \"cases\": [{\"description\": \"x\", \"want\": \"ask\"}]}",
	"nameless.jsonc":   `{"policy": "policy.jsonc", "cases": [{"call": "ls", "want": "ask"}]}`,
	"no-json.jsonc":    `{"policy": `,
	"bad-layer.jsonc":  `{"policy": "policy.jsonc", "layers": {"fleets": "policy.jsonc"}, "cases": [{"description": "x", "call": "ls", "want": "ask"}]}`,
}

func TestPolicyTest(t *testing.T) {
	t.Parallel()
	dir := filesAt(t, testedFiles)
	for _, r := range []struct {
		name, args string
		code       int
		out, errs  []string
	}{
		{"cases that hold", "holds.jsonc", ExitOK, []string{"✓ ", "holds.jsonc: 5 of 5 cases hold"}, nil},
		{"layers that only tighten", "layers.jsonc", ExitOK, []string{"2 of 2"}, nil},
		{"a layer that is trusted", "trusted.jsonc", ExitOK, []string{"1 of 1"}, nil},
		{"layers of agents", "agents.jsonc", ExitOK, []string{"3 of 3"}, nil},
		{"a policy by flag", "--policy policy.jsonc no-policy.jsonc", ExitOK, []string{"1 of 1"}, nil},

		{"cases that do not hold", "fails.jsonc", exitTestsFailed, []string{
			"fails.jsonc:5:5: the wrong way: want allow, got deny\n", `✗ bash "npm *": deny  `, "policy.jsonc:4:45  — Use pnpm.",
			`fails.jsonc:6:5: the wrong words: pattern: want "npm i", got "npm *"; reason: want "No.", got "Use pnpm."`,
			`fails.jsonc:7:5: the wrong offer: suggest: want [], got ["make *"]`, "1 of 4 cases hold",
		}, nil},
		{"the policy by flag before the file's", "--policy strict.jsonc holds.jsonc", exitTestsFailed, []string{"want allow, got deny", "strict.jsonc:1:22"}, nil},
		{"one file of two", "holds.jsonc fails.jsonc", exitTestsFailed, []string{"5 of 5", "1 of 4"}, nil},

		{"a broken policy", "bad-policy.jsonc", exitBadPolicy, nil, []string{`broken.jsonc:1:25: unknown action "alow"`}},
		{"a broken policy beside cases that fail", "fails.jsonc bad-policy.jsonc no-json.jsonc", exitBadPolicy, []string{"1 of 4"}, []string{"alow", "no-json"}},
		{"no policy named", "no-policy.jsonc", ExitUsage, nil, []string{"names no policy"}},
		{"no cases", "no-cases.jsonc", ExitFailure, nil, []string{"holds no cases"}},
		{"an unknown key", "typo.jsonc", ExitFailure, nil, []string{"typo.jsonc:2:", "wants"}},
		{"an unknown action", "no-want.jsonc", ExitFailure, nil, []string{`no-want.jsonc:2:13: the case wants "maybe"; expected allow, ask or deny`}},
		{"no call", "no-call.jsonc", ExitFailure, nil, []string{"no-call.jsonc:2:13: the case has no call"}},
		{"no description", "nameless.jsonc", ExitFailure, nil, []string{"the case has no description"}},
		{"no JSON", "no-json.jsonc", ExitFailure, nil, []string{"no-json.jsonc"}},
		{"a policy in place of cases", "policy.jsonc", ExitFailure, nil, []string{"policy.jsonc is a policy; name a file of cases"}},
		{"no such layer", "bad-layer.jsonc", ExitFailure, nil, []string{"fleets", "expected fleet, project/<id>"}},
		{"no file", "none.jsonc", ExitFailure, nil, []string{"reading cases", "none.jsonc"}},
		{"no arguments", "", ExitUsage, nil, []string{"takes one FILE or more"}},
	} {
		env, out, errs := testEnv()
		args := []string{"policy", "test"}
		for _, a := range strings.Fields(r.args) {
			if strings.HasSuffix(a, ".jsonc") {
				a = filepath.Join(dir, a)
			}
			args = append(args, a)
		}
		code := Main(env, args, Policy)
		if code != r.code || (len(r.out) == 0) != (out.Len() == 0) || (len(r.errs) == 0) != (errs.Len() == 0) {
			t.Errorf("%s: exit %d, want %d; stdout %q, stderr %q", r.name, code, r.code, out, errs)
		}
		for _, want := range r.out {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: stdout lacks %q:\n%s", r.name, want, out)
			}
		}
		for _, want := range r.errs {
			if !strings.Contains(errs.String(), want) {
				t.Errorf("%s: stderr lacks %q: %s", r.name, want, errs)
			}
		}
	}
}

func TestPolicyTestInJSON(t *testing.T) {
	t.Parallel()
	dir := filesAt(t, testedFiles)
	env, out, _ := testEnv()
	if code := Main(env, []string{"policy", "test", "--json", filepath.Join(dir, "fails.jsonc")}, Policy); code != exitTestsFailed {
		t.Errorf("exit %d", code)
	}
	var got tested
	if err := json.Unmarshal(out.Bytes(), &got, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	if got.OK || len(got.Files) != 1 || got.Files[0].Held != 1 || len(got.Files[0].Cases) != 4 {
		t.Fatalf("got %+v", got)
	}
	first, second := got.Files[0].Cases[0], got.Files[0].Cases[1]
	if !first.OK || first.Line != 4 || len(first.Problems) > 0 {
		t.Errorf("the case that holds: %+v", first)
	}
	if second.OK || second.Decision != "deny" || second.Want != "allow" || second.Place == nil || second.Place.Line != 4 || second.Pattern != "npm *" {
		t.Errorf("the case that does not: %+v", second)
	}
}

const caseSchemaFile = "../../docs/policytest.schema.json"

func TestTheSchemaOfCasesIsCurrent(t *testing.T) {
	got, err := caseSchema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(caseSchemaFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(caseSchemaFile)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/policytest.schema.json is not what the types say (%v); run: go test ./internal/cli -run Schema -update", err)
	}
}

// The schema takes what the reader takes, and refuses what it can see.
func TestTheSchemaOfCasesAndTheReaderAgree(t *testing.T) {
	t.Parallel()
	b, err := caseSchema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(caseSchemaID, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(caseSchemaID)
	if err != nil {
		t.Fatal(err)
	}
	whole := `{"$schema":"x","policy":"p","layers":{"project/x":"y"},"trusted":true,"cwd":"/r","home":"/h","platform":"linux","mcp_servers":["s"],
		"cases":[{"description":"d","want":"ask","pattern":"","reason":"","suggest":[],"call":{"tool":"read","input":{},"cwd":"/r","home":"/h",
		"platform":"darwin","agent_name":"a","grants":[{"surface":"bash","patterns":["x"]}],"paths":[{"raw":"a","resolved":"b"}],"mcp_servers":[]}}]}`
	texts := map[string]string{
		"every key":            whole,
		"an unknown key":       strings.Replace(whole, `"trusted"`, `"trust"`, 1),
		"an unknown call key":  strings.Replace(whole, `"agent_name"`, `"agent"`, 1),
		"an unknown grant key": strings.Replace(whole, `"surface"`, `"on"`, 1),
		"a call of a number":   `{"policy":"p","cases":[{"description":"d","want":"ask","call":1}]}`,
	}
	for name, text := range testedFiles {
		if name != "policy.jsonc" && name != "strict.jsonc" && name != "broken.jsonc" && name != "project.jsonc" && name != "bad-layer.jsonc" {
			texts[name] = text
		}
	}
	taken := 0
	for name, text := range texts {
		plain, err := hujson.Standardize([]byte(text))
		fits := err == nil
		if fits {
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
			fits = err == nil && schema.Validate(v) == nil
		}
		_, err = parseCases(name, []byte(text))
		if fits != (err == nil) {
			t.Errorf("%s: the schema says %v, the reader says %v", name, fits, err)
		}
		if fits {
			taken++
		}
	}
	if taken < 5 || taken == len(texts) {
		t.Errorf("%d of %d texts are taken: that shows nothing", taken, len(texts))
	}
}

func TestPolicySchema(t *testing.T) {
	t.Parallel()
	for flag, file := range map[string]string{"": "../../docs/policy.schema.json", "--cases": caseSchemaFile} {
		env, out, errs := testEnv()
		code := Main(env, append([]string{"policy", "schema"}, strings.Fields(flag)...), Policy)
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if code != ExitOK || out.String() != string(want) || errs.Len() > 0 {
			t.Errorf("policy schema %s: exit %d, not %s; %s", flag, code, file, errs)
		}
	}
}

// The example's cases hold for the example's policy.
func TestTheExampleCasesHold(t *testing.T) {
	t.Parallel()
	env, out, errs := testEnv()
	if code := Main(env, []string{"policy", "test", "../../examples/policy.test.jsonc"}, Policy); code != ExitOK {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
