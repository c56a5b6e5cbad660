package gate

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

// presenceTime is how long an approver counts as present after the last sign:
// the lifetime of a key in ASSENT_PRESENCE.
const presenceTime = 60 * time.Second

// presence is who of the approvers is there, and which terminals relay to a
// parent node, as the watch of ASSENT_PRESENCE has shown it. A key that lapses is
// no event to a watcher, so the time of the last sign counts.
type presence struct {
	mu      sync.Mutex
	last    map[string]time.Time
	parents map[string]parentSeen // by key
}

type parentSeen struct {
	node string
	at   time.Time
}

func newPresence() *presence {
	return &presence{last: map[string]time.Time{}, parents: map[string]parentSeen{}}
}

// put takes in what a key holds since at, the server's time, and says whether it
// is an approver who was not there before. A terminal's sign that cannot be read
// says nothing: the node has no parent by it.
func (p *presence) put(key string, value []byte, at time.Time) (came bool, err error) {
	if !strings.HasPrefix(key, protocol.PresenceParent) {
		return p.sign(key, at), nil
	}
	s, err := protocol.Read[protocol.ParentSign](value)
	if err != nil {
		p.gone(key)
		return false, fmt.Errorf("sign of a parent under %s: %w", protocol.Safe(key, protocol.MaxName, false), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parents[key] = parentSeen{s.Parent, at}
	return false, nil
}

// parent is the node above this one, "" where no terminal relays to one. Of
// several the one that was heard of last.
func (p *presence) parent(now time.Time) (node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var last time.Time
	for key, s := range p.parents {
		switch {
		case now.Sub(s.at) >= presenceTime:
			delete(p.parents, key)
		case s.at.After(last):
			node, last = s.node, s.at
		}
	}
	return node
}

// sign notes a sign of life of approver at the server's time at, and says whether
// there was none lately.
func (p *presence) sign(approver string, at time.Time) (came bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.last[approver]
	p.last[approver] = at
	return !known || at.Sub(before) >= presenceTime
}

// gone notes that a key has been taken away: an approver has left, say.
func (p *presence) gone(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
	delete(p.parents, key)
}

// anyone says whether an approver is present.
func (p *presence) anyone(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, at := range p.last {
		if now.Sub(at) < presenceTime {
			return true
		}
		delete(p.last, name)
	}
	return false
}
