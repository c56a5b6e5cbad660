package module

import (
	"slices"
	"sync"
)

// turns gives out a number of tokens, in turn by whom they are for: of an agent
// whose calls take long, however many it makes at once, one at a time stands in
// front of another agent's.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting map[string][]chan struct{}
	next    []string // who waits, each once, in the order of their turns
}

func newTurns(n int) *turns { return &turns{free: n, waiting: map[string][]chan struct{}{}} }

// ask returns what is closed when the token is there. Whoever asks gives it back,
// or leaves.
func (t *turns) ask(who string) chan struct{} {
	turn := make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free--
		close(turn)
		return turn
	}
	if len(t.waiting[who]) == 0 {
		t.next = append(t.next, who)
	}
	t.waiting[who] = append(t.waiting[who], turn)
	return turn
}

// give gives a token back, and says whether somebody has waited for it.
func (t *turns) give() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pass()
}

func (t *turns) pass() bool {
	if len(t.next) == 0 {
		t.free++
		return false
	}
	who := t.next[0]
	t.next = t.next[1:]
	turn := t.waiting[who][0]
	if t.waiting[who] = t.waiting[who][1:]; len(t.waiting[who]) > 0 {
		t.next = append(t.next, who)
	} else {
		delete(t.waiting, who)
	}
	close(turn)
	return true
}

// leave gives up waiting for turn, or the token that has come meanwhile.
func (t *turns) leave(who string, turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting[who], turn)
	if i < 0 {
		t.pass()
		return
	}
	if t.waiting[who] = slices.Delete(t.waiting[who], i, i+1); len(t.waiting[who]) == 0 {
		delete(t.waiting, who)
		t.next = slices.DeleteFunc(t.next, func(s string) bool { return s == who })
	}
}

// busy says whether no token is free.
func (t *turns) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.free == 0
}
