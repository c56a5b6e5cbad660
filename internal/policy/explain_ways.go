package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/shell"
)

// Way is what would have to change for a call to be ruled otherwise. It was
// tried: the engine ruled the call under the changed rules.
type Way struct {
	To Action
	// Edits are to be made together.
	Edits []Edit
	// Blocks are what no rule lifts, and what the call comes to with the edits
	// made. With any there is no way, only what stands in it.
	Blocks []Entry
}

// Edit is one change to one layer's document.
type Edit struct {
	// Layer is the layer to be changed, by its name.
	Layer            string
	Surface, Pattern string
	Action           Action
	// At is the rule to be changed or to be followed; nowhere if there is none.
	At Position
	// do is what to do with the rule at At.
	do deed
	// was is the rule that has stood at At.
	was RuleAt
}

// deed is the sort of an edit.
type deed uint8

const (
	addSurface deed = iota // the layer has no rules on the surface
	addRule                // behind the rule at At
	changeRule             // the rule at At itself
	moveRule               // the same pattern stands in front of At
	widenRule              // at At the surface has one action
)

// String says the edit to a person.
func (e Edit) String() string {
	surface, pattern := quoted(e.Surface), quoted(e.Pattern)
	rule := fmt.Sprintf("%s: %q", pattern, e.Action)
	at := e.At.String()
	switch e.do {
	case changeRule:
		if e.was.Whole {
			return fmt.Sprintf("make %s %q at %s", surface, e.Action, at)
		}
		return fmt.Sprintf("make %s %q at %s", pattern, e.Action, at)
	case moveRule:
		return fmt.Sprintf("move %s behind %s, as %s", pattern, at, rule)
	case addRule:
		return fmt.Sprintf("add %s to %s, behind %s", rule, surface, at)
	case widenRule:
		return fmt.Sprintf("write %s: {\"*\": %q, %s} at %s", surface, e.was.Action, rule, at)
	}
	where := ""
	switch {
	case e.At != Position{}:
		where = ", behind " + at
	case e.Layer != "":
		where = " of layer " + e.Layer
	}
	if e.Pattern == "*" {
		return fmt.Sprintf("add %s: %q to \"permission\"%s", surface, e.Action, where)
	}
	return fmt.Sprintf("add %s: {%s} to \"permission\"%s", surface, rule, where)
}

// ways finds for each action that a call was not ruled what would lead there.
func (s *Snapshot) ways(c Call, grants []Grant, x *Explanation) []Way {
	var out []Way
	if x.Action == None || canonicalTool(strings.TrimSpace(c.Tool)) == ToolCanary {
		return nil
	}
	for _, to := range []Action{Allow, Ask, Deny} {
		if to == x.Action {
			continue
		}
		if w, ok := s.way(c, grants, x, to); ok {
			out = append(out, w)
		}
	}
	return out
}

// way tries edits that speak of things alike, and if that does not do, of the
// very values.
func (s *Snapshot) way(c Call, grants []Grant, x *Explanation, to Action) (Way, bool) {
	for _, wide := range []bool{true, false} {
		w := Way{To: to}
		for _, said := range x.inTheWay(to) {
			for _, pattern := range proposals(c, said, wide) {
				if e := s.edit(said, pattern, to); !slices.ContainsFunc(w.Edits, e.same) {
					w.Edits = append(w.Edits, e)
				}
			}
		}
		changed, err := s.with(w.Edits)
		if err != nil {
			continue
		}
		got := changed.RuleWith(c, grants)
		if got.Action == to {
			return w, true
		}
		for _, e := range got.Entries {
			if e.Action < to && e.lasting() {
				w.Blocks = append(w.Blocks, e)
			}
		}
		if got.Action < to && !slices.ContainsFunc(got.Entries, func(e Entry) bool { return e.Action < to && !e.lasting() }) {
			return w, true
		}
	}
	return Way{}, false
}

// lasting says whether no rule changes an entry.
func (e Entry) lasting() bool { return e.Floor || e.Origin == OriginBuiltin }

// inTheWay is what keeps a call from being ruled to: all that is stricter. Where
// nothing is, one rule more will do, on the tool or a command.
func (x *Explanation) inTheWay(to Action) []Said {
	if to > x.Action {
		return slices.DeleteFunc(slices.Clone(x.Said), func(s Said) bool { return s.lasting() || s.Action >= to })
	}
	fits := func(s Said) bool { return !s.lasting() && crosscutting(s.Surface) == "" }
	at := slices.IndexFunc(x.Said, func(s Said) bool { return fits(s) && s.Entry == x.Decisive })
	if at < 0 {
		at = slices.IndexFunc(x.Said, fits)
	}
	if at < 0 {
		return nil
	}
	return x.Said[at : at+1]
}

// edit is the change that makes the rules say to of what was said.
func (s *Snapshot) edit(said Said, pattern string, to Action) Edit {
	e := Edit{Layer: said.Rule.Origin, Surface: said.Surface, Pattern: pattern, Action: to, At: said.Place, was: said.Rule}
	if w := compileWildcard(said.Rule.Surface); w.literal() && said.Rule.Surface != "" {
		e.Surface = said.Rule.Surface // path_read, where path was asked for
	}
	if e.Layer == "" {
		e.Layer = LayerFleet
	}
	same := s.standing(e)
	switch {
	case said.Rule.Surface == e.Surface && said.Rule.Pattern == e.Pattern:
		e.do = changeRule
	case said.Rule.Surface == e.Surface && said.Rule.Whole:
		e.do = widenRule
	case said.Rule.Surface == e.Surface && same:
		e.do = moveRule
	case said.Rule.Surface == e.Surface:
		e.do = addRule
	default:
		e.besides(s)
	}
	return e
}

// besides places an edit where no rule on its own surface decided: behind the
// last one of its layer that speaks of it, else as a new surface.
func (e *Edit) besides(s *Snapshot) {
	deciding := e.At
	e.do, e.At = addSurface, Position{}
	for i := range s.rules.rules {
		r := &s.rules.rules[i]
		if r.origin == e.Layer && r.surface.text == e.Surface {
			e.do, e.At, e.was = addRule, r.place, r.ref()
		}
	}
	if w := compileWildcard(e.was.Surface); e.do == addSurface && e.was.Surface != "" && !w.any() {
		e.At = deciding // a pattern of surfaces, which counts until something stands behind it
	}
}

// standing says whether the edit's layer has a rule with its very pattern.
func (s *Snapshot) standing(e Edit) bool {
	return slices.ContainsFunc(s.rules.rules, func(r rule) bool {
		return r.origin == e.Layer && r.surface.text == e.Surface && r.pattern.text == e.Pattern
	})
}

func (e Edit) same(o Edit) bool {
	return e.Layer == o.Layer && e.Surface == o.Surface && e.Pattern == o.Pattern
}

// proposals are the patterns for edits: wide for things alike where that is safe
// to write down, else the values themselves.
func proposals(c Call, said Said, wide bool) []string {
	if slices.Contains(said.spelled, said.Rule.Pattern) {
		return []string{said.Rule.Pattern} // the rule speaks of nothing else
	}
	out := slices.Clone(said.spelled)
	for i, value := range out {
		switch {
		case said.Surface == surfaceBash && wide:
			if units := shell.Read(value).Units; len(units) == 1 && units[0].Text == value {
				out[i] = rulePattern(units[0].Words)
			}
		case crosscutting(said.Surface) == surfaceExternal && wide:
			p := evaluation{s: &Snapshot{}, place: placeOf(c)}
			out[i] = p.folderPattern(value)
		}
		out[i] = cmp.Or(out[i], "*")
	}
	return slices.Compact(out)
}

// rulePattern is commandPattern as an author writes it: "git status *" is also
// the command alone, and not that of another name.
func rulePattern(words []string) string {
	p := commandPattern(words)
	if p == strings.Join(words, " ")+"*" {
		return strings.TrimSuffix(p, "*") + " *"
	}
	return p
}

// quoted is a text as it stands in a document.
func quoted(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return `""` // no document can hold it, so the reader refuses this too
	}
	return string(b)
}

// with is the policy with edits made.
func (s *Snapshot) with(edits []Edit) (*Snapshot, error) {
	var more []rule
	for _, e := range edits {
		doc := fmt.Sprintf(`{"permission":{%s:{%s:%q}}}`, quoted(e.Surface), quoted(e.Pattern), e.Action)
		d, err := Read(Fleet(), LayerFleet, []byte(doc))
		if err != nil {
			return nil, err
		}
		for _, surface := range d.surfaces {
			more = append(more, surface.rules...)
		}
	}
	return s.plus(more), nil
}

func (s *Snapshot) plus(more []rule) *Snapshot {
	if s.everywhere {
		return s // no rule on a surface stands over these
	}
	c := *s
	replaced := func(r rule) bool {
		return slices.ContainsFunc(more, func(m rule) bool {
			return m.surface.text == r.surface.text && m.pattern.text == r.pattern.text
		})
	}
	c.rules = ruleSet{rules: append(slices.DeleteFunc(slices.Clone(s.rules.rules), replaced), more...)}
	c.rules.seal()
	c.tighter = nil
	for _, t := range s.tighter {
		c.tighter = append(c.tighter, t.plus(more))
	}
	return &c
}
