package shell

import "slices"

// maxTouched bounds what Touched returns.
const maxTouched = 256

// Touched returns the words of text that a program could take for files, and the
// targets of its redirections, each once: what an adapter looks up on its host,
// where alone it can be seen that a plain name is a link.
func Touched(text string) []string {
	var out []string
	add := func(w string) {
		if w != "" && len(out) < maxTouched && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	c := Read(text)
	for _, u := range c.Units {
		for _, w := range u.Words {
			add(w)
		}
		for _, r := range u.Redirects {
			add(r.Target)
		}
	}
	for _, w := range c.Loose {
		add(w)
	}
	return out
}
