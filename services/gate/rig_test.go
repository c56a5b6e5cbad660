package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == module.WorkerCommand { // an engine of modules runs its workers so
		if err := module.Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	nodetest.Patient()
	goleak.VerifyTestMain(m)
}

// quick are times for tests: all that wait in earnest, shortened.
var quick = times{
	patience: 400 * time.Millisecond, first: 400 * time.Millisecond, relay: 300 * time.Millisecond, late: 5 * time.Second, brief: standardTimes.brief, lease: time.Second,
	sweep: 50 * time.Millisecond, terminal: 2 * time.Second, parent: time.Second, look: 200 * time.Millisecond,
}

// soon bounds what must happen within one test, on a slow machine too.
const soon = 15 * time.Second

// rig is a node with real credentials and everybody whom a gate meets.
type rig struct {
	*nodetest.Node
	t    testing.TB
	op   *nats.Conn
	js   jetstream.JetStream
	term *nats.Conn
	open *pending.Store // as a terminal sees it
	log  *slog.Logger   // the gates'; nil: the test's
	// modules are the gates'.
	modules Modules

	mu    sync.Mutex
	gates []*served
}

func newRig(t testing.TB, policy string) *rig {
	t.Helper()
	r := &rig{Node: nodetest.Start(t, nodetest.Quiet()), t: t}
	r.op = r.Connect(t, protocol.RoleOperator, "op")
	r.js = must(bus.JetStream(r.op))(t)
	r.term = r.Connect(t, protocol.RoleTerminal, "t")
	r.open = must(pending.Open(context.Background(), must(bus.JetStream(r.term))(t)))(t)
	if policy != "" {
		r.put(policy)
	}
	return r
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// put stores a policy and returns its revision.
func (r *rig) put(policy string) uint64 {
	r.t.Helper()
	kv := must(r.js.KeyValue(context.Background(), protocol.BucketPolicy))(r.t)
	return must(kv.Put(context.Background(), "fleet", []byte(policy)))(r.t)
}

// served is a gate that runs.
type served struct {
	*Gate
	t      testing.TB
	nc     *nats.Conn
	cancel context.CancelFunc
	done   chan error
	once   sync.Once
}

func (r *rig) gate(name string) *served {
	r.t.Helper()
	g := r.newGate(name, r.Connect(r.t, protocol.RoleGate, name))
	g.start()
	return g
}

func (r *rig) newGate(name string, nc *nats.Conn) *served {
	r.t.Helper()
	g := &served{t: r.t, nc: nc, done: make(chan error, 1)}
	g.Gate = must(New(context.Background(), nc, Config{Node: nodetest.Name, Name: name, Logger: cmp.Or(r.log, nodetest.Logger(r.t)), Modules: r.modules}))(r.t)
	g.times = quick
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gates = append(r.gates, g)
	return g
}

func (g *served) start() {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	ready := make(chan struct{})
	go func() { g.done <- g.Run(ctx, func() { close(ready) }) }()
	g.t.Cleanup(g.stop)
	select {
	case <-ready:
	case err := <-g.done:
		g.t.Fatalf("gate does not serve: %v", err)
	case <-time.After(soon):
		g.t.Fatal("gate is not ready")
	}
}

// stop lets the gate drain.
func (g *served) stop() {
	g.once.Do(func() {
		g.cancel()
		if err := <-g.done; err != nil {
			g.t.Errorf("gate %s: %v", g.name, err)
		}
	})
}

// kill takes the gate away in the middle of whatever it does: nothing that it
// does from here on reaches anybody.
func (g *served) kill() {
	g.nc.Close()
	g.stop()
}

// inForce waits until the gate rules by revision.
func (g *served) inForce(revision uint64) {
	g.t.Helper()
	until(g.t, "policy in force", func() error {
		if got := g.policy.current().Revision(); got != revision {
			return fmt.Errorf("revision %d, want %d", got, revision)
		}
		return nil
	})
}

func until(t testing.TB, what string, f func() error) {
	t.Helper()
	nodetest.CheckFor(t, soon, 5*time.Millisecond, func() error {
		if err := f(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// agent asks as one agent, in the raw.
type agent struct {
	r    *rig
	name string
	nc   *nats.Conn
}

func (r *rig) agent(name string) *agent {
	r.t.Helper()
	return &agent{r: r, name: name, nc: r.Connect(r.t, protocol.RoleAgent, name)}
}

// bash is an ask about a command.
func (a *agent) bash(command string) protocol.Ask {
	in := must(jsontext.AppendQuote([]byte(`{"command":`), command))(a.r.t)
	return a.call("bash", string(in)+"}")
}

func (a *agent) call(tool, input string) protocol.Ask {
	return protocol.Ask{
		V: protocol.CurrentVersion, ID: protocol.NewAskID(), Agent: a.name, Source: protocol.SourceToolCall,
		Session: protocol.Session{ID: "s1"}, Tool: protocol.Tool{Name: tool, Input: jsontext.Value(input)},
		Cwd: "/repo", Home: "/home/dev", Platform: "linux",
	}
}

// heard is one reply: exactly one of its three is there.
type heard struct {
	decision *protocol.Decision
	progress *protocol.Progress
	fault    *protocol.ErrorReply
	took     time.Duration
}

// once sends one request and reads its reply.
func (a *agent) once(ask protocol.Ask) heard {
	a.r.t.Helper()
	return a.raw(ask.ID, must(protocol.Write(ask))(a.r.t))
}

func (a *agent) raw(id string, data []byte) heard {
	a.r.t.Helper()
	h, err := a.try(id, data)
	if err != nil {
		a.r.t.Fatal(err)
	}
	return h
}

func (a *agent) try(id string, data []byte) (heard, error) {
	subject, err := a.r.Subjects.Ask(a.name)
	if err != nil {
		return heard{}, err
	}
	return request(a.nc, subject, id, a.name, data)
}

// request sends one ask of an agent's and reads its one reply.
func request(nc *nats.Conn, subject, id, agent string, data []byte) (heard, error) {
	began := time.Now()
	m, err := nc.Request(subject, data, soon)
	if err != nil {
		return heard{}, fmt.Errorf("asking %s: %w", id, err)
	}
	h := heard{took: time.Since(began)}
	if m.Header.Get(protocol.HeaderErrorCode) != "" {
		f, err := protocol.Read[protocol.ErrorReply](m.Data)
		h.fault = &f
		return h, err
	}
	if p, err := protocol.Read[protocol.Progress](m.Data); err == nil && p.Ask == id {
		h.progress = &p
		return h, nil
	}
	d, err := protocol.ReadDecisionFor(id, agent, m.Data)
	h.decision = &d
	return h, err
}

// decide asks again until the ask is decided, as an adapter does.
func (a *agent) decide(ask protocol.Ask) protocol.Decision {
	a.r.t.Helper()
	d, err := a.follow(ask)
	if err != nil {
		a.r.t.Fatal(err)
	}
	return d
}

func (a *agent) follow(ask protocol.Ask) (protocol.Decision, error) {
	data, err := protocol.Write(ask)
	if err != nil {
		return protocol.Decision{}, err
	}
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); {
		h, err := a.try(ask.ID, data)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			time.Sleep(5 * time.Millisecond) // between two gates
		case err != nil:
			return protocol.Decision{}, err
		case h.fault != nil:
			return protocol.Decision{}, &h.fault.Error
		case h.decision != nil:
			return *h.decision, nil
		}
	}
	return protocol.Decision{}, fmt.Errorf("ask %s is not decided within %s", ask.ID, soon)
}

// pend asks until the ask stands before a person.
func (a *agent) pend(ask protocol.Ask) {
	a.r.t.Helper()
	if h := a.once(ask); h.progress == nil {
		a.r.t.Fatalf("want Progress, got %+v", h)
	}
	a.r.waiting(ask.ID)
}

// waiting waits until the entry of id is parked for a person.
func (r *rig) waiting(id string) {
	r.t.Helper()
	until(r.t, "parked", func() error {
		item, err := r.open.Get(context.Background(), id)
		if err == nil && (item.Taken.IsZero() || item.Owner != "") {
			err = fmt.Errorf("taken %v, owner %q, stage %s", item.Taken, item.Owner, item.Stage)
		}
		return err
	})
}

func (a *agent) cancel(id string) protocol.CancelReceipt {
	a.r.t.Helper()
	subject := must(a.r.Subjects.Cancel(a.name))(a.r.t)
	m := must(a.nc.Request(subject, must(protocol.Write(protocol.Cancel{Ask: id, Reason: "changed my mind"}))(a.r.t), soon))(a.r.t)
	return must(protocol.Read[protocol.CancelReceipt](m.Data))(a.r.t)
}

// want compares a decision with result and outcome.
func want(t testing.TB, d protocol.Decision, result protocol.FinalChoice, outcome protocol.Outcome) {
	t.Helper()
	if d.Result != result || d.Outcome != outcome || d.Allowed() != (result == protocol.FinalAllow) {
		t.Fatalf("decision is %s (%s, %q), want %s (%s)", d.Result, d.Outcome, d.Reason, result, outcome)
	}
}

const (
	allow = protocol.FinalAllow
	deny  = protocol.FinalDeny
)

// decisions are all records of the decision stream on id.
func (r *rig) decisions(id string) (out []protocol.Decision) {
	r.t.Helper()
	all := must(r.Subjects.DecisionOf(id))(r.t)
	for m, err := range bus.ReadStream(context.Background(), r.op, protocol.StreamDecisions, 1, all) {
		out = append(out, must(protocol.Read[protocol.Decision](must(m, err)(r.t).Data))(r.t))
	}
	return out
}

// reviews are all review-log records on id, in order, with what gates have on its
// way into the stream.
func (r *rig) reviews(id string) (out []protocol.ReviewRecord) {
	r.t.Helper()
	r.written()
	filter := protocol.SubjectRoot + "." + nodetest.Name + ".review." + id + ".>"
	for m, err := range bus.ReadStream(context.Background(), r.op, protocol.StreamReview, 1, filter) {
		out = append(out, must(protocol.Read[protocol.ReviewRecord](must(m, err)(r.t).Data))(r.t))
	}
	return out
}

func (r *rig) written() {
	r.mu.Lock()
	gates := slices.Clone(r.gates)
	r.mu.Unlock()
	for _, g := range gates {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		if err := g.review.outbox.Drain(ctx); err != nil {
			r.t.Error(err)
		}
		cancel()
	}
}

func (r *rig) events(id string) (out []string) {
	r.t.Helper()
	for _, rec := range r.reviews(id) {
		out = append(out, rec.Event)
	}
	return out
}

func (r *rig) count(id, event string) (n int) {
	r.t.Helper()
	for _, e := range r.events(id) {
		if e == event {
			n++
		}
	}
	return n
}

// settled waits until the entry of id is gone.
func (r *rig) settled(id string) {
	r.t.Helper()
	until(r.t, "settled", func() error {
		item, err := r.open.Get(context.Background(), id)
		switch {
		case errors.Is(err, pending.ErrGone) && len(r.decisions(id)) > 0:
			return nil
		case err == nil:
			return fmt.Errorf("still open: stage %s, owner %q", item.Stage, item.Owner)
		}
		return err
	})
}
