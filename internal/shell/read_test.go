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
		"# only a comment":                  WhyNoCommand,
		"ls | wc":                           WhyNotSimple,
		"ls; pwd":                           WhyNotSimple,
		"ls && pwd":                         WhyNotSimple,
		"ls\npwd":                           WhyNotSimple,
		"ls &":                              WhyNotSimple,
		"! ls":                              WhyNotSimple,
		"(ls)":                              WhyNotSimple,
		"{ ls; }":                           WhyNotSimple,
		"time ls":                           WhyNotSimple,
		"coproc ls":                         WhyNotSimple,
		"f() { ls; }":                       WhyNotSimple,
		"if ls; then ls; fi":                WhyNotSimple,
		"export A=b":                        WhyNotSimple,
		"let a=1":                           WhyNotSimple,
		"(( 1 ))":                           WhyNotSimple,
		"[[ a ]]":                           WhyNotSimple,
		`"git ../evil" x`:                   WhyNotSimple,
		"in":                                WhyNotSimple,
		`"" ls`:                             WhyNotSimple,
		"A=b ls":                            WhyAssignment,
		"A=b":                               WhyAssignment,
		"ls $x":                             WhyExpansion,
		"ls $(pwd)":                         WhyExpansion,
		"ls `pwd`":                          WhyExpansion,
		"ls *":                              WhyExpansion,
		"ls a?":                             WhyExpansion,
		"ls [a]":                            WhyExpansion,
		"ls {a,b}":                          WhyExpansion,
		"ls {1..3}":                         WhyExpansion,
		"ls 'x{a,b}'":                       WhyExpansion, // too odd to be proven, if only quoted
		"ls $'a'":                           WhyExpansion,
		`ls $"a"`:                           WhyExpansion,
		"ls ~root/x":                        WhyExpansion,
		"ls ~+":                             WhyExpansion,
		"ls <(pwd)":                         WhyExpansion,
		`ls "a$((1))"`:                      WhyExpansion,
		"ls @(a|b)":                         WhyExpansion,
		"ls > f":                            WhyRedirect,
		"ls >> f":                           WhyRedirect,
		"ls < f":                            WhyRedirect,
		"ls <> f":                           WhyRedirect,
		"ls >| f":                           WhyRedirect,
		"ls &> f":                           WhyRedirect,
		"ls >& f":                           WhyRedirect,
		"ls 2> f":                           WhyRedirect,
		"ls {fd}>/dev/null":                 WhyRedirect,
		"cat <<E\nx\nE":                     WhyRedirect,
		"cat <<< x":                         WhyRedirect,
		"> f":                               WhyRedirect,
		"sudo ls":                           "wrapper:sudo",
		"/usr/bin/sudo ls":                  "wrapper:sudo",
		"env ls":                            "wrapper:env",
		"xargs ls":                          "wrapper:xargs",
		"timeout 5 ls":                      "wrapper:timeout",
		"eval ls":                           "wrapper:eval",
		"source f":                          "wrapper:source",
		". f":                               "wrapper:.",
		"exec ls":                           "wrapper:exec",
		"command ls":                        "wrapper:command",
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
		"time rm x":                           {"rm x"},
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
		if c.Simple || len(c.Units) != 1 || len(c.Units[0].Words) > maxBraces+1 {
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
		if len(c.Units) == 0 || !c.Units[0].Literal || c.Units[0].Program() == "" || strings.ContainsAny(c.Units[0].Program(), " \t\n") {
			t.Fatalf("simple, but %+v", c.Units)
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
