package module

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/policy"
)

// A check that looks at the path is asked about each file that a call names, by
// whatever arguments: one that an agent adds must not hide the other.
func TestChecksAreAskedAboutEveryFileOfACall(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	s := set(t, e, module("m",
		checkJS{"looks", `["read","write","edit"]`, `const p = input.tool.absolutePath; if (p === "/secret") return {block: "no"}; if (p === "/ask") return {request: {highlight: [{start: 0, end: 1}]}}; if (p === "/throws") throw new Error("oh")`},
		checkJS{"shell", `["bash"]`, `if (input.tool.command === "git push") return {block: "no"}`}))
	many := func(last string) string {
		return `{"paths":[` + strings.Repeat(`"/x",`, 3) + numbered(maxPaths-1) + `"` + last + `"]}`
	}
	for _, row := range []struct {
		does, tool, input string
		want              Decision
		failed            bool
	}{
		{"the one it guards", "Write", `{"file_path":"/secret"}`, Block, false},
		{"another one beside it", "Write", `{"file_path":"/secret","path":"/ok"}`, Block, false},
		{"the other way round", "Write", `{"file_path":"/ok","path":"/secret"}`, Block, false},
		{"two others", "Write", `{"file_path":"/ok","path":"/too"}`, Pass, false},
		{"in a list", "read_many_files", `{"paths":["/a","/b","/secret"]}`, Block, false},
		{"a list of others", "read_many_files", `{"paths":["/a","/b"]}`, Pass, false},
		{"in a patch", "apply_patch", `{"input":"*** Begin Patch\n*** Add File: a\n*** Update File: /secret\n"}`, Block, false},
		{"a patch of others", "apply_patch", `{"input":"*** Begin Patch\n*** Add File: a\n*** Update File: b\n"}`, Pass, false},
		{"a block behind a request", "read_many_files", `{"paths":["/ask","/secret"]}`, Block, false},
		{"a request behind a failure", "read_many_files", `{"paths":["/throws","/ask"]}`, Request, false},
		{"a failure behind a pass", "read_many_files", `{"paths":["/ok","/throws"]}`, Request, true},
		{"as many as are looked at", "read_many_files", many("/x"), Pass, false},
		{"one more", "read_many_files", many("/beyond"), Request, true},
	} {
		v := s.Check(t.Context(), call(row.tool, row.input))
		if v.Decision != row.want || (v.Failure != "") != row.failed {
			t.Errorf("%s: %s %q, want %s", row.does, v.Decision, v.Failure, row.want)
		}
	}
	declared := call("exec", `{"line":"git push"}`)
	if v := s.Check(t.Context(), declared); v.Decision != Pass {
		t.Errorf("a tool that nobody declared: %s", v.Decision)
	}
	declared.Fields = &policy.ToolFields{Kind: "bash", Command: "git push"}
	if v := s.Check(t.Context(), declared); v.Decision != Block {
		t.Errorf("a declared shell: %s %s", v.Decision, v.Failure)
	}
}

// numbered are n paths, each with a comma behind it.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"/f%d",`, i)
	}
	return b.String()
}
