package policy

import (
	"slices"
	"testing"
)

// What a call is about: each file that any of its arguments, or a patch in it,
// names, and the command of a tool that the policy declares.
func TestFieldsOfACall(t *testing.T) {
	t.Parallel()
	doc, err := Read(Fleet(), "fleet", []byte(`{"permission":{"*":"ask"},"shellTools":{"exec":{"command":"line"}},"pathArguments":{"read_file":["also"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	set, err := NewSet(1, doc)
	if err != nil {
		t.Fatal(err)
	}
	declared := set.For(Who{Agent: "ci"})
	for name, row := range map[string]struct {
		tool, input, kind, command, path string
		paths                            []string
	}{
		"a command":                     {"Bash", `{"command":"ls"}`, "bash", "ls", "", nil},
		"a declared tool's command":     {"exec", `{"line":"git push","command":"ls"}`, "bash", "git push", "", nil},
		"another tool's":                {"deploy", `{"line":"git push"}`, "", "", "", nil},
		"a file":                        {"Read", `{"file_path":"/a"}`, "read", "", "/a", nil},
		"a file under two names":        {"Write", `{"file_path":"/a","path":"/a"}`, "write", "", "/a", nil},
		"a second file beside it":       {"Write", `{"file_path":"/secret","path":"/ok"}`, "write", "", "", []string{"/ok", "/secret"}},
		"files in a list":               {"read_many_files", `{"paths":["/a","/b"]}`, "read", "", "", []string{"/a", "/b"}},
		"a file under a declared name":  {"read_file", `{"path":"/a","also":"/b"}`, "read", "", "", []string{"/a", "/b"}},
		"a file as a URL":               {"Read", `{"file_path":"file:///a"}`, "read", "", "/a", nil},
		"a patch of one file":           {"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a\n"}`, "edit", "", "", []string{"a"}},
		"a patch of two files":          {"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a\n*** Delete File: b\n"}`, "edit", "", "", []string{"a", "b"}},
		"a search that names no folder": {"grep", `{"pattern":"x"}`, "grep", "", "", nil},
		"a file that is no text":        {"read", `{"path":{"x":1}}`, "read", "", "", nil},
	} {
		f := declared.FieldsOf(row.tool, []byte(row.input))
		slices.Sort(f.Paths)
		if f.Kind != row.kind || f.Command != row.command || f.Path != row.path || !slices.Equal(f.Paths, row.paths) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
