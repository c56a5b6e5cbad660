package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
)

// Bounds of what a set keeps composed, in policies and in rules of them all (about
// 1 KiB each): what agents say of themselves chooses them.
const (
	maxComposed      = 256
	maxComposedRules = 100_000
)

// Set is all layers of a node at one revision. Immutable, and safe for
// concurrent use.
type Set struct {
	fleet    *Document
	layers   map[Layer]*Document
	revision uint64
	digest   string
	clamped  string
	base     *Snapshot

	mu       sync.Mutex
	composed map[selection]*Snapshot
	rules    int // of all that are composed
}

// NewSet puts the layers of a node together. Without a fleet layer everything
// asks. Two documents of one layer are an error.
func NewSet(revision uint64, docs ...*Document) (*Set, error) {
	s := &Set{layers: map[Layer]*Document{}, revision: revision, composed: map[selection]*Snapshot{}}
	for _, d := range docs {
		if s.layers[d.layer] != nil {
			return nil, fmt.Errorf("%w twice: %s", ErrLayer, d.layer)
		}
		s.layers[d.layer] = d
	}
	if s.fleet = s.layers[Fleet()]; s.fleet == nil {
		s.fleet = emptyDocument
	}
	delete(s.layers, Fleet())
	s.digest = s.sum()
	s.base = s.stamp(composed(s.fleet))
	return s, nil
}

var emptyDocument = func() *Document {
	d, err := Read(Fleet(), LayerFleet, []byte("{}"))
	if err != nil {
		panic("policy: the empty document does not read: " + err.Error())
	}
	return d
}()

// sum is the digest of a set: of its one document where there is no other.
func (s *Set) sum() string {
	if len(s.layers) == 0 {
		return s.fleet.digest
	}
	lines := []string{LayerFleet + " " + s.fleet.digest}
	for l, d := range s.layers {
		lines = append(lines, l.String()+" "+d.digest)
	}
	slices.Sort(lines)
	h := sha256.New()
	for _, l := range lines {
		fmt.Fprintf(h, "%q\n", l)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Revision is the number of the newest change to any layer.
func (s *Set) Revision() uint64 { return s.revision }

// Digest is that of the fleet's document where there is no other layer, else one
// over the digests of all layers.
func (s *Set) Digest() string { return s.digest }

// Clamped returns the reason given to Clamp.
func (s *Set) Clamped() string { return s.clamped }

// Clamp returns this set with every allow turned into an ask; see
// Snapshot.Clamp.
func (s *Set) Clamp(reason string) *Set {
	c := &Set{fleet: s.fleet, layers: s.layers, revision: s.revision, digest: s.digest, clamped: reason, composed: map[selection]*Snapshot{}}
	c.base = c.stamp(composed(s.fleet))
	return c
}

// Base is the policy of whoever no other layer speaks of: the fleet's. Chain,
// terminal, envelope and limits are the same for all.
func (s *Set) Base() *Snapshot { return s.base }

// selection is what of who decides which policy holds.
type selection struct {
	file, project, agent, both *Document
	trustsProject, trustsName  bool
	broken                     string
}

// For returns the policy for one who asks.
func (s *Set) For(who Who) *Snapshot {
	sel := selection{
		file: who.File, project: s.layers[ProjectLayer(who.Project)], agent: s.layers[AgentLayer(who.AgentName)],
		both: s.layers[ProjectAgentLayer(who.Project, who.AgentName)], broken: who.FileBroken,
	}
	if sel == (selection{}) {
		return s.base
	}
	sel.trustsProject, sel.trustsName = s.fleet.settings.trustsProject(who), s.fleet.settings.trustsName(who)
	s.mu.Lock()
	have, ok := s.composed[sel]
	s.mu.Unlock()
	if ok {
		return have
	}
	// Outside the lock: whoever brings a large policy waits for it alone.
	out := s.stamp(composeFor(s.fleet, sel))
	if sel.broken != "" {
		out = out.Clamp("The project's own policy does not read: " + sel.broken)
	}
	return s.keep(sel, out)
}

// keep keeps what was composed, in place of everything that was where there is
// no more room.
func (s *Set) keep(sel selection, p *Snapshot) *Snapshot {
	n := len(p.rules.rules)
	for _, t := range p.tighter {
		n += len(t.rules.rules)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.composed[sel]; ok {
		return have // another call was faster
	}
	if len(s.composed) >= maxComposed || s.rules+n > maxComposedRules {
		clear(s.composed)
		s.rules = 0
	}
	s.composed[sel] = p
	s.rules += n
	return p
}

// composeFor puts a selection of layers together.
func composeFor(fleet *Document, sel selection) *Snapshot {
	docs, trusted := []*Document{fleet}, []*Document{fleet}
	add := func(d *Document, trust bool) {
		if d == nil {
			return
		}
		docs = append(docs, d)
		if trust {
			trusted = append(trusted, d)
		}
	}
	add(sel.file, sel.trustsProject)
	add(sel.project, sel.trustsProject)
	add(sel.agent, sel.trustsName)
	add(sel.both, sel.trustsProject && sel.trustsName)
	return lay(docs, trusted)
}

// Layered returns the policy that documents of different layers make, in the
// order of layers. With trust they may loosen what stands below them; without,
// all but the fleet's only tighten.
func Layered(trust bool, docs ...*Document) *Snapshot {
	if len(docs) == 0 || !docs[0].layer.IsFleet() {
		docs = append([]*Document{emptyDocument}, docs...)
	}
	if trust {
		return lay(docs, docs)
	}
	return lay(docs, docs[:1])
}

// lay composes what is trusted. What is not stands beside it, each alone, so
// that it can loosen neither that nor another. Trust in a project is trust in
// whoever writes its files: it answers what the others ask, and lifts none of
// their denies, nor answers what is left to a person alone.
func lay(docs, trusted []*Document) *Snapshot {
	out := compose(trusted)
	for _, d := range docs {
		if slices.Contains(trusted, d) {
			continue
		}
		others := func(o *Document) bool { return o != d && !slices.Contains(trusted, o) }
		out.tighter = append(out.tighter, compose(slices.DeleteFunc(slices.Clone(docs), others)))
		out.secrets = slices.Concat(out.secrets, d.settings.secrets)
	}
	ofProject := func(d *Document) bool { return d.layer.project != "" }
	if slices.ContainsFunc(trusted, ofProject) {
		below := compose(slices.DeleteFunc(slices.Clone(trusted), ofProject))
		below.finalOnly = true
		out.tighter = append(out.tighter, below)
	}
	return withEverywhere(out, docs)
}

// stamp gives a composed policy what the whole set has.
func (s *Set) stamp(p *Snapshot) *Snapshot {
	p.revision, p.digest = s.revision, s.digest
	if s.clamped != "" {
		return p.Clamp(s.clamped)
	}
	return p
}
