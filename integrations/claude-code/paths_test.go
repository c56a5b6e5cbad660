package claudecode

import (
	"slices"
	"testing"

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
