package policy

import (
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

// What an agent's host adds to a call can make a ruling stricter and never
// looser: whoever controls the host controls these facts. The one exception is
// the working folder itself: what counts as inside it is the adapter's to say,
// be it by cwd or by where cwd leads; `path` rules do not depend on it.
func TestWhatTheAdapterResolvesOnlyTightens(t *testing.T) {
	s := mustCompile(t, `{
		"permission": {
			"*": "ask",
			"read": "allow", "edit": { "*": "allow", "*.lock": "deny" },
			"path": { "*": "allow", "*.env": "deny", "/etc/*": "ask" },
			"external_directory": { "*": "ask", "/srv/*": "allow", "/home/ops/*": "deny" },
			"bash": { "*": "ask", "cat *": "allow", "ls *": "allow" },
		},
	}`)
	paths := []string{"a.go", "x.env", "../y", "/etc/passwd", "/srv/a", "/home/ops/.ssh/id", "/repo/a.go", "link", "~/z", ".", "/repo", "/home/dev/z", "b.lock"}
	path := rapid.SampledFrom(paths)
	rapid.Check(t, func(t *rapid.T) {
		typed := path.Draw(t, "typed")
		call := Call{Cwd: "/repo", Home: "/home/dev"}
		switch rapid.SampledFrom([]string{"read", "edit", "bash", "other"}).Draw(t, "tool") {
		case "read":
			call.Tool, call.Input = "read", object(t, "file_path", typed)
		case "edit":
			call.Tool, call.Input = "edit", object(t, "file_path", typed)
		case "bash":
			call.Tool, call.Input = "bash", object(t, "command", "cat "+typed)
		default:
			call.Tool, call.Input = "other", object(t, "path", typed)
		}
		bare := s.Rule(call)
		for range rapid.IntRange(1, 3).Draw(t, "facts") {
			raw := rapid.SampledFrom(append([]string{typed}, paths...)).Draw(t, "raw")
			if raw == call.Cwd {
				continue
			}
			call.Paths = append(call.Paths, Path{Raw: raw, Resolved: path.Draw(t, "resolved")})
		}
		if told := s.Rule(call); stricter(told.Action, bare.Action) != told.Action {
			t.Fatalf("%s %s: %v alone, but %v with %v", call.Tool, call.Input, bare.Action, told.Action, call.Paths)
		}
	})
}

func object(t *rapid.T, key, value string) []byte {
	b, err := json.Marshal(map[string]string{key: value})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
