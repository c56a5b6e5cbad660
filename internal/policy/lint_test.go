package policy

import (
	"strings"
	"testing"
)

func TestLint(t *testing.T) {
	t.Parallel()
	for _, r := range []struct{ name, rules, want string }{
		{"a general rule below its exception", `{"bash":{"git push *":"deny","git *":"allow"}}`, `bash "git push *" is overridden: bash "git *"`},
		{"a star below everything", `{"bash":{"rm *":"deny","*":"ask"}}`, `bash "rm *" is overridden`},
		{"a surface pattern below its surface", `{"read":"allow","re*":"ask"}`, `read "*" is overridden: re* "*"`},
		{"a bash left open", `{"*":"ask","bash":{"*":"allow","rm *":"deny"}}`, `bash is open`},
		{"a bash left open by the fallback", `{"*":"allow","bash":{"rm *":"deny"}}`, `leaves bash open`},

		{"general rules first", `{"bash":{"*":"ask","git *":"allow","git push *":"deny"}}`, ""},
		{"a fallback that stands last", `{"bash":{"*":"ask","rm *":"deny"},"*":"ask"}`, ""},
		{"patterns that overlap in part", `{"bash":{"*":"ask","git * main":"deny","git push *":"ask"}}`, ""},
		{"the same pattern on two surfaces", `{"read":{"*":"ask","x.go":"deny"},"write":{"*":"ask","x.go":"allow"}}`, ""},
		{"a shut bash under an open fallback", `{"*":"allow","bash":"ask"}`, ""},
	} {
		warnings, err := Lint("f", []byte(permission(r.rules)))
		if err != nil {
			t.Errorf("%s: %v", r.name, err)
			continue
		}
		var all []string
		for _, w := range warnings {
			all = append(all, w.String())
		}
		text := strings.Join(all, "\n")
		if r.want == "" && text != "" || !strings.Contains(text, r.want) {
			t.Errorf("%s: %q, want %q", r.name, text, r.want)
		}
	}
	if _, err := Lint("f", []byte("{")); err == nil {
		t.Error("a broken document has no warnings")
	}
}

// A rule that Lint calls dead must not decide any call.
func FuzzCovers(f *testing.F) {
	f.Add("git *", "git push *", "git push x")
	f.Add("*", "a?b", "axb")
	f.Add("a *", "a b*c", "a bxc")
	f.Fuzz(func(t *testing.T, outer, inner, value string) {
		if len(outer)+len(inner)+len(value) > 600 {
			t.Skip()
		}
		o, i := compileWildcard(outer), compileWildcard(inner)
		if covers(o, i) && i.match(value) && !o.match(value) {
			t.Fatalf("%q is said to cover %q, yet %q matches only the latter", outer, inner, value)
		}
	})
}
