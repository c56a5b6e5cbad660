package policy

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// mustCompile compiles a document that the test holds for valid.
func mustCompile(t testing.TB, doc string) *Snapshot {
	t.Helper()
	s, err := Compile(LayerFleet, []byte(doc))
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return s
}

// permission is a document with these rules and nothing else.
func permission(rules string) string { return `{"permission": ` + rules + `}` }

func input(v any) jsontext.Value {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return b
}

type m = map[string]any

// on is a call in /repo by somebody at home in /home/dev.
func on(tool string, in m, paths ...Path) Call {
	return Call{Tool: tool, Input: input(in), Cwd: "/repo", Home: "/home/dev", Paths: paths}
}

func bash(text string, paths ...Path) Call { return on("bash", m{"command": text}, paths...) }

// row is one ruling: the rules, the call and what must come of it. pattern and
// surface are of the reported entry and looked at where they are set.
type row struct {
	name, rules      string
	call             Call
	want             Action
	surface, pattern string
}

func ruleRows(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		got := mustCompile(t, permission(r.rules)).Rule(r.call)
		d := got.Decisive
		if got.Action != r.want || r.surface != "" && d.Surface != r.surface || r.pattern != "" && d.MatchedPattern != r.pattern {
			t.Errorf("%s: %s by %s %q (%s), want %s by %s %q", r.name, got.Action, d.Surface, d.MatchedPattern, d.Origin,
				r.want, r.surface, r.pattern)
		}
	}
}
