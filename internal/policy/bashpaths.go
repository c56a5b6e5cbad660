package policy

import (
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// shellPaths adds the crosscutting entries of everything in a command that may
// be a path.
func (e *evaluation) shellPaths(cmd shell.Command) {
	seen := map[string]bool{}
	for i, u := range cmd.Units {
		for _, r := range u.Redirects {
			dir := reads
			switch {
			case r.Read && r.Write:
				dir = both
			case r.Write:
				dir = writes
			}
			e.crossing(r.Target, dir, i)
		}
		for _, w := range u.Words {
			e.shellWord(w, i, seen)
			if _, file, ok := strings.Cut(w, ":"); ok && u.Program() == "git" {
				e.bare(file, both, i) // a file of a revision
			}
		}
		e.searched(u.Words, i)
	}
	for _, w := range cmd.Loose {
		e.shellWord(w, 0, seen)
	}
}

// shellWord rules one word of a command, and the parts of it that programs
// take for paths.
func (e *evaluation) shellWord(word string, unit int, seen map[string]bool) {
	if seen[word] {
		return
	}
	seen[word] = true
	for _, p := range pieces(word) {
		if !looksLikePath(p) {
			e.bare(p, both, unit)
			continue
		}
		for _, entry := range e.s.cross(e.place, p, both) {
			if entry.Action == Allow {
				continue // what lets a word pass is no news
			}
			entry.Unit = unit
			e.add(entry)
		}
	}
}

// pieces are the parts of a word that may be a path of their own: the value of
// --option=FILE or if=FILE, of -oFILE and @FILE, the path of file:FILE.
func pieces(word string) []string {
	if word == "" || len(word) > 2*maxShown {
		return nil
	}
	out := []string{word}
	add := func(s string) {
		if s != "" {
			out = append(out, s)
		}
	}
	if strings.Contains(word, "://") && !strings.Contains(word, "file:") {
		return nil // a URL leads to no file
	}
	if isFileURL(word) {
		return fromURL(word)
	}
	if before, rest, ok := strings.Cut(word, "="); ok {
		add(rest)
		if strings.HasPrefix(before, "-") {
			out = out[1:]
		}
	} else if strings.HasPrefix(word, "-") {
		out = nil
		if len(word) > 2 && word[1] != '-' {
			add(word[2:])
		}
	}
	if rest, ok := strings.CutPrefix(word, "@"); ok {
		add(rest)
	}
	return out
}

// looksLikePath says whether a word is taken for a path whatever the rules
// name.
func looksLikePath(s string) bool {
	return s == "~" || s == ".." || s == "." || strings.Contains(s, "/")
}
