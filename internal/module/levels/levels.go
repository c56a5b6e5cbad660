// Package levels puts together the permission modules of a project, of the fleet
// and of the machine that runs the gate. Start at Levels.
package levels

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/assent-dev/assent/internal/module"
)

const (
	// loadTime bounds the loading of one set of modules.
	loadTime = 30 * time.Second
	// projectTime is that for a project's: it comes from an agent's host, and takes
	// a turn from the loading of others'.
	projectTime = 5 * time.Second
	// restTime is how long a project's modules that took longer are left alone.
	restTime = 30 * time.Second
	// maxProjects is how many projects' sets are kept loaded, maxProjectChecks how
	// many checks of projects in them all.
	maxProjects      = 64
	maxProjectChecks = 2 * module.MaxChecks
)

// Loader is an engine: it brings modules in force, in their order, and says what
// does not load.
type Loader interface {
	Load(ctx context.Context, sources []module.Source) (*module.Set, []module.Problem)
}

// Levels are the modules of one gate. Safe for concurrent use.
type Levels struct {
	engine  Loader
	loading context.Context
	stop    context.CancelFunc
	loads   sync.WaitGroup

	putting sync.Mutex // held while a level is loaded
	given   map[module.Level]given
	want    int

	mu      sync.Mutex // held for a moment only: asks take it
	closed  bool
	changed func()
	// busy are the projects of which a set is being loaded, by where they lie: one
	// at a time, for an agent could bring ever other ones. turn is whose load runs:
	// it holds a worker, and those of all must not be in such hands.
	busy map[string]*project
	turn chan struct{}

	now   atomic.Pointer[host]
	ready chan struct{}
}

// given is a level as it was put last.
type given struct {
	sources  []module.Source
	problems []module.Problem
}

// host is what runs for every ask of this gate, at one moment.
type host struct {
	sources  []module.Source
	problems []module.Problem // of those that were given, before any loading
	state    *State
	projects *lru.Cache[string, *project]
}

// project is the set of one project together with a host's.
type project struct {
	sources []module.Source
	done    chan struct{}
	// Valid once done is closed. until is how long the state counts; zero: for good.
	state *State
	until time.Time
}

func (p *project) loaded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *project) over() bool { return p.loaded() && !p.until.IsZero() && time.Now().After(p.until) }

// New returns levels that are ready when each of wait has been put once. Close
// ends what loads.
func New(engine Loader, wait ...module.Level) *Levels {
	ctx, stop := context.WithCancel(context.Background())
	l := &Levels{engine: engine, loading: ctx, stop: stop, given: map[module.Level]given{}, changed: func() {}, want: len(wait), ready: make(chan struct{}),
		busy: map[string]*project{}, turn: make(chan struct{}, 1)}
	l.now.Store(newHost(nil, nil))
	if len(wait) == 0 {
		close(l.ready)
	}
	return l
}

func newHost(sources []module.Source, problems []module.Problem) *host {
	projects, _ := lru.New[string, *project](maxProjects) // it fails for a size below one alone
	return &host{sources: sources, problems: problems, projects: projects, state: &State{problems: problems}}
}

// Close waits for what loads. The engine stays the caller's.
func (l *Levels) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.loads.Wait()
}

// Ready is closed when every level that New was told of is in force.
func (l *Levels) Ready() <-chan struct{} { return l.ready }

// Changed sets what is called whenever other modules than before are in force.
func (l *Levels) Changed(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed = f
}

// Put puts all modules of a level in force, with what is wrong with others of it.
// It returns when they are loaded; what was in force before is so until then.
func (l *Levels) Put(level module.Level, sources []module.Source, problems []module.Problem) {
	l.putting.Lock()
	defer l.putting.Unlock()
	l.given[level] = given{slices.Clone(sources), slices.Clone(problems)}
	l.renew()
}

// Again loads once more what did not load: a worker may have been refused for want
// of memory, or a machine too busy.
func (l *Levels) Again() {
	l.putting.Lock()
	defer l.putting.Unlock()
	if now := l.now.Load(); len(now.state.problems) > len(now.problems) {
		l.renew()
	}
}

// renew puts in force what was given.
func (l *Levels) renew() {
	fleet, user := l.given[module.LevelFleet], l.given[module.LevelUser]
	next := newHost(slices.Concat(fleet.sources, user.sources), slices.Concat(fleet.problems, user.problems))
	ctx, cancel := context.WithTimeout(l.loading, loadTime)
	defer cancel()
	next.state = l.load(ctx, next, nil)
	if l.loading.Err() != nil {
		return // closed: half of what should be in force is not put there
	}
	before := l.now.Swap(next)
	if len(l.given) == l.want {
		select {
		case <-l.ready:
		default:
			close(l.ready)
		}
	}
	if before.state.Digest() != next.state.Digest() || !slices.Equal(before.state.problems, next.state.problems) {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		changed()
	}
}

func (l *Levels) load(ctx context.Context, h *host, project []module.Source) *State {
	set, problems := l.engine.Load(ctx, slices.Concat(project, h.sources))
	return &State{set: set, problems: slices.Concat(h.problems, problems)}
}

// In returns the checks of this moment for an ask of a project that brought these
// modules, which go first. Never nil. Where they are not loaded before ctx ends,
// the checks of the others are asked, and what they pass is a failure.
func (l *Levels) In(ctx context.Context, project []module.Source) *State {
	h := l.now.Load()
	if len(project) == 0 {
		return h.state
	}
	for {
		p, mine := l.project(h, project)
		select {
		case <-p.done:
			if mine {
				return p.state
			}
		case <-ctx.Done():
			return h.state.lacking(project[0], "the project's modules are still being loaded")
		}
	}
}

// project finds the set of a project, or has it loaded: once, whoever asks, and
// for those who ask again when this ask is over. Not mine: what is to be waited
// for first.
func (l *Levels) project(h *host, sources []module.Source) (p *project, mine bool) {
	key, root := keyOf(sources), sources[0].Root
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := h.projects.Get(key); ok && slices.Equal(p.sources, sources) && !p.over() {
		return p, true
	}
	if other, ok := l.busy[root]; ok {
		return other, false
	}
	p = &project{sources: slices.Clone(sources), done: make(chan struct{})}
	if l.closed {
		p.state = h.state.lacking(sources[0], "the gate is stopping")
		close(p.done)
		return p, true
	}
	h.projects.Add(key, p)
	l.busy[root] = p
	l.loads.Go(func() {
		p.state, p.until = l.bring(h, p.sources)
		l.mu.Lock()
		delete(l.busy, root)
		close(p.done)
		h.trim()
		l.mu.Unlock()
	})
	return p, true
}

// trim lets the sets go that were used longest ago where they hold too many checks.
func (h *host) trim() {
	checks := 0
	for _, key := range slices.Backward(h.projects.Keys()) { // from the one used last
		p, ok := h.projects.Peek(key)
		if !ok || !p.loaded() {
			continue
		}
		if checks += p.state.set.Len() - h.state.set.Len(); checks > maxProjectChecks {
			h.projects.Remove(key)
		}
	}
}

// bring loads a project's modules in front of a host's, when it is its turn.
func (l *Levels) bring(h *host, sources []module.Source) (s *State, until time.Time) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-l.loading.Done():
		return h.state.lacking(sources[0], "the gate is stopping"), time.Now()
	}
	ctx, cancel := context.WithTimeout(l.loading, projectTime)
	defer cancel()
	s = l.load(ctx, h, sources)
	switch {
	case ctx.Err() != nil: // not what these modules are, but how long this took
		return s.lacking(sources[0], "the project's modules could not be loaded in time"), time.Now().Add(restTime)
	case !s.holds(h.state):
		// Beside a project's modules nobody else's may be missing.
		return h.state.lacking(sources[0], "the modules of others do not load beside the project's"), time.Now().Add(restTime)
	}
	return s, time.Time{}
}

// holds says whether what is in force in host is in s, too.
func (s *State) holds(host *State) bool {
	for _, p := range s.problems {
		missing := func(q module.Problem) bool { return q.Level == p.Level && q.Module == p.Module }
		if p.Level != module.LevelProject && !slices.ContainsFunc(host.problems, missing) {
			return false
		}
	}
	return true
}

// keyOf finds a project's modules again without a look at their code: who brings
// other code under the same names takes the place of the one before.
func keyOf(sources []module.Source) string {
	var b strings.Builder
	for _, s := range sources {
		b.WriteString(s.Root + "\x00" + s.Name + "\x00")
	}
	return b.String()
}

// State is what is in force at one moment. Immutable, safe for concurrent use.
type State struct {
	set      *module.Set
	problems []module.Problem
	// lack is why not everything that should be asked can be.
	lack string
	who  module.Source
}

// lacking is s where a project's modules are not there yet.
func (s *State) lacking(who module.Source, why string) *State {
	return &State{set: s.set, lack: why, who: who, problems: append(slices.Clone(s.problems), module.Problem{Module: who.Name, Level: who.Level, Message: why})}
}

// Check asks the checks about a call.
func (s *State) Check(ctx context.Context, call module.Call) module.Verdict {
	v := s.set.Check(ctx, call)
	if s.lack != "" && v.Decision == module.Pass {
		return module.Verdict{Decision: module.Request, Failure: s.lack, Check: module.Check{Level: s.who.Level, Module: s.who.Name}, Took: v.Took}
	}
	return v
}

// Checks are all of them, in order.
func (s *State) Checks() []module.Check { return s.set.Checks() }

// Digest identifies the modules that are loaded, "" for none.
func (s *State) Digest() string { return s.set.Digest() }

// Problems are the modules that should be in force and are not.
func (s *State) Problems() []module.Problem { return slices.Clone(s.problems) }
