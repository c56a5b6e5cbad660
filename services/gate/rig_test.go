package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick are times for tests: all that wait in earnest, shortened.
var quick = times{patience: 400 * time.Millisecond, lease: time.Second, sweep: 50 * time.Millisecond, terminal: 2 * time.Second, look: 200 * time.Millisecond}

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
	g.Gate = must(New(context.Background(), nc, Config{Node: nodetest.Name, Name: name, Logger: nodetest.Logger(r.t)}))(r.t)
	g.times = quick
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
	began := time.Now()
	m, err := a.nc.Request(subject, data, soon)
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
	d, err := protocol.ReadDecisionFor(id, a.name, m.Data)
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

// reviews are all review-log records on id, in order.
func (r *rig) reviews(id string) (out []protocol.ReviewRecord) {
	r.t.Helper()
	filter := protocol.SubjectRoot + "." + nodetest.Name + ".review." + id + ".>"
	for m, err := range bus.ReadStream(context.Background(), r.op, protocol.StreamReview, 1, filter) {
		out = append(out, must(protocol.Read[protocol.ReviewRecord](must(m, err)(r.t).Data))(r.t))
	}
	return out
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
		case errors.Is(err, pending.ErrGone):
			return nil
		case err == nil:
			return fmt.Errorf("still open: stage %s, owner %q", item.Stage, item.Owner)
		}
		return err
	})
}

// book is what a script does with each ask: written by a test, read by a link.
type book[T any] struct{ m sync.Map }

func (b *book[T]) put(id string, v T) { b.m.Store(id, v) }

func (b *book[T]) get(id string) T {
	v, _ := b.m.Load(id)
	return v.(T)
}

// script is a scripted responder that counts what it was asked.
type script struct {
	mu    sync.Mutex
	asked map[string]int // by ask id
	order []string
	total atomic.Int32
	sub   *nats.Subscription
}

func (s *script) note(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[id]++
	s.order = append(s.order, id)
	s.total.Add(1)
}

func (s *script) times(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[id]
}

// linkCall is one request to a scripted link.
type linkCall struct {
	t   testing.TB
	nc  *nats.Conn
	msg *nats.Msg
	protocol.LinkRequest
}

func (c linkCall) reply(data string) { _ = c.msg.Respond([]byte(data)) }

func (c linkCall) verdict(choice, reason, failure string) {
	c.reply(fmt.Sprintf(`{"v":1,"ask":%q,"verdict":%q,"reason":%q,"failure":%q}`, c.Ask.ID, choice, reason, failure))
}

func (c linkCall) accept() { c.log("debug", protocol.EventAccepted) }

func (c linkCall) log(level, event string) (*protocol.LogReceipt, *protocol.Fault) {
	return logTo(c.t, c.nc, c.Log, level, event)
}

func logTo(t testing.TB, nc *nats.Conn, subject, level, event string) (*protocol.LogReceipt, *protocol.Fault) {
	m, err := nc.Request(subject, fmt.Appendf(nil, `{"v":1,"level":%q,"event":%q,"fields":{"x":1}}`, level, event), soon)
	if err != nil {
		t.Errorf("log: %v", err)
		return nil, nil
	}
	if f, err := protocol.Read[protocol.ErrorReply](m.Data); err == nil {
		return nil, &f.Error
	}
	r, err := protocol.Read[protocol.LogReceipt](m.Data)
	if err != nil {
		t.Errorf("log: %v", err)
	}
	return &r, nil
}

func queryTo(t testing.TB, nc *nats.Conn, subject, body string) (*protocol.Check, *protocol.Fault) {
	m, err := nc.Request(subject, []byte(body), soon)
	if err != nil {
		t.Errorf("query: %v", err)
		return nil, nil
	}
	if f, err := protocol.Read[protocol.ErrorReply](m.Data); err == nil {
		return nil, &f.Error
	}
	c, err := protocol.Read[protocol.Check](m.Data)
	if err != nil {
		t.Errorf("query: %v", err)
	}
	return &c, nil
}

// link serves a link by script, on a connection of its own.
func (r *rig) link(name string, serve func(linkCall)) *script {
	r.t.Helper()
	return r.linkOn(r.Connect(r.t, protocol.RoleJudge, "judge-"+name), name, serve)
}

func (r *rig) linkOn(nc *nats.Conn, name string, serve func(linkCall)) *script {
	r.t.Helper()
	s := &script{asked: map[string]int{}}
	subject := must(r.Subjects.Link(name))(r.t)
	s.sub = must(nc.QueueSubscribe(subject, name, func(m *nats.Msg) {
		req, err := protocol.Read[protocol.LinkRequest](m.Data)
		if err != nil {
			r.t.Errorf("link %s was sent no link request: %v", name, err)
			return
		}
		s.note(req.Ask.ID)
		serve(linkCall{t: r.t, nc: nc, msg: m, LinkRequest: req})
	}))(r.t)
	flush(r.t, nc)
	return s
}

func flush(t testing.TB, nc *nats.Conn) {
	t.Helper()
	if err := nc.FlushTimeout(soon); err != nil {
		t.Fatal(err)
	}
}

// announce makes a link seen by discovery, and waits until g has seen it.
func (r *rig) announce(nc *nats.Conn, name string, g *served) {
	r.t.Helper()
	must(micro.AddService(nc, micro.Config{Name: protocol.ServiceLink, Version: "1.0.0", Metadata: map[string]string{"link": name, "node": nodetest.Name, "version": "1.0.0"}}))(r.t)
	until(r.t, "seen", func() error {
		if seen := strings.Join(g.links.running(), " "); !strings.Contains(seen, name) {
			return fmt.Errorf("running: %s", seen)
		}
		return nil
	})
}

// always is a link that gives one verdict.
func always(choice, reason string) func(linkCall) {
	return func(c linkCall) { c.accept(); c.verdict(choice, reason, "") }
}

// terminal serves one kind of terminal by script; what it returns is the reply.
func (r *rig) terminal(kind protocol.TerminalKind, serve func(protocol.TerminalRequest) string) *script {
	r.t.Helper()
	s := &script{asked: map[string]int{}}
	subject := must(r.Subjects.Terminal(string(kind)))(r.t)
	s.sub = must(r.term.QueueSubscribe(subject, protocol.QueueTerminal, func(m *nats.Msg) {
		req, err := protocol.Read[protocol.TerminalRequest](m.Data)
		if err != nil {
			r.t.Errorf("terminal was sent no terminal request: %v", err)
			return
		}
		s.note(req.Ask.ID)
		if reply := serve(req); reply != "" {
			_ = r.term.Publish(m.Reply, []byte(reply))
		}
	}))(r.t)
	flush(r.t, r.term)
	return s
}

// denying is the terminal of a node where nobody is.
func (r *rig) denying() *script {
	r.t.Helper()
	return r.terminal(protocol.TerminalDeny, func(q protocol.TerminalRequest) string {
		return fmt.Sprintf(`{"v":1,"ask":%q,"verdict":"deny","outcome":"no_approver","reason":"Nobody is there."}`, q.Ask.ID)
	})
}

// person is a terminal that puts asks to a person.
func (r *rig) person() *script {
	r.t.Helper()
	return r.terminal(protocol.TerminalHuman, func(q protocol.TerminalRequest) string {
		_, err := r.open.Update(context.Background(), q.Ask.ID, func(p *protocol.Pending) error {
			if p.Taken.IsZero() {
				p.Taken = time.Now().UTC()
			}
			return nil
		})
		if err != nil {
			return ""
		}
		return progressFor(q.Ask.ID)
	})
}

func progressFor(id string) string {
	return fmt.Sprintf(`{"v":1,"ask":%q,"status":"pending","stage":"terminal:human","since":%q}`, id, time.Now().UTC().Format(time.RFC3339))
}

// answer stores a person's verdict, as a terminal does when one answers.
func (r *rig) answer(id string, v protocol.TerminalVerdict) {
	r.t.Helper()
	v.Ask, v.Approver, v.At = id, "oncall-1", time.Now().UTC()
	v.Outcome = protocol.DeniedByHuman
	if v.Verdict == allow {
		v.Outcome = protocol.AllowedByHuman
	}
	must(r.open.Update(context.Background(), id, func(p *protocol.Pending) error {
		if p.Verdict != nil {
			return errors.New("answered already")
		}
		p.Verdict = &v
		return nil
	}))(r.t)
}

func yes() protocol.TerminalVerdict { return protocol.TerminalVerdict{Verdict: allow} }
func no(reason string) protocol.TerminalVerdict {
	return protocol.TerminalVerdict{Verdict: deny, Reason: reason}
}
