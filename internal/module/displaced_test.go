package module

import (
	"fmt"
	"strings"
	"testing"
)

// What a project brings comes from an agent's host. However much it brings, the
// fleet's and the user's modules are loaded beside it, and it speaks first.
func TestAProjectDisplacesNobody(t *testing.T) {
	brought := func(name, code string) Source {
		return Source{Name: name, Level: LevelProject, Root: "/repo/.assent/permissions", Code: code}
	}
	many := brought("many", fmt.Sprintf(`({checks: JSON.stringify(Array.from({length: %d}, (_, i) => ({name: "c" + i, description: "d", tools: ["deploy"], function: false}))), ask: async () => '{"decision":"none"}'})`, MaxChecks))
	hoard := brought("hoard", `globalThis.hoard = []; for (let i = 0; i < 1e4; i++) globalThis.hoard.push(new ArrayBuffer(1 << 20))`)
	crowd := make([]Source, MaxSources)
	for i := range crowd {
		crowd[i] = brought(fmt.Sprint("m", i), script1("", checkJS{name: "c"}))
	}
	for does, project := range map[string][]Source{
		"as many checks as there may be":  {many},
		"as many modules as there may be": crowd,
		"all memory of a worker":          {hoard},
		"one that asks":                   {brought("asks", script1("", checkJS{name: "c", body: `return {block: "project"}`}))},
	} {
		t.Run(does, func(t *testing.T) {
			e := engine(t, Config{Workers: 1})
			ours := module("ours", checkJS{name: "c", body: `return {block: "fleet"}`})
			s, problems := e.Load(t.Context(), append(project, ours))
			for _, p := range problems {
				if p.Level != LevelProject {
					t.Errorf("displaced: %s", p)
				}
			}
			want := "fleet"
			if strings.HasPrefix(does, "one that") {
				want = "project"
			}
			if v := s.Check(t.Context(), bash("git push")); v.Decision != Block || v.Reason != want {
				t.Errorf("got %s %q (%s), want the block of the %s", v.Decision, v.Reason, v.Failure, want)
			}
		})
	}
}
