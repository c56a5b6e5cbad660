package claudecode

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func TestTypedPathsOfACall(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, tool, input string
		want              []string
	}{
		{"a file tool", "Read", `{"file_path":"a"}`, []string{"a"}},
		{"a shell", "Bash", `{"command":"cat a"}`, nil},
		{"a glob", "Glob", `{"pattern":"out/**/*.go","path":"b"}`, []string{"b", "out"}},
		{"a glob of one level", "Glob", `{"pattern":"*.go"}`, []string{"."}},
		{"a glob from the root", "Glob", `{"pattern":"/*"}`, []string{"/"}},
		{"a glob without a star", "Glob", `{"pattern":"../x"}`, []string{"../x"}},
		{"a glob with a choice", "Glob", `{"pattern":"../{a,b}/x"}`, []string{".."}},
		{"a pattern that is no path", "Grep", `{"pattern":"/etc/*"}`, nil},
		{"a tool of an MCP server", "mcp__fs__read", `{"paths":["a","b"]}`, []string{"a", "b"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := Input{Tool: row.tool, ToolInput: jsontext.Value(row.input)}.typed()
			if !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// A link in a command's words is the host's to see: `head conf.txt` reads .env
// where conf.txt is a link to it.
func TestTheWordsOfACommandAreFollowed(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"conf.txt": ".env", "notes": "/etc"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]string{
		"head conf.txt":             filepath.Join(dir, ".env"),
		"echo a; head 'conf.txt'":   filepath.Join(dir, ".env"),
		"cat < conf.txt":            filepath.Join(dir, ".env"),
		"head notes/passwd":         "/etc/passwd",
		"bash -c 'cat notes/hosts'": "/etc/hosts",
		"head plain.txt":            "",
		"head -n 3 a b c":           "",
		"echo conf.txt.bak":         "",
	} {
		input, err := json.Marshal(map[string]any{"session_id": "s", "cwd": dir, "hook_event_name": "PreToolUse", "tool_name": "Bash",
			"tool_input": map[string]string{"command": command}, "tool_use_id": "t"})
		if err != nil {
			t.Fatal(err)
		}
		in, err := ReadInput(input)
		if err != nil {
			t.Fatal(err)
		}
		got := in.Ask(Host{Home: "/home/dev", Platform: "linux"}).Paths
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0].Resolved != want) {
			t.Errorf("%s: told %v, want %q", command, got, want)
		}
	}
}
