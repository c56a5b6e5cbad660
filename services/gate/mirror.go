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
	late          bool // it is decided here, and was stored elsewhere behind that
	frozen        bool // an operator has stopped whom it is of; it waits to be settled
	via           string
	session       protocol.Session
	policy        uint64 // revision that it was ruled under
	revision      uint64
	round         int // of the watch, that last showed it
	// fate is what becomes of an ask that is not stored yet, and is this gate's own.
	fate *fate
	gone bool // since then an entry of its id has gone: its own, or an earlier one
}

// mirror is the bucket of pending asks as the watch has shown it so far. It may
// lag: it answers Progress and finds work; what it says is never the last word.
type mirror struct {
	mu      sync.Mutex
	open    map[string]summary
	count   map[string]int       // open asks by payer
	settled map[string]time.Time // when asks ended here that were never stored
	round   int
	freezes layers.Freezes
}

func newMirror() *mirror {
	return &mirror{open: map[string]summary{}, count: map[string]int{}, settled: map[string]time.Time{}}
}

func summaryOf(item pending.Item) summary {
	return summary{
		agent: item.Ask.Agent, payer: payer(item.Ask), digest: item.Digest, stage: item.Stage, since: item.Since, deadline: item.Deadline,
		owner: item.Owner, lease: item.Lease, taken: !item.Taken.IsZero(),
		ended: item.Verdict != nil || item.Withdrawn != nil, revision: item.Revision,
		via: item.Via, session: item.Ask.Session,
		policy: item.Policy.Revision,
	}
}

// settledFor is how long a gate remembers an ask that ended here and was never
// stored: far longer than an entry of it at another gate may take to be seen.
const settledFor = time.Minute

// put takes in an entry as it stands.
func (m *mirror) put(item pending.Item) summary {
	s := summaryOf(item)
	m.mu.Lock()
	defer m.mu.Unlock()
	_, s.late = m.settled[item.Ask.ID]
	if known, here := m.open[item.Ask.ID]; here && known.revision > s.revision {
		return known // the watch has shown a later state already
	}
	return m.set(item.Ask.ID, s)
}

// begin takes in an ask that is opened here and not stored yet, unless its payer
// has max open already, or it is here itself: open, or decided since its asker
// looked. Asks that come at the same moment count each other, and none is opened
// twice.
func (m *mirror) begin(item pending.Item, fate *fate, max int) (here, room bool) {
	id, s := item.Ask.ID, summaryOf(item)
	s.fate = fate
	m.mu.Lock()
	defer m.mu.Unlock()
	_, open := m.open[id]
	_, decided := m.settled[id]
	here, room = open || decided, m.count[s.payer] < max
	if !here && room {
		m.set(id, s)
	}
	return here, room
}

// stored notes that an ask that was begun here under that fate stands in the bucket.
// It may have gone from there again: seen to come and go it is not open any more, or
// was begun anew; and where the watch has shown an end alone, it shows what stands.
func (m *mirror) stored(item pending.Item, fate *fate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, open := m.open[item.Ask.ID]; open && s.fate == fate && !s.gone {
		m.set(item.Ask.ID, summaryOf(item))
	}
}

func (m *mirror) set(id string, s summary) summary {
	m.forget(id) // its place may be another payer's: an id can come from two at once
	s.round = m.round
	_, s.frozen = m.freezes.Of(s.agent, s.via, s.session)
	m.count[s.payer]++
	m.open[id] = s
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

// gone forgets an entry that the bucket does not hold any more. An ask that is not
// stored yet goes on: the entry may be an earlier one of its id. It may be its own,
// too, of which the watch shows the end alone where that follows at once.
func (m *mirror) gone(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch s, open := m.open[id]; {
	case s.stored():
		m.forget(id)
	case open:
		s.gone = true
		m.open[id] = s
	}
}

// unopened forgets an ask that was begun here under that fate, and is carried no
// longer. If it is stored, here or elsewhere, it is open: its end the watch shows.
func (m *mirror) unopened(id string, fate *fate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, open := m.open[id]; open && s.fate == fate {
		m.forget(id)
	}
}

// settle forgets an ask that ended here and was never stored, and remembers for a
// while that it ended, in case an entry of it still comes. One that was seen
// already, elsewhere then, is open until it is seen to go.
func (m *mirror) settle(id string, now time.Time) (elsewhere bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settled[id] = now
	if elsewhere = m.open[id].stored(); !elsewhere {
		m.forget(id)
	}
	return elsewhere
}

// forgetSettled drops what has been remembered for long enough.
func (m *mirror) forgetSettled(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, at := range m.settled {
		if now.Sub(at) > settledFor {
			delete(m.settled, id)
		}
	}
}

// broke notes that the watch broke: what it shows from now on is a new round.
func (m *mirror) broke() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.round++
}

// prune forgets what the watch did not show again after it broke, and returns
// the ids: those asks were settled meanwhile. What is not stored yet no watch shows.
func (m *mirror) prune() (gone []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, s := range m.open {
		if s.round != m.round && s.stored() {
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

// stored: it stands in the bucket, and so outlives this gate.
func (s summary) stored() bool { return s.revision != 0 }

func (s summary) progress(id string) protocol.Progress {
	return protocol.Progress{Ask: id, Status: protocol.StatusPending, Stage: s.stage, Since: s.since}
}
