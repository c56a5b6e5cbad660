package module

import (
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// A worker that is killed costs a new process and the loading of its modules. An
// agent that knows how to make a check run away could have a host do nothing
// else, so that after restAfter times in restTime the check is not asked about
// that agent's calls for as long: they fail, as they would have. Other agents'
// are asked.
const (
	restAfter = 5
	restTime  = 10 * time.Second
	maxRests  = 4096
)

// rests remembers which checks took down workers, under whose calls.
type rests struct {
	mu   sync.Mutex
	seen *lru.Cache[restKey, restEntry]
}

type restKey struct {
	agent  string
	module *loaded
	check  int
}

type restEntry struct {
	crashes int
	since   time.Time
}

// note counts a worker that ended under a check.
func (r *rests) note(k restKey, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.seen.Get(k)
	if !ok || now.Sub(e.since) > restTime {
		e = restEntry{since: now}
	}
	if e.crashes++; e.crashes >= restAfter {
		e.since = now
	}
	r.seen.Add(k, e)
}

// over says why a check is not asked now; nil: it is.
func (r *rests) over(k restKey, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.seen.Get(k)
	if !ok || e.crashes < restAfter || now.Sub(e.since) > restTime {
		return nil
	}
	return fmt.Errorf("it took down its worker %d times under this agent's calls, and is not asked about them for %s", e.crashes, restTime)
}
