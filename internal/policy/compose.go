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

// composed is the policy of one document.
func composed(d *Document) *Snapshot {
	docs := []*Document{d}
	return withEverywhere(compose(docs), docs)
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
	// Looked up and not searched for: an agent's host chooses which layers are put
	// together, and so how often.
	at := make(map[string]int, len(have.rules)+len(over.rules))
	for i, r := range have.rules {
		at[r.pattern.text] = i
	}
	for _, r := range over.rules {
		if i, stood := at[r.pattern.text]; stood {
			have.rules[i] = r
			continue
		}
		at[r.pattern.text] = len(have.rules)
		have.rules = append(have.rules, r)
	}
	return under
}
