package policy

import "slices"

// surfaceRules are what one document says of one surface.
type surfaceRules struct {
	name string
	// whole: the surface has one action for everything, not a map of patterns.
	whole bool
	rules []rule
}

// compose puts documents together, the fleet layer first, each further one on
// top of those before it. Within a surface an action for everything replaces
// what stood there, and so does a map of patterns an action; maps are merged: a
// pattern that stood there keeps its place and takes the new action, a new one
// comes last and so wins.
func compose(docs []*Document) *Snapshot {
	s := &Snapshot{settings: docs[0].settings, digest: docs[0].digest}
	var merged []surfaceRules
	for _, d := range docs {
		for _, from := range d.surfaces {
			merged = merge(merged, from)
		}
	}
	for _, d := range docs[1:] {
		// More secrets and no yolo are all that a further layer sets.
		s.secrets = slices.Concat(s.secrets, d.settings.secrets)
		if d.settings.yolo != nil {
			s.yolo = d.settings.yolo
		}
	}
	for _, surface := range merged {
		s.rules.rules = append(s.rules.rules, surface.rules...)
	}
	s.rules.seal()
	return s
}

// merge lays what one document says of a surface over what those before it say.
func merge(under []surfaceRules, over surfaceRules) []surfaceRules {
	i := slices.IndexFunc(under, func(s surfaceRules) bool { return s.name == over.name })
	if i < 0 {
		over.rules = slices.Clone(over.rules)
		return append(under, over)
	}
	have := &under[i]
	if have.whole || over.whole {
		have.whole, have.rules = over.whole, slices.Clone(over.rules)
		return under
	}
	for _, r := range over.rules {
		at := slices.IndexFunc(have.rules, func(h rule) bool { return h.pattern.text == r.pattern.text })
		if at < 0 {
			have.rules = append(have.rules, r)
			continue
		}
		have.rules[at] = r
	}
	return under
}
