package gate

import (
	"sync"

	"github.com/assent-dev/assent/pkg/protocol"
)

// waiters are the requests that wait at this gate, by ask id.
type waiters struct {
	mu  sync.Mutex
	ids map[string]map[chan protocol.Decision]struct{}
}

func newWaiters() *waiters {
	return &waiters{ids: map[string]map[chan protocol.Decision]struct{}{}}
}

// How many requests wait for one ask at one gate. Its adapter sends one at a
// time; whoever sends one ask thousandfold must not take the room that everybody
// else's asks need to wait in.
const (
	maxWaiting     = 16
	maxWithdrawing = 2 * maxWaiting // with those that wait, so that they leave room
)

// await returns a channel that gets the decision on id once, and a function
// that ends the wait; ok is false where as many as limit wait already.
func (w *waiters) await(id string, limit int) (decided <-chan protocol.Decision, leave func(), ok bool) {
	ch := make(chan protocol.Decision, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.ids[id]) >= limit {
		return nil, nil, false
	}
	if w.ids[id] == nil {
		w.ids[id] = map[chan protocol.Decision]struct{}{}
	}
	w.ids[id][ch] = struct{}{}
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.ids[id], ch)
		if len(w.ids[id]) == 0 {
			delete(w.ids, id)
		}
	}, true
}

// wake hands d to everyone who waits for its ask.
func (w *waiters) wake(d protocol.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.ids[d.Ask] {
		select {
		case ch <- d:
		default: // it has one already
		}
	}
	delete(w.ids, d.Ask)
}

// waiting says whether anybody waits for id here.
func (w *waiters) waiting(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ids[id]) > 0
}
