package policy

import (
	"fmt"
	"slices"
	"strings"
)

// maxLost bounds the rules named that matched a value and did not win: the ones
// closest to the one that did.
const maxLost = 3

// String returns "file:line:column", "" for nowhere.
func (p Position) String() string {
	if p == (Position{}) {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// RuleAt is a rule and where it stands.
type RuleAt struct {
	Surface, Pattern, Origin string
	Action                   Action
	Place                    Position
	// Whole: the surface has one action for everything, not a map of patterns.
	Whole bool
}

func (r *rule) ref() RuleAt {
	return RuleAt{Surface: r.surface.text, Pattern: r.pattern.text, Origin: r.origin, Action: r.action, Place: r.place, Whole: r.whole}
}

// fallback says whether the rule is the one that all surfaces fall back to.
func (r RuleAt) fallback() bool { w := compileWildcard(r.Surface); return r.Whole && w.any() }

// everywhere says whether the rule is a row of a map behind "*".
func (r RuleAt) everywhere() bool { w := compileWildcard(r.Surface); return !r.Whole && w.any() }

// Said is what one surface said about one value of a call, and why.
type Said struct {
	Entry
	// Rule is the rule that spoke; its Place is nowhere if none did.
	Rule RuleAt
	// Lost are rules on the surface that match too and do not win, in the order
	// of the documents: the last ones.
	Lost []RuleAt
	// spelled are the values as a rule would name them to allow them.
	spelled []string
}

// Explanation is a ruling with what led to it, and what would have led to
// another one.
type Explanation struct {
	Ruling
	// Said is everything that was consulted, also what let single commands of a
	// call pass. Entry.Unit says which command it is about.
	Said []Said
	// Ways are, for each other action, what would have to change.
	Ways []Way
	// Clamped says why every allow is held to an ask, "" where none is.
	Clamped string
}

// noted is one look at the rules: what they said before grants, and of what.
type noted struct {
	by    *Snapshot
	entry Entry
	home  string
	v     values
}

// spelling is what proves the value, for a path the shortest form of it.
func (n noted) spelling() string {
	switch {
	case len(n.v.exact) == 0:
		return n.entry.Value
	case pathSurface(n.entry.Surface):
		return n.v.exact[len(n.v.exact)-1]
	}
	return n.v.exact[0]
}

// tracing gathers what a ruling looked at. It belongs to one explanation.
type tracing struct{ seen []noted }

// note is where every look at the rules comes by that is traced.
func (s *Snapshot) note(e Entry, home string, v values) {
	s.tracing.seen = append(s.tracing.seen, noted{s, e, home, v})
}

// traced is s with everything that it looks at noted in t.
func (s *Snapshot) traced(t *tracing) *Snapshot {
	c := *s
	c.tracing, c.tighter = t, nil
	for _, one := range s.tighter {
		c.tighter = append(c.tighter, one.traced(t))
	}
	return &c
}

// Explain rules a call as RuleWith does, and says what led to the ruling.
func (s *Snapshot) Explain(c Call, grants []Grant) Explanation {
	t := &tracing{}
	out := Explanation{Ruling: s.traced(t).RuleWith(c, grants), Clamped: s.clamped}
	for _, e := range out.Entries {
		out.Said = append(out.Said, t.said(e))
	}
	out.addPassed(t)
	slices.SortStableFunc(out.Said, func(a, b Said) int { return a.Unit - b.Unit })
	out.Ways = s.ways(c, grants, &out)
	return out
}

// addPassed adds what let single commands pass: a ruling leaves that out where
// the call is open for another reason.
func (x *Explanation) addPassed(t *tracing) {
	for i, u := range x.Units {
		spoken := slices.ContainsFunc(x.Said, func(s Said) bool {
			return s.Unit == i && s.Surface == surfaceBash && s.Value == u.Text && (!s.Floor || s.Place != Position{})
		})
		at := slices.IndexFunc(t.seen, func(n noted) bool {
			return n.entry.Surface == surfaceBash && shorten(n.entry.Value) == u.Text && n.entry.MatchedPattern == u.Pattern
		})
		// A command that needs no rule passes, whatever the rule for everything says.
		if !spoken && at >= 0 && t.seen[at].entry.Action == u.Action {
			e := t.seen[at].entry
			e.Unit, e.Value = i, u.Text
			x.Said = append(x.Said, t.said(e))
		}
	}
}

// said finds the rule behind an entry, and those that it won over.
func (t *tracing) said(e Entry) Said {
	out := Said{Entry: e}
	var lost []*rule
	for _, n := range t.seen {
		if n.entry.Surface != e.Surface || shorten(n.entry.Value) != e.Value || n.entry.Place != e.Place {
			continue
		}
		if name := n.spelling(); !slices.Contains(out.spelled, name) {
			out.spelled = append(out.spelled, name)
		}
		for _, r := range n.by.speaking(e.Surface) {
			switch {
			case r.place == e.Place:
				out.Rule = r.ref()
			case r.matches(n.v, n.home) && !slices.ContainsFunc(lost, func(o *rule) bool { return o.place == r.place }):
				lost = append(lost, r)
			}
		}
	}
	if out.Rule == (RuleAt{}) {
		out.Rule = t.at(e.Place)
	}
	for _, r := range lost[max(0, len(lost)-maxLost):] {
		out.Lost = append(out.Lost, r.ref())
	}
	return out
}

// at is the rule that stands at a place, whatever value it spoke of: what a call
// is shown by is not always what was looked up.
func (t *tracing) at(place Position) RuleAt {
	if place == (Position{}) {
		return RuleAt{}
	}
	for _, n := range t.seen {
		for i := range n.by.rules.rules {
			if r := &n.by.rules.rules[i]; r.place == place {
				return r.ref()
			}
		}
	}
	return RuleAt{}
}

// speaking are all rules that may speak of a surface: for one that cuts across,
// also its forms for one direction; last the fallback, which only speaks where
// no other does.
func (s *Snapshot) speaking(surface string) []*rule {
	var out []*rule
	names := []string{surface}
	if plain := crosscutting(surface); plain != "" {
		names = append(names, plain+suffixRead, plain+suffixWrite)
	}
	for _, name := range names {
		out = append(out, s.rules.of(name)...)
	}
	slices.SortStableFunc(out, func(a, b *rule) int {
		if a.place.File != b.place.File {
			return 0 // the layers' order stands
		}
		return a.at - b.at
	})
	if f := s.rules.fallback; f != nil && len(out) == 0 {
		out = append(out, f)
	}
	return out
}

// Why says in a few words why the entry is as it is; for people.
func (s Said) Why() string {
	switch {
	case s.Origin == OriginYolo:
		return "the rule asks, and yoloMode allows what rules ask"
	case strings.HasPrefix(s.Origin, OriginGrant):
		return "the rules ask, and a grant covers it"
	case s.lasting():
		return s.Because()
	case s.Place == Position{}:
		return "no rule speaks of it, and what no rule settles asks"
	case s.Rule.fallback():
		return "no rule on " + s.Surface + " matches, so \"*\" counts"
	case s.Rule.everywhere() && s.Reason == "":
		return "a row behind \"*\" counts on every surface"
	}
	return s.Reason
}

// Because is the reason of an entry that no rule changes; for people.
func (e Entry) Because() string {
	if e.Reason == "" && e.Floor {
		return "the call does not say plainly what it would do, so no rule allows it"
	}
	return e.Reason
}

// Builtin is the group of the built-in rule that an entry comes from, "" where
// it comes from none.
func (e Entry) Builtin() string {
	if e.Origin != OriginBuiltin || e.MatchedPattern == "*" {
		return ""
	}
	for _, r := range BuiltinRules() {
		if r.Pattern == e.MatchedPattern && r.Action != Allow {
			return r.Group
		}
	}
	return ""
}

// LiftedBy says what in the policy would lift an entry that no further rule
// does; "" where nothing would.
func (e Entry) LiftedBy() string {
	for _, sort := range []string{"<unknown-path", "<could-select"} {
		if strings.HasPrefix(e.MatchedPattern, sort) {
			return "taking out the rules that deny or ask about such paths"
		}
	}
	if group := e.Builtin(); group != "" {
		return `"selfProtection": {"lift": ["` + group + `"]} in the fleet layer`
	}
	return ""
}
