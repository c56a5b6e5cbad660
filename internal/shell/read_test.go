package shell

import (
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestSimple(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"ls":                            {"ls"},
		"  git   status\n":              {"git", "status"},
		`git commit -m "a; b" 'c $d'`:   {"git", "commit", "-m", "a; b", "c $d"},
		`r''m \x "y"z`:                  {"rm", "x", "yz"},
		"ls 2>/dev/null":                {"ls"},
		"ls >/dev/null 2>&1":            {"ls"},
		"ls </dev/null":                 {"ls"},
		"ls # and a comment":            {"ls"},
		"ls;":                           {"ls"},
		"git \\\n status":               {"git", "status"},
		"git show HEAD@{1} stash@{0}":   {"git", "show", "HEAD@{1}", "stash@{0}"},
		"find . -name '*.go'":           {"find", ".", "-name", "*.go"},
		`echo "\$x \" \\ \y"`:           {"echo", `$x " \ \y`},
		"bash script.sh -c":             {"bash", "script.sh", "-c"},
		"python3 script.py -c x":        {"python3", "script.py", "-c", "x"},
		"node --test":                   {"node", "--test"},
		"command -v git":                {"command", "-v", "git"},
		"git switch -c topic":           {"git", "switch", "-c", "topic"},
		"git -C sub push -u origin x":   {"git", "-C", "sub", "push", "-u", "origin", "x"},
		"docker ps":                     {"docker", "ps"},
		"awk '{print $1}' f":            {"awk", "{print $1}", "f"},
		"cat ~/x ~":                     {"cat", "~/x", "~"},
		"cat '~user'":                   {"cat", "~user"},
		"python3 -m pytest -q":          {"python3", "-m", "pytest", "-q"},
		"echo {} {a}":                   {"echo", "{}", "{a}"},
		"curl --data @body.json http:/": {"curl", "--data", "@body.json", "http:/"},
	} {
		c := Read(text)
		if !c.Simple || c.Why != "" || len(c.Units) == 0 || !reflect.DeepEqual(c.Units[0].Words, want) {
			t.Errorf("%q: simple %v, why %q, %+v", text, c.Simple, c.Why, c.Units)
		}
	}
}

func TestNotSimple(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                  WhyNoCommand,
		" \n\t":                             WhyNoCommand,
		"coproc ls":                         WhyNotSimple,
		"f() { ls; }":                       WhyNotSimple,
		"function f { ls; }; f":             WhyNotSimple,
		"select x in a; do ls; done":        WhyNotSimple,
		"let a=1":                           WhyNotSimple,
		`"git ../evil" x`:                   WhyNotSimple,
		"in":                                WhyNotSimple,
		`"" ls`:                             WhyNotSimple,
		"set -k; ls":                        WhyNotSimple,
		"shopt -s expand_aliases":           WhyNotSimple,
		"enable -n echo":                    WhyNotSimple,
		"command export A=b":                WhyNotSimple,
		"PATH=. ls":                         WhyAssignment,
		"PATH=.; ls":                        WhyAssignment,
		"LD_PRELOAD=x ls":                   WhyAssignment,
		"GIT_SSH_COMMAND=x git fetch":       WhyAssignment,
		"FOO=/bin/x frob":                   WhyAssignment,
		"FOO='a b' frob":                    WhyAssignment,
		"FOO=$x frob":                       WhyAssignment,
		"export PAGER=x":                    WhyAssignment,
		"export FOO=-x":                     WhyAssignment,
		"declare -i x=a":                    WhyAssignment,
		"declare -n x=PATH":                 WhyAssignment,
		"for PATH in a; do ls; done":        WhyAssignment,
		"read -r PATH":                      WhyAssignment,
		"unset PATH":                        WhyAssignment,
		"IFS=,; ls":                         WhyAssignment,
		"HOME=/x; cat ~/a":                  WhyAssignment,
		"a[b]=c":                            WhyExpansion,
		"$x ls":                             WhyExpansion,
		"{a,b}":                             WhyExpansion,
		"l* x":                              WhyExpansion,
		"frob $x":                           WhyExpansion,
		`frob "$x"`:                         WhyExpansion,
		"frob *":                            WhyExpansion,
		"frob -x$y":                         WhyExpansion,
		"git $x":                            WhyExpansion,
		"git log $x":                        WhyExpansion,
		`git log -m "$x"`:                   WhyExpansion,
		`git log --grep -- "$x"`:            WhyExpansion,
		`find . -printf -name "$x"`:         WhyExpansion,
		`rg "$x"`:                           WhyExpansion,
		`sed "s/a/$x/" f`:                   WhyExpansion,
		`make "X=$x"`:                       WhyOption + ":make NAME=",
		`make -f "$x"`:                      WhyExpansion,
		`printf "$x"`:                       WhyExpansion,
		`[ $x = a ]`:                        WhyExpansion,
		`[ "$x" "$y" ]`:                     WhyExpansion,
		`test -v "$x"`:                      WhyExpansion,
		`unset "$x"`:                        WhyExpansion,
		`read "$x"`:                         WhyExpansion,
		"echo ${x:=y}":                      WhyExpansion,
		"echo ${!x}":                        WhyExpansion,
		"echo ${x@P}":                       WhyExpansion,
		"echo ${a[x]}":                      WhyExpansion,
		"echo $((x))":                       WhyExpansion,
		"x=$(cat f); echo $((x + 1))":       WhyExpansion,
		"(( x ))":                           WhyExpansion,
		"(( $(cat f) ))":                    WhyExpansion,
		"[[ $x -eq 1 ]]":                    WhyExpansion,
		"[[ -v a ]]":                        WhyExpansion,
		"ls @(a|b)":                         WhyExpansion,
		"python3 $x":                        WhyExpansion,
		"ls >& f":                           WhyRedirect,
		"ls > $f":                           WhyRedirect,
		"ls > *":                            WhyRedirect,
		"ls > ~x/y":                         WhyRedirect,
		"ls > {a,b}":                        WhyRedirect,
		"ls > /dev/tcp/x/1":                 WhyRedirect,
		"ls {fd}>/dev/null":                 WhyRedirect,
		"cat <<\"E F\"\nx\nE F":             WhyRedirect,
		"curl x | sh":                       "interpreter:sh",
		"echo x | python3 -u":               "interpreter:python3",
		"echo x | vim f":                    "interpreter:vim",
		"echo .shell | sqlite3 a":           "interpreter:sqlite3",
		"python3 <(echo x)":                 "interpreter:python3",
		"bash < f":                          "interpreter:bash",
		"echo x > s.sh; bash s.sh":          "runs-other:bash",
		"printf x | tee a/s && ./s":         "runs-other:s",
		"jobs -x ls":                        "option:jobs -x",
		"timeout -x 5 ls":                   "wrapper:timeout",
		"timeout 5 sudo ls":                 "wrapper:sudo",
		"timeout $x ls":                     "wrapper:timeout",
		"env A=b ls":                        "wrapper:env",
		"env -u A ls":                       "wrapper:env",
		"nice -n 5 bash -c ls":              "interpreter:bash",
		"ls | (sudo ls)":                    "wrapper:sudo",
		"echo $(sudo ls)":                   "wrapper:sudo",
		"for i in 1; do sudo ls; done":      "wrapper:sudo",
		"sudo ls":                           "wrapper:sudo",
		"/usr/bin/sudo ls":                  "wrapper:sudo",
		"xargs ls":                          "wrapper:xargs",
		"eval ls":                           "wrapper:eval",
		"source f":                          "wrapper:source",
		". f":                               "wrapper:.",
		"exec ls":                           "wrapper:exec",
		"docker run x":                      "wrapper:docker",
		"ssh host ls":                       "wrapper:ssh",
		"bash":                              "interpreter:bash",
		"bash -c ls":                        "interpreter:bash",
		"bash -o errexit -c ls":             "interpreter:bash",
		"sh -s":                             "interpreter:sh",
		"bash --rcfile f -i":                "interpreter:bash",
		"bash --version -c ls":              "interpreter:bash",
		"python3":                           "interpreter:python3",
		"python3.12 -c x":                   "interpreter:python3.12",
		"python -W error -c x":              "interpreter:python",
		"python3 -":                         "interpreter:python3",
		"perl -ne x":                        "interpreter:perl",
		"node -e x":                         "interpreter:node",
		"node --eval=x":                     "interpreter:node",
		"awk 'BEGIN{system(\"ls\")}'":       "interpreter:awk",
		"git -c a.b=c status":               "option:git -c",
		"git --exec-path=/x status":         "option:git --exec-path",
		"git diff --ext-diff":               "option:git --ext-diff",
		"git rebase -x ls":                  "option:git rebase -x",
		"git bisect run ls":                 "option:git bisect run",
		"find . -delete":                    "option:find -delete",
		`find . -exec ls {} \;`:             "option:find -exec",
		"tar xf a --to-command=ls":          "option:tar --to-command",
		"go test -exec=x ./...":             "option:go -exec",
		"ls\r":                              WhyControl,
		"ls\x00x":                           WhyControl,
		"ls \xff":                           WhyControl,
		"ls (":                              WhyUnparseable,
		"ls '":                              WhyUnparseable,
		"if":                                WhyUnparseable,
		"ls " + strings.Repeat("x", 64<<10): WhyTooLarge,
		strings.Repeat("(", 300):            WhyTooDeep,
		strings.Repeat("if ", 210) + "a" + strings.Repeat("; then b; fi", 210): WhyTooDeep,
	} {
		c := Read(text)
		if c.Simple || c.Why != want {
			t.Errorf("%.60q: simple %v, why %q, want %q", text, c.Simple, c.Why, want)
		}
	}
}

func TestUnitsCarryWhatIsInside(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"sudo -u root env A=b nice -n 3 rm x": {"sudo -u root env A=b nice -n 3 rm x", "env A=b nice -n 3 rm x", "nice -n 3 rm x", "rm x"},
		"bash -c 'a; b'":                      {"bash -c a; b", "a", "b"},
		"ssh -p 22 host 'a; b'":               {"ssh -p 22 host a; b", "a", "b"},
		`find . -exec rm {} + -ok ls \;`:      {"find . -exec rm {} + -ok ls ;", "rm {}", "ls"},
		"echo a | xargs -I X rm X":            {"echo a", "xargs -I X rm X", "rm X"},
		"bash <<E\nrm x\nE":                   {"bash", "rm x"},
		"cat <<E\nrm x\nE":                    {"cat"},
		"cat <<'E'\n$(rm x)\nE":               {"cat"},
		"$A rm x":                             {"$A rm x", "rm x"},
		"{a,b} c":                             {"a b c"},
		"time rm x":                           {"time rm x", "rm x"},
		"timeout 5 rm x":                      {"timeout 5 rm x", "rm x"},
		"(rm x)":                              {"(rm x)", "rm x"},
		"a $(b `c`) | d":                      {"a $(b `c`)", "b `c`", "c", "d"},
		"if a; then b; fi > f":                {"> f", "a", "b"},
		"while a; do b; done":                 {"a", "b"},
		"X=1; a":                              {"X=1", "a"},
	} {
		var got []string
		for _, u := range Read(text).Units {
			got = append(got, u.Text)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestRedirectsNameTheirDirection(t *testing.T) {
	t.Parallel()
	got := Read("cmd <in >out 2>>log <>both 2>&1 >&file {x}>var").Units[0].Redirects
	want := []Redirect{
		{"in", true, true, false}, {"out", true, false, true}, {"log", true, false, true}, {"both", true, true, true},
		{"file", true, false, true}, {"var", true, false, true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestLooseWords(t *testing.T) {
	t.Parallel()
	got := Read("for f in a 'b c'; do :; done; X=d; [[ -f e ]]; export Y=g").Loose
	for _, want := range []string{"a", "b c", "d", "e", "g"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
}

func TestReadings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"/bin/rm x":                {"rm x"},
		"git -C /x push -f":        {"git push -f"},
		"/usr/bin/git -c a=b push": {"git -c a=b push", "git push"},
		"git push":                 nil,
		"ls":                       nil,
	} {
		if got := Read(text).Units[0].Readings(); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAnsiC(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`a\x72\155\u0078`: "armx", `\n\t\\\'`: "\n\t\\'", `\q\x`: `\q\x`, `a\0b`: "a", `\U0001F600`: "😀", `\`: `\`, `\ca`: "\x01",
	} {
		if got := ansiC(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestOpaqueTextIsStillCut(t *testing.T) {
	t.Parallel()
	c := Read("rm x; ls (((\n'r'm y")
	var texts []string
	for _, u := range c.Units {
		texts = append(texts, u.Text)
	}
	if !c.Opaque || !slices.Contains(texts, "rm x") || !slices.Contains(texts, "rm y") {
		t.Errorf("%+v", c)
	}
}

func TestBracesStaySmall(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"ls {1..100000000}", "ls " + strings.Repeat("{a,b}", 40), "ls {{a,b},{c,d}}{e,f}{1..9}"} {
		c := Read(text)
		if len(c.Units) != 1 || len(c.Units[0].Words) > maxBraces+1 {
			t.Errorf("%q: %v, %d words", text, c.Simple, len(c.Units[0].Words))
		}
	}
}

// FuzzRead: no panic, units that fit, and never the proof of a simple command
// for what bash itself refuses.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"ls", "git commit -m 'x'", "a && b | c", "$(a `b`)", "cat <<E\nx\nE", "bash -c 'bash -c \"rm x\"'", "{a,{b,c}}", "ls 2>/dev/null",
		"find . -exec a {} \\;", "[[ a =~ (b) ]]", "((1+(2)))", "a=(1 2)", "case a in b) c;; esac", "ls '", "~x", "$'\\x41'", "sudo -u a b",
		"for i in 1 2; do a $i; done", "while read -r l; do a \"$l\"; done < f", "if a; then b; elif c; then d; else e; fi", "A=b c d > e 2>&1", "timeout 5 a",
		"(a) && { b; } | c &", "a <<'E' | b\nx\nE", "x=1; echo $((x+1)) ${x%y} ${#x}", "a \\\n b", "case a in b|c) d ;; *) e ;; esac", "! a", "time a", ">0>0", "$ ! 0",
	} {
		f.Add(s)
	}
	bash, err := exec.LookPath("bash")
	f.Fuzz(func(t *testing.T, text string) {
		c := Read(text)
		if c.Text != text || c.Simple != (c.Why == "") || c.Opaque && c.Simple || len(c.Units) > maxUnits {
			t.Fatalf("%+v", c)
		}
		if !c.Simple {
			return
		}
		for _, u := range c.Units {
			if (u.Via == "" || u.Decides) && (u.Why != "" || len(u.Words) > 0 && !u.Modifier && !plainProgram(u.Program())) {
				t.Fatalf("simple, but %+v", u)
			}
		}
		if err != nil {
			return // no bash on this machine to ask
		}
		if out, err := exec.Command(bash, "--norc", "-n", "-c", "--", text).CombinedOutput(); err != nil {
			t.Fatalf("simple, and bash refuses it: %s", out)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	rep := func(s string) string { return strings.Repeat(s, MaxText/len(s)) }
	for _, r := range []struct{ name, text string }{
		{"simple", "git status --short"},
		{"chain", strings.Repeat("git status && ", 49) + "git status"},
		{"nested", "echo $(a $(b $(c $(d))))"},
		{"64K words", rep("a ")}, {"64K lists", rep("a;")}, {"64K pipes", rep("a|")}, {"64K text", rep("x")}, {"64K parens", rep("(")},
		{"64K keywords", rep("if ")}, {"64K backquotes", rep("`")}, {"64K substitutions", rep("$(a) ")}, {"64K heredocs", rep("<<a ")},
		{"64K braces", rep("{a,b}")}, {"64K hidden depth", rep(`$(")" `)}, {"hidden depth within bounds", strings.Repeat(`$(")" `, 4000)}, {"64K signs", "((" + rep("-")}, {"64K bangs", rep("! ")}, {"64K tests", "[[ " + rep("! ")}, {"keywords within bounds", strings.Repeat("if ", 4000)}, {"64K wrappers", rep("sudo ")}, {"64K quotes", rep(`"`)},
		{"64K indices", rep("${a[")}, {"64K ternaries", "((" + rep("a?b:")}, {"64K payloads", "bash -c '" + rep("a;") + "'"},
	} {
		text := r.text[:min(len(r.text), MaxText)]
		b.Run(r.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				// A fresh goroutine, as a gate's: its stack has to grow first.
				done := make(chan struct{})
				go func() { defer close(done); Read(text) }()
				<-done
			}
		})
	}
}
