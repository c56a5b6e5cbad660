package module

import (
	"context"
	"errors"
	"fmt"
)

// Load brings sources in force, in their order. It never fails as a whole: what
// does not load is a Problem, and the others are in the set. A module that was
// loaded before, from the same source, is not run again.
func (e *Engine) Load(ctx context.Context, sources []Source) (*Set, []Problem) {
	l := loader{engine: e, ctx: ctx, seen: map[string]bool{}}
	defer l.done()
	var problems []Problem
	for i := range sources {
		s := &sources[i]
		if err := l.load(s, i); err != nil {
			problems = append(problems, Problem{Module: line(s.Name, 80), Level: s.Level, Message: line(err.Error(), maxFailure)})
			e.metrics.loadFailed(s.Level)
		}
	}
	return newSet(e, l.modules), problems
}

// loader loads the modules of one set, on a worker of its own: a script that
// takes its time, or its worker's life, holds up no call.
type loader struct {
	engine  *Engine
	ctx     context.Context
	process *process
	modules []*loaded
	checks  int
	seen    map[string]bool
}

func (l *loader) load(s *Source, index int) error {
	if index >= MaxSources {
		return fmt.Errorf("there are more than %d modules; this one is too many", MaxSources)
	}
	if err := s.check(); err != nil {
		return err
	}
	name := string(s.Level) + ":" + s.Name
	if l.seen[name] {
		return fmt.Errorf("another %s module has the same name", s.Level)
	}
	m, err := l.known(s)
	if err != nil {
		return err
	}
	if l.checks+len(m.checks) > MaxChecks {
		return fmt.Errorf("with its checks there would be more than %d", MaxChecks)
	}
	l.seen[name] = true
	l.checks += len(m.checks)
	l.modules = append(l.modules, m)
	return nil
}

// known is the module of a source, run now if it was not before.
func (l *loader) known(s *Source) (*loaded, error) {
	e := l.engine
	id := identity{s.Level, s.Name, s.Root, s.Version()}
	if m, ok := e.known.Get(id); ok {
		e.remember(m)
		return m, nil
	}
	m, err := e.newLoaded(s, id)
	if err != nil {
		return nil, err
	}
	text, err := l.run(m)
	if err != nil {
		return nil, err
	}
	if m.checks, err = readChecks(text, s); err != nil {
		return nil, err
	}
	e.known.Add(id, m)
	e.remember(m)
	return m, nil
}

// run runs a module's script on the loader's worker.
func (l *loader) run(m *loaded) (checks string, err error) {
	if l.process == nil {
		if l.process, err = l.engine.pool.borrow(l.ctx); err != nil {
			return "", err
		}
	}
	checks, err = l.process.load(l.ctx, m)
	if err == nil {
		return checks, l.process.keep(m, l.engine.codeLimit())
	}
	var no refusal
	if !errors.As(err, &no) {
		l.done() // the worker is gone with it
	}
	if errors.Is(err, errTime) {
		err = fmt.Errorf("it takes more than %s to load", loadTime)
	}
	return "", err
}

func (l *loader) done() {
	if l.process != nil {
		l.engine.pool.lend(l.process)
		l.process = nil
	}
}
