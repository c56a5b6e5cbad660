package module

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// wallFactor is how many times its processor time a call may take by the clock:
// a busy host slows a worker down, and that is not the module's fault.
const wallFactor = 20

// Times of a worker's own doings.
const (
	helloTime = 30 * time.Second // wall time to start
	loadTime  = 2 * time.Second  // processor time to load one module
)

// Why a worker could not answer.
var (
	errTime = errors.New("it ran out of time")
	errDied = errors.New("it ended its worker process")
)

// process is one worker process. One goroutine at a time uses it.
type process struct {
	cmd    *exec.Cmd
	to     *os.File
	from   *os.File
	frames *frames
	serial uint64 // of the last call that it was asked about
	stderr headBuffer
	ended  chan struct{} // closed once the process is reaped
	killed atomic.Bool
	// modules are those that it has loaded, the one used last at the end.
	modules lruList
	version uint64 // see pool.ready
}

// start runs argv as a worker. The caller's thread must live as long as the
// process: on Linux a worker dies with the thread that started it.
func start(argv []string, memory int64) (*process, error) {
	in, to, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting a module worker: %w", err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a module worker: %w", err), in.Close(), to.Close())
	}
	p := &process{to: to, from: from, frames: newFrames(from, to), ended: make(chan struct{})}
	p.cmd = &exec.Cmd{Path: argv[0], Args: argv, Env: []string{}, Dir: workDir, Stdin: in, Stdout: out, Stderr: &p.stderr, SysProcAttr: bound()}
	err = p.cmd.Start()
	in.Close()
	out.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a module worker: %w", err), to.Close(), from.Close())
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended stands in stderr, and nobody trusts its word
	}()
	if _, err := p.do(&order{Op: opHello, Memory: memory}, helloTime, helloTime); err != nil {
		p.stop()
		return nil, fmt.Errorf("starting a module worker: %w", err)
	}
	return p, nil
}

// stop ends the process and waits until it is gone.
func (p *process) stop() {
	p.kill()
	<-p.ended
	p.to.Close()
	p.from.Close()
}

func (p *process) kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // fails only where it has ended
}

// endWith kills the process when ctx ends, until release is called. One that ctx
// has ended by then is dead to whoever asks: to be killed a moment later would hit
// the next call, to which it was given.
func (p *process) endWith(ctx context.Context) (release func()) {
	stop := context.AfterFunc(ctx, p.kill)
	return func() {
		if !stop() {
			p.kill()
		}
	}
}

// load runs a module's script in the process. Its end is the process's too.
func (p *process) load(ctx context.Context, m *loaded) (checks string, err error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx) // and the process is as good as it was
	}
	defer p.endWith(ctx)()
	r, err := p.do(&order{Op: opLoad, Module: m.number, Name: m.name, Root: m.root, Code: m.code}, loadTime, wallFactor/4*loadTime)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", err
	case r.Error != "":
		return "", refusal(r.Error)
	}
	return r.Checks, nil
}

// refusal is a script's own word for why it does not load; its worker is well.
type refusal string

func (r refusal) Error() string { return string(r) }

// do sends an order and waits for its report.
func (p *process) do(o *order, cpu, wall time.Duration) (r report, err error) {
	err = p.within(cpu, wall, func() error {
		if err := p.frames.writeJSON(o); err != nil {
			return err
		}
		body, err := p.frames.read()
		if err != nil {
			return err
		}
		if err := readJSON(body, &r); err != nil {
			return err
		}
		if r.Op != o.Op {
			return fmt.Errorf("%w: %q in answer to %q", errFrame, clip(string(r.Op), 40), o.Op)
		}
		return nil
	})
	return r, err
}

// ask asks about a call and waits for the results, of which there is at least one.
func (p *process) ask(a *asking, cpu, wall time.Duration) (results []result, err error) {
	p.serial++
	a.Serial = p.serial
	err = p.within(cpu, wall, func() error {
		if err := p.frames.write(func(b []byte) ([]byte, error) { return a.append(b), nil }); err != nil {
			return err
		}
		body, err := p.frames.read()
		if err != nil {
			return err
		}
		got, err := readAnswers(body)
		if err == nil {
			err = got.fit(a)
		}
		results = got.Results
		return err
	})
	return results, err
}

// within has a process do something in a time. One that does not report in time,
// dies or says what does not fit is killed; it is of no more use then.
func (p *process) within(cpu, wall time.Duration, do func() error) error {
	limit := p.watch(cpu, wall)
	err := do()
	late := limit.stop()
	if err == nil {
		return nil
	}
	p.kill()
	if late {
		return errTime
	}
	return p.postMortem(err)
}

// postMortem says why a process went away, as far as that can be told.
func (p *process) postMortem(cause error) error {
	if errors.Is(cause, errFrame) {
		return fmt.Errorf("%w: %w", errDied, cause)
	}
	<-p.ended // killed by now: all that it said on stderr is in
	switch said := p.stderr.String(); {
	case strings.Contains(said, "out of memory"), strings.Contains(said, "cannot allocate memory"),
		strings.Contains(said, "address space collisions"), strings.Contains(said, "ThreadSanitizer failed to allocate"): // builds with the race detector
		return fmt.Errorf("%w: it took more memory than a worker may", errDied)
	case strings.Contains(said, "stack overflow"), strings.Contains(said, "stack exceeds"):
		return fmt.Errorf("%w: its calls nest too deep", errDied)
	case said != "":
		first, _, _ := strings.Cut(said, "\n")
		return fmt.Errorf("%w: %s", errDied, line(first, 200))
	}
	return errDied
}

// deadline kills a process that takes too long.
type deadline struct {
	p         *process
	began     time.Time
	beganCPU  time.Duration
	cpu, wall time.Duration
	mu        sync.Mutex
	timer     *time.Timer
	done      bool
	late      bool
}

// watch begins to count the time of one order.
func (p *process) watch(cpu, wall time.Duration) *deadline {
	d := &deadline{p: p, began: time.Now(), beganCPU: p.cpuTime(), cpu: cpu, wall: wall}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(min(cpu, wall), d.look)
	return d
}

// look kills the process if its time is over, else looks again when that could be.
func (d *deadline) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done {
		return
	}
	left := d.wall - time.Since(d.began)
	if now := d.p.cpuTime(); now >= 0 && d.beganCPU >= 0 {
		left = min(left, d.cpu-(now-d.beganCPU))
	}
	if left <= 0 {
		d.late = true
		d.p.kill()
		return
	}
	d.timer.Reset(max(left, time.Millisecond))
}

// stop ends the watch and says whether the time had run out.
func (d *deadline) stop() (late bool) {
	d.timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = true
	return d.late
}

// headBuffer keeps the beginning of what is written to it: the first line of a
// crash says why.
type headBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (h *headBuffer) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if room := 4096 - h.buf.Len(); room > 0 {
		h.buf.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

func (h *headBuffer) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf.String()
}
