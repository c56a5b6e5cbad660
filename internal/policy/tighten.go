package policy

import "slices"

// Rule rules one call. It is a pure function of snapshot and call: the same
// everywhere, without clock, disk or environment. Safe for concurrent use.
func (s *Snapshot) Rule(c Call) Ruling {
	out := s.layered(c)
	if len(c.StatedServers) > 0 {
		c.MCPServers = slices.Concat(c.MCPServers, c.StatedServers)
		out.tighten(s.layered(c))
	}
	return out
}

// layered rules one call under all layers.
func (s *Snapshot) layered(c Call) Ruling {
	out := s.ruleAlone(c)
	for _, t := range s.tighter {
		r := t.ruleAlone(c)
		if t.finalOnly && r.Action > Deny {
			if r = r.forPeople(); len(r.Entries) == 0 {
				continue
			}
		}
		out.tighten(r)
	}
	return out
}

// forPeople is what of a ruling only a person answers.
func (r Ruling) forPeople() Ruling {
	out := Ruling{Entries: slices.DeleteFunc(slices.Clone(r.Entries), func(e Entry) bool { return !e.HumanOnly })}
	out.settle()
	return out
}

// LeftToPeople is a ruling of a call that a person must allow, whatever the
// rules, yolo and grants let pass; why is for the approver. What denies stays.
func (r Ruling) LeftToPeople(why string) Ruling {
	if r.Action != Ask && r.Action != Allow {
		return r
	}
	r.Entries, r.Cleared, r.Suggest = slices.Clone(r.Entries), nil, nil
	for i := range r.Entries {
		r.Entries[i].HumanOnly = r.Entries[i].HumanOnly || r.Entries[i].Action == Ask
	}
	if r.Action == Allow {
		open := floor(r.Decisive.Surface, r.Decisive.Value, "human-only", why)
		open.Unit, open.HumanOnly = r.Decisive.Unit, true
		r.Entries = append(r.Entries, open)
	}
	r.settle()
	return r
}

// tighten takes over everything in which another ruling of the same call is
// stricter.
func (r *Ruling) tighten(other Ruling) {
	switch {
	case r.Action == None:
		return
	case other.Action == None:
		*r = other
		return
	}
	first := r.firstOpen()
	for _, e := range other.Entries {
		if e.Action != Allow && !slices.Contains(r.Entries, e) {
			r.Entries = append(r.Entries, e)
		}
	}
	for i := range min(len(r.Units), len(other.Units)) {
		if other.Units[i].Action < r.Units[i].Action {
			r.Units[i] = other.Units[i]
		}
	}
	r.settle()
	r.limit()
	if r.firstOpen() != first {
		r.Suggest = nil
		if r.firstOpen() == other.firstOpen() {
			r.Suggest = other.Suggest
		}
	}
}

// firstOpen is the entry to which a suggestion belongs.
func (r *Ruling) firstOpen() Entry {
	if open := r.Open(); len(open) > 0 {
		return open[0]
	}
	return Entry{}
}

// limit keeps a ruling put together small enough to be sent: what lets a call
// pass goes first. What is left out never hides the strictest.
func (r *Ruling) limit() {
	if len(r.Entries) <= maxReported+1 {
		return
	}
	decisive := r.Decisive
	r.Entries = slices.DeleteFunc(r.Entries, func(e Entry) bool { return e.Action == Allow })
	if len(r.Entries) > maxReported {
		r.Entries = r.Entries[:maxReported]
		if !slices.Contains(r.Entries, decisive) {
			r.Entries[maxReported-1] = decisive
		}
		r.Entries = append(r.Entries, floor(decisive.Surface, "", "too-many-entries", "more things to rule on than are shown"))
	}
}
