package protocol

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestATerminalThatDefersDoesNotCompile builds three packages that differ in
// the terminal's answer alone. The refusals must name the types: a package that
// failed for another reason would prove nothing.
func TestATerminalThatDefersDoesNotCompile(t *testing.T) {
	for _, row := range []struct {
		name, dir string
		// refusal are words of the compiler's only error; none: it compiles.
		refusal []string
	}{
		{"a terminal that decides compiles", "deciding", nil},
		{"a terminal that defers does not", "deferring", []string{
			"deferring.go:", "cannot use protocol.ChoiceDefer", "type protocol.Choice", "as protocol.FinalChoice value"}},
		{"a link in a terminal's place does not", "linking", []string{
			"linking.go:", "cannot use link{}", "does not implement Terminal", "protocol.Verdict", "protocol.TerminalVerdict"}},
	} {
		for _, tool := range []string{"build", "vet"} {
			t.Run(row.name+"/"+tool, func(t *testing.T) {
				t.Parallel()
				out, err := exec.Command("go", tool, "./testdata/compile/"+row.dir).CombinedOutput()
				if row.refusal == nil {
					if err != nil {
						t.Fatalf("%v\n%s", err, out)
					}
					return
				}
				if err == nil {
					t.Fatal("it compiles")
				}
				if n := strings.Count(string(out), row.dir+".go:"); n != 1 {
					t.Errorf("%d errors, want one:\n%s", n, out)
				}
				for _, word := range row.refusal {
					if !strings.Contains(string(out), word) {
						t.Errorf("the error does not say %q:\n%s", word, out)
					}
				}
			})
		}
	}
}

// TestTheTwoTerminalsDifferInOneWord keeps the proof honest, and has the cached
// result of this package depend on the two files.
func TestTheTwoTerminalsDifferInOneWord(t *testing.T) {
	body := func(name string) string {
		b, err := os.ReadFile("testdata/compile/" + name + "/" + name + ".go")
		if err != nil {
			t.Fatal(err)
		}
		_, code, ok := strings.Cut(string(b), "\nimport ")
		if !ok {
			t.Fatalf("%s imports nothing", name)
		}
		return code
	}
	deciding, deferring := body("deciding"), body("deferring")
	if n := strings.Count(deciding, "protocol.FinalDeny"); n != 1 {
		t.Fatalf("the word stands %d times", n)
	}
	if strings.Replace(deciding, "protocol.FinalDeny", "protocol.ChoiceDefer", 1) != deferring {
		t.Errorf("they differ in more than that:\n%s\n%s", deciding, deferring)
	}
	body("linking")
}

// TestAChoiceForcedIntoAFinalChoice: what a conversion smuggles past the types
// is no verdict at run time.
func TestAChoiceForcedIntoAFinalChoice(t *testing.T) {
	v := sampleTerminalVerdict()
	v.Verdict = FinalChoice(ChoiceDefer)
	v.Outcome, v.Grant, v.EditedInput = NoApprover, nil, nil
	if v.Verdict.Valid() {
		t.Error("a forced defer is a verdict")
	}
	if b, err := Write(v); err == nil {
		t.Errorf("a forced defer was written: %s", b)
	}
	v.Verdict = FinalDeny
	if _, err := Write(v); err != nil {
		t.Errorf("the same with deny: %v", err)
	}
}
