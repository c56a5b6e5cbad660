package policy

import "strings"

// decided is what a rule says of a value, grants heard; without a rule, the
// fallback.
func (s *Snapshot) decided(r *rule, surface, shown, home string, v values) Entry {
	return s.cleared(s.entryOf(r, surface, shown), home, v)
}

// cross consults the crosscutting surfaces about one path as typed.
func (s *Snapshot) cross(p *place, typed string, dir direction) []Entry {
	if stream(typed) {
		return nil
	}
	return s.crossReadings(p, p.readings(typed), typed, dir)
}

func (s *Snapshot) crossReadings(p *place, readings []pathReading, typed string, dir direction) []Entry {
	var out []Entry
	for _, r := range readings {
		v := r.values(typed)
		if r.rel == "" && !(dir == reads && s.trusts(p, v)) {
			out = append(out, s.external(p, r, typed, v, dir))
		}
		if e, ok := s.pathEntry(p, r, typed, v, dir); ok {
			out = append(out, e)
		}
		if e, ok := s.skillEntry(p, r, typed, dir); ok {
			out = append(out, e)
		}
		if r.odd != "" {
			out = append(out, floor(surfacePath, typed, "odd-path:"+r.odd, "this spelling of a path may lead to another file than it says; write the plain name"))
		}
	}
	return out
}

// stream says whether a path names what a process already has open, or nothing:
// no file to protect, wherever the adapter found it to lead.
func stream(typed string) bool {
	rest, ok := strings.CutPrefix(typed, "/dev/")
	if !ok {
		return false
	}
	switch rest {
	case "null", "stdin", "stdout", "stderr", "tty":
		return true
	}
	number, ok := strings.CutPrefix(rest, "fd/")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// trusts says whether a path lies under trustedReadPaths.
func (s *Snapshot) trusts(p *place, v values) bool {
	for i := range s.trustedReads {
		for _, value := range v.exact {
			if s.trustedReads[i].match(value, p.home, false) {
				return s.clamped == ""
			}
		}
	}
	return false
}

// external is the entry of a path outside the project. Nobody can say of a
// path without a place that it is inside.
func (s *Snapshot) external(p *place, r pathReading, typed string, v values, dir direction) Entry {
	shown := r.abs
	if shown == "" {
		shown = typed
	}
	e := s.decided(s.directed(surfaceExternal, p.home, v, dir), surfaceExternal, shown, p.home, v)
	if r.abs == "" && e.Action == Allow {
		return floor(surfaceExternal, typed, "unknown-directory", "nobody can tell where this path leads")
	}
	if p.cwd == "" && e.Action == Allow {
		return floor(surfaceExternal, typed, "unknown-directory", "the call does not say in which directory it runs")
	}
	return e
}

// pathEntry is what the path rules say; ok is false where none speaks of it.
func (s *Snapshot) pathEntry(p *place, r pathReading, typed string, v values, dir direction) (Entry, bool) {
	found := s.directed(surfacePath, p.home, v, dir)
	if found == nil {
		return Entry{}, false
	}
	shown := r.abs
	if shown == "" || r.rel != "" {
		shown = typed
	}
	return s.decided(found, surfacePath, shown, p.home, v), true
}

// forms are the surfaces of one crosscutting kind, for each direction.
var forms = map[string][2]string{
	surfacePath:     {surfacePath + suffixRead, surfacePath + suffixWrite},
	surfaceExternal: {surfaceExternal + suffixRead, surfaceExternal + suffixWrite},
}

// directed returns the rule of a crosscutting surface for a direction: that of
// the form with the direction's name, else that of the plain form. Where both
// directions count, the stricter of the two; nil if no rule speaks.
func (s *Snapshot) directed(surface, home string, v values, dir direction) *rule {
	plain := s.rules.last(surface, home, v)
	var strictest *rule
	first := true
	for i, form := range forms[surface] {
		if dir&(reads<<i) == 0 {
			continue
		}
		found := s.rules.last(form, home, v)
		if found == nil {
			found = plain
		}
		if first || s.ruleStrictness(surface, found) < s.ruleStrictness(surface, strictest) {
			first, strictest = false, found
		}
	}
	return strictest
}

// directedAt is directed for a path in one plain reading, of which nothing is
// kept: most words of commands are no paths that any rule speaks of.
func (s *Snapshot) directedAt(p *place, r *pathReading, typed string, dir direction) *rule {
	exact, wide := [2]string{r.abs, r.rel}, [1]string{typed}
	v := values{exact: exact[:], wide: wide[:], fold: r.fold}
	if r.rel == "" {
		v.exact = exact[:1]
	} else if r.rel == typed {
		v.wide = nil // said already
	}
	return s.directed(surfacePath, p.home, v, dir)
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
	if r == nil {
		return 2 * int(Ask)
	}
	return r.strictness()
}

func (r *rule) strictness() int {
	if r.humanOnly {
		return 2*int(r.action) - 1
	}
	return 2 * int(r.action)
}
