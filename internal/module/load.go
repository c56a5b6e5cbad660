package module

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Load brings sources in force, in their order. It never fails as a whole: what
// does not load is a Problem, and the others are in the set. A module that was
// loaded before, from the same source, is not run again.
func (e *Engine) Load(ctx context.Context, sources []Source) (*Set, []Problem) {
	l := loader{engine: e, ctx: ctx, seen: map[string]bool{}}
	defer l.done()
	modules, failed := make([]*loaded, len(sources)), make([]error, len(sources))
	for _, i := range loadOrder(sources) {
		modules[i], failed[i] = l.load(&sources[i])
	}
	var problems []Problem
	for i, err := range failed {
		if err != nil {
			s := &sources[i]
			problems = append(problems, Problem{Module: line(s.Name, 80), Level: s.Level, Message: line(err.Error(), maxFailure)})
			e.metrics.loadFailed(s.Level)
		}
	}
	return newSet(e, slices.DeleteFunc(modules, func(m *loaded) bool { return m == nil })), problems
}

// loadOrder is in which order sources are loaded: what a project brings, last.
// It comes from an agent's host, and could else use up the bounds, the time or
// the worker of those whose blocks it would like to be rid of.
func loadOrder(sources []Source) []int {
	order := make([]int, len(sources))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(rank(sources[a].Level), rank(sources[b].Level))
	})
	return order
}

func rank(l Level) int {
	if l == LevelProject {
		return 1
	}
	return 0
}

// loader loads the modules of one set, on a worker of its own: a script that
// takes its time, or its worker's life, holds up no call.
type loader struct {
	engine  *Engine
	ctx     context.Context
	process *process
	modules int
	checks  int
	seen    map[string]bool
}

func (l *loader) load(s *Source) (*loaded, error) {
	if l.modules >= MaxSources {
		return nil, fmt.Errorf("there are more than %d modules; this one is too many", MaxSources)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	name := string(s.Level) + ":" + s.Name
	if l.seen[name] {
		return nil, fmt.Errorf("another %s module has the same name", s.Level)
	}
	m, err := l.known(s)
	if err != nil {
		return nil, err
	}
	if l.checks+len(m.checks) > MaxChecks {
		return nil, fmt.Errorf("with its checks there would be more than %d", MaxChecks)
	}
	l.seen[name] = true
	l.checks += len(m.checks)
	l.modules++
	return m, nil
}

// known is the module of a source, run now if it was not before.
func (l *loader) known(s *Source) (*loaded, error) {
	e := l.engine
	id := identity{s.Level, s.Name, s.Root, s.Version()}
	if m, ok := e.find(id); ok {
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
	e.note(id, m)
	e.remember(m)
	return m, nil
}

// run runs a module's script on the loader's worker. If that ends of it, it is run
// once more where nothing else is: what the modules of others hold in a worker, a
// project's among them, must not keep one of the fleet's from being in force.
func (l *loader) run(m *loaded) (checks string, err error) {
	checks, alone, err := l.try(m, false)
	if errors.Is(err, errDied) && !alone {
		checks, _, err = l.try(m, true)
	}
	if errors.Is(err, errTime) {
		err = fmt.Errorf("it takes more than %s to load", loadTime)
	}
	return checks, err
}

// try runs a module's script on the loader's worker, and says whether it was alone
// in there.
func (l *loader) try(m *loaded, empty bool) (checks string, alone bool, err error) {
	if l.process == nil {
		if l.process, err = l.engine.pool.borrow(l.ctx); err != nil {
			return "", true, err
		}
	}
	if empty {
		l.process.clear(nil)
	}
	alone = len(l.process.modules.list) == 0
	checks, err = l.process.load(l.ctx, m)
	if err == nil {
		return checks, alone, l.process.keep(m, l.engine.codeLimit())
	}
	var no refusal
	if !errors.As(err, &no) {
		l.done() // the worker is gone with it
	}
	return "", alone, err
}

func (l *loader) done() {
	if l.process != nil {
		l.engine.pool.give(l.process)
		l.process = nil
	}
}
