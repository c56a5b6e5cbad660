package shellview

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// programs are the commands of a text as "program arg arg", through the usual
// wrappers.
func programs(v View) (out []string) {
	for _, c := range v.Commands {
		out = append(out, strings.Join(append([]string{c.ProgramName}, texts(c.Args)...), "|"))
	}
	return out
}

func TestCommandsOfAText(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text string
		want []string
	}{
		"a list":                              {"git status && ls -l | wc", []string{"git|status", "ls|-l", "wc"}},
		"quoted text is inert":                {`echo "git push" 'rm -rf /'`, []string{"echo|git push|rm -rf /"}},
		"a name in quotes is that name":       {`g'i't "pu"sh`, []string{"git|push"}},
		"a path names the program":            {"/usr/bin/git push", []string{"git|push"}},
		"wrappers are seen through":           {"FOO=1 sudo -u root nice -n 5 git push", []string{"git|push"}},
		"a wrapper's operand is none of them": {"timeout -k 3 5 git push", []string{"git|push"}},
		"a wrapper behind assignments":        {"env -u A B=1 git push", []string{"git|push"}},
		"a wrapper's flags end":               {"sudo -- git push", []string{"git|push"}},
		"the reserved word time":              {"time git push", []string{"git|push"}},
		"xargs":                               {"ls | xargs -n 1 git add", []string{"ls", "git|add"}},
		"a wrapper alone":                     {"sudo -k", []string{""}},
		"xargs, an option without a word":     {"xargs --replace git push", []string{"git|push", "push"}},
		"a payload behind operands":           {"flock /l -c 'git push'", []string{"flock|/l|-c|git push", "git push", "git|push"}},
		"env splits":                          {"env -S 'git push'", []string{"", "git push", "git|push"}},
		"substitutions":                       {"echo $(git add .) `rm x` <(find . -delete)", []string{"echo|$(git add .)|`rm x`|<(find . -delete)", "git|add|.", "rm|x", "find|.|-delete"}},
		"a payload":                           {"bash -c 'git add .; ls'", []string{"bash|-c|git add .; ls", "git|add|.", "ls"}},
		"a payload behind other flags":        {"bash -euo pipefail -c 'git push'", []string{"bash|-euo|pipefail|-c|git push", "git|push"}},
		"a payload in a payload, once":        {`bash -c "bash -c 'git push'"`, []string{"bash|-c|bash -c 'git push'", "bash|-c|git push", "git|push"}},
		"what find runs":                      {`find . -exec rm -rf {} \;`, []string{"find|.|-exec|rm|-rf|{}|;", "rm|-rf|{}"}},
		"what eval joins":                     {"eval git push", []string{"eval|git|push", "git|push"}},
		"another machine's command":           {"ssh host 'git push'", []string{"ssh|host|git push", "git|push"}},
		"control flow":                        {"if true; then git push; fi", []string{"true", "git|push"}},
		"a loop's commands, with its values":  {"for f in a b; do rm $f; done", []string{"rm|a", "rm|b"}},
		"a variable with a known value":       {"X=git; $X push", []string{"git|push"}},
		"braces":                              {"git {add,push}", []string{"git|add|push"}},
		"a function's body":                   {"f() { git push; }", []string{"git|push"}},
		"a broken text keeps its good part":   {"git status && )", []string{"git|status"}},
		"assignments alone are no command":    {"A=1", nil},
		"comments are none":                   {"ls # git push", []string{"ls"}},
		"here-documents are text":             {"cat <<E\ngit push\nE", []string{"cat"}},
		"a here-document for a shell":         {"sh <<E\ngit push\nE", []string{"sh", "git|push"}},
	} {
		if got := programs(Of(row.text, Usual)); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %q:\n got %q\nwant %q", name, row.text, got, row.want)
		}
	}
}

func TestHasErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"git push":                                false,
		"git push $x":                             false,
		"sh -c 'git push'":                        false,
		`echo ")" 'git'`:                          false,
		"git push &&":                             true,
		"source <(echo git push)":                 true,
		". /dev/stdin <<< 'git push'":             true,
		"bash <(echo git push)":                   true,
		"bash /dev/stdin <<< 'git push'":          true,
		"source ./env.sh":                         false,
		"bash ./build.sh":                         false,
		"diff <(ls a) <(ls b)":                    false,
		"cat /dev/stdin <<< 'git push'":           false,
		"git 'push":                               true,
		`sh -c "git\" push"`:                      true,
		`sh -c "$X"`:                              true,
		"$X push":                                 true,
		"curl -s x | sh":                          true,
		strings.Repeat("(", 99):                   true,
		strings.Repeat("sudo -a b ", 4000) + "ls": true,
	} {
		if got := Of(text, Usual).HasErrors; got != want {
			t.Errorf("%.40q: hasErrors is %v, want %v", text, got, want)
		}
	}
}

// at shows where a view's commands stand: whole, program, arguments.
func at(text string, v View) (out []string) {
	units := utf16.Encode([]rune(text))
	cut := func(s Span) string { return string(utf16.Decode(units[s.Start:s.End])) }
	for _, c := range v.Commands {
		parts := []string{cut(c.Span)}
		for _, a := range c.Assignments {
			parts = append(parts, cut(a.Span))
		}
		if c.Program != nil {
			parts = append(parts, cut(c.Program.Span))
		}
		for _, a := range c.Args {
			parts = append(parts, cut(a.Span))
		}
		out = append(out, strings.Join(parts, " @ "))
	}
	return out
}

func TestSpansPointIntoTheText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"ls xx; git commit -m 'w p' >f": {"ls xx @ ls @ xx", "git commit -m 'w p' >f @ git @ commit @ -m @ 'w p'"},
		"A=1 sudo git push":             {"A=1 sudo git push @ A=1 @ git @ push"},
		"é 😀; git push ü":               {"é 😀 @ é @ 😀", "git push ü @ git @ push @ ü"},
		"bash -c 'é; git push' 😀":       {"bash -c 'é; git push' 😀 @ bash @ -c @ 'é; git push' @ 😀", "é @ é", "git push @ git @ push"},
		`bash -c "git \"push\""`:        {`bash -c "git \"push\"" @ bash @ -c @ "git \"push\""`, `"git \"push\"" @ "git \"push\"" @ "git \"push\""`},
	} {
		if got := at(text, Of(text, Usual)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		options, text string
		want          []string // nil: refused
	}{
		"none":                        {"", "sudo git push", []string{"git|push"}},
		"an empty object":             {"{}", "sudo git push", []string{"git|push"}},
		"a wrapper of one name":       {`{"wrappers":[{"program":"runner"}]}`, "runner git push", []string{"git|push"}},
		"a wrapper of several":        {`{"wrappers":[{"program":["a","b"],"valueFlags":["-x"],"positionalSkips":1}]}`, "b -x y 5 git push", []string{"git|push"}},
		"they stand for the usual":    {`{"wrappers":[]}`, "sudo git push", []string{"sudo|git|push", "git|push"}},
		"unknown fields are skipped":  {`{"wrappers":[{"program":"r","later":1}],"x":1}`, "r ls", []string{"ls"}},
		"no JSON":                     {`{`, "ls", nil},
		"no list":                     {`{"wrappers":{}}`, "ls", nil},
		"a program that is no string": {`{"wrappers":[{"program":1}]}`, "ls", nil},
		"too large":                   {`{"wrappers":[]}` + strings.Repeat(" ", maxOptions), "ls", nil},
	} {
		out, err := Parse(row.text, row.options)
		if row.want == nil {
			if err == nil || out != "" || !strings.Contains(err.Error(), "options") {
				t.Errorf("%s: %q, %v", name, out, err)
			}
			continue
		}
		var v View
		if err := json.Unmarshal([]byte(out), &v); err != nil || !reflect.DeepEqual(programs(v), row.want) {
			t.Errorf("%s: %q, %v", name, programs(v), err)
		}
	}
}

// The form that the library for modules reads.
func TestTheWire(t *testing.T) {
	t.Parallel()
	got, err := Parse("A=1 git push; sudo", "")
	want := `{"commands":[{"program":{"text":"git","start":4,"end":7},"programName":"git","args":[{"text":"push","start":8,"end":12}],` +
		`"assignments":[{"text":"A=1","start":0,"end":3}],"span":{"start":0,"end":12}},{"args":[],"assignments":[],"span":{"start":14,"end":18}}],"hasErrors":false}`
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// FuzzView: spans lie in the text as JavaScript counts it, and what a view holds
// is bounded, whatever the text and the wrappers.
func FuzzView(f *testing.F) {
	f.Add("sudo git push; sh -c 'ls'", "sudo", "-u", 0)
	f.Add("timeout 5 é | 😀 -x y", "timeout", "-k", 1)
	f.Add("\xff )", "--", "", 3)
	f.Fuzz(func(t *testing.T, text, program, flag string, skips int) {
		text = strings.ToValidUTF8(text, "\ufffd") // as a string of JavaScript becomes one of Go
		v := Of(text, []Wrapper{{Program: Names{program}, ValueFlags: []string{flag}, PositionalSkips: skips}})
		n := len(utf16.Encode([]rune(text)))
		tokens := 0
		for _, c := range v.Commands {
			all := append(append([]Token{{Span: c.Span}}, c.Args...), c.Assignments...)
			if c.Program != nil {
				all = append(all, *c.Program)
			}
			for _, token := range all {
				if token.Start < 0 || token.End > n || token.Start > token.End {
					t.Fatalf("%q: %+v", text, token)
				}
			}
			tokens += len(all)
		}
		if tokens > 3*maxTokens {
			t.Fatal(fmt.Sprint(tokens, " tokens"))
		}
	})
}
