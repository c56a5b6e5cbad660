package policy

import (
	"slices"
	"strings"
)

const (
	// maxGlobs bounds what the braces of one glob may become.
	maxGlobs = 64
	// maxEffort bounds the steps of comparing globs with rules in one ruling: a
	// call may hold many long globs, and they are an attacker's to choose.
	maxEffort = 4 << 20
)

// globs are the globs without braces that g stands for, in the form of a
// pattern of rules: too wide where the two differ. ok is false where g is too
// odd or too large to say.
func globs(g string) (out []string, ok bool) {
	if len(g) > MaxPattern {
		return nil, false
	}
	out, ok = braced(g)
	for i, one := range out {
		out[i] = bracketless(one)
	}
	return out, ok
}

// braced expands the braces of g.
func braced(g string) ([]string, bool) {
	from, depth := -1, 0
	var commas []int
	for i := 0; i < len(g); i++ {
		switch c := g[i]; {
		case c == '\\':
			i++
		case c == '{':
			if depth++; depth == 1 {
				from = i
			}
		case c == ',' && depth == 1:
			commas = append(commas, i)
		case c == '}' && depth == 1:
			return alternatives(g, append(append([]int{from}, commas...), i))
		case c == '}':
			depth = max(depth-1, 0)
		}
	}
	return []string{g}, depth == 0
}

// alternatives expands the group of g whose brace, commas and closing brace
// stand at marks.
func alternatives(g string, marks []int) ([]string, bool) {
	var out []string
	for i := range len(marks) - 1 {
		inner := g[marks[i]+1 : marks[i+1]]
		if len(marks) == 2 && strings.Contains(inner, "..") {
			inner = "*" // a range
		}
		more, ok := braced(g[:marks[0]] + inner + g[marks[len(marks)-1]+1:])
		if out = append(out, more...); !ok || len(out) > maxGlobs {
			return nil, false
		}
	}
	return out, true
}

// bracketless turns what patterns of rules do not know into stars, and "**/",
// which may be no folder at all, too.
func bracketless(g string) string {
	g = strings.ReplaceAll(g, "**/", "*")
	var b strings.Builder
	for i := 0; i < len(g); i++ {
		switch c := g[i]; {
		case c == '\\' && i+1 < len(g):
			b.WriteByte('?') // whatever it is; "\*" is one character
			i++
		case c == '[', c == '(' && i > 0 && strings.IndexByte("@+!?*", g[i-1]) >= 0:
			b.WriteByte('*')
			closer := byte(']')
			if c == '(' {
				closer = ')'
			}
			end := strings.IndexByte(g[min(i+2, len(g)):], closer)
			if end < 0 {
				b.WriteByte('*')
				return b.String()
			}
			i = min(i+2, len(g)) + end
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// overlap says whether some text matches both patterns. It takes time in the
// product of their lengths.
func overlap(a, b string) bool {
	x, y := []rune(a), []rune(b)
	// row[j]: some text matches x[i:] and y[j:].
	next, row := make([]bool, len(y)+1), make([]bool, len(y)+1)
	for i := len(x); i >= 0; i-- {
		for j := len(y); j >= 0; j-- {
			switch {
			case i == len(x) && j == len(y):
				row[j] = true
			case i < len(x) && x[i] == '*':
				row[j] = next[j] || j < len(y) && row[j+1]
			case j < len(y) && y[j] == '*':
				row[j] = row[j+1] || i < len(x) && next[j]
			default:
				row[j] = i < len(x) && j < len(y) && (x[i] == y[j] || x[i] == '?' || y[j] == '?') && next[j+1]
			}
		}
		next, row = row, next
	}
	return next[0]
}

// covers says whether every text that matches glob matches the pattern too. A
// false no is possible.
func (p *pattern) covers(glob string) bool {
	return !strings.Contains(p.w.text, "?") && p.w.match(glob)
}

// selected returns the first path rule, from the last on, that denies or asks
// about something that a glob could select; nil if there is none. forms are
// spellings of the glob; all of them must be covered for an exception to hold.
// Where effort is used up, every rule is taken to speak of it.
func (s *Snapshot) selected(p *place, forms []string, dir direction, effort *int) *rule {
	surfaces := []string{surfacePath}
	if dir&reads != 0 {
		surfaces = append(surfaces, surfacePath+suffixRead)
	}
	if dir&writes != 0 {
		surfaces = append(surfaces, surfacePath+suffixWrite)
	}
	for _, surface := range surfaces {
		rules := s.rules.of(surface)
		for i := len(rules) - 1; i >= 0; i-- {
			r := rules[i]
			if r.pattern.w.any() {
				if r.action == Allow {
					break // what stands in front never wins
				}
				continue // what holds for everything was said of the directory
			}
			if r.action == Allow {
				if !slices.ContainsFunc(forms, func(f string) bool { return !r.pattern.covers(f) }) {
					break
				}
				continue
			}
			if r.pattern.overlaps(forms, p, effort) {
				return r
			}
		}
	}
	return nil
}

// overlaps says whether something is matched by the pattern and by a form.
func (p *pattern) overlaps(forms []string, at *place, effort *int) bool {
	text, variants := p.w.text, p.variants()
	if p.home != nil && at.home != "" {
		text = strings.TrimSuffix(at.home, "/") + p.home.text
	}
	for _, f := range forms {
		switch {
		case variants && allOfOneSource(f):
			continue
		case at.cwd != "" && strings.HasPrefix(text, "/") && !strings.HasPrefix(f, "/"):
			continue // a relative form, and the pattern speaks of absolute ones
		}
		if at.fold {
			text, f = strings.ToLower(text), strings.ToLower(f)
		}
		if *effort += (len(text) + 1) * (len(f) + 1); *effort > maxEffort || overlap(text, f) {
			return true
		}
	}
	return false
}

// variants says whether the pattern means variants of one hidden name or
// ending, as "*.env.*" does. Strictly that includes x.env.go; to ask about every
// search of "*.go" for it would make people allow searches without looking.
func (p *pattern) variants() bool {
	text := strings.TrimPrefix(strings.TrimPrefix(p.w.text, "*"), "/")
	core, ok := strings.CutSuffix(text, ".*")
	if !ok {
		core, ok = strings.CutSuffix(text, "*")
		ok = ok && core == ".env"
	}
	return ok && strings.HasPrefix(core, ".") && !strings.ContainsAny(core, "*?/")
}

// sources are the endings of program text and prose.
var sources = strings.Fields("c cc cpp cs css go h hpp html java js jsx kt lua md mjs php proto py rb rs scala scss svelte swift ts tsx vue")

// allOfOneSource says whether a glob selects every file of one such ending,
// and aims at none in particular.
func allOfOneSource(glob string) bool {
	base := glob[strings.LastIndexByte(glob, '/')+1:]
	ending := strings.TrimLeft(base, "*")
	return base != ending && strings.HasPrefix(ending, ".") && slices.Contains(sources, ending[1:])
}

// under are the forms of what a glob selects below a directory as typed. A
// glob of a name selects it at any depth, one with a folder only there.
func (p *place) under(dir, glob string) []string {
	deep := !strings.Contains(glob, "/")
	glob = strings.TrimPrefix(glob, "/")
	var forms []string
	add := func(at string) {
		forms = append(forms, at+glob)
		if deep {
			forms = append(forms, at+"*/"+glob)
		}
	}
	for _, r := range p.readings(dir) {
		for _, at := range []string{r.abs, r.rel} {
			switch at {
			case "":
			case ".":
				add("")
			default:
				add(strings.TrimSuffix(at, "/") + "/")
			}
		}
	}
	if len(forms) == 0 {
		forms = []string{"*" + glob} // nobody knows where
	}
	return forms
}

// selects adds an entry where a glob below a directory could select what path
// rules deny or ask about. It never denies: which files there are is not known.
func (e *evaluation) selects(at *place, dir, glob string, way direction, unit int) {
	all, ok := globs(glob)
	if !ok || strings.HasPrefix(glob, "!") {
		all = []string{"*"} // everything but something
	}
	for _, g := range all {
		found := e.s.selected(at, at.under(dir, g), way, &e.effort)
		if found == nil {
			continue
		}
		entry := floor(surfacePath, glob, "could-select:"+found.pattern.text,
			"it could show files that a path rule denies or asks about; name the files, or search files of one kind (glob *.go, grep --include='*.go', rg -t go, git grep TEXT -- '*.go')")
		entry.HumanOnly, entry.Guidance, entry.Unit = found.humanOnly, found.guidance, unit
		e.add(entry)
		return
	}
}
