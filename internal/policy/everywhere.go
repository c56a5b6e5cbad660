package policy

import (
	"slices"

	"github.com/tailscale/hujson"
)

// What stands behind "*" as a surface is what all others fall back to. A map of
// patterns there says nothing of a fallback: its rows would speak of commands,
// paths and tools alike. Where they deny or ask they are taken at their word, on
// every surface and over every other rule. An allow by value alone would let a
// file be written because a command has its name, so it grants nothing; Lint
// says so.

// everySurface reads a map of patterns behind "*".
func (d *decoder) everySurface(name string, obj *hujson.Object) {
	d.members(obj, func(text string, m hujson.ObjectMember) {
		r, ok := d.ruleValue(m.Value)
		if !ok || !d.fits(m.Name.StartOffset, text) {
			return
		}
		if r.action == Allow {
			d.idle = append(d.idle, m.Name.StartOffset)
			return
		}
		d.surfaces = append(d.surfaces, surfaceRules{name: name})
		for i, read := range []func(string) pattern{compilePattern, compilePathPattern} {
			last := &d.surfaces[len(d.surfaces)-1]
			d.rule(name, text, r, m.Name.StartOffset)
			row := &last.rules[len(last.rules)-1]
			row.everywhere, row.pattern, row.folded = true, read(text), read(lowerPattern(text))
			if i == 0 && compilePathPattern(text).w.text == row.pattern.w.text {
				break
			}
		}
		last := d.surfaces[len(d.surfaces)-1]
		d.surfaces = d.surfaces[:len(d.surfaces)-1]
		d.everywhere = append(d.everywhere, last.rules...)
	})
}

// withEverywhere adds to a policy what documents say of every surface. It stands
// beside the other rules, under which it only tightens.
func withEverywhere(s *Snapshot, docs []*Document) *Snapshot {
	var rows []rule
	for _, d := range docs {
		rows = append(rows, d.everywhere...)
	}
	if len(rows) == 0 {
		return s
	}
	// The last wins, so the strictest stand last.
	slices.SortStableFunc(rows, func(a, b rule) int { return b.strictness() - a.strictness() })
	beside := &Snapshot{settings: s.settings, digest: s.digest, everywhere: true}
	pass := rule{surface: compileWildcard("*"), pattern: compilePattern("*"), action: Allow, whole: true, origin: OriginDefault}
	beside.rules.rules = append([]rule{pass}, rows...)
	beside.rules.seal()
	s.tighter = append(s.tighter, beside)
	return s
}
