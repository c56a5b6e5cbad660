package module

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// Defaults of Config.
const (
	DefaultCallTime = 10 * time.Millisecond
	DefaultMemory   = 512 << 20
	minMemory       = 128 << 20 // the heap grows by 64 MiB of addresses at a time
	maxWorkers      = 64
	// maxKnown is how many modules an engine remembers to have loaded, and as many of
	// projects; maxBrought how many bytes those may take: an agent of a trusted
	// project can bring ever others.
	maxKnown   = 1024
	maxBrought = 64 << 20
	// codeShare is which part of a worker's memory the code of the modules in it
	// may take: a runtime needs many times what its script has.
	codeShare = 64
)

// Config says how an Engine runs modules. Zero values are the defaults.
type Config struct {
	// Command is the argv of a worker process; it runs Work on its standard input
	// and output. Default: SelfCommand.
	Command []string
	// Workers is how many calls are served at once; default: one a processor, at
	// most 4. Two more processes stand in reserve.
	Workers int
	// CallTime is the processor time that one check may take; where the system does
	// not tell it, and as a bound on any system, 20 times as much wall time.
	CallTime time.Duration
	// Memory is how many bytes of address space a worker may take over what it has
	// at its start (Linux).
	Memory  int64
	Logger  *slog.Logger
	Metrics prometheus.Registerer
}

// WorkerCommand is the subcommand of the binary that is a worker.
const WorkerCommand = "module-worker"

// SelfCommand is the argv of a worker that is the program which runs now.
func SelfCommand() ([]string, error) {
	path, err := selfPath()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	return []string{path, WorkerCommand}, nil
}

func (c *Config) fill() error {
	var err error
	if len(c.Command) == 0 {
		c.Command, err = SelfCommand()
	}
	if c.Workers == 0 {
		c.Workers = min(runtime.GOMAXPROCS(0), 4)
	}
	if c.CallTime == 0 {
		c.CallTime = DefaultCallTime
	}
	if c.Memory == 0 {
		c.Memory = DefaultMemory
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case err != nil:
		return err
	case c.Workers < 0 || c.Workers > maxWorkers:
		return fmt.Errorf("%d workers, want 1 to %d", c.Workers, maxWorkers)
	case c.CallTime < time.Millisecond || c.CallTime > 10*time.Second:
		return fmt.Errorf("a call time of %s, want 1ms to 10s", c.CallTime)
	case c.Memory < minMemory:
		return fmt.Errorf("%d bytes of memory, want at least %d", c.Memory, minMemory)
	}
	return nil
}

// Engine runs modules in worker processes of its own. It is safe for concurrent
// use; Close ends the processes and waits for them.
type Engine struct {
	cfg     Config
	pool    *pool
	metrics *metrics
	rests   rests

	mu      sync.Mutex
	known   *lru.Cache[identity, *loaded]
	brought *lru.Cache[identity, *loaded] // those of projects
	size    int                           // of all that is brought, in bytes
	recent  lruList                       // what a new worker is given to begin with
	number  uint64
}

// identity is what makes a module this one: the same code in another project is
// another module, which shares nothing with it.
type identity struct {
	level               Level
	name, root, version string
}

// New starts an engine; its workers start in the background.
func New(cfg Config) (*Engine, error) {
	if err := cfg.fill(); err != nil {
		return nil, fmt.Errorf("starting the engine of modules: %w", err)
	}
	known, err := lru.New[identity, *loaded](maxKnown)
	if err != nil {
		return nil, fmt.Errorf("starting the engine of modules: %w", err)
	}
	brought, err := lru.New[identity, *loaded](maxKnown)
	if err != nil {
		return nil, fmt.Errorf("starting the engine of modules: %w", err)
	}
	seen, err := lru.New[restKey, restEntry](maxRests)
	if err != nil {
		return nil, fmt.Errorf("starting the engine of modules: %w", err)
	}
	e := &Engine{cfg: cfg, known: known, brought: brought, metrics: newMetrics(cfg.Metrics), rests: rests{seen: seen}}
	e.pool = newPool(&cfg, e.warm)
	return e, nil
}

// Close ends the workers and waits for them; calls that still run fail.
func (e *Engine) Close() error { return e.pool.close() }

// codeLimit is how many bytes of code one worker holds at a time.
func (e *Engine) codeLimit() int { return int(e.cfg.Memory / codeShare) }

// warm loads into a worker that stands ready what was loaded last; what fails there is loaded
// again, and told, when it is asked.
func (e *Engine) warm(p *process) {
	e.mu.Lock()
	list := append([]*loaded(nil), e.recent.list...)
	e.mu.Unlock()
	for _, m := range list {
		if p.modules.has(m) {
			continue
		}
		if _, err := p.load(context.Background(), m); err != nil {
			var no refusal
			if errors.As(err, &no) {
				continue
			}
			e.leaveOut(m)
			return
		}
		if p.keep(m, e.codeLimit()) != nil {
			return
		}
	}
}

// leaveOut has a module that took down a worker which stood ready in none until it
// is asked. The next would end of it, too, and the one after it: modules may hold
// more together than a worker may, each of which loads.
func (e *Engine) leaveOut(m *loaded) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recent.remove(m)
}

// remember has m in the workers that stand ready, and those to come.
func (e *Engine) remember(m *loaded) {
	e.mu.Lock()
	known := e.recent.has(m)
	if !known {
		e.recent.add(m, e.codeLimit())
	}
	e.mu.Unlock()
	if !known {
		e.pool.changed()
	}
}

// find returns a module that has loaded.
func (e *Engine) find(id identity) (*loaded, bool) {
	if id.level == LevelProject {
		return e.brought.Get(id)
	}
	return e.known.Get(id)
}

// note has a module known to have loaded.
func (e *Engine) note(id identity, m *loaded) {
	if id.level != LevelProject {
		e.known.Add(id, m)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if old, ok := e.brought.Peek(id); ok {
		e.size -= old.size()
		e.brought.Remove(id)
	}
	for n := e.brought.Len(); n > 0 && (n >= maxKnown || e.size+m.size() > maxBrought); n-- {
		if _, gone, ok := e.brought.RemoveOldest(); ok {
			e.size -= gone.size()
		}
	}
	e.brought.Add(id, m)
	e.size += m.size()
}

// newLoaded numbers a module; its checks are not known yet.
func (e *Engine) newLoaded(s *Source, id identity) (*loaded, error) {
	root, err := json.Marshal(s.Root)
	if err != nil {
		return nil, fmt.Errorf("its root is no valid text: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.number++
	return &loaded{number: e.number, name: s.Name, level: s.Level, version: id.version, root: root, code: s.Code}, nil
}
