package terminal_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/internal/record"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/terminal"
	"github.com/assent-dev/assent/services/terminal/deny"
	"github.com/assent-dev/assent/services/terminal/human"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const soon = 15 * time.Second

// rig is a node with terminals on it, and a gate's connection to play the gate.
type rig struct {
	*nodetest.Node
	t    *testing.T
	gate *nats.Conn
	open *pending.Store // as a gate sees it
}

func newRig(t *testing.T) *rig {
	t.Helper()
	n := nodetest.Start(t, nodetest.Quiet())
	r := &rig{Node: n, t: t, gate: n.Connect(t, protocol.RoleGate, "g1")}
	js := must(bus.JetStream(r.gate))(t)
	r.open = must(pending.Open(context.Background(), js))(t)
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

// serve runs one terminal service, and returns how to end it.
func (r *rig) serve(name string) (stop func()) {
	r.t.Helper()
	nc := r.Connect(r.t, protocol.RoleTerminal, name)
	js := must(bus.JetStream(nc))(r.t)
	open := must(pending.Open(context.Background(), js))(r.t)
	decisions := must(record.Open(context.Background(), js, r.Subjects))(r.t)
	log := nodetest.Logger(r.t)
	person := human.New(open, decisions, terminal.Notifier(nc, r.Subjects, log))
	s := must(terminal.New(nc, nodetest.Name, log, person, person, deny.Terminal{}))(r.t)
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- s.Run(ctx, func() { close(ready) }) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("terminal %s: %v", name, err)
		}
	})
	r.t.Cleanup(stop)
	select {
	case <-ready:
	case err := <-done:
		r.t.Fatalf("terminal does not serve: %v", err)
	case <-time.After(soon):
		r.t.Fatal("terminal is not ready")
	}
	return stop
}

// pend creates an entry that stands before its terminal.
func (r *rig) pend(change ...func(*protocol.Pending)) protocol.Pending {
	r.t.Helper()
	now := time.Now().UTC()
	p := protocol.Pending{
		Ask:    protocol.Ask{V: protocol.CurrentVersion, ID: protocol.NewAskID(), Agent: "ci", Tool: protocol.Tool{Name: "bash", Input: jsontext.Value(`{"command":"make"}`)}},
		Digest: "sha256:x", Node: nodetest.Name, Role: protocol.TerminalHuman, Stage: "terminal:human",
		Asks: []protocol.Entry{{Surface: "bash", Value: "make"}}, Since: now, Deadline: now.Add(time.Hour),
	}
	for _, f := range change {
		f(&p)
	}
	must(r.open.Create(context.Background(), p))(r.t)
	return p
}

func (r *rig) entry(id string) pending.Item {
	r.t.Helper()
	return must(r.open.Get(context.Background(), id))(r.t)
}

func request(p protocol.Pending) protocol.TerminalRequest {
	return protocol.TerminalRequest{Kind: p.Role, Ask: p.Ask, Asks: p.Asks, Deadline: p.Deadline}
}

// put puts an ask to its terminal, as a gate does.
func (r *rig) put(q protocol.TerminalRequest) *nats.Msg {
	r.t.Helper()
	subject := must(r.Subjects.Terminal(string(q.Kind)))(r.t)
	return must(r.gate.Request(subject, must(protocol.Write(q))(r.t), soon))(r.t)
}

// taken puts an ask to a person.
func (r *rig) taken(change ...func(*protocol.Pending)) protocol.Pending {
	r.t.Helper()
	p := r.pend(change...)
	m := r.put(request(p))
	if progress, err := protocol.Read[protocol.Progress](m.Data); err != nil || progress.Ask != p.Ask.ID {
		r.t.Fatalf("want Progress, got %s", m.Data)
	}
	return p
}

// approver answers under one name.
type approver struct {
	r    *rig
	name string
	nc   *nats.Conn
}

func (r *rig) approver(name string) *approver {
	r.t.Helper()
	return &approver{r: r, name: name, nc: r.Connect(r.t, protocol.RoleApprover, name)}
}

func answerOf(name, id string, v protocol.FinalChoice) protocol.Answer {
	return protocol.Answer{Ask: id, Verdict: v, Approver: name}
}

func (a *approver) send(id string, body []byte) (*protocol.AnswerReceipt, *protocol.Fault, error) {
	subject, err := a.r.Subjects.Answer(a.name, id)
	if err != nil {
		return nil, nil, err
	}
	m, err := a.nc.Request(subject, body, soon)
	if err != nil {
		return nil, nil, err
	}
	if f, err := protocol.Read[protocol.ErrorReply](m.Data); err == nil {
		return nil, &f.Error, nil
	}
	receipt, err := protocol.Read[protocol.AnswerReceipt](m.Data)
	if err == nil && receipt.Ask != id {
		err = fmt.Errorf("receipt for %s", receipt.Ask)
	}
	return &receipt, nil, err
}

func (a *approver) answer(ans protocol.Answer) protocol.AnswerReceipt {
	a.r.t.Helper()
	receipt, fault, err := a.send(ans.Ask, must(protocol.Write(ans))(a.r.t))
	if err != nil || fault != nil {
		a.r.t.Fatalf("%v %v", fault, err)
	}
	return *receipt
}
