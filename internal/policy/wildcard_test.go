package policy

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWildcardMatches(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, pattern, value string }{
		{"a star crosses slashes", "src/*", "src/a/b/c"},
		{"a star crosses newlines", "echo *", "echo a\nb"},
		{"a star is also nothing", "a*b", "ab"},
		{"a question mark is one character", "a?c", "abc"},
		{"a question mark is one character however many bytes", "a?c", "a😀c"},
		{"a question mark is a slash too", "a?c", "a/c"},
		{"a trailing blank star matches the bare word", "git *", "git"},
		{"a trailing blank star matches arguments", "git *", "git status"},
		{"only the last blank star is optional", "git * *", "git x"},
		{"nothing but a star", "*", ""},
		{"the empty pattern matches the empty value", "", ""},
		{"a lone blank star matches the empty value", " *", ""},
		{"a middle part is found behind a false start", "*ab?d*", "xxabaabcdx"},
		{"overlapping ends", "*aa*aa", "aaaa"},
		{"dots are dots", "*.env", "a/b.env"},
		{"a long part with question marks", strings.Repeat("?", 130) + "*", strings.Repeat("x", 131)},
		{"a middle part longer than a machine word", "*" + strings.Repeat("a?", 40) + "*", "b" + strings.Repeat("ab", 40) + "c"},
	}
	for _, r := range rows {
		if !compileWildcard(r.pattern).match(r.value) {
			t.Errorf("%s: %q does not match %q", r.name, r.pattern, r.value)
		}
	}
}

func TestWildcardRefuses(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, pattern, value string }{
		{"anchored at the start", "git *", "a git status"},
		{"anchored at the end", "*.env", "a.envx"},
		{"letters count as written", "Git *", "git status"},
		{"a blank is needed before arguments", "git *", "gitk"},
		{"a question mark is not nothing", "a?", "a"},
		{"a question mark is not two", "a?", "abc"},
		{"a backslash is itself", `a\*`, "a*"},
		{"parts do not overlap", "aba*aba", "aba"},
		{"parts stand in order", "*a*b*", "ba"},
		{"the empty pattern is not a star", "", "x"},
		{"no bare form in the middle", "git * push", "git"},
		{"a bare form is not a prefix", "git push *", "git"},
		{"a dot is not any character", "*.env", "xenv"},
		{"brackets are themselves", "[ab]", "a"},
		{"braces are themselves", "{a,b}", "a"},
		{"a long part that does not fit", strings.Repeat("?", 130) + "*", strings.Repeat("x", 129)},
		{"a middle part longer than a machine word, one off", "*" + strings.Repeat("a?", 40) + "z*", "b" + strings.Repeat("ab", 40) + "c"},
	}
	for _, r := range rows {
		if compileWildcard(r.pattern).match(r.value) {
			t.Errorf("%s: %q matches %q", r.name, r.pattern, r.value)
		}
	}
}

// slowMatch is the obvious matcher: a table of which prefix of the pattern
// matches which prefix of the value.
func slowMatch(pattern, value string) bool {
	if slowWhole(pattern, value) {
		return true
	}
	rest, ok := strings.CutSuffix(pattern, " *")
	return ok && slowWhole(rest, value)
}

func slowWhole(pattern, value string) bool {
	p, v := []rune(pattern), []rune(value)
	table := make([][]bool, len(p)+1)
	for i := range table {
		table[i] = make([]bool, len(v)+1)
	}
	table[0][0] = true
	for i := 1; i <= len(p); i++ {
		for j := 0; j <= len(v); j++ {
			switch p[i-1] {
			case '*':
				table[i][j] = table[i-1][j] || j > 0 && table[i][j-1]
			case '?':
				table[i][j] = j > 0 && table[i-1][j-1]
			default:
				table[i][j] = j > 0 && table[i-1][j-1] && p[i-1] == v[j-1]
			}
		}
	}
	return table[len(p)][len(v)]
}

func FuzzWildcard(f *testing.F) {
	for _, seed := range [][2]string{
		{"git *", "git push"}, {"*a?b*", "xaab"}, {"??*", "a😀"}, {"*a*a*a", "aaa"}, {"", ""}, {"a *", "a"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, value string) {
		if len(pattern) > 200 || len(value) > 400 || !utf8.ValidString(pattern) || !utf8.ValidString(value) {
			t.Skip()
		}
		if got, want := compileWildcard(pattern).match(value), slowMatch(pattern, value); got != want {
			t.Fatalf("%q against %q: %v, the table says %v", pattern, value, got, want)
		}
	})
}

func BenchmarkWildcard(b *testing.B) {
	hostile := strings.Repeat("a", 64<<10)
	for _, r := range []struct{ name, pattern, value string }{
		{"everyday", "git push *", "git push origin main"},
		{"hostile stars", "*a*a*a*a*a*a*a*a*b", hostile},
		{"hostile question marks", "*" + strings.Repeat("a?", 200) + "b*", hostile},
	} {
		w := compileWildcard(r.pattern)
		b.Run(r.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.match(r.value)
			}
		})
	}
}
