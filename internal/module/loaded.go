package module

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// loaded is a module that an engine knows to load, and under which number its
// workers know it.
type loaded struct {
	number  uint64
	name    string
	level   Level
	version string
	root    jsontext.Value // as JSON
	code    string
	checks  []Check
	// slowUntil is until when it is asked alone, check by check, in Unix
	// nanoseconds: it took long, or took a worker down.
	slowUntil atomic.Int64
}

// size is about what it takes here, in bytes.
func (m *loaded) size() int {
	const perCheck, perTool = 256, 32
	n := len(m.code) + len(m.root)
	for _, c := range m.checks {
		n += perCheck + len(c.Name) + len(c.Description)
		for _, t := range c.Tools {
			n += perTool + len(t)
		}
	}
	return n
}

// slowTime is how long a module that was slow is asked alone.
const slowTime = time.Minute

func (m *loaded) slow() bool { return m.slowUntil.Load() > time.Now().UnixNano() }

func (m *loaded) markSlow() { m.slowUntil.Store(time.Now().Add(slowTime).UnixNano()) }

// lruList are the modules in a worker, the one used last at the end, bounded by
// the size of their code.
type lruList struct {
	list  []*loaded
	bytes int
}

// has says whether m is in the list, and makes it the last to be dropped.
func (l *lruList) has(m *loaded) bool {
	if n := len(l.list); n > 0 && l.list[n-1] == m {
		return true
	}
	i := slices.Index(l.list, m)
	if i < 0 {
		return false
	}
	copy(l.list[i:], l.list[i+1:])
	l.list[len(l.list)-1] = m
	return true
}

// add puts m in and returns what had to go for it.
func (l *lruList) add(m *loaded, limit int) (gone []*loaded) {
	for len(l.list) > 0 && l.bytes+len(m.code) > limit {
		gone = append(gone, l.list[0])
		l.remove(l.list[0])
	}
	l.list = append(l.list, m)
	l.bytes += len(m.code)
	return gone
}

func (l *lruList) remove(m *loaded) {
	if i := slices.Index(l.list, m); i >= 0 {
		l.list = slices.Delete(l.list, i, i+1)
		l.bytes -= len(m.code)
	}
}
