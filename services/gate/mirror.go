package gate

import (
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// summary is what a gate keeps in memory of every open ask of its node, its own
// and other gates'.
type summary struct {
	agent, digest string
	payer         string
	stage         string
	since         time.Time
	deadline      time.Time
	owner         string
	lease         time.Time
	taken         bool // a person has been asked
	ended         bool // a verdict or a cancel is stored, and waits to be settled
	frozen        bool // an operator has stopped whom it is of; it waits to be settled
	via           string
	session       protocol.Session
	policy        uint64 // revision that it was ruled under
	revision      uint64
	round         int // of the watch, that last showed it
}

// mirror is the bucket of pending asks as the watch has shown it so far. It may
// lag: it answers Progress and finds work; what it says is never the last word.
type mirror struct {
	mu      sync.Mutex
	open    map[string]summary
	count   map[string]int             // open asks by payer
	opening map[string]map[string]bool // ids by payer that are being opened here
	round   int
	freezes layers.Freezes
}

func newMirror() *mirror {
	return &mirror{open: map[string]summary{}, count: map[string]int{}, opening: map[string]map[string]bool{}}
}

// put takes in an entry as it stands.
func (m *mirror) put(item pending.Item) summary {
	s := summary{
		agent: item.Ask.Agent, payer: payer(item.Ask), digest: item.Digest, stage: item.Stage, since: item.Since, deadline: item.Deadline,
		owner: item.Owner, lease: item.Lease, taken: !item.Taken.IsZero(),
		ended: item.Verdict != nil || item.Withdrawn != nil, revision: item.Revision,
		via: item.Via, session: item.Ask.Session,
		policy: item.Policy.Revision,
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.round = m.round
	_, s.frozen = m.freezes.Of(s.agent, s.via, s.session)
	known, here := m.open[item.Ask.ID]
	switch {
	case !here:
		m.count[s.payer]++
	case known.revision > s.revision:
		return known // the watch has shown a later state already
	}
	m.open[item.Ask.ID] = s
	return s
}

// freeze marks the open asks that fall under a freeze now, and returns them.
func (m *mirror) freeze(now layers.Freezes) (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.freezes = now
	for id, s := range m.open {
		_, s.frozen = now.Of(s.agent, s.via, s.session)
		m.open[id] = s
		if s.frozen {
			ids = append(ids, id)
		}
	}
	return ids
}

// drop forgets an ask that is settled.
func (m *mirror) drop(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(id)
}

// broke notes that the watch broke: what it shows from now on is a new round.
func (m *mirror) broke() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.round++
}

// prune forgets what the watch did not show again after it broke, and returns
// the ids: those asks were settled meanwhile.
func (m *mirror) prune() (gone []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, s := range m.open {
		if s.round != m.round {
			gone = append(gone, id)
			m.forget(id)
		}
	}
	return gone
}

func (m *mirror) forget(id string) {
	s, known := m.open[id]
	if !known {
		return
	}
	delete(m.open, id)
	if m.count[s.payer]--; m.count[s.payer] <= 0 {
		delete(m.count, s.payer)
	}
}

func (m *mirror) get(id string) (summary, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.open[id]
	return s, ok
}

// reserve makes room for ask id of a payer, until done is called and the ask
// stands in the mirror, or does not; ok is false where max are open already.
// Asks that come at the same moment count each other, and none counts twice.
func (m *mirror) reserve(payer, id string, max int) (done func(), ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.count[payer]
	for other := range m.opening[payer] {
		if _, shown := m.open[other]; !shown {
			n++
		}
	}
	if n >= max {
		return nil, false
	}
	if m.opening[payer] == nil {
		m.opening[payer] = map[string]bool{}
	}
	m.opening[payer][id] = true
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if delete(m.opening[payer], id); len(m.opening[payer]) == 0 {
			delete(m.opening, payer)
		}
	}, true
}

// due returns the asks that somebody must carry on or settle now.
func (m *mirror) due(now time.Time) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for id, s := range m.open {
		if s.due(now) {
			ids = append(ids, id)
		}
	}
	return ids
}

// due: its owner has fallen silent; or it is nobody's and does not just wait
// for a person, whether it ended, ran out of time or was given up on its way.
func (s summary) due(now time.Time) bool {
	if s.owner != "" {
		return !now.Before(s.lease)
	}
	return !s.taken || s.ended || s.frozen || !now.Before(s.deadline)
}

func (s summary) progress(id string) protocol.Progress {
	return protocol.Progress{Ask: id, Status: protocol.StatusPending, Stage: s.stage, Since: s.since}
}
