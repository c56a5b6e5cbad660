package shell

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
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
		if !c.Simple || len(c.Units) != 1 || !c.Units[0].Literal || len(c.Units[0].Redirects) > 0 {
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
		"between dollar and brace":   {"frob $\\\n{x}", ""},
		"between dollar and dollar":  {"frob $\\\n$", ""},
		"between dollar and quote":   {"frob $\\\n'a'", ""},
		"in the middle of a name":    {"ls; r\\\nm -rf x", "rm -rf x"},
		"behind another command":     {"echo a; ls # \\\nrm x", "rm x"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Read(row.text)
			if c.Simple && row.hidden == "" {
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

// Whatever is proven, with lists, substitutions and here-documents, runs no
// command in a real bash that is not among its units.
func TestWhatIsProvenIsAllThatARealBashRuns(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	seed := uint64(1)
	if s := os.Getenv("SHELL_SEED"); s != "" {
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(seed, 7))
	pieces := []string{
		"p", "q", "a", "x=1", "-n", "/", " ", " ", " ", " ", "\n", "\n", "\\\n", "\t", "#", " #", "'", "'", "\"", "\"", "$", "$'", "$(", "$(q", "(", ")", ")", "((", "))", "`", "`q`", "\\", ";", ";", "&",
		"&&", "|", "||", "<", ">", "{", "}", "{ ", "; }", "{a,b}", "[", "]", "[[ ", " ]]", "*", "=", "!", "! ", "$x", "${x}", "${x:-", "${x#", "}", "<<E", "<<'E'", "\nE\n", "\nE", "<<<", "<(", ">(", "if ", "then ", "; fi",
		"for f in ", "; do ", "; done", "case ", " in ", ") ", ";;", " esac", "while ", "é", "time ", "$((", "$[", "+1", "E", "<<-E", "\n\tE\n", "@(", "2>", "&>", ">&2", "p q\n", "p `q`", "p \"$(q)\"", "p '$(q)'", "f() ", "${x/", "//", "'$(q)'",
	}
	var texts []string
	var read []Command
	for len(texts) < 1200 {
		var b strings.Builder
		b.WriteString("p ")
		for range 1 + r.IntN(12) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		if c := Read(b.String()); c.Simple && len(c.Text) > 4 {
			texts, read = append(texts, c.Text), append(read, c)
		}
	}
	ran := inBash(t, bash, texts)
	for i, c := range read {
		for _, words := range ran[i] {
			if !known(c, words) {
				t.Errorf("%q is proven, bash runs %q, units %+v", c.Text, words, c.Units)
			}
		}
	}
}

// inBash evaluates texts one after the other in a shell that finds no program,
// and returns for each the commands that it would have run.
func inBash(t *testing.T, bash string, texts []string) [][][]string {
	t.Helper()
	// What runs in the background may be late, so each answer says what it is to.
	const show = `exec 3>&1; command_not_found_handle() { printf '%s\0' "$N" "$@" $'\1' >&3; }; PATH=/nowhere; N=0
		while IFS= read -r -d '' t; do (eval "$t") </dev/null >/dev/null 2>&1; N=$((N + 1)); done; wait`
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, "--norc", "--noprofile", "-c", show)
	cmd.Dir, cmd.Env, cmd.Stdin = t.TempDir(), []string{"HOME=/home/dev"}, strings.NewReader(strings.Join(texts, "\x00")+"\x00")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	ran := make([][][]string, len(texts))
	var words []string
	for _, w := range strings.Split(string(out), "\x00") {
		if w != "\x01" {
			words = append(words, w)
			continue
		}
		n, err := strconv.Atoi(words[0])
		if err != nil || n >= len(texts) {
			t.Fatalf("an answer to no text: %q", words)
		}
		ran[n], words = append(ran[n], words[1:]), nil
	}
	return ran
}

// known says whether a command that ran is one of the units: the same words,
// where none of them is computed, else the same program.
func known(c Command, ran []string) bool {
	return slices.ContainsFunc(c.Units, func(u Unit) bool {
		return len(u.Words) > 0 && u.Words[0] == ran[0] && (!u.Literal || slices.Equal(u.Words, ran) || slices.ContainsFunc(u.Words, func(w string) bool { return strings.HasPrefix(w, "~") }))
	})
}
