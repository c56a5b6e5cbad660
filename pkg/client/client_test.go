package client

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	agent    = "laptop"
	otherAsk = "01KBAKQ5Y0000000000000000Z"
)

func call() protocol.Ask {
	return protocol.Ask{Tool: protocol.Tool{Name: "bash", Input: jsontext.Value(`{"command":"git push"}`)}, Cwd: "/repo", Home: "/home/dev"}
}

func allow(id string) protocol.Decision {
	return protocol.Decision{
		Ask: id, Node: nodetest.Name, Gate: "g-1", Agent: agent, Result: protocol.FinalAllow, Outcome: protocol.AllowedByRule,
		DecidedBy: protocol.Decider{Kind: protocol.DeciderRule, Name: "fleet", Node: nodetest.Name},
	}
}

func progress(id string) protocol.Progress {
	return protocol.Progress{Ask: id, Status: protocol.StatusPending, Stage: "terminal:human", Since: time.Now()}
}

func body[M any, P protocol.Message[M]](t testing.TB, m M) *nats.Msg {
	t.Helper()
	b, err := protocol.Write[M, P](m)
	if err != nil {
		t.Fatal(err)
	}
	return &nats.Msg{Data: b}
}

// gate answers asks and withdrawals on a real node with real credentials; what
// it says is the test's.
type gate struct {
	t        testing.TB
	nc       *nats.Conn
	subjects protocol.Subjects
}

func startGate(t testing.TB) (*gate, *nodetest.Node) {
	n := nodetest.Start(t)
	return &gate{t: t, nc: n.Connect(t, protocol.RoleGate, "g-1"), subjects: n.Subjects}, n
}

// on answers every request of kind with what f says; nil is silence.
func (g *gate) on(kind protocol.Kind, f func(data []byte) *nats.Msg) *nats.Subscription {
	g.t.Helper()
	sub, err := g.nc.QueueSubscribe(g.subjects.All(kind), protocol.QueueGate, func(m *nats.Msg) {
		if reply := f(m.Data); reply != nil {
			if err := m.RespondMsg(reply); err != nil {
				g.t.Errorf("answering: %v", err)
			}
		}
	})
	if err != nil {
		g.t.Fatal(err)
	}
	if err := g.nc.Flush(); err != nil {
		g.t.Fatal(err)
	}
	return sub
}

// asks answers every ask.
func (g *gate) asks(f func(a protocol.Ask) *nats.Msg) *nats.Subscription {
	return g.on(protocol.KindAsk, func(data []byte) *nats.Msg {
		a, err := protocol.ReadAskFor(agent, data)
		if err != nil {
			g.t.Errorf("the client's ask is refused: %v", err)
			return nil
		}
		return f(a)
	})
}

func (g *gate) decision(d protocol.Decision) *nats.Msg { return body(g.t, d) }
func (g *gate) progress(p protocol.Progress) *nats.Msg { return body(g.t, p) }
func (g *gate) fault(ask string, code protocol.Code) *nats.Msg {
	m := body(g.t, protocol.ErrorReply{Ask: ask, Error: protocol.Fault{Code: code, Message: "m", Remedy: "r"}})
	m.Header = nats.Header{protocol.HeaderErrorCode: {string(code)}, protocol.HeaderError: {"m"}}
	return m
}

func newClient(t testing.TB, n *nodetest.Node, opts ...Option) *Client {
	t.Helper()
	opts = append([]Option{Round(time.Second), Patience(100 * time.Millisecond), Pace(time.Millisecond)}, opts...)
	c, err := New(n.Connect(t, protocol.RoleAgent, agent), nodetest.Name, agent, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestAskHearsTheDecision(t *testing.T) {
	t.Parallel()
	g, n := startGate(t)
	c := newClient(t, n)
	g.asks(func(a protocol.Ask) *nats.Msg {
		d := allow(a.ID)
		if a.Tool.Name == "write" {
			d.Result, d.Outcome, d.Reason = protocol.FinalDeny, protocol.DeniedByRule, "not here"
		}
		return g.decision(d)
	})
	d, err := c.Ask(within(t, 10*time.Second), call())
	if err != nil || !d.Allowed() {
		t.Errorf("got %+v, %v; want an allow", d, err)
	}
	denied := call()
	denied.ID, denied.Tool.Name = protocol.NewAskID(), "write"
	d, err = c.Ask(within(t, 10*time.Second), denied)
	if err != nil || d.Allowed() || d.Ask != denied.ID || d.Reason != "not here" {
		t.Errorf("got %+v, %v; want a deny of %s", d, err, denied.ID)
	}
}

func TestAskWaitsThroughProgress(t *testing.T) {
	t.Parallel()
	g, n := startGate(t)
	var rounds atomic.Int32
	var ids sync.Map
	g.asks(func(a protocol.Ask) *nats.Msg {
		ids.Store(a.ID, true)
		if rounds.Add(1) < 4 {
			return g.progress(progress(a.ID))
		}
		return g.decision(allow(a.ID))
	})
	var seen []string
	c := newClient(t, n, OnProgress(func(p protocol.Progress) { seen = append(seen, p.Stage) }))
	d, err := c.Ask(within(t, 10*time.Second), call())
	if err != nil || !d.Allowed() {
		t.Fatalf("got %+v, %v; want an allow", d, err)
	}
	distinct := 0
	ids.Range(func(any, any) bool { distinct++; return true })
	if len(seen) != 3 || distinct != 1 {
		t.Errorf("%d signs of life under %d ids, want 3 under 1", len(seen), distinct)
	}
}

func TestAskReportsTheGatesRefusal(t *testing.T) {
	t.Parallel()
	g, n := startGate(t)
	var rounds atomic.Int32
	g.asks(func(a protocol.Ask) *nats.Msg {
		if a.Intent == "busy at first" && rounds.Add(1) > 1 {
			return g.decision(allow(a.ID))
		}
		code := protocol.CodeConflict
		if a.Intent != "" {
			code = protocol.CodeUnavailable
		}
		return g.fault(a.ID, code)
	})
	c := newClient(t, n)
	var fault *protocol.Fault
	if _, err := c.Ask(within(t, 10*time.Second), call()); !errors.As(err, &fault) || fault.Code != protocol.CodeConflict || fault.Remedy != "r" {
		t.Errorf("error %v, want the fault with its remedy", err)
	}
	ask := call()
	ask.Intent = "unavailable"
	if _, err := c.Ask(within(t, 10*time.Second), ask); !errors.Is(err, ErrUnavailable) || !errors.As(err, &fault) || fault.Code != protocol.CodeUnavailable {
		t.Errorf("error %v, want ErrUnavailable with the fault", err)
	}
	ask.Intent = "busy at first"
	if d, err := c.Ask(within(t, 10*time.Second), ask); err != nil || !d.Allowed() {
		t.Errorf("got %v, want the allow of the second round", err)
	}
}

func TestAskWithoutAGate(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	c := newClient(t, n)
	began := time.Now()
	_, err := c.Ask(within(t, 20*time.Second), call())
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("error %v, want ErrUnavailable because of no responders", err)
	}
	if took := time.Since(began); took < 100*time.Millisecond || took > 10*time.Second {
		t.Errorf("gave up after %s, the patience is 100 ms", took)
	}
}

func TestAskASilentGateTwiceThenGiveUp(t *testing.T) {
	t.Parallel()
	g, n := startGate(t)
	var rounds atomic.Int32
	g.asks(func(protocol.Ask) *nats.Msg { rounds.Add(1); return nil })
	c := newClient(t, n, Round(150*time.Millisecond))
	if _, err := c.Ask(within(t, 20*time.Second), call()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
	if rounds.Load() != leastTries {
		t.Errorf("asked %d times, want %d", rounds.Load(), leastTries)
	}
}

// Of two gates one is stuck: the second round finds the other.
func TestAskFindsAGateThatComesLate(t *testing.T) {
	t.Parallel()
	g, n := startGate(t)
	c := newClient(t, n, Patience(10*time.Second))
	late := time.AfterFunc(200*time.Millisecond, func() {
		g.asks(func(a protocol.Ask) *nats.Msg { return g.decision(allow(a.ID)) })
	})
	defer late.Stop()
	if d, err := c.Ask(within(t, 20*time.Second), call()); err != nil || !d.Allowed() {
		t.Errorf("got %v, want the late gate's allow", err)
	}
}

// A pending ask outlives its gate: the client goes on after the patience.
func TestAskWaitsForAGateThatRestarts(t *testing.T) {
	t.Parallel()
	g, n := startGate(t)
	heard := make(chan struct{}, 64)
	c := newClient(t, n, Patience(0), OnProgress(func(protocol.Progress) { heard <- struct{}{} }))
	sub := g.asks(func(a protocol.Ask) *nats.Msg { return g.progress(progress(a.ID)) })
	done := make(chan error, 1)
	go func() {
		d, err := c.Ask(within(t, 30*time.Second), call())
		if err == nil && !d.Allowed() {
			err = errors.New("denied")
		}
		done <- err
	}()
	<-heard
	if err := sub.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		t.Fatalf("gave up while the ask was pending: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	g.asks(func(a protocol.Ask) *nats.Msg { return g.decision(allow(a.ID)) })
	if err := <-done; err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

func TestAskEndsWithItsContext(t *testing.T) {
	t.Parallel()
	g, n := startGate(t)
	g.asks(func(a protocol.Ask) *nats.Msg {
		if a.Intent == "silent" {
			return nil
		}
		return g.progress(progress(a.ID))
	})
	c := newClient(t, n)
	_, err := c.Ask(within(t, 100*time.Millisecond), call())
	if !errors.Is(err, ErrEnded) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "terminal:human") {
		t.Errorf("error %v, want ErrEnded that names the stage", err)
	}
	ask := call()
	ask.Intent = "silent"
	if _, err = c.Ask(within(t, 100*time.Millisecond), ask); !errors.Is(err, ErrEnded) || errors.Is(err, ErrUnavailable) {
		t.Errorf("error %v, want ErrEnded alone", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err = c.Ask(ctx, call()); !errors.Is(err, ErrEnded) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want ErrEnded because of the cancel", err)
	}
}

func TestAskIsCheckedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	g, n := startGate(t)
	g.asks(func(a protocol.Ask) *nats.Msg { t.Errorf("sent: %+v", a); return nil })
	c := newClient(t, n)
	for name, change := range map[string]func(*protocol.Ask){
		"as another agent":  func(a *protocol.Ask) { a.Agent = "ci-7" },
		"no tool":           func(a *protocol.Ask) { a.Tool.Name = "" },
		"no input":          func(a *protocol.Ask) { a.Tool.Input = nil },
		"a broken input":    func(a *protocol.Ask) { a.Tool.Input = jsontext.Value(`{"a":`) },
		"an id that is not": func(a *protocol.Ask) { a.ID = "1" },
		"too large": func(a *protocol.Ask) {
			a.Tool.Input = jsontext.Value(`{"content":"` + strings.Repeat("x", protocol.DefaultMaxBytes) + `"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ask := call()
			change(&ask)
			if _, err := c.Ask(within(t, 10*time.Second), ask); !errors.Is(err, ErrAsk) {
				t.Errorf("error %v, want ErrAsk", err)
			}
		})
	}
}

func TestAskOnAClosedConnection(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	c := newClient(t, n, Patience(time.Hour))
	c.nc.Close()
	if _, err := c.Ask(within(t, 10*time.Second), call()); !errors.Is(err, ErrUnavailable) || !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("error %v, want ErrUnavailable because of the closed connection", err)
	}
}

func TestAskWhereTheCredentialsMayNot(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	c, err := New(n.Connect(t, protocol.RoleAgent, "ci-7"), nodetest.Name, agent, Round(200*time.Millisecond), Patience(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ask(within(t, 20*time.Second), call()); !errors.Is(err, ErrUnavailable) || !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("error %v, want ErrUnavailable because of the credentials", err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	g, n := startGate(t)
	g.on(protocol.KindCancel, func(data []byte) *nats.Msg {
		c, err := protocol.Read[protocol.Cancel](data)
		if err != nil {
			t.Errorf("the withdrawal is refused: %v", err)
			return nil
		}
		switch c.Reason {
		case "junk":
			return &nats.Msg{Data: []byte("ok")}
		case "decision":
			return g.decision(allow(c.Ask))
		case "another":
			c.Ask = otherAsk
		}
		return body(t, protocol.CancelReceipt{Ask: c.Ask, Cancelled: c.Reason != "late"})
	})
	c := newClient(t, n)
	for reason, want := range map[string]bool{"early": true, "late": false} {
		if got, err := c.Cancel(within(t, 10*time.Second), protocol.NewAskID(), reason); err != nil || got != want {
			t.Errorf("%s: got %v, %v; want %v", reason, got, err, want)
		}
	}
	for _, reason := range []string{"junk", "decision", "another"} {
		if got, err := c.Cancel(within(t, 10*time.Second), protocol.NewAskID(), reason); !errors.Is(err, ErrReply) || got {
			t.Errorf("%s: got %v, %v; want ErrReply", reason, got, err)
		}
	}
	if _, err := c.Cancel(within(t, 10*time.Second), "1", ""); !errors.Is(err, ErrAsk) {
		t.Errorf("error %v, want ErrAsk", err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	nc := nodetest.Start(t).Connect(t, protocol.RoleAgent, agent)
	for name, f := range map[string]func() (*Client, error){
		"no connection":       func() (*Client, error) { return New(nil, nodetest.Name, agent) },
		"a node with a dot":   func() (*Client, error) { return New(nc, "a.b", agent) },
		"an agent with a dot": func() (*Client, error) { return New(nc, nodetest.Name, "a.b") },
		"a wildcard":          func() (*Client, error) { return New(nc, nodetest.Name, "*") },
		"no round":            func() (*Client, error) { return New(nc, nodetest.Name, agent, Round(0)) },
		"no progress":         func() (*Client, error) { return New(nc, nodetest.Name, agent, OnProgress(nil)) },
	} {
		if c, err := f(); err == nil || c != nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := New(nc, nodetest.Name, agent); err != nil {
		t.Errorf("refused: %v", err)
	}
}
