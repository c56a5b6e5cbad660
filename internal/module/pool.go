package module

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Times of the pool.
const (
	// patience is how long a call waits for a worker at most.
	patience = 5 * time.Second
	// firstRetry and lastRetry are between two tries to start a worker.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// ErrClosed is what an engine says after Close.
var ErrClosed = errors.New("the engine that runs modules is closed")

var errNoWorker = errors.New("no worker for modules became free in time")

// reserve is how many processes stand ready beside those that serve calls: a call
// that runs away under several checks at once takes down two, the second to tell
// which of them it was.
const reserve = 2

// pool keeps the worker processes: as many as serve calls at once, and warm ones
// in reserve, so that the call after a kill need not wait for a start.
type pool struct {
	argv   []string
	memory int64
	log    *slog.Logger
	// warm loads into a new process what calls are likely to want.
	warm func(*process)

	version atomic.Uint64 // of what warm gives
	serving *turns        // one token a call
	wake    chan struct{}
	closing chan struct{}
	done    chan struct{}

	mu      sync.Mutex
	all     map[*process]bool
	idle    []*process // the one used last at the end: its caches are warm
	dead    []*process
	waiters []chan *process
	want    int
	closed  bool
	failed  error // why the last start failed; nil once one succeeds
}

func newPool(cfg *Config, warm func(*process)) *pool {
	p := &pool{
		argv: cfg.Command, memory: cfg.Memory, log: cfg.Logger, warm: warm,
		serving: newTurns(cfg.Workers), wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
		all: map[*process]bool{}, want: cfg.Workers + reserve,
	}
	go p.nurse()
	return p
}

// nurse starts processes where some are missing and buries the dead until the
// pool is closed and empty. It keeps its thread, with which its processes end.
func (p *pool) nurse() {
	runtime.LockOSThread()
	defer close(p.done)
	retry := time.Duration(0)
	for {
		missing, over := p.bury()
		if over {
			return
		}
		if !missing {
			if !p.refresh() {
				<-p.wake
			}
			continue
		}
		if p.raise() {
			retry = 0
			continue
		}
		retry = min(max(2*retry, firstRetry), lastRetry)
		select {
		case <-time.After(retry):
		case <-p.closing:
		}
	}
}

// bury waits for the dead, and says whether a process is missing or all is over.
func (p *pool) bury() (missing, over bool) {
	p.mu.Lock()
	if p.closed {
		p.dead, p.idle = append(p.dead, p.idle...), nil
	}
	dead := p.dead
	p.dead = nil
	for _, d := range dead {
		delete(p.all, d)
	}
	missing, over = !p.closed && len(p.all) < p.want, p.closed && len(p.all) == 0
	p.mu.Unlock()
	for _, d := range dead {
		d.stop()
	}
	return missing, over
}

// raise starts one process. Where none starts, whoever waits is told why.
func (p *pool) raise() bool {
	proc, err := start(p.argv, p.memory)
	p.mu.Lock()
	if err != nil {
		first := p.failed == nil
		p.failed = err
		waiters := p.waiters
		if len(p.all) == 0 {
			p.waiters = nil
			for _, w := range waiters {
				close(w)
			}
		}
		p.mu.Unlock()
		if first {
			p.log.Error("no worker for permission modules starts: checks fail until one does", "err", err)
		}
		return false
	}
	p.failed = nil
	p.all[proc] = true
	waited := len(p.waiters) > 0
	p.mu.Unlock()
	if !waited {
		p.ready(proc)
	}
	p.give(proc)
	return true
}

// refresh warms one idle process that stands ready without what was loaded since;
// false where there is none.
func (p *pool) refresh() bool {
	now := p.version.Load()
	p.mu.Lock()
	i := slices.IndexFunc(p.idle, func(proc *process) bool { return proc.version != now })
	if i < 0 || len(p.waiters) > 0 {
		p.mu.Unlock()
		return false
	}
	proc := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	p.mu.Unlock()
	p.ready(proc)
	p.give(proc)
	return true
}

// ready warms a process for what is to be in every worker at this moment.
func (p *pool) ready(proc *process) {
	proc.version = p.version.Load()
	p.warm(proc)
}

// changed says that warm has something new to give.
func (p *pool) changed() {
	p.version.Add(1)
	p.call()
}

// take waits for a process that serves one call of who, in its turn; put gives it
// back.
func (p *pool) take(ctx context.Context, who string) (*process, error) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	turn := p.serving.ask(who)
	var err error
	select {
	case <-turn:
		proc, err := p.next(ctx, limit.C)
		if err != nil {
			p.serving.give()
		}
		return proc, err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-p.closing:
		err = ErrClosed
	case <-limit.C:
		err = errNoWorker
	}
	p.serving.leave(who, turn)
	return nil, err
}

// put gives a process back that take has given, before its token: the next call is
// to find this one, whose caches are warm, and not one of the reserve.
func (p *pool) put(proc *process) {
	p.give(proc)
	if p.serving.give() {
		runtime.Gosched() // the worker has nothing to do until who waited has written to it
	}
}

// borrow waits for a process without a token: one that serves no call, which the
// reserve has room for. give takes it back.
func (p *pool) borrow(ctx context.Context) (*process, error) {
	limit := time.NewTimer(helloTime)
	defer limit.Stop()
	return p.next(ctx, limit.C)
}

// next is an idle process, or the first that becomes so.
func (p *pool) next(ctx context.Context, limit <-chan time.Time) (*process, error) {
	p.mu.Lock()
	for n := len(p.idle); n > 0; n-- {
		proc := p.idle[n-1]
		p.idle = p.idle[:n-1]
		if proc.well() {
			p.mu.Unlock()
			return proc, nil
		}
		p.dead = append(p.dead, proc)
		p.call()
	}
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if p.failed != nil && len(p.all) == len(p.dead) {
		defer p.mu.Unlock()
		return nil, p.failed
	}
	wait := make(chan *process, 1)
	p.waiters = append(p.waiters, wait)
	p.mu.Unlock()
	p.call()
	return p.wait(ctx, wait, limit)
}

func (p *pool) wait(ctx context.Context, wait chan *process, limit <-chan time.Time) (*process, error) {
	var err error
	select {
	case proc, ok := <-wait:
		if ok {
			return proc, nil
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return nil, errors.Join(errNoWorker, p.failed)
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-p.closing:
		err = ErrClosed
	case <-limit:
		err = errNoWorker
	}
	p.mu.Lock()
	i := slices.Index(p.waiters, wait)
	if i >= 0 {
		p.waiters = slices.Delete(p.waiters, i, i+1)
	}
	p.mu.Unlock()
	if proc, ok := <-closedIf(wait, i >= 0); ok {
		p.give(proc) // it came while nobody wanted it any more
	}
	return nil, err
}

// closedIf is wait, closed where nobody will send on it.
func closedIf(wait chan *process, nobody bool) chan *process {
	if nobody {
		close(wait)
	}
	return wait
}

// give makes a process idle, hands it to who waits, or buries it.
func (p *pool) give(proc *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed, !proc.well(), len(p.idle) >= p.want:
		p.dead = append(p.dead, proc)
		proc.kill()
		p.call()
	case len(p.waiters) > 0:
		p.waiters[0] <- proc
		p.waiters = p.waiters[1:]
	default:
		p.idle = append(p.idle, proc)
		if proc.version != p.version.Load() {
			p.call() // not after every call: the nurse has a thread of its own to wake
		}
	}
}

// call wakes the nurse.
func (p *pool) call() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// close ends every process and waits for them.
func (p *pool) close() error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.closing)
		for proc := range p.all {
			proc.kill()
		}
	}
	p.mu.Unlock()
	p.call()
	select {
	case <-p.done:
		return nil
	case <-time.After(helloTime + patience):
		return fmt.Errorf("closing the engine of modules: its workers do not end")
	}
}
