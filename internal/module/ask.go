package module

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ask puts a frame of steps to a worker. The results are those of the first of
// them, at least one; an error says that there is none.
func (e *Engine) ask(ctx context.Context, w *walk, frame []planned) ([]result, error) {
	p, err := e.pool.take(ctx, w.party)
	if err != nil {
		return nil, err
	}
	defer e.pool.put(p)
	if w.alone {
		p.clear(frame[0].module)
	}
	a := asking{Ask: w.ask, Input: w.input, Steps: make([]step, 0, len(frame))}
	for _, s := range frame {
		err := e.ensure(ctx, p, s.module)
		var no refusal
		switch {
		case errors.As(err, &no) && len(a.Steps) == 0:
			return []result{{Module: s.module.number, Error: "it does not load: " + no.Error()}}, nil
		case errors.As(err, &no):
			// What stands before it is asked first.
			return e.put(ctx, p, w, &a, frame)
		case err != nil:
			return nil, err
		}
		a.Steps = append(a.Steps, step{Module: s.module.number, Checks: s.checks})
	}
	return e.put(ctx, p, w, &a, frame)
}

// put sends what is asked and takes what comes for it.
func (e *Engine) put(ctx context.Context, p *process, w *walk, a *asking, frame []planned) ([]result, error) {
	release := p.endWith(ctx) // a policy may give a check longer than its call has
	results, err := p.ask(a, w.time, wallFactor*w.time)
	release()
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("the time for the call was over: %w", context.Cause(ctx))
	}
	if errors.Is(err, errTime) {
		e.metrics.worker("time")
		return nil, fmt.Errorf("%w (%s)", err, w.time)
	}
	if err != nil {
		e.metrics.worker("died")
		return nil, err
	}
	// A script that ended badly may not be well: it begins anew. What it holds must
	// not stay behind, where nobody counts it.
	if n := len(results); results[n-1].Error != "" {
		p.forget(frame[n-1].module)
	}
	return results, nil
}

// ensure has a module loaded in a worker.
func (e *Engine) ensure(ctx context.Context, p *process, m *loaded) error {
	if p.modules.has(m) {
		return nil
	}
	if _, err := p.load(ctx, m); err != nil {
		return err
	}
	return p.keep(m, e.codeLimit())
}

// keep notes that the process has m now, and has it forget what that is too
// much for.
func (p *process) keep(m *loaded, limit int) error {
	for _, gone := range p.modules.add(m, limit) {
		if err := p.drop(gone); err != nil {
			return err
		}
	}
	return nil
}

// forget has the process forget m.
func (p *process) forget(m *loaded) {
	p.modules.remove(m)
	_ = p.drop(m) // who asks it next is told
}

// clear has the process forget all modules but one.
func (p *process) clear(but *loaded) {
	for _, m := range slices.Clone(p.modules.list) {
		if m != but {
			p.forget(m)
		}
	}
}

// drop tells a process that does not list m any more. One that cannot be told is
// of no more use.
func (p *process) drop(m *loaded) error {
	if err := p.frames.writeJSON(&order{Op: opDrop, Module: m.number}); err != nil {
		p.kill()
		return fmt.Errorf("%w: %w", errDied, err)
	}
	return nil
}

// well says whether the process can be asked.
func (p *process) well() bool {
	select {
	case <-p.ended:
		return false
	default:
		return !p.killed.Load()
	}
}
