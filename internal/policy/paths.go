package policy

import (
	"maps"
	"path"
	"slices"
	"strings"
)

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// place is where a call happens.
type place struct {
	// cwd and home are absolute and clean, or empty where they are not known.
	cwd, home string
	// inside are the directories that count as the project: cwd, and what it
	// resolves to.
	inside []string
	// fold: the file system finds a name in any letter case.
	fold bool
	// resolved is what the adapter found behind each path as typed.
	resolved map[string][]string
}

func placeOf(c Call) place {
	p := place{cwd: absolute(c.Cwd), home: absolute(c.Home), fold: c.Platform == "darwin" || c.Platform == "windows"}
	for _, one := range c.Paths {
		if one.Resolved == "" {
			continue
		}
		if p.resolved == nil {
			p.resolved = make(map[string][]string, len(c.Paths))
		}
		p.resolved[one.Raw] = append(p.resolved[one.Raw], one.Resolved)
	}
	for _, dir := range append([]string{p.cwd}, p.resolved[c.Cwd]...) {
		// A call at the root would have the whole disk inside its project.
		if abs := absolute(dir); abs != "" && abs != "/" {
			p.inside = append(p.inside, abs)
		}
	}
	if p.cwd == "" {
		p.inside = nil
	}
	return p
}

// absolute is p clean, or "" if it is not absolute.
func absolute(p string) string {
	if !strings.HasPrefix(p, "/") {
		return ""
	}
	return path.Clean(p)
}

// pathReading is one way to understand a path.
type pathReading struct {
	// abs is absolute and clean; "" if it could not be found out.
	abs string
	// rel is abs within cwd, "" outside of it.
	rel string
	// fold as in place.
	fold bool
}

// values are the spellings under which the reading is matched; typed is how
// the agent wrote the path.
func (r pathReading) values(typed string) values {
	v := values{wide: []string{typed}, fold: r.fold}
	if r.abs == "" {
		// Nobody knows where it leads: no allow matches, every deny may.
		if c := path.Clean(typed); c != typed {
			v.wide = append(v.wide, c)
		}
		return v
	}
	v.exact = append(v.exact, r.abs)
	if r.rel != "" {
		v.exact = append(v.exact, r.rel)
	}
	return v
}

// readings are all the ways in which the path may be understood: with ".."
// taken off the text, and as the adapter resolved it. The strictest counts.
func (p place) readings(typed string) []pathReading {
	spellings := []string{typed}
	// Some tools drop blanks, quotes or a leading @ around a path.
	if trimmed := strings.TrimPrefix(strings.Trim(typed, " \t\n\"'"), "@"); trimmed != typed && trimmed != "" {
		spellings = append(spellings, trimmed)
	}
	var out []pathReading
	for _, s := range spellings {
		out = append(out, p.reading(p.join(s)))
	}
	for _, r := range p.resolved[typed] {
		out = append(out, p.reading(absolute(r)))
	}
	return out
}

// join makes a typed path absolute and clean; "" where that is not possible.
func (p place) join(typed string) string {
	if rest, ok := cutHome(typed); ok {
		if p.home == "" {
			return ""
		}
		return path.Clean(p.home + "/" + rest)
	}
	for _, prefix := range []string{"$PWD", "${PWD}"} {
		if rest, ok := strings.CutPrefix(typed, prefix); ok && (rest == "" || rest[0] == '/') {
			typed = "./" + rest
			break
		}
	}
	if strings.HasPrefix(typed, "/") {
		return path.Clean(typed)
	}
	if p.cwd == "" {
		return ""
	}
	return path.Clean(p.cwd + "/" + typed)
}

func (p place) reading(abs string) pathReading {
	r := pathReading{abs: abs, fold: p.fold}
	for _, dir := range p.inside {
		if rel, ok := within(abs, dir); ok && abs != "" {
			r.rel = rel
			break
		}
	}
	return r
}

// within returns abs relative to dir, "." for dir itself.
func within(abs, dir string) (string, bool) {
	if abs == dir {
		return ".", true
	}
	return strings.CutPrefix(abs, strings.TrimSuffix(dir, "/")+"/")
}

// cross consults the crosscutting surfaces about one path as typed.
func (s *Snapshot) cross(p place, typed string, dir direction) []Entry {
	var out []Entry
	for _, r := range p.readings(typed) {
		if r.rel == "" && r.abs != "/dev/null" {
			out = append(out, s.external(p, r, typed, dir))
		}
		if e, ok := s.pathEntry(p, r, typed, dir); ok {
			out = append(out, e)
		}
	}
	return out
}

// external is the entry of a path outside the project. Nobody can say of a
// path without a place that it is inside.
func (s *Snapshot) external(p place, r pathReading, typed string, dir direction) Entry {
	shown := r.abs
	if shown == "" {
		shown = typed
	}
	e := s.entryOf(s.directed(surfaceExternal, p.home, r.values(typed), dir), surfaceExternal, shown)
	if r.abs == "" && e.Action == Allow {
		return floor(surfaceExternal, typed, "unknown-directory", "nobody can tell where this path leads")
	}
	if p.cwd == "" && e.Action == Allow {
		return floor(surfaceExternal, typed, "unknown-directory", "the call does not say in which directory it runs")
	}
	return e
}

// pathEntry is what the path rules say; ok is false where none speaks of it.
func (s *Snapshot) pathEntry(p place, r pathReading, typed string, dir direction) (Entry, bool) {
	found := s.directed(surfacePath, p.home, r.values(typed), dir)
	if found == nil {
		return Entry{}, false
	}
	shown := r.abs
	if shown == "" || r.rel != "" {
		shown = typed
	}
	return s.entryOf(found, surfacePath, shown), true
}

// directed returns the rule of a crosscutting surface for a direction: that of
// the form with the direction's name, else that of the plain form. Where both
// directions count, the stricter of the two; nil if no rule speaks.
func (s *Snapshot) directed(surface, home string, v values, dir direction) *rule {
	forms := []string{surface + suffixRead, surface + suffixWrite}
	switch dir {
	case reads:
		forms = forms[:1]
	case writes:
		forms = forms[1:]
	}
	plain := s.rules.last(surface, home, v)
	var strictest *rule
	for i, form := range forms {
		found := s.rules.last(form, home, v)
		if found == nil {
			found = plain
		}
		if i == 0 || s.ruleStrictness(surface, found) < s.ruleStrictness(surface, strictest) {
			strictest = found
		}
	}
	return strictest
}

// ruleStrictness orders rules: smaller is stricter, and an ask that only a
// person answers is stricter than one that anybody may. A missing rule counts
// as what its surface falls back to: for path nothing, so an allow.
func (s *Snapshot) ruleStrictness(surface string, r *rule) int {
	if r == nil && surface == surfacePath {
		return 2 * int(Allow)
	}
	if r == nil {
		r = s.rules.fallback
	}
	switch {
	case r == nil:
		return 2 * int(Ask)
	case r.humanOnly:
		return 2*int(r.action) - 1
	}
	return 2 * int(r.action)
}
