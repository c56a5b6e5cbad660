package policy

import (
	"bytes"
	"context"
	"fmt"
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

// What the stand-ins do beside writing down that they ran, and how: the
// programs that run others really do, or no evasion would show. $0 is the name
// of the stand-in; a line's own text is all that they are ever handed.
var standIns = map[string]string{
	"timeout": `while [[ ${1-} == -* ]]; do [[ $1 == -[ks] ]] && shift; shift; done; shift; (($#)) && exec "$@"; exit 0`,
	"nice":    `while [[ ${1-} == -* ]]; do [[ $1 == -n ]] && shift; shift; done; (($#)) && exec "$@"; exit 0`,
	"nohup":   `(($#)) && exec "$@"; exit 0`,
	"env": `while (($#)); do case $1 in -u|-C) shift 2;; -S) shift; exec bash -c "$*";; -*) shift;; *=*) export "$1"; shift;; *) break;; esac; done
		(($#)) && exec "$@"; exit 0`,
	"sudo":    `while [[ ${1-} == -* ]]; do [[ $1 == -[ug] ]] && shift; shift; done; (($#)) && exec "$@"; exit 0`,
	"setsid":  `(($#)) && exec "$@"; exit 0`,
	"stdbuf":  `while [[ ${1-} == -* ]]; do shift; done; (($#)) && exec "$@"; exit 0`,
	"mywrap":  `(($#)) && exec "$@"; exit 0`,
	"watch":   `while [[ ${1-} == -* ]]; do shift; done; exec bash -c "$*"`,
	"ssh":     `shift; (($#)) && exec bash -c "$*"; exit 0`,
	"busybox": `(($#)) && exec "$@"; exit 0`,
	"xargs":   `while [[ ${1-} == -* ]]; do [[ $1 == -[nIP] ]] && shift; shift; done; mapfile -t in; exec "${@:-echo}" "${in[@]}"`,
	"find": `while (($#)); do case $1 in -exec|-execdir|-ok) shift; cmd=(); while (($#)) && [[ $1 != ";" && $1 != "+" ]]; do cmd+=("$1"); shift; done
		"${cmd[@]}";; esac; shift; done; exit 0`,
	"git": `while [[ ${1-} == -* ]]; do case $1 in -c) case $2 in alias.*=!*) bash -c "${2#*=!}";; core.sshCommand=*|core.pager=*) bash -c "${2#*=}";; esac; shift 2;;
		-C) shift 2;; *) shift;; esac; done
		case ${1-} in fetch|ls-remote|push|pull|clone) [[ -n ${GIT_SSH_COMMAND-} ]] && bash -c "$GIT_SSH_COMMAND";; log|diff|show) [[ -n ${GIT_PAGER-${PAGER-}} ]] &&
		bash -c "${GIT_PAGER-$PAGER}"; [[ -n ${GIT_EXTERNAL_DIFF-} ]] && bash -c "$GIT_EXTERNAL_DIFF";; esac
		for a; do case $a in --upload-pack=*|--receive-pack=*|--exec=*) bash -c "${a#*=}";; esac; done; exit 0`,
	"awk": interpreterStandIn, "python3": interpreterStandIn, "perl": interpreterStandIn, "node": interpreterStandIn,
	"sed":     `for a; do [[ $a =~ ^[0-9]*e\ (.*) ]] && bash -c "${BASH_REMATCH[1]}"; done; exit 0`,
	"tar":     `for a; do case $a in --checkpoint-action=exec=*) bash -c "${a#*=exec=}";; --to-command=*) bash -c "${a#*=}";; esac; done; exit 0`,
	"sort":    `for a; do case $a in --compress-program=*|--compress-prog=*) bash -c "${a#*=}";; esac; done; exit 0`,
	"make":    `for a; do [[ $a == *'$(shell '* ]] && { b=${a#*'$(shell '}; bash -c "${b%)*}"; }; done; exit 0`,
	"sqlite3": `while read -r a b; do [[ $a == .shell ]] && bash -c "$b"; done; exit 0`,
	"vim":     `while read -r a; do [[ $a == :!* ]] && bash -c "${a#:!}"; done; exit 0`,
	"cat":     `for a; do [[ -f $a ]] && while IFS= read -r l || [[ -n $l ]]; do echo "$l"; done < "$a"; done; (($#)) || while IFS= read -r l || [[ -n $l ]]; do echo "$l"; done; exit 0`,
	"tee":     `while IFS= read -r l; do echo "$l"; for a; do echo "$l" >> "$a"; done; done; exit 0`,
}

const interpreterStandIn = `run() { [[ $1 =~ system\([\"\']([^\"\']*)[\"\']\) ]] && bash -c "${BASH_REMATCH[1]}"; }
	for a; do run "$a"; [[ -f $a ]] && while read -r l; do run "$l"; done < "$a"; done; (($#)) || while read -r l; do run "$l"; done; exit 0`

// plainStandIns only write down that they ran.
var plainStandIns = strings.Fields("rm ls grep wc head tail npm go cargo curl docker sleep mkdir touch cp mv chmod gh jq date basename dirname outsider")

// scratch is a directory with stand-ins, in which a real bash runs one line.
type scratch struct{ bash, top string }

func newScratch(t *testing.T) scratch {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	if bash, err = filepath.Abs(bash); err != nil {
		t.Fatal(err)
	}
	s := scratch{bash: bash, top: t.TempDir()}
	bin := filepath.Join(s.top, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, body string) {
		head := "#!" + bash + "\nprintf '%s\\n' \"${0##*/} $*\" >> '" + s.top + "/log.'\"$LINE\"\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(head+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range plainStandIns {
		write(name, "exit 0")
	}
	for name, body := range standIns {
		write(name, body)
	}
	for _, name := range []string{"bash", "sh"} {
		if err := os.Symlink(bash, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run runs one line, and returns the commands that ran.
func (s scratch) run(t *testing.T, n int, line string) []string {
	t.Helper()
	dir := filepath.Join(s.top, fmt.Sprint("cwd", n))
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.txt": "one\ntwo\n", "b.go": "x\n", "script.sh": "ls\n", "-n": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.bash, "--norc", "--noprofile", "-c", "ulimit -f 2048; "+line)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = []string{"PATH=" + s.top + "/bin", "HOME=" + dir, fmt.Sprint("LINE=", n)}
	cmd.Stdin = strings.NewReader("")
	_ = cmd.Run() // most lines fail at something; what ran is in the log
	log, err := os.ReadFile(filepath.Join(s.top, fmt.Sprint("log.", n)))
	if err != nil {
		return nil // nothing ran
	}
	return strings.Split(strings.TrimSuffix(string(bytes.ToValidUTF8(log, nil)), "\n"), "\n")
}

// allowed are the programs of the allowlist; modifiers resolve by what they
// carry.
var (
	allowedPrograms = strings.Fields("ls cat echo git grep make find sort wc head tail true false cd test [ read printf export set : go npm sed awk tar exit break")
	modifierNames   = strings.Fields("timeout nice nohup env")
)

func TestNothingIsAllowedThatARealBashRunsAgainstTheRules(t *testing.T) {
	t.Parallel()
	s := newScratch(t)
	rest := `"external_directory":"allow","write":"allow","path":"allow"`
	denies := mustCompile(t, permission(`{"*":"allow",`+rest+`,"bash":{"*":"allow","rm *":"deny"}}`))
	pushes := mustCompile(t, permission(`{"*":"allow",`+rest+`,"bash":{"*":"allow","git push *":"deny"}}`))
	var list strings.Builder
	for _, p := range allowedPrograms {
		fmt.Fprintf(&list, `,"%s *":"allow"`, p)
	}
	allows := mustCompile(t, permission(`{"*":"ask",`+rest+`,"bash":{"*":"ask"`+list.String()+`}}`))

	// POLICY_SEED tries other lines, and more of them.
	n, seed := 450, uint64(26)
	if s, err := strconv.ParseUint(os.Getenv("POLICY_SEED"), 10, 64); err == nil {
		n, seed = 2000, s
	}
	lines := append(slices.Clone(evasions), generated(n, seed)...)
	var mu sync.Mutex
	ran, allowed := map[string]int{}, map[string]int{}
	check := func(n int, line string) {
		got := s.run(t, n, line)
		mu.Lock()
		defer mu.Unlock()
		for name, p := range map[string]*Snapshot{"denies": denies, "pushes": pushes, "allows": allows} {
			bad := ""
			for _, c := range got {
				if forbids(name, c) {
					bad = c
				}
			}
			ruling := p.Rule(Call{Tool: "bash", Input: input(m{"command": line}), Cwd: filepath.Join(s.top, fmt.Sprint("cwd", n)), Home: s.top})
			if ruling.Action == Allow {
				allowed[name]++
			}
			if bad != "" {
				ran[name]++
			}
			if bad != "" && ruling.Action == Allow {
				t.Errorf("%s: %q is allowed, and ran %q", name, line, bad)
			}
		}
	}
	var wg sync.WaitGroup
	work := make(chan int)
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range work {
				check(n, lines[n])
			}
		}()
	}
	for n := range lines {
		work <- n
	}
	close(work)
	wg.Wait()
	t.Logf("%d lines; what is refused ran in %v, allowed were %v", len(lines), ran, allowed)
	// Lines in which nothing forbidden runs, or that nothing allows, prove little.
	for _, name := range []string{"denies", "pushes", "allows"} {
		if ran[name] < 40 || allowed[name] < 40 {
			t.Errorf("%s: refused things ran in %d lines, and %d were allowed", name, ran[name], allowed[name])
		}
	}
}

// forbids says whether a policy forbids a command that ran.
func forbids(policy, ran string) bool {
	words := strings.Fields(ran)
	if len(words) == 0 {
		return false
	}
	switch policy {
	case "denies":
		return words[0] == "rm"
	case "pushes":
		if words[0] != "git" {
			return false
		}
		for i := 1; i < len(words); i++ {
			switch {
			case words[i] == "-C" || words[i] == "-c":
				i++
			case !strings.HasPrefix(words[i], "-"):
				return words[i] == "push"
			}
		}
		return false
	}
	return !slices.Contains(allowedPrograms, words[0]) && !slices.Contains(modifierNames, words[0])
}

// generator makes command lines from what has fooled readers of them.
type generator struct{ r *rand.Rand }

// generated are n lines, the same for every seed.
func generated(n int, seed uint64) []string {
	g := generator{rand.New(rand.NewPCG(20, seed))}
	out := make([]string, n)
	for i := range out {
		out[i] = g.list(3)
	}
	return out
}

func (g generator) pick(from ...string) string { return from[g.r.IntN(len(from))] }

// fill is a template with its places taken: C a command, L a list, W a word, N
// a name.
func (g generator) fill(template string, depth int) string {
	var b strings.Builder
	for i := 0; i < len(template); i++ {
		if template[i] != '@' || i+1 == len(template) {
			b.WriteByte(template[i])
			continue
		}
		i++
		switch template[i] {
		case 'C':
			b.WriteString(g.command(depth - 1))
		case 'L':
			b.WriteString(g.list(depth - 1))
		case 'W':
			b.WriteString(g.word(depth - 1))
		case 'N':
			b.WriteString(g.pick("x", "FOO", "f", "NAME"))
		}
	}
	return b.String()
}

func (g generator) list(depth int) string {
	if depth <= 0 {
		return g.command(0)
	}
	return g.fill(g.pick("@C", "@C", "@C", "@C", "@C && @C", "@C || @C", "@C; @C", "@C | @C", "@C\n@C", "@C &\nwait", "! @C", "@N=@W; @L", "cd sub && @L", "@L # @C",
		"export @N=@W; @C", "@N=@W @C", "set -e; @L", "(@L)", "{ @L; }", "if @C; then @L; else @L; fi", "for @N in @W @W; do @L; done", "while read -r f; do @C; break; done < a.txt",
		"case @W in a*) @L ;; *) @L ;; esac", "f() { @L; }; f", "[[ -n @W ]] && @C", "echo $(@L)", "echo \"`@C`\"", "cat <<E\n@W $(@C)\nE", "cat <<'E'\n$(@C)\nE", "cat <<'E' | @C\nrm x\nE",
		"eval '@C'", "bash -c '@C'", "bash -c \"@C\"", "bash <<'E'\n@L\nE", "bash <<< '@C'", "echo '@C' | sh", "echo '@C' > s.sh; bash s.sh", "echo '@C' > s.sh; . ./s.sh", "@C > out.txt 2>&1",
		"@C 2>/dev/null", "diff <(@C) b.go", "trap '@C' EXIT", "time @C", "coproc @C\nwait", "@N=$(@C); echo \"$@N\"", "x='@C'; $x", "x='@C'; eval \"$x\"", "alias ls='@C'\nls",
		"printf -v x '@C'; $x", "x=rm; $x y", "x=rm; y=$x; \"$y\" z", "i=0; while (( i < 2 )); do @C; i=$((i + 1)); done", "x='a[$(@C)]'; echo $((x))", "x='a[$(@C)]'; [[ $x -eq 1 ]]",
		"x='a[$(@C)]'; test -v \"$x\"", "x='$(@C)'; echo \"${x@P}\"", "set -- @W @W; \"$@\"", "set -k; ls x=1 @C", "enable -n test; @C", "hash -p bin/rm ls; ls", "PATH=$PWD:$PATH; @C"), depth)
}

func (g generator) command(depth int) string {
	if depth <= 0 {
		return g.fill(g.pick("ls @W", "rm @W", "rm -rf x", "git push", "git push origin x", "git status", "echo @W", "cat a.txt", "outsider @W", "git -C sub push", "grep x a.txt", "go test ./...",
			"npm test", "true", "make all", "git log --oneline", "wc -l *.go"), 0)
	}
	return g.fill(g.pick("@C", "@C", "timeout 5 @C", "timeout -k 1 5 @C", "nice @C", "nice -n 3 @C", "nohup @C", "env @C", "env A=b @C", "env -u A @C", "command @C", "builtin @C", "exec @C",
		"sudo @C", "setsid @C", "stdbuf -o0 @C", "mywrap @C", "busybox @C", "ssh host @C", "watch @C", "xargs @C < a.txt", "find . -exec @C \\;", "echo a | xargs @C", "awk 'BEGIN{system(\"@C\")}'",
		"python3 -c 'system(\"@C\")'", "perl -e 'system(\"@C\")'", "sed '1e @C' a.txt", "tar cf x a.txt --checkpoint-action=exec='@C'", "sort --compress-prog='@C' a.txt", "git -c alias.z='!@C' z",
		"git fetch --upload-pack='@C'", "GIT_SSH_COMMAND='@C' git fetch", "PAGER='@C' git log", "FOO='@C' ls", "make 'X=$(shell @C)'", "echo '.shell @C' | sqlite3 a", "echo ':!@C' | vim a",
		"find . -name \"$(@C)\"", "echo @W @W", "git commit -m '@C'", "git log --grep='@C'", "grep -r '@C' .", "$(echo @C)", "`echo @C`", "r\\m x", "'rm' x", "r''m x", "\\rm x", "{rm,x}", "$'\\x72m' x",
		"\"rm\" x", "../bin/rm x", "$PWD/../bin/rm x", "git 'push' x", "git p\\ush", "git $x push", "git @W", "ls $(@C)", "cat < <(@C)", "> out @C", "2>/dev/null @C", "A=1 B=2 @C", "! @C", "{ @C; }", "(@C)",
		"if @C; then :; fi", "rm$x y", "${x:-rm} y", "r${x}m y", "git ${x}push", "echo ${x:-$(@C)}", "echo $((1 + $(@C | wc -l)))"), depth)
}

func (g generator) word(depth int) string {
	if depth <= 0 {
		return g.pick("a", "'a b'", "\"c d\"", "x*", "*", "$x", "\"$x\"", "push", "rm", "-n", "--", "b.go", "{a,b}", "~", "$HOME", "\\$x", "'$(rm y)'", "$'a'", "a\\ b", "$?", "é")
	}
	return g.fill(g.pick("@W", "@W", "$(@C)", "\"$(@C)\"", "`@C`", "${x:-@W}", "@W@W"), depth)
}
