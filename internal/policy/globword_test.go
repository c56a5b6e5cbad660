package policy

import (
	"path"
	"strings"
	"testing"
)

func TestWhatAGlobReaches(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		glob, pattern string
		want          bool
	}{
		{".en?", "*.env", true}, {".*v", "*.env", true}, {".[e]nv", ".env", true}, {".[!x]nv", ".env", true}, {"**/x", "a/b/x", true}, {"?(a|b)", ".env", true},
		{"src/*", "src/*.pem", true}, {"[[:alpha:]]x", "ax", true}, {"a[b", "a[b", true}, {"*", "id_rsa", true}, {"x*y*z", "x??z", true}, {"x*y*z", "x?yz", true},

		{"*", ".env", false}, {"?env", ".env", false}, {"[.]env", ".env", false}, {"*.go", "*.env", false}, {"src/*", "src/a/b", false}, {".[x-z]nv", ".env", false},
		{".[!e]nv", ".env", false}, {"a?b", "a/b", false}, {"src/*/x", "src/.git/x", false}, {"id_*", "*.pem", true}, {"id_r*", "id_dsa", false}, {"", "x", false}, {"x*y*z", "x?", false},
	} {
		if got := reach(r.pattern, globTokens(r.glob)); got != r.want {
			t.Errorf("%q reaches %q: %t", r.glob, r.pattern, got)
		}
	}
}

// FuzzReach: a name that a glob selects and a pattern matches is proof that the
// one reaches what the other protects.
func FuzzReach(f *testing.F) {
	f.Add(".en?", "*.env", ".env")
	f.Add(".[a-f]nv", ".e*", ".env")
	f.Add("a/*b", "a?xb", "a/xb")
	f.Add("*[!x]*", "?", "é")
	f.Fuzz(func(t *testing.T, glob, pattern, name string) {
		if len(glob)+len(pattern)+len(name) > 120 || strings.ContainsAny(glob, `\(`) || strings.Contains(glob, "[:") {
			return
		}
		// Where a dot starts a name it has to be written; path.Match knows no such rule.
		if strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
			return
		}
		if selects, err := path.Match(strings.ReplaceAll(glob, "[!", "[^"), name); err != nil || !selects {
			return
		}
		if strings.Contains(glob, "]]") || strings.Contains(glob, "[]") || strings.Contains(glob, "[^]") || strings.Contains(glob, "[!]") {
			return // the shell and path.Match differ over a bracket in brackets
		}
		if w := compileWildcard(pattern); !matchParts(w.parts, name) {
			return
		}
		if !reach(pattern, globTokens(glob)) {
			t.Fatalf("%q is selected by %q and matched by %q", name, glob, pattern)
		}
	})
}
