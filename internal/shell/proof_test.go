package shell

import (
	"slices"
	"strings"
	"testing"
)

// What is proven: its structure is understood, and nothing in it does more than
// its words say.
func TestProven(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"# only a comment", "ls && pwd || id; date | wc -l &", "ls\npwd", "! ls", "(ls)", "{ ls; }", "time ls", "[[ -f a && $x == b* ]]", "(( 1 + 2 ))",
		"if ls; then id; elif pwd; then date; else true; fi", "for f in *.go a; do echo \"$f\"; done", "while IFS= read -r l; do echo \"$l\"; done < f",
		"until [ -f x ]; do sleep 1; done", "case $x in a|b) ls ;; *) id ;; esac", "i=0; while (( i < 3 )); do i=$((i + 1)); echo $i; done",
		"for ((i = 0; i < 3; i++)); do echo $i; done", "A=b", "A=b ls", "export A=b", "CGO_ENABLED=0 go test ./...", "X=$(git rev-parse HEAD); echo \"$X\"",
		"ls $x *.go {a,b} ~root/x `pwd` $'a' <(pwd)", "ls 'x{a,b}'", "awk '{print $1, $2}' f", "cat <<E\n$x $(pwd)\nE", "cat <<'E' > f\n$(rm x) `y`\nE", "cat <<< \"$x\"",
		"ls > f 2>&1", "ls >> f", "ls &> f", "cmd 2>/dev/null", "> f", "sort < f", "diff <(git show HEAD) f", "timeout 5 ls", "timeout -k 1 5s nice -n 3 git status",
		"env ls", "command -p ls", "nohup make", "git commit -m \"$(cat <<'E'\nfix it's\nE\n)\"", "git log --author \"$x\" --oneline -- \"$f\"", "git -C \"$d\" status",
		"git push origin \"HEAD:$b\"", "find . -type f -name \"$x\"", "rg -n -e \"$x\" src", "gh pr create --title \"$t\" --body \"$b\"", "python3 x.py \"$@\" $y",
		"npm run x -- \"$y\"", "curl -H \"A: $x\" \"https://x.y/$z\"", "[ -n \"$x\" ] && [ \"$a\" = b ]", "set -euo pipefail; ls", "wait $!", "cd x || exit 1; ls",
		"a=(1 2); echo \"${a[@]}\" ${#a[@]} ${a[0]}", "echo ${x:-a} ${x%.go} ${x//a/b} ${x:1:2} ${#x} $# $?", "n=${#x}; [[ $n -gt 3 ]]", "PAGER=cat git log", "LC_ALL=C sort f",
	} {
		if c := Read(text); !c.Simple {
			t.Errorf("%q: %s", text, c.Why)
		}
	}
}

// Where the text says what a variable is, it is read as that.
func TestKnownValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"x=rm; $x y": "rm y", "x=a && p $x": "p a", "x=a; p \"v$x\" ${x}b": "p va ab", "for f in a b; do p $f; done": "p a|p b", "for f in a b; do q; p $f; done": "q|p a|p b",
		"for f in a b; do for g in c d; do p $f $g; done; done": "p a c|p a d|p b c|p b d", "x=a; p $(q $x)": "p $(q $x)|q a", "{ x=a; }; p $x": "p a",

		"x=a; x=b; p $x": "p $x", "x=a; read x; p $x": "read x|p $x", "q && x=a; p $x": "q|p $x", "(x=a); p $x": "p $x", "x=a & p $x": "p $x", "x=a | q; p $x": "q|p $x",
		"if q; then x=a; fi; p $x": "q|p $x", "x='a b'; p $x": "p $x", "x=*; p $x": "p $x", "x=$y; p $x": "p $x", "x+=a; p $x": "p $x", "p $x; x=a": "p $x", "x=a p $x": "p $x",
		"x=a; p ${x:-b} ${x%c}": "p ${x:-b} ${x%c}", "x=a; unset x; p $x": "unset x|p $x", "RANDOM=1; p $RANDOM": "p $RANDOM", "for f in a *; do p $f; done": "p $f",
		"for f in a b; do f=c; p $f; done": "p $f", "x=a; f() { x=b; }; f; p $x": "f|p $x", "while q; do p $x; x=a; done": "q|p $x",
	} {
		var got []string
		for _, u := range Read(text).Units {
			if len(u.Words) > 0 {
				got = append(got, u.Text)
			}
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%q: %q, want %q", text, s, want)
		}
	}
}

func TestDirectories(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"x": "", "cd a && x": "a", "cd a; x": "a or ", "cd a || exit; x": "a", "cd a && cd ../b && x": "b", "cd /a && cd b && x": "/a/b", "cd && x": "~",
		"cd ~/a && cd .. && x": "~", "cd ~ && cd .. && x": "lost", "cd \"$HOME/a\" && x": "~/a", "cd - && x": "lost", "cd $y && x": "lost", "(cd a); x": "",
		"{ cd a; } && x": "a", "cd a | x": "", "cd a & x": "", "if cd a; then x; fi": "a", "if y; then cd a; fi && x": "a or ", "while y; do cd a; done; x": "lost",
		"pushd a && x": "a", "pushd a; pushd b; x": "a/b or b or a or ", "pushd && x": "lost", "pushd +1 && x": "lost", "pushd -n a; x": "lost", "pushd a; popd; x": "lost or ", "bash -c 'cd a && x'": "a", "cd a && bash -c 'cd b && x'": "a/b", "find . -execdir x ';'": "lost", "command cd a && x": "a", "! cd a && x": "",
	} {
		got := "no x"
		for _, u := range Read(text).Units {
			if u.Text != "x" {
				continue
			}
			if got = u.Dir; u.Lost {
				got = "lost"
			}
			for _, d := range u.Elsewhere {
				got += " or " + d
			}
		}
		if got != want {
			t.Errorf("%q: x runs in %q, want %q", text, got, want)
		}
	}
}

func TestProse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"grep -rn /a src": {"/a"}, "grep -e /a -e /b f": {"/a", "/b"}, "grep -rne /a f": {"/a"}, "grep --include '*.go' /a f": {"*.go", "/a"}, "grep -f .env a": nil,
		"grep --odd x .env": nil, "grep $x a .env": nil, "grep -- /a f": {"/a"}, "rg -t go /a src": {"go", "/a"}, "sed -i 's/a/b/' f": {"s/a/b/"}, "sed -i.bak -E /x/d f": {"/x/d"},
		"sed -n -e /a/p f": {"/a/p"}, "sed -f .env a": nil, "awk -F/ '/x/ {print}' f": {"-F/", "/x/ {print}"}, "awk -f .env f": nil, "tr / _": {"/", "_"}, "cut -d/ -f2 x": {"-d/", "-f2"},
		"git commit -am /x": {"/x"}, "git commit --message=/x": {"--message=/x"}, "git add /x": nil, "gh pr create -t /x -b /y": {"/x", "/y"}, "jq .a/.b f": {".a/.b"}, "cat <(a) /x": {"<(a)"},
	} {
		u := Read(text).Units[0]
		var got []string
		for _, i := range u.Prose {
			got = append(got, u.Words[i])
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
