package shell

import (
	"slices"
	"strings"
	"testing"
)

func TestComments(t *testing.T) {
	t.Parallel()
	found := []struct {
		name, text string
		want       []string
	}{
		{"behind a command", "ls # fine", []string{"# fine"}},
		{"a line of its own", "# first\nls\n# last", []string{"# first", "# last"}},
		{"inside a block", "{ ls # a\n}\nif true; then # b\nls; fi", []string{"# a", "# b"}},
		{"inside a substitution", "echo $(ls # in\n)", []string{"# in"}},
		{"behind a here-document's word", "cat <<E # c\n# body\nE\n", []string{"# c"}},
		{"letters beyond ASCII", "ls # für alle\npwd", []string{"# für alle"}},
		{"directly behind a separator", "ls;# c", []string{"# c"}},
	}
	for _, row := range found {
		t.Run("found/"+row.name, func(t *testing.T) {
			spans, ok := Comments(row.text)
			var got []string
			for _, s := range spans {
				got = append(got, row.text[s.Start:s.End])
			}
			if !ok || !slices.Equal(got, row.want) {
				t.Errorf("%q, %t", got, ok)
			}
		})
	}
	none := map[string]string{
		"in a word": "ls a#b", "in single quotes": "echo '# a'", "in double quotes": `echo "# a; rm x"`, "escaped": `echo \# a`,
		"a length": "echo ${#x} $#", "in a here-document": "cat <<E\n# a\nE\n",
	}
	for name, text := range none {
		if spans, ok := Comments(text); !ok || len(spans) != 0 {
			t.Errorf("none/%s: %v, %t", name, spans, ok)
		}
	}
	unread := map[string]string{
		"a line's end that may be joined": "ls # a\\\nrm x", "a backslash at the end": `ls # a\`, "no shell": "ls ( # a", "too deep": strings.Repeat("(", 5000) + "# a",
		"a control character": "ls # a\rrm x", "nothing": " ", "too large": "# " + strings.Repeat("a", MaxText),
	}
	for name, text := range unread {
		if spans, ok := Comments(text); ok || spans != nil {
			t.Errorf("unread/%s: %v, %t", name, spans, ok)
		}
	}
}

// FuzzComments: a span begins with '#', holds no line's end, and what is left
// without the spans reads as the same commands.
func FuzzComments(f *testing.F) {
	for _, s := range []string{"ls # a\nrm x # b", "cat <<E # c\n# d\nE", "echo $(a # b\n) # c", "x=(a # b\nc)", "[[ a # b\n]]", "case a in # b\nc) ;; # d\nesac", "((1 # 2\n))", "${x#y}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spans, ok := Comments(text)
		if !ok {
			return
		}
		rest, last := "", 0
		for _, s := range spans {
			if s.Start < last || s.End > len(text) || text[s.Start] != '#' || strings.Contains(text[s.Start:s.End], "\n") {
				t.Fatalf("span %v of %q", s, text)
			}
			rest, last = rest+text[last:s.Start], s.End
		}
		if rest += text[last:]; strings.TrimSpace(rest) == "" {
			return
		}
		with, without := Read(text), Read(rest)
		// A word that the shell computes is kept as written, comments in it included.
		same := func(a, b Unit) bool {
			return a.Literal == b.Literal && slices.Equal(a.Kinds, b.Kinds) && (!a.Literal || a.Text == b.Text)
		}
		if !slices.EqualFunc(with.Units, without.Units, same) {
			t.Errorf("%q without its comments is %q: %v, %v", text, rest, with.Units, without.Units)
		}
	})
}
