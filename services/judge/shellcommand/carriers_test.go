package shellcommand

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// stage is a directory with stand-ins for programs, which write down that they
// ran, with which words and where. A few do what matters here: they read their
// input as the programs of that name do.
type stage struct{ bash, top string }

var standIns = map[string]string{
	"head":    `case ${1-} in -c) IFS= read -r -N "$2" x;; -n) i=0; while [ $i -lt "$2" ]; do IFS= read -r x; i=$((i+1)); done;; *) while IFS= read -r x; do :; done;; esac`,
	"dd":      `IFS= read -r -N 6 x`,
	"cat":     `[ $# -gt 0 ] || while IFS= read -r x; do echo "$x"; done`,
	"sqlite3": `while read -r a b; do [ "$a" = .shell ] && bash -c "$b"; done`,
	"make":    `IFS= read -r x`,
	"setsid":  `while [ "${1-}" = -w ]; do shift; done; exec "$@"`,
	"stdbuf":  `while case ${1-} in -*) true;; *) false;; esac; do shift; done; exec "$@"`,
	"timeout": `shift; exec "$@"`,
	"nohup":   `exec "$@"`,
	"env":     `exec "$@"`,
	"tee":     `while IFS= read -r x; do :; done; for a; do : >> "$a"; done`,
}

func newStage(t *testing.T) stage {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	s := stage{bash: bash, top: t.TempDir()}
	bin := filepath.Join(s.top, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, body string) {
		log := "{ printf '%q ' \"${0##*/}\" \"$@\"; printf '@%s\\n' \"$PWD\"; } >> \"$LOG/$$\"\n" // those of a pipe write at the same time
		if strings.Contains(body, `exec "$@"`) {
			log = "" // what it passes on says that it ran
		}
		text := "#!" + bash + "\n" + log + body + "\nexit 0\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range strings.Fields("git ls rm zzevil id npm x y z x1 E EOF") {
		write(name, "")
	}
	for name, body := range standIns {
		write(name, body)
	}
	for _, name := range []string{"bash", "sh", "dash"} {
		real, err := exec.LookPath(name)
		if err != nil {
			real = bash
		}
		if err := os.Symlink(real, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run runs texts one after the other, each in a shell of its own with nothing to
// read, and says which commands ran and which files there are.
func (s stage) run(t *testing.T, n string, texts ...string) (ran, files []string) {
	t.Helper()
	dir := filepath.Join(s.top, n)
	for _, d := range []string{"web/src", "web/web", "src"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	const each = `for text; do (eval "$text") < /dev/null > /dev/null 2>&1; done; wait`
	cmd := exec.CommandContext(ctx, s.bash, append([]string{"--norc", "--noprofile", "-c", each, "bash"}, texts...)...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	logs := dir + ".log"
	if err := os.Mkdir(logs, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd.Env = []string{"PATH=" + s.top + "/bin", "HOME=" + dir, "LOG=" + logs}
	_ = cmd.Run() // most texts fail at something
	for _, name := range must(filepath.Glob(logs + "/*"))(t) {
		for line := range strings.Lines(string(must(os.ReadFile(name))(t))) {
			// What a shell of its own left running in the background, and nobody waits for,
			// may be in the middle of its line.
			if whole, ok := strings.CutSuffix(line, "\n"); ok {
				ran = append(ran, strings.ReplaceAll(whole, dir, "."))
			}
		}
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files = append(files, strings.TrimPrefix(path, dir))
		}
		return nil
	})
	return ran, files
}

// alone are the pieces as texts that run each where it may run.
func alone(pieces []piece) (texts []string) {
	for _, p := range pieces {
		for _, d := range p.dirs {
			if d != "" {
				texts = append(texts, "cd "+d+"\n"+p.text)
			} else {
				texts = append(texts, p.text)
			}
		}
	}
	return texts
}

// What a real bash runs of a text that passes is what it runs of its pieces:
// no command more, none in another place, and no other file is written.
func TestARealBashRunsThePiecesAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	want, seed := 250, uint64(5)
	if n, err := strconv.ParseUint(os.Getenv("SHELLCOMMAND_SEED"), 10, 64); err == nil {
		want, seed = 3000, n
	}
	var texts []string
	var cuts [][]piece
	add := func(text string) {
		if strings.Contains(text, "while") || strings.Contains(text, "-l") {
			return // it would not end; a login shell runs its host's own profile too
		}
		if p, err := cut(text, wide); err == nil {
			texts, cuts = append(texts, text), append(cuts, p)
		}
	}
	for _, row := range hidings(t) {
		add(row.Honest)
		add(row.Command)
	}
	for _, text := range consuming {
		add(text)
	}
	g := generator{r: rand.New(rand.NewPCG(5, seed))}
	tried := 0
	for ; len(texts) < want && tried < 400*want; tried++ {
		add(g.text())
	}
	var wg sync.WaitGroup
	next := make(chan int)
	for range 3 {
		wg.Go(func() {
			for i := range next {
				got, wrote := s.run(t, fmt.Sprint("text", i), texts[i])
				may, mayWrite := s.run(t, fmt.Sprint("piece", i), alone(cuts[i])...)
				for _, c := range got {
					if !slices.Contains(may, c) {
						t.Errorf("%q passes as %q, and runs %s", texts[i], cuts[i], c)
					}
				}
				for _, f := range wrote {
					if !slices.Contains(mayWrite, f) {
						t.Errorf("%q passes as %q, and writes %s", texts[i], cuts[i], f)
					}
				}
			}
		})
	}
	for i := range texts {
		next <- i
	}
	close(next)
	wg.Wait()
	t.Logf("%d texts pass of %d", len(texts), tried)
	if len(texts) < want {
		t.Errorf("%d texts pass of %d: too few to say anything", len(texts), tried)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// consuming are texts in which a command reads what another reader takes for
// the next one, or a program for what it does.
var consuming = []string{
	"bash <<'E'\nhead -c 6\necho ' x; zzevil #'\nE", "bash <<'E'\ndd bs=6 count=1\necho ' x; zzevil #'\nE", "bash <<'E'\nls; head -c 6 # x\necho ' x; zzevil #'\nE",
	"bash <<'E'\nbash -c 'ls && head -c 6'\necho ' x; zzevil #'\nE", "bash <<'E'\neval 'head -c 6'\necho ' x; zzevil #'\nE", "bash <<'E'\nstdbuf -oL head -c 6\necho ' x; zzevil #'\nE",
	"bash <<'E'\ntimeout 5 head -c 6\necho ' x; zzevil #'\nE", "bash <<'E'\nif ls; then\nhead -c 6\nfi\necho ' x; zzevil #'\nE", "bash <<'E'\nhead -c 6 | cat\necho ' x; zzevil #'\nE",
	"bash <<'E'\nhead -c 9\n# x x x\\ x; zzevil\nE", "bash <<'E'\nmake\nls\nE", "bash <<'E'\ngit log --stdin\nls\nE", "bash <<'E'\ngit diff --no-index - a\nls\nE", "bash <<'E'\ngit fetch --std\nls\nE", "bash <<'E'\ngit add -p\nls\nE", "bash <<'E'\ngit add --pat\nls\nE",
	"eval sqlite3 <<< '.shell zzevil'", "eval 'ls; sqlite3' <<< '.shell zzevil'", "timeout 5 bash -c 'ls; sqlite3' <<< '.shell zzevil'", "setsid -w sqlite3 <<< '.shell zzevil'",
	"eval 'bash -c sqlite3' <<< '.shell zzevil'", "eval 'exec sqlite3' <<< '.shell zzevil'",
}

func TestNoCommandReadsWhatAnotherReaderTakesForCommands(t *testing.T) {
	t.Parallel()
	for _, text := range consuming {
		if pieces, err := cut(text, wide); err == nil {
			t.Errorf("%q passes as %q", text, texts(pieces))
		}
	}
	for text, want := range map[string][]string{
		"bash <<'E'\ncat f\nE":                                  {"cat f"},
		"bash <<'E'\nls; head -c 6 # x\n\nE":                    {"ls", "head -c 6"},
		"bash <<'E'\ngit add -A\ngo vet ./...\nls\nE":           {"git add -A", "go vet ./...", "ls"},
		"bash <<'E'\ngit log -3\nmake test\nE":                  {"git log -3", "make test"},
		"bash <<'E'\ngit log | head -n 3\nls\nE":                {"git log", "head -n 3", "ls"},
		"bash <<'E'\ncd web\nif ls; then\nmake\nfi\nE":          {"cd web", "ls", "make"},
		"bash <<'E'\necho a | bash -c 'cat && ls'\ngit diff\nE": {"echo a", "cat", "ls", "git diff"},
		"bash -c 'head -c 6\nls'":                               {"head -c 6", "ls"},
		"eval 'cat; ls' <<< a":                                  {"cat", "ls"},
	} {
		if pieces, err := cut(text, wide); err != nil || !slices.Equal(texts(pieces), want) {
			t.Errorf("%q: %q, %v", text, texts(pieces), err)
		}
	}
}

// generator makes texts of the forms that are known, with what has fooled
// readers of such texts thrown in.
type generator struct {
	r *rand.Rand
	// paths: its commands work on files.
	paths bool
}

func (g generator) pick(from ...string) string { return from[g.r.IntN(len(from))] }

func (g generator) text() string {
	text := g.list(3)
	for range g.r.IntN(3) {
		at := g.r.IntN(len(text) + 1)
		text = text[:at] + g.pick(noise...) + text[at:]
	}
	if g.r.IntN(12) == 0 {
		at := g.r.IntN(len(text))
		text = text[:at] + text[at+1:]
	}
	return text
}

var noise = []string{" ", "\n", "\t", ";", "&", "|", "'", "\"", "\\", "\\\\", "#", " #", "$", "(", ")", "{", "}", "<", ">", "!", "~", "*", "=", "\u00a0", "\u2028", "é",
	";zzevil;", "\nzzevil\n", "|zzevil", "&zzevil&", "&&zzevil", "zzevil ", " zzevil", "'zzevil'", ">zz", " >zz ", "2>zz", "<zz", "<<<zz ", "<<E", "<<'E'\n", "\nE\n", "\nE", "E\n", "EOF",
	"\\\n", "$'\\n'", "\"\"", "''", "[a]", "/", "-", "cd web;", "cd web&&", "eval ", "exec ", "-c ", "-l ", ">&2", "2>&1", "&>zz", ">&zz", "|&", "%", "^", ",", ":", "@", "+", "x=1 "}

func (g generator) list(depth int) string {
	one := func() string { return g.command(depth) }
	switch g.r.IntN(16) {
	case 0:
		return one() + g.pick("; ", ";", " && ", " || ", "\n", " | ", " & ", "\n\n", " |& ") + one()
	case 1:
		return one() + g.pick("; ", " && ", "\n", "|") + one() + g.pick("; ", " || ", "\n", "&&") + one()
	case 2:
		return "(" + one() + ")" + g.pick("", "; "+one(), " | "+one())
	case 3:
		return "{ " + one() + "; }" + g.pick("", "; "+one(), " | "+one())
	case 4:
		return "if " + one() + "; then " + one() + "; " + g.pick("", "else "+one()+"; ") + "fi"
	case 5:
		return "! " + one()
	case 6:
		return one() + " # " + g.pick("x", "it's", "\"", "x\n"+one())
	}
	return one()
}

func (g generator) command(depth int) string {
	if g.paths && (depth <= 0 || g.r.IntN(4) == 0) {
		return g.pick("cat a", "cat secret/key", "cat ../x", "cd secret", "cd secret; cat key", "cat .env", "ls ~/.ssh", "cat /etc/passwd", "cp a secret", "echo x > secret/k", "cd web", "cd src", "cat src/a", "cat key", "echo x > src/b", "git -C secret status",
			"cat 'secret/key'", "cat secret//key", "cat s*/key", "cat {a,secret/key}", "cat < secret/key", "tee secret/k", "cat <<< secret/key", "cd ..", "cd web && cat src/x", "cd -", "pushd web", "popd", "cd ~", "cd /etc", "tar cf x.tar secret", "cp secret/key b", "rm secret/key", "mv a .env", "cd", "cat ~/x", "cat \"~/x\"", "cat \\~/x", "cat secret\\/key", "cat web/../secret/key", "cd web/..; cat secret/key", "git add .env", "ls -la", "cp -r . /tmp/x", "cat x.env",
			"ln -s secret l", "cat l/key", "cat /repo/secret/key", "cat $HOME/x", "cat ~root/x", "find . -name key", "grep -r x secret", "grep -r x .", "curl -o secret/k http://a/b", "git diff --no-index a /etc/passwd", "ls; cat .env")
	}
	if depth <= 0 || g.r.IntN(6) == 0 {
		return g.pick("ls", "git status", "git log -1", "id", "echo a", "echo 'a b'", "echo \"a b\"", "echo a\\ b", "cat", "head -c 6", "head -n 1", "cd web", "cd web && ls", "cd src; git status", "dd bs=6",
			"ls > zz1", "echo x >> zz2", "ls 2>&1", "ls 2> /dev/null", "npm test", "make all", "echo '#'", "echo \\#", "ls web/*", "ls ~/web", "tee zz3", "echo a > 'z z'", "cat <<< x", "x", "ls -- -a",
			"printf '%s\\n' a", "echo '; zzevil'", "echo \"; zzevil\"", "echo \\; zzevil", "echo 'a\nzzevil'", "echo \"a\nzzevil #\"", "echo '$(zzevil)'", "echo '`zzevil`'", "echo \\$\\(zzevil\\)", "true", "false", "wait", "exit 1", "set -e",
			"sqlite3", "pushd web", "command ls", "timeout 5 ls", "nohup id", "env ls", "test -f a", "[ a = b ]", "sh", "bash")
	}
	shell := g.pick("bash", "sh", "bash", "dash", "/bin/bash", "timeout 9 bash", "env sh", "command bash", "nohup bash")
	option := g.pick("-c", "-c", "-ec", "-euo pipefail -c", "-xc", "-e -c", "-o errexit -c")
	switch g.r.IntN(9) {
	case 0, 1:
		return shell + " " + option + " " + g.quoted(g.list(depth-1)) + g.pick("", "", "", " 2>&1", " > /dev/null", " <<< '.shell zzevil'", " a")
	case 2:
		return "eval " + g.quoted(g.list(depth-1)) + g.pick("", "", " 2>&1", " "+g.quoted(g.list(0)), " <<< '.shell zzevil'")
	case 3, 4:
		end := g.pick("E", "EOF", "a b", "")
		return g.pick("bash", "sh", "bash -s", "bash -e", "dash", "/bin/bash -eu") + g.pick(" <<", " << ") + "'" + end + "'" + g.pick("", "", " && ls", "; id", " | cat") + "\n" + g.list(depth-1) + g.pick("\n", "\n"+g.list(0)+"\n") + end + "\n"
	case 5:
		return g.pick("bash", "sh", "bash -s") + " <<< " + g.quoted(g.list(depth-1))
	case 6:
		return g.pick("exec ", "setsid -w ", "stdbuf -oL ", "setsid ", "stdbuf -o0 -e0 ") + g.command(depth-1)
	default:
		return g.list(depth - 1)
	}
}

// quoted is text as one word, in one of the ways that there are.
func (g generator) quoted(text string) string {
	if g.r.IntN(2) == 0 {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	if g.r.IntN(8) == 0 {
		return `"` + text + `"`
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text) + `"`
}
