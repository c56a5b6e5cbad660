package gate

import (
	"sync"
	"time"
)

// presenceTime is how long an approver counts as present after the last sign:
// the lifetime of a key in ASSENT_PRESENCE.
const presenceTime = 60 * time.Second

// presence is who of the approvers is there, as the watch of ASSENT_PRESENCE
// has shown it. A key that lapses is no event to a watcher, so the time of the
// last sign counts.
type presence struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func newPresence() *presence { return &presence{last: map[string]time.Time{}} }

// sign notes a sign of life of approver at the server's time at.
func (p *presence) sign(approver string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[approver] = at
}

// gone notes that approver has left.
func (p *presence) gone(approver string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, approver)
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
