package shellcommand

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/shell"
)

// stubs are programs that write down their words and do nothing.
var stubs = []string{"git", "ls", "cat", "rm", "make", "npm", "tee", "id", "awk", "sed", "find", "grep", "tr", "rev", "base64", "curl", "python3", "sudo", "xargs"}

// passing are the programs that only pass on a command, taken as they are.
var passing = []string{"bash", "sh", "timeout", "stdbuf", "setsid", "env"}

// stubbed is a folder with programs to be found.
func stubbed(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	const stub = "#!/bin/sh\n{ printf '%s\\0' \"${0##*/}\" \"$@\"; } > \"$RECORD/$$\"\n"
	for _, name := range stubs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(stub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range passing {
		real, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("there is no %s", name)
		}
		if err := os.Symlink(real, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// ran is what a real bash runs because of text: the words of each program.
func ran(t *testing.T, bin, text string) (words [][]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "bash"), "--norc", "--noprofile", "-c", text)
	cmd.Dir, cmd.WaitDelay = t.TempDir(), time.Second
	// One file a program: those of a pipe write at the same time, and what another
	// text left in the background may be late.
	record := t.TempDir()
	cmd.Env = []string{"PATH=" + bin, "HOME=" + cmd.Dir, "RECORD=" + record}
	for _, dir := range []string{"web", "web/src"} {
		_ = os.Mkdir(filepath.Join(cmd.Dir, dir), 0o700)
	}
	_ = cmd.Run() // most commands have nothing to work on
	files, err := filepath.Glob(filepath.Join(record, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && strings.HasSuffix(string(data), "\x00") {
			words = append(words, strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00"))
		}
	}
	return words
}

// listed says whether words are those of one of the commands, or of what one of
// them passes on.
func isListed(words []string, commands []string) bool {
	return slices.ContainsFunc(commands, func(c string) bool {
		return slices.ContainsFunc(shell.Read(c).Units, func(u shell.Unit) bool {
			return slices.Equal(u.Words, words) || len(u.Words) > 0 && !u.Literal && u.Words[0] == words[0]
		})
	})
}

// A real bash is the judge of the suite: for a text that passes it runs nothing
// that was not claimed, and most of those that hide a command do run it.
func TestARealBashRunsWhatIsClaimed(t *testing.T) {
	t.Parallel()
	bin := stubbed(t)
	hid, held := 0, 0
	for _, row := range hidings(t) {
		if strings.Contains(row.Command, "while") || strings.Contains(row.Honest, "-lc") {
			continue // it would not end; a login shell runs its host's own profile too
		}
		for _, words := range ran(t, bin, row.Honest) {
			held++
			if !isListed(words, row.Claims) {
				t.Errorf("%q runs %q, which is not among %q", row.Honest, words, row.Claims)
			}
		}
		if slices.ContainsFunc(ran(t, bin, row.Command), func(words []string) bool { return !isListed(words, row.Lie) }) {
			hid++
		}
	}
	t.Logf("%d commands ran as they were claimed; %d texts ran one that was hidden", held, hid)
	if held < 100 || hid < 60 {
		t.Errorf("%d commands ran as they were claimed, %d texts ran one that was hidden: too few to say anything", held, hid)
	}
}

// Whatever is cut runs nothing in a real bash but its pieces: honest texts with
// something put in, left out or twice in them, as far as they still pass.
func TestARealBashRunsOnlyPieces(t *testing.T) {
	t.Parallel()
	bin := stubbed(t)
	seed := uint64(1)
	if s := os.Getenv("SHELL_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(seed, 7))
	more := []string{"; rm x", "rm x", "$(rm x)", "`rm x`", "\n", "\nrm x\n", "'", "'", "\"", "\"", "\\", "#", " #", " ", ";", "&", "&&", "|", "(", ")", "{ ", "; }", "$x", "$", "*", "?", "{ls,rm}", "!", "! ", "<", ">f",
		"2>&1", "<<< ", "<<'E'\n", "\nE\n", "bash -c ", "eval ", "timeout 5 ", "stdbuf -oL ", "exec ", "if ls; then ", "; fi", "-", "--", "=", "x=1 ", "\t", "é", "\\\n", "[", "%", "^", ":", "cd web && ", "rm -rf '", "' x"}
	var honest []string
	for _, row := range hidings(t) {
		if !strings.Contains(row.Honest, "while") && !strings.Contains(row.Honest, "-lc") && len(row.Honest) < 200 {
			honest = append(honest, row.Honest)
		}
	}
	held := 0
	for tried := 0; held < 120 && tried < 100_000; tried++ {
		text := honest[r.IntN(len(honest))]
		for range 1 + r.IntN(3) {
			from := r.IntN(len(text) + 1)
			to := min(len(text), from+r.IntN(2)*r.IntN(4))
			text = text[:from] + more[r.IntN(len(more))] + text[to:]
		}
		pieces, err := cut(text, wide)
		if err != nil {
			continue
		}
		for _, words := range ran(t, bin, text) {
			held++
			if !isListed(words, texts(pieces)) {
				t.Errorf("%q runs %q, which is not among %q", text, words, texts(pieces))
			}
		}
	}
	if held < 120 {
		t.Errorf("%d commands ran: too few to say anything", held)
	}
}
