package policy

import (
	"maps"
	"slices"
)

// hostPaths rules where the adapter says that words of a command lead: a link
// may hide a denied file behind a name that no rule speaks of. What is only
// allowed is no news: facts of the host tighten and never loosen.
func (e *evaluation) hostPaths() {
	if len(e.place.resolved) == 0 {
		return
	}
	for _, raw := range slices.Sorted(maps.Keys(e.place.resolved)) {
		way := e.ways[raw]
		if way == 0 {
			way = both
		}
		for _, resolved := range e.place.resolved[raw] {
			for _, entry := range e.s.cross(&e.place, resolved, way) {
				if entry.Action != Allow {
					e.add(entry)
				}
			}
		}
	}
}
