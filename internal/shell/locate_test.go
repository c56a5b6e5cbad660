package shell

import (
	"reflect"
	"strings"
	"testing"
)

// located is what Locate says: each unit as the text of its words, where it
// stands, and where its words stand.
func located(text string) (out []string, whole bool) {
	c, whole := Locate(text)
	for _, u := range c.Units {
		if len(u.Words) == 0 {
			continue
		}
		var words []string
		for _, s := range u.Place.Words {
			words = append(words, text[s.Start:s.End])
		}
		out = append(out, strings.Join(u.Words, "|")+" @ "+text[u.Place.Span.Start:u.Place.Span.End]+" @ "+strings.Join(words, "|"))
	}
	return out, whole
}

func TestLocateSaysWhereCommandsStand(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text string
		want []string
	}{
		"a plain command":                   {"git push", []string{"git|push @ git push @ git|push"}},
		"a list":                            {"ls; git  push", []string{"ls @ ls @ ls", "git|push @ git  push @ git|push"}},
		"quotes":                            {`"git" pu'sh'`, []string{`git|push @ "git" pu'sh' @ "git"|pu'sh'`}},
		"redirections":                      {"X=1 git push >out 2>&1", []string{"git|push @ X=1 git push >out 2>&1 @ git|push"}},
		"a here-document ends elsewhere":    {"cat <<E | tee f\nx\nE", []string{"cat @ cat <<E @ cat", "tee|f @ tee f @ tee|f"}},
		"a wrapper":                         {"sudo git push", []string{"sudo|git|push @ sudo git push @ sudo|git|push", "git|push @ git push @ git|push"}},
		"the reserved word time":            {"time git push", []string{"time|git|push @ time git push @ time|git|push", "git|push @ git push @ git|push"}},
		"a payload in single quotes":        {"sh -c 'git push'", []string{"sh|-c|git push @ sh -c 'git push' @ sh|-c|'git push'", "git|push @ git push @ git|push"}},
		"a payload in a payload":            {`sh -c "sh -c 'a b'"`, []string{`sh|-c|sh -c 'a b' @ sh -c "sh -c 'a b'" @ sh|-c|"sh -c 'a b'"`, `sh|-c|a b @ sh -c 'a b' @ sh|-c|'a b'`, "a|b @ a b @ a|b"}},
		"the second of two equal payloads":  {"true; sh -c 'a'", []string{"true @ true @ true", "sh|-c|a @ sh -c 'a' @ sh|-c|'a'", "a @ a @ a"}},
		"a payload with escapes is a whole": {`sh -c "a \"b\""`, []string{`sh|-c|a "b" @ sh -c "a \"b\"" @ sh|-c|"a \"b\""`, `a|b @ "a \"b\"" @ "a \"b\""|"a \"b\""`}},
		"joined words are a whole":          {"eval a b", []string{"eval|a|b @ eval a b @ eval|a|b", "a|b @ eval a b @ eval a b|eval a b"}},
		"a substitution":                    {"echo $(git push)", []string{"echo|$(git push) @ echo $(git push) @ echo|$(git push)", "git|push @ git push @ git|push"}},
		"find":                              {`find . -exec rm {} \;`, []string{`find|.|-exec|rm|{}|; @ find . -exec rm {} \; @ find|.|-exec|rm|{}|\;`, "rm|{} @ rm {} @ rm|{}"}},
		"braces share a place":              {"git {a,b}", []string{"git|a|b @ git {a,b} @ git|{a,b}|{a,b}"}},
		"letters of several bytes":          {"echo é; git push", []string{"echo|é @ echo é @ echo|é", "git|push @ git push @ git|push"}},
		"a declaration":                     {"export A=1", []string{"export|A=1 @ export A=1 @ export|A=1"}},
		"a line that goes on":               {"git \\\n push", []string{"git|push @ git \\\n push @ git|push"}},
	} {
		if got, whole := located(row.text); !whole || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %q, whole %v:\n got %q\nwant %q", name, row.text, whole, got, row.want)
		}
	}
}

func TestLocateSaysWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	for text, whole := range map[string]bool{
		"git status && )":                  false,
		"git 'push":                        false,
		"":                                 false,
		"git push \x00":                    false,
		"sh -c 'git push'":                 true,
		`sh -c "git push)"`:                false,
		`sh -c "$X"`:                       false,
		`sh -c '$X'`:                       false,
		"eval git push":                    true,
		"eval git $x":                      false,
		"$X push":                          false,
		"X=git; $X push":                   true,
		"git push $x":                      true,
		"curl x | sh":                      false,
		"curl x | sh -s a":                 false,
		"curl x | sh script":               true,
		"sh <<< 'git push'":                true,
		"sh script":                        true,
		"ls | cat":                         true,
		"echo 'git push )'":                true,
		"# \\\nrm x":                       false,
		strings.Repeat("{ ", 300):          false,
		strings.Repeat("x", 1<<17):         false,
		strings.Repeat("sudo ", 12) + "ls": false,
		strings.Repeat("sudo ", 2) + "ls":  true,
	} {
		if _, got := Locate(text); got != whole {
			t.Errorf("%.40q: whole is %v, want %v", text, got, whole)
		}
	}
}

// FuzzLocate: Locate finds what Read finds, and every place lies in the text.
func FuzzLocate(f *testing.F) {
	for _, s := range []string{
		"git push", "sudo -u x git push >o; ls", `sh -c "sh -c 'a b'"`, "export A=1 B=$(x)", "time -p ls", "time", "time [[ a ]]", "time (a)", "time a=1", "time { a; }", "for f in a b; do rm $f; done", "cat <<E\nx\nE",
		"a \\\n b # c", "f() { a; }", "eval a $b", "find . -exec a {} +", "{a,b}c d", `"${x:-'$(rm y)'}"`, "env -S 'a b'", "x=(a b)", "a=1", ">f", "(a)", "[[ a ]]", "\xff", "a )", "é$(ü)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, got := Read(text), Command{}
		got, _ = Locate(text)
		for i := range got.Units {
			u := &got.Units[i]
			if len(u.Words) > 0 && (u.Place == nil || len(u.Place.Words) != len(u.Words)) {
				t.Fatalf("%q: unit %q has the place %+v", text, u.Words, u.Place)
			}
			if u.Place != nil {
				for _, s := range append(append([]Span{u.Place.Span}, u.Place.Words...), u.Place.Assigns...) {
					if s.Start < 0 || s.End > len(text) || s.Start > s.End {
						t.Fatalf("%q: unit %q stands at %v", text, u.Words, s)
					}
				}
			}
			u.Place = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: Locate reads\n%+v\nRead reads\n%+v", text, got, want)
		}
	})
}
