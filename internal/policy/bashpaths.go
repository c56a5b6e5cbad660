package policy

import (
	"path"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// shellPaths adds the crosscutting entries of everything in a command that may
// be a path.
func (e *evaluation) shellPaths(cmd shell.Command) {
	seen, redirects := map[seenWord]bool{}, map[seenRedirect]bool{}
	for i := range cmd.Units {
		u := &cmd.Units[i]
		at := e.place.of(u)
		for _, r := range u.Redirects {
			key := seenRedirect{r, u.Dir, u.Lost, u.Why == ""}
			if len(u.Elsewhere) > 0 || !redirects[key] {
				redirects[key] = true
				e.redirect(&at, r, i, u.Why == "")
				e.anywhere(&at, "cat", r.Target, both, i)
			}
		}
		e.unitPaths(&at, u, i, seen)
		for _, a := range u.Assigns {
			_, value, _ := strings.Cut(a, "=")
			e.bare(&at, value, both, i)
		}
		e.searched(&at, u, i)
		if programOf(u) == "apply_patch" {
			e.patchText(&at, cmd.Text, i)
		}
	}
	for _, w := range cmd.Loose {
		// Where it goes from there is not known; a command that takes it has a
		// word that nobody knows, and is ruled by that.
		for _, p := range pieces(w) {
			e.bare(&e.place, p, both, 0)
		}
	}
}

// seenWord keeps a word that stands in a text a thousand times from being ruled
// a thousand times.
type seenWord struct {
	word, dir string
	lost      bool
	way       direction
}

// seenRedirect does the same for redirections.
type seenRedirect struct {
	shell.Redirect
	dir          string
	lost, proven bool
}

// unitPaths rules the words of one command.
func (e *evaluation) unitPaths(at *place, u *shell.Unit, unit int, seen map[seenWord]bool) {
	ways := wordDirections(u)
	if len(e.place.resolved) > 0 {
		e.noteWays(u.Words, ways)
	}
	program, where := programOf(u), u.Dir
	if len(u.Elsewhere) > 0 {
		where = u.Dir + "\x00" + strings.Join(u.Elsewhere, "\x00")
	}
	for i, w := range u.Words {
		prose := u.IsProse(i) || rawField(u, i)
		if printers[program] && i > 0 {
			prose = strings.ContainsAny(w, " \t\n")
		}
		key := seenWord{w, where, u.Lost, ways[i]}
		if prose || seen[key] || i == 0 && standardProgram(w) {
			continue
		}
		seen[key] = true
		switch kind := wordKind(u, i); {
		case i == 0 && program != w:
			e.program(at, w, unit)
		case i == 0:
		case kind == shell.Glob:
			e.shellWord(at, w, ways[i], unit)
			e.shellGlob(at, w, ways[i], unit, namers[program])
		default:
			e.shellWord(at, w, ways[i], unit)
			if i > 0 {
				e.glued(at, u, program, w, ways[i], unit)
			}
			if kind == shell.Unknown && u.Why == "" && !printers[program] && !homeWord(w) {
				e.unknownWord(w, ways[i], unit)
			}
		}
		if i > 0 {
			for _, p := range pieces(w) {
				e.anywhere(at, program, p, ways[i], unit)
			}
			e.folderWord(at, u, program, w, ways[i], unit)
		}
		if _, file, ok := strings.Cut(w, ":"); ok && i > 0 && program == "git" && !isURL(w) {
			e.bare(at, file, ways[i], unit) // a file of a revision
		}
	}
	if program == "git" {
		e.gitElsewhere(at, u, ways, unit)
	}
	if copying[program] {
		e.copiedInto(at, u, unit)
	}
	names, many := downloads(program, u.Words)
	for _, name := range names {
		e.bare(at, name, writes, unit)
	}
	if many {
		e.longWord(program, writes, unit)
	}
}

// rawField says whether a word is a field that gh sends as it is written.
func rawField(u *shell.Unit, i int) bool {
	if i < 3 || programOf(u) != "gh" || u.Words[1] != "api" {
		return false
	}
	return u.Words[i-1] == "-f" || u.Words[i-1] == "--raw-field"
}

// wordKind is what is known of a word. Where nothing was recorded of a command's
// words, it is not proven either, and what its words look like is enough.
func wordKind(u *shell.Unit, i int) shell.Kind {
	switch w := u.Words[i]; {
	case len(u.Kinds) > 0:
		return u.Kind(i)
	case strings.ContainsAny(w, "$`"):
		return shell.Unknown
	case !u.Literal && strings.ContainsAny(w, "*?["):
		return shell.Glob
	}
	return shell.Fixed
}

func (e *evaluation) noteWays(words []string, ways []direction) {
	if e.ways == nil {
		e.ways = map[string]direction{}
	}
	for i, w := range words {
		e.ways[w] |= ways[i]
	}
}

// homeWord says whether all that is not known of a word is the home directory
// or the current one, which are.
func homeWord(w string) bool {
	for _, prefix := range []string{"$HOME", "${HOME}", "$PWD", "${PWD}"} {
		if rest, ok := strings.CutPrefix(w, prefix); ok && (rest == "" || rest[0] == '/') {
			return !strings.ContainsAny(rest, "$`")
		}
	}
	return false
}

// program rules the path of a program that is run by it.
func (e *evaluation) program(at *place, word string, unit int) {
	e.shellWord(at, word, reads, unit)
}

// unknownWord rules a word that the shell computes: it may be any path, and so
// is allowed only where every path is.
func (e *evaluation) unknownWord(word string, dir direction, unit int) {
	if e.s.opensAll(surfacePath, dir) && e.s.opensAll(surfaceExternal, dir) {
		return
	}
	entry := floor(surfacePath, word, "unknown-path", "the shell computes this word, and it may be the path of a file that rules speak of")
	entry.Unit = unit
	e.add(entry)
}

// opensAll says whether a crosscutting surface allows whatever there is, in a
// direction.
func (s *Snapshot) opensAll(surface string, dir direction) bool {
	if s.clamped != "" {
		return false
	}
	names := []string{surface}
	for i, form := range forms[surface] {
		if dir&(reads<<i) != 0 {
			names = append(names, form)
		}
	}
	settled := false
	for _, name := range names {
		rules := s.rules.of(name)
		for i := len(rules) - 1; i >= 0; i-- {
			if rules[i].action != Allow && !(s.Yolo() && rules[i].action == Ask && !rules[i].humanOnly) {
				return false
			}
			if rules[i].pattern.w.any() {
				settled = true
				break
			}
		}
	}
	if settled || surface == surfacePath {
		return true
	}
	return s.entryOf(nil, surface, "*").Action == Allow
}

// shellWord rules one word of a command, and the parts of it that programs
// take for paths.
func (e *evaluation) shellWord(at *place, word string, dir direction, unit int) {
	if tooLong(word) {
		e.longWord(word, dir, unit)
		return
	}
	if whole(word) {
		e.shellPiece(at, word, dir, unit)
		return
	}
	for _, p := range pieces(word) {
		e.shellPiece(at, p, dir, unit)
	}
}

func (e *evaluation) shellPiece(at *place, p string, dir direction, unit int) {
	if !looksLikePath(p) && !(at.windows && drive(p)) {
		e.bare(at, p, dir, unit)
		e.linked(at, p, dir, unit)
		return
	}
	for _, entry := range e.s.cross(at, p, dir) {
		if entry.Action == Allow {
			continue // what lets a word pass is no news
		}
		entry.Unit = unit
		e.add(entry)
	}
	if before, after, ok := strings.Cut(p, ":"); ok && !at.windows && !strings.HasPrefix(after, "//") {
		e.bare(at, before, dir, unit) // a file here and a file there, as scp and docker write it
		e.bare(at, after, dir, unit)
	}
}

// linked rules where a plain name leads, as the adapter found it.
func (e *evaluation) linked(at *place, word string, dir direction, unit int) {
	if len(at.resolved[word]) == 0 && len(at.links) == 0 {
		return
	}
	for _, entry := range e.s.cross(at, word, dir) {
		if entry.Action == Allow {
			continue // facts of the host tighten and never loosen
		}
		entry.Unit = unit
		e.add(entry)
	}
}

// shellGlob rules what a word could be replaced by. named: the program shows no
// more of a file than a listing does.
func (e *evaluation) shellGlob(at *place, word string, dir direction, unit int, named bool) {
	if len(word) > 2*maxShown {
		e.longWord(word, dir, unit)
		return
	}
	for _, p := range pieces(word) {
		if !strings.ContainsAny(p, "*?[(") {
			continue
		}
		e.globWord(at, p, dir, unit, named)
		if up, ok := climbing(p); ok {
			e.crossingAt(at, up, dir, unit)
		}
	}
}

// climbing says whether a glob may select "..", as ".*" does in many shells, and
// where it leads then.
func climbing(word string) (up string, ok bool) {
	parts := strings.Split(word, "/")
	for i, part := range parts {
		if part != ".." && strings.HasPrefix(part, ".") && strings.ContainsAny(part, "*?[(") && reach("..", globTokens(part)) {
			parts[i], ok = "..", true
		}
	}
	return path.Clean(strings.Join(parts, "/")), ok
}

// redirect rules a redirection as the access to a file that it is. A command
// that is not proven asks for more than its target.
func (e *evaluation) redirect(at *place, r shell.Redirect, unit int, proven bool) {
	dir := reads
	switch {
	case r.Read && r.Write:
		dir = both
	case r.Write:
		dir = writes
	}
	e.noteWays([]string{r.Target}, []direction{dir})
	e.crossingAt(at, r.Target, dir, unit)
	if proven && !r.Literal && !homeWord(r.Target) {
		e.unknownWord(r.Target, dir, unit)
	}
	if dir&writes != 0 && !stream(r.Target) {
		e.redirectWrite(at, r.Target, unit)
	}
}

// redirectWrite adds what lets a redirection write a file: it is ruled as the
// write tool would be. Where the rules of that say nothing of the file, a path
// rule that does is enough.
func (e *evaluation) redirectWrite(at *place, target string, unit int) {
	for _, r := range at.readings(target) {
		v := r.values(target)
		found := e.s.rules.last("write", at.home, v)
		if found == nil && e.s.directed(surfacePath, at.home, v, writes) != nil {
			continue
		}
		entry := e.s.decided(found, "write", target, at.home, v)
		entry.Unit = unit
		e.add(entry)
	}
}

// patchText rules the files of a patch that a command reads from the text
// around it.
func (e *evaluation) patchText(at *place, text string, unit int) {
	for _, f := range filesOfPatch(text) {
		e.crossingAt(at, f.text, f.dir, unit)
		e.redirectWrite(at, f.text, unit)
	}
}

// looksLikePath says whether a word is taken for a path whatever the rules
// name.
func looksLikePath(s string) bool {
	return s == "~" || s == ".." || s == "." || strings.Contains(s, "/")
}
