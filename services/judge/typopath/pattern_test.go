package typopath

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

func compiled(t testing.TB, texts ...string) Patterns {
	t.Helper()
	ps, err := Compile(texts)
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

const (
	doubled  = `([^/]+)/packages/\1(/|$)`
	misplace = `development/pi/(?!pi-packages/)pi-[^/]+(/|$)`
)

func TestFind(t *testing.T) {
	t.Parallel()
	both := compiled(t, doubled, misplace)
	hits := []struct{ name, path, pattern string }{
		{"a doubled package", "/home/dev/shop/packages/shop/src/a.ts", doubled},
		{"a doubled package at the end", "/home/dev/shop/packages/shop", doubled},
		{"a doubled scope of letters beyond ASCII", "/srv/schöpfung/packages/schöpfung/x", doubled},
		{"a repository outside its folder", "/home/dev/development/pi/pi-lens/README.md", misplace},
		{"a repository outside its folder, relative", "../development/pi/pi-lens", misplace},
		{"the first pattern that matches counts", "/development/pi/pi-x/packages/pi-x", doubled},
	}
	for _, row := range hits {
		t.Run("hit/"+row.name, func(t *testing.T) {
			hit, miss := both.find(t.Context(), []string{"/tmp/nothing", row.path, "/later/packages/later"})
			if miss != "" || hit != (match{row.path, row.pattern}) {
				t.Errorf("find = %+v, %q", hit, miss)
			}
		})
	}
	misses := []struct{ name, path string }{
		{"another package", "/home/dev/shop/packages/cart/src/a.ts"},
		{"a longer name", "/home/dev/shop/packages/shopping/src"},
		{"another case", "/home/dev/Shop/packages/shop/src"},
		{"a repository in its folder", "/home/dev/development/pi/pi-packages/pi-lens/README.md"},
		{"a repository of another family", "/home/dev/development/pi/lens/README.md"},
		{"nothing", "x"},
	}
	for _, row := range misses {
		t.Run("miss/"+row.name, func(t *testing.T) {
			if hit, miss := both.find(t.Context(), []string{row.path}); miss != missPattern || hit != (match{}) {
				t.Errorf("find = %+v, %q", hit, miss)
			}
		})
	}
	if _, miss := compiled(t).find(t.Context(), []string{"/a/packages/a"}); miss != missPattern {
		t.Errorf("no patterns: %q", miss)
	}
}

func TestPatternThatTakesTooLong(t *testing.T) {
	t.Parallel()
	slow := `^(a+)+\1$`
	path := strings.Repeat("a", 60) + "!"
	start := time.Now()
	hit, miss := compiled(t, slow).find(t.Context(), []string{path, path + "!", path + "!!"})
	if miss != missTooLong || hit != (match{}) {
		t.Errorf("find = %+v, %q", hit, miss)
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("it took %s", d)
	}
	if hit, miss := compiled(t, slow, doubled).find(t.Context(), []string{path, "/a/packages/a"}); miss != "" || hit.pattern != doubled {
		t.Errorf("beside a slow pattern: %+v, %q", hit, miss)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, miss := compiled(t, doubled).find(over, []string{"/a/packages/a"}); miss != missTooLong {
		t.Errorf("after the ask is over: %q", miss)
	}
}

func TestCompile(t *testing.T) {
	t.Parallel()
	for _, good := range []string{doubled, misplace, `a`, `(?<name>x)\k<name>`, `\d{2,3}[^/]`, `(?<=x)y`, strings.Repeat("a", MaxPattern)} {
		if _, err := Compile([]string{good}); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "(", "[a", "a)", `(?<`, "*a", "a{2,1}", `(?P<x>a)`, strings.Repeat("a", MaxPattern+1)} {
		_, err := Compile([]string{"fine", bad})
		if !errors.Is(err, ErrPattern) || len(bad) < 10 && !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := Compile(make([]string, MaxPatterns+1)); !errors.Is(err, ErrPattern) {
		t.Errorf("too many: %v", err)
	}
}

// FuzzCompile: no text makes the compiler or a match panic or run away.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{doubled, misplace, "(((", `\1`, `(?<n>a)\k<n>`, `[\d-z]`, `a{9999}`, `(a*)*\1`, `\u{110000}`, `(?i:x)`, "\xff"} {
		f.Add(s, "/a/packages/a/x")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		ps, err := Compile([]string{text})
		if err != nil {
			if !errors.Is(err, ErrPattern) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		start := time.Now()
		hit, miss := ps.find(t.Context(), []string{path})
		if (miss == "") != (hit.pattern == text && hit.path == path) {
			t.Errorf("find = %+v, %q", hit, miss)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("a match took %s", d)
		}
	})
}

// FuzzMatch holds patterns without back-references and look-ahead against Go's
// own engine, which works in another way.
func FuzzMatch(f *testing.F) {
	f.Add([]byte("0123456789"), "ab/a-b.b")
	f.Add([]byte{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9}, "/ab/ab/")
	f.Add([]byte{7, 7, 7, 6, 2, 5, 0}, "aaa\nb")
	f.Fuzz(func(t *testing.T, seed []byte, path string) {
		if len(seed) > 24 || len(path) > 40 || strings.ContainsAny(path, "\r\u2028\u2029") || strings.ToValidUTF8(path, "?") != path {
			return // JavaScript's dot refuses three more line ends; paths are valid UTF-8 when they come here
		}
		g := &grammar{seed: seed}
		text := g.alternation(3)
		if text == "" {
			return
		}
		oracle, err := regexp.Compile(text)
		if err != nil {
			t.Fatalf("the grammar made %q: %v", text, err)
		}
		ps, err := Compile([]string{text})
		if err != nil {
			t.Fatalf("Go takes %q: %v", text, err)
		}
		_, miss := ps.find(t.Context(), []string{path})
		if miss == missTooLong {
			return
		}
		if got, want := miss == "", oracle.MatchString(path); got != want {
			t.Errorf("%q on %q: %t, Go says %t", text, path, got, want)
		}
	})
}

// grammar makes regular expressions that mean the same in JavaScript and Go.
type grammar struct{ seed []byte }

func (g *grammar) next(n int) int {
	if len(g.seed) == 0 {
		return 0
	}
	b := g.seed[0]
	g.seed = g.seed[1:]
	return int(b) % n
}

func (g *grammar) alternation(depth int) string {
	s := g.sequence(depth)
	for g.next(4) == 3 {
		s += "|" + g.sequence(depth)
	}
	return s
}

func (g *grammar) sequence(depth int) string {
	var s strings.Builder
	for range 1 + g.next(4) {
		s.WriteString(g.atom(depth))
	}
	return s.String()
}

func (g *grammar) atom(depth int) string {
	n := g.next(10)
	if n == 9 && depth > 0 {
		return "(" + g.alternation(depth-1) + ")" + g.quantifier()
	}
	if n >= 7 {
		return []string{"^", "$"}[n%2]
	}
	return []string{"a", "b", "/", "-", `\.`, ".", "[^/]"}[n] + g.quantifier()
}

func (g *grammar) quantifier() string {
	return []string{"", "", "", "*", "+", "?", "{1,2}", "*?"}[g.next(8)]
}
