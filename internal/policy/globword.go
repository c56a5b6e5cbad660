package policy

import (
	"path"
	"strings"
)

// globToken is one element of a word that a shell replaces by names of files.
type globToken struct {
	kind globKind
	r    rune
	set  []runeRange
	not  bool
}

type runeRange struct{ from, to rune }

type globKind uint8

const (
	globLiteral globKind = iota
	globAny              // one character, never a slash
	globSet              // one of some
	globStar             // any run without a slash
	globHole             // the same, for what a shell computes: also with a dot in front
	globDeep             // any run: ** and what nobody here reads
)

// globTokens reads a word as a shell's glob. What it does not know it takes for
// anything.
func globTokens(word string) []globToken {
	var out []globToken
	rs := []rune(word)
	for i := 0; i < len(rs); i++ {
		switch r := rs[i]; {
		case r == hole:
			out = append(out, globToken{kind: globHole})
		case strings.ContainsRune("?*+@!", r) && i+1 < len(rs) && rs[i+1] == '(':
			return append(out, globToken{kind: globDeep})
		case r == '*' && i+1 < len(rs) && rs[i+1] == '*':
			out = append(out, globToken{kind: globDeep})
			i++
		case r == '*':
			out = append(out, globToken{kind: globStar})
		case r == '?':
			out = append(out, globToken{kind: globAny})
		case r == '[':
			set, end := bracket(rs[i:])
			out = append(out, set)
			i += end
		default:
			out = append(out, globToken{r: r})
		}
	}
	return out
}

// bracket reads a bracket expression at the start of rs and says at which index
// it ends. One that does not end is a bracket.
func bracket(rs []rune) (t globToken, end int) {
	t.kind = globSet
	i := 1
	if i < len(rs) && (rs[i] == '!' || rs[i] == '^') {
		t.not = true
		i++
	}
	for first := true; i < len(rs); i, first = i+1, false {
		switch {
		case rs[i] == ']' && !first:
			return t, i
		case rs[i] == '[' && i+1 < len(rs) && strings.ContainsRune(":=.", rs[i+1]):
			t.kind = globAny // classes of characters: too many to know
			if end := strings.Index(string(rs[i+2:]), string(rs[i+1])+"]"); end >= 0 {
				i += 3 + len([]rune(string(rs[i+2:])[:end]))
			}
		case i+2 < len(rs) && rs[i+1] == '-' && rs[i+2] != ']':
			t.set = append(t.set, runeRange{rs[i], rs[i+2]})
			i += 2
		default:
			t.set = append(t.set, runeRange{rs[i], rs[i]})
		}
	}
	return globToken{r: '['}, 0
}

// takes says whether the token can stand for r, at the start of a name or not:
// there a dot has to be written.
func (t globToken) takes(r rune, start bool) bool {
	if t.kind == globLiteral {
		return t.r == r
	}
	if t.kind == globDeep {
		return true
	}
	if r == '/' || r == '.' && start && t.kind != globHole {
		return false
	}
	if t.kind != globSet {
		return true
	}
	for _, s := range t.set {
		if s.from <= r && r <= s.to {
			return !t.not
		}
	}
	return t.not
}

// examples are characters that stand for all that a token may take where a
// pattern takes anything.
func (t globToken) examples() []rune {
	switch {
	case t.kind == globLiteral:
		return []rune{t.r}
	case t.kind == globSet && !t.not:
		out := make([]rune, 0, len(t.set))
		for _, s := range t.set {
			out = append(out, s.from, s.to)
		}
		return out
	case t.kind == globDeep:
		return deepExamples
	}
	return anyExamples
}

var deepExamples, anyExamples = []rune("/x."), []rune("x0-\u2603")

// reach says whether some name that the tokens select matches the pattern of a
// rule. It takes time in the product of their lengths.
func reach(pattern string, glob []globToken) bool {
	p := []rune(pattern)
	width := len(glob) + 1
	// A state is how far pattern and glob are, and whether a name begins there:
	// each is looked at once.
	seen := make([]bool, 2*(len(p)+1)*width)
	var todo []int32
	push := func(i, j int, start bool) {
		at := 2 * (i*width + j)
		if start {
			at++
		}
		if !seen[at] {
			seen[at] = true
			todo = append(todo, int32(at))
		}
	}
	for push(0, 0, true); len(todo) > 0; {
		at := int(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		i, j, start := at/2/width, at/2%width, at%2 == 1
		if i == len(p) && j == len(glob) {
			return true
		}
		star := i < len(p) && p[i] == '*'
		if star {
			push(i+1, j, start)
		}
		if j == len(glob) {
			continue
		}
		run := glob[j].kind >= globStar
		if run {
			push(i, j+1, start)
		}
		if i == len(p) {
			continue
		}
		next, after := i+1, j+1
		if star {
			next = i
		}
		if run {
			after = j
		}
		if !star && p[i] != '?' {
			if glob[j].takes(p[i], start) {
				push(next, after, p[i] == '/')
			}
			continue
		}
		for _, r := range glob[j].examples() {
			if glob[j].takes(r, start) {
				push(next, after, r == '/')
			}
		}
	}
	return false
}

// globWord adds what path rules say of the files that a word of a command could
// select. A rule is taken at its word where the glob is within it or aims at the
// very name that it protects; else the glob could reach such a file and asks,
// unless only its name would be shown.
func (e *evaluation) globWord(at *place, word string, dir direction, unit int, named bool) {
	forms := at.globForms(word)
	found, certain := e.s.reached(at, forms, dir, &e.effort)
	if found == nil || named && !certain {
		return
	}
	entry := floor(surfacePath, word, "could-select:"+found.pattern.text,
		"it could reach files that a path rule denies or asks about; name the files, or write a narrower pattern, as *.go")
	entry.HumanOnly, entry.Guidance = found.humanOnly, found.guidance
	if certain {
		entry = e.s.decided(found, surfacePath, word, at.home, values{wide: []string{word}})
	}
	entry.Unit = unit
	e.add(entry)
}

// globForms are the spellings of the paths that a glob selects.
func (p *place) globForms(word string) []string {
	var out []string
	for _, r := range p.readings(word) {
		for _, s := range []string{r.abs, r.rel} {
			if s != "" {
				out = append(out, s)
			}
		}
	}
	if len(out) == 0 {
		out = append(out, path.Clean(word))
	}
	return out
}

// reached returns the path rule that denies or asks about what a glob selects,
// the last that does. certain: there is no doubt that it is meant.
func (s *Snapshot) reached(p *place, forms []string, dir direction, effort *int) (found *rule, certain bool) {
	for i, surface := range []string{surfacePath, surfacePath + suffixRead, surfacePath + suffixWrite} {
		if i > 0 && dir&(reads<<(i-1)) == 0 {
			continue
		}
		r, sure := s.reachedOn(surface, p, forms, effort)
		if r != nil && (found == nil || sure && !certain) {
			found, certain = r, sure
		}
	}
	return found, certain
}

func (s *Snapshot) reachedOn(surface string, p *place, forms []string, effort *int) (found *rule, certain bool) {
	rules := s.rules.of(surface)
	for i := len(rules) - 1; i >= 0; i-- {
		r := rules[i]
		if r.pattern.w.any() {
			if r.action == Allow {
				break // what stands in front never wins
			}
			continue // what holds for everything was said of the word itself
		}
		if r.action == Allow {
			if coveredBy(&r.pattern, forms, p.home) {
				break
			}
			continue
		}
		hit, sure := r.reaches(p, forms, effort)
		if hit && (found == nil || sure && !certain && r.action <= found.action) {
			found, certain = r, sure
		}
	}
	return found, certain
}

func coveredBy(p *pattern, forms []string, home string) bool {
	if strings.Contains(p.w.text, "?") {
		return false
	}
	for _, f := range forms {
		if p.match(f, home, false) {
			return true // the forms are spellings of one path
		}
	}
	return false
}

func (r *rule) reaches(at *place, forms []string, effort *int) (hit, certain bool) {
	text := r.pattern.w.text
	if r.pattern.home != nil && at.home != "" {
		text = strings.TrimSuffix(at.home, "/") + r.pattern.home.text
	}
	for _, f := range forms {
		if r.pattern.variants() && allOfOneSource(f) || strings.HasPrefix(text, "/") && !strings.HasPrefix(f, "/") && len(forms) > 1 {
			continue // a relative form, where there is an absolute one too
		}
		t, g := text, f
		if at.fold {
			t, g = foldText(t), foldText(g)
		}
		if *effort += (len(t) + 1) * (len(g) + 1); *effort > maxEffort {
			return true, false
		}
		tokens := globTokens(g)
		if !reach(t, tokens) {
			continue
		}
		hit = true
		if !strings.Contains(t, "?") && compileWildcard(t).match(g) || aims(t, g) {
			return true, true
		}
	}
	return hit, false
}

// aims says whether the last part of a glob spells enough of the name that a
// pattern protects to be meant for it: ".en?" for ".env", and not "*".
func aims(pattern, glob string) bool {
	name := pattern[strings.LastIndexByte(pattern, '/')+1:]
	name = strings.TrimLeft(name, "*")
	last := globTokens(glob[strings.LastIndexByte(glob, '/')+1:])
	spelled := 0
	for _, t := range last {
		if t.kind == globLiteral || t.kind == globSet {
			spelled++
		}
	}
	return spelled >= 2 && !strings.ContainsAny(name, "*?") && name != "" && reach(name, last)
}
