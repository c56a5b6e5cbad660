package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// OriginGrant begins the origin of an entry that a grant cleared; the id of the
// grant follows.
const OriginGrant = "grant:"

// maxGrantPatterns bounds the patterns of one grant.
const maxGrantPatterns = 64

// ErrGrant: something is no grant.
var ErrGrant = errors.New("policy: no grant")

// Grant is a remembered approval as far as a ruling knows of it: on one surface,
// what a person has allowed before. Who it is for, and whether it still holds,
// is for whoever hands it in. Make it with NewGrant; the zero value grants
// nothing.
type Grant struct {
	ID, Surface string
	Patterns    []string
	compiled    []grantPattern
}

// grantPattern is one pattern of a grant. here: it began with "./" and speaks of
// what lies in the call's directory alone. joined: it names MCP tools by server
// and tool joined, and covers none that another is spelled like.
type grantPattern struct {
	pattern
	here, joined bool
}

// NewGrant compiles a grant. The patterns are those of rules. ErrGrant for what
// no person can have meant to give: no surface, a pattern of surfaces, no
// pattern, every command of a shell.
func NewGrant(id, surface string, patterns []string) (Grant, error) {
	g := Grant{ID: id, Surface: surface, Patterns: slices.Clone(patterns)}
	switch {
	case surface == "" || strings.ContainsAny(surface, "*?"):
		return Grant{}, fmt.Errorf("%w: surface %q; expected the name of one", ErrGrant, clip(surface))
	case crosscutting(surface) != "" && crosscutting(surface) != surface:
		return Grant{}, fmt.Errorf("%w: surface %s; a grant is on %s, for both directions", ErrGrant, surface, crosscutting(surface))
	case len(patterns) == 0 || len(patterns) > maxGrantPatterns:
		return Grant{}, fmt.Errorf("%w: %d patterns; expected 1 to %d", ErrGrant, len(patterns), maxGrantPatterns)
	}
	for _, p := range patterns {
		switch {
		case p == "" || len(p) > MaxPattern || !utf8.ValidString(p):
			return Grant{}, fmt.Errorf("%w: pattern %q; expected 1 to %d bytes of text", ErrGrant, clip(p), MaxPattern)
		case surface == surfaceBash && strings.Trim(p, "*? ") == "":
			return Grant{}, fmt.Errorf("%w: pattern %q covers every command", ErrGrant, clip(p))
		case pathSurface(surface):
			g.compiled = append(g.compiled, grantPattern{pattern: compilePathPattern(p), here: strings.HasPrefix(p, "./")})
		default:
			g.compiled = append(g.compiled, grantPattern{pattern: compilePattern(p), joined: joinedPattern(surface, p)})
		}
	}
	return g, nil
}

// covers returns the pattern that matches one of the spellings that prove what
// a value is: a grant is given on what was seen, so no other reading counts.
func (g *Grant) covers(home string, v values) (pattern string, ok bool) {
	for i := range g.compiled {
		if g.compiled[i].covers(home, v) {
			return g.Patterns[i], true
		}
	}
	return "", false
}

func (p *grantPattern) covers(home string, v values) bool {
	exact := v.exact
	if p.joined {
		exact = v.joined
	}
	return slices.ContainsFunc(exact, func(s string) bool {
		return !(p.here && absoluteLooking(s)) && p.match(s, home, false)
	})
}

// absoluteLooking says whether a path is not one within the call's directory.
func absoluteLooking(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, `\`) || len(s) > 1 && s[1] == ':'
}

// granting is one ruling's grants, and what they cleared of it.
type granting struct {
	grants  []Grant
	cleared []Entry
}

// cleared makes an allow of an entry that a rule leaves open, where a grant
// covers every reading of what it is about: v are the spellings of one. Nothing
// else is a grant's to lift: no deny, no floor, nothing that only a person
// answers, nothing under a clamp.
func (s *Snapshot) cleared(e Entry, home string, v values) Entry {
	if s.tracing != nil {
		s.note(e, home, v)
	}
	if s.granting == nil || s.clamped != "" || e.Action != Ask || e.Floor || e.HumanOnly {
		return e
	}
	for i := range s.granting.grants {
		g := &s.granting.grants[i]
		if g.Surface != e.Surface {
			continue
		}
		if p, ok := g.covers(home, v); ok {
			e.Action, e.MatchedPattern, e.Origin, e.Reason, e.Guidance = Allow, p, OriginGrant+g.ID, "", ""
			s.granting.cleared = append(s.granting.cleared, e)
			return e
		}
	}
	return e
}

// granted is s with grants in force, for one ruling.
func (s *Snapshot) granted(g *granting) *Snapshot {
	c := *s
	c.granting, c.tighter = g, nil
	for _, t := range s.tighter {
		c.tighter = append(c.tighter, t.granted(g))
	}
	return &c
}

// RuleWith rules one call as Rule does, and where the rules ask, with grants:
// each clears the open entries that it matches, and no others. The first that
// matches counts. Ruling.Cleared says what they cleared. Pure, as Rule is.
func (s *Snapshot) RuleWith(c Call, grants []Grant) Ruling {
	plain := s.Rule(c)
	if plain.Action != Ask || len(grants) == 0 || s.clamped != "" {
		return plain
	}
	g := &granting{grants: grants}
	out := s.granted(g).Rule(c)
	if len(g.cleared) == 0 {
		return plain
	}
	out.Cleared = g.cleared
	slices.SortStableFunc(out.Cleared, func(a, b Entry) int {
		return cmp.Compare(surfaceRank(a.Surface), surfaceRank(b.Surface))
	})
	if out.Action == Allow {
		out.Decisive = out.Cleared[0] // the rules alone did not allow it
	}
	return out
}

// Grants returns the ids of the grants that cleared something of the call, in
// order.
func (r Ruling) Grants() []string { return idsOf(r.Cleared) }

func idsOf(cleared []Entry) []string {
	var ids []string
	for _, e := range cleared {
		ids = append(ids, strings.TrimPrefix(e.Origin, OriginGrant))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Covers says for each pattern of the grant whether it matches an entry of a
// call, as that was put to a person: value as in Entry. A pattern that matches
// nothing that was open is wider than what its giver saw.
func (g Grant) Covers(c Call, surface, value string) []bool {
	return g.coversAt(placeOf(c), surface, value)
}

func (g Grant) coversAt(p place, surface, value string) []bool {
	found := make([]bool, len(g.compiled))
	if surface != g.Surface || strings.HasSuffix(value, "…") {
		return found
	}
	readings := valueReadings(p, surface, value)
	for i := range g.compiled {
		found[i] = len(readings) > 0
		for _, v := range readings {
			found[i] = found[i] && g.compiled[i].covers(p.home, v)
		}
	}
	return found
}

// valueReadings are the readings of the value of an entry; all of them have to
// be covered.
func valueReadings(p place, surface, value string) []values {
	switch {
	case pathSurface(surface):
		var out []values
		for _, r := range p.readings(value) {
			out = append(out, r.values(value))
		}
		return out
	case surface == surfaceMCP && oddServer(value):
		return nil
	case surface == surfaceMCP:
		if server, name, ok := mcpTarget(map[string]any{"tool": value}); ok {
			return []values{mcpValues(server, name)}
		}
		if !strings.HasPrefix(value, surfaceMCP+"_") {
			return nil // some server's tool: nobody can tell whose
		}
	}
	return []values{{exact: []string{value}}}
}
