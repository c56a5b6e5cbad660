package shell

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// asBash says what a real bash makes of text: the words of each command that it
// would run, none of which it finds. ok is false when it refuses the text.
func asBash(t *rapid.T, bash, dir, text string) (words []string, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	const show = `command_not_found_handle() { printf '%s\0' "$@"; printf '\1\0'; }; PATH=/nowhere; eval "$TEXT"`
	cmd := exec.CommandContext(ctx, bash, "--norc", "--noprofile", "-c", show)
	cmd.Dir, cmd.Env = dir, []string{"TEXT=" + text, "HOME=/home/dev"}
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		return nil, false
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), true
}

// Whatever counts as one simple command is one command to a real bash, with the
// very same words: rules allow by these words. The pieces are those that have
// fooled parsers (the tilde stays out: path rules expand it themselves); the
// programs do not exist, and PATH is empty.
func TestASimpleCommandIsThatToARealBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	dir := t.TempDir()
	pieces := rapid.SampledFrom([]string{
		"rm", "prog", "a", "x=1", "-rf", "/", ".", " ", " ", " ", "\n", "\\\n", "\t", "#", " #", "'", "'", "\"", "\"", "$", "$'", "$\"", "(", ")", "((", "`", "\\",
		"\\\\", ";", "&", "|", "<", ">", "{", "}", "{a,b}", "[", "]", "*", "?", "=", "!", "%", "^", "é", "\\n", "$x", "${x}", "$(a)", "<<a", "\n#", "=(", "+=",
	})
	held := 0
	rapid.Check(t, func(t *rapid.T) {
		text := "prog " + strings.Join(rapid.SliceOfN(pieces, 1, 9).Draw(t, "pieces"), "")
		c := Read(text)
		if !c.Simple || len(c.Units) != 1 {
			return
		}
		held++
		got, ok := asBash(t, bash, dir, text)
		want := append(slices.Clone(c.Units[0].Words), "\x01")
		if !ok || !slices.Equal(got, want) {
			t.Fatalf("%q is read as %q, bash runs %q (%v)", text, want, got, ok)
		}
	})
	if held == 0 {
		t.Error("no text was simple: nothing was compared")
	}
}

func TestABackslashBeforeALinesEndProvesNothing(t *testing.T) {
	for name, row := range map[string]struct{ text, hidden string }{
		"behind a comment":           {"ls # \\\nrm -rf x", "rm -rf x"},
		"between dollar and bracket": {"ls \"$\\\n(rm -rf x)\"", "rm -rf x"},
		"between dollar and brace":   {"ls $\\\n{x}", ""},
		"between dollar and dollar":  {"ls $\\\n$", ""},
		"between dollar and quote":   {"ls $\\\n'a'", ""},
		"in the middle of a name":    {"ls; r\\\nm -rf x", "rm -rf x"},
		"behind another command":     {"echo a; ls # \\\nrm x", "rm x"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Read(row.text)
			if c.Simple {
				t.Errorf("%q is simple", row.text)
			}
			found := row.hidden == "" || slices.ContainsFunc(c.Units, func(u Unit) bool { return u.Text == row.hidden })
			if !found {
				t.Errorf("%q: %q is not among %+v", row.text, row.hidden, c.Units)
			}
		})
	}
	// And what has none stays what it was.
	for _, text := range []string{"ls -la", "git commit -m 'a\nb'", "# a comment\nls -la", `grep 'a\nb' f`, `printf '%s\n' a`, "git \\\n status", "go test \\\n  -run X \\\n  ./..."} {
		if c := Read(text); !c.Simple {
			t.Errorf("%q is not simple: %s", text, c.Why)
		}
	}
}
