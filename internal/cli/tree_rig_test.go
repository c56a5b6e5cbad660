package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/desk"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/client"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/gate"
	"github.com/assent-dev/assent/services/terminal/parent"
)

// treeTime bounds every wait of these tests.
const treeTime = 30 * time.Second

// treeNode is one node of a tree: a server of its own, a terminal and any number
// of gates, an agent and an approver.
type treeNode struct {
	*nodetest.Node
	t     *testing.T
	agent *client.Client
	desk  *desk.Desk
	op    *nats.Conn
}

func plant(t *testing.T, name, policyText string) *treeNode {
	t.Helper()
	n := &treeNode{Node: nodetest.Start(t, nodetest.Quiet(), nodetest.Named(name)), t: t}
	n.op = n.Connect(t, protocol.RoleOperator, "op")
	n.put(policyText)
	var err error
	if n.agent, err = client.New(n.Connect(t, protocol.RoleAgent, "ci"), name, "ci"); err != nil {
		t.Fatal(err)
	}
	approver := name + "-oncall"
	if n.desk, err = desk.New(n.Connect(t, protocol.RoleApprover, approver), name, approver); err != nil {
		t.Fatal(err)
	}
	return n
}

// put stores a policy, whatever is stored.
func (n *treeNode) put(policyText string) {
	n.t.Helper()
	js, err := bus.JetStream(n.op)
	if err != nil {
		n.t.Fatal(err)
	}
	kv, err := js.KeyValue(n.t.Context(), protocol.BucketPolicy)
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := kv.Put(n.t.Context(), policy.LayerFleet, []byte(policyText)); err != nil {
		n.t.Fatal(err)
	}
}

// below is how a child called name reaches n.
func (n *treeNode) below(name string) *parent.Config {
	n.t.Helper()
	file := filepath.Join(n.t.TempDir(), name+".creds")
	if err := node.WritePrivate(file, n.Creds(n.t, protocol.RoleChild, name)); err != nil {
		n.t.Fatal(err)
	}
	return &parent.Config{Node: name, Parent: n.Name(), URL: n.ClientURL(), Creds: file, Logger: quietLog()}
}

// serve runs a service on a connection of its own; stop lets it drain, and kill
// takes its connection away first.
func (n *treeNode) serve(role protocol.Role, name string, run func(context.Context, *nats.Conn, func()) error) (stop, kill func()) {
	n.t.Helper()
	nc := n.Connect(n.t, role, name)
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- run(ctx, nc, sync.OnceFunc(func() { close(ready) })) }()
	var killed atomic.Bool
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !killed.Load() {
			n.t.Errorf("%s of %s ended with %v", name, n.Name(), err)
		}
	})
	n.t.Cleanup(stop)
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		n.t.Fatalf("%s of %s does not serve: %v", name, n.Name(), err)
	case <-time.After(treeTime):
		n.t.Fatalf("%s of %s is not ready", name, n.Name())
	}
	return stop, func() { killed.Store(true); nc.Close(); stop() }
}

func (n *treeNode) gate(name string) (stop, kill func()) {
	n.t.Helper()
	return n.serve(protocol.RoleGate, name, func(ctx context.Context, nc *nats.Conn, ready func()) error {
		g, err := gate.New(ctx, nc, gate.Config{Node: n.Name(), Name: name, Logger: quietLog()})
		if err != nil {
			return err
		}
		return g.Run(ctx, ready)
	})
}

func (n *treeNode) terminal(name string, above *parent.Config) (stop, kill func()) {
	n.t.Helper()
	s, err := terminalService(n.Name(), name, above, quietLog())
	if err != nil {
		n.t.Fatal(err)
	}
	return n.serve(protocol.RoleTerminal, name, s.run)
}

// all runs a terminal and a gate.
func (n *treeNode) all(above *parent.Config) *treeNode {
	n.t.Helper()
	n.terminal("t1", above)
	n.gate("g1")
	return n
}

// present has the node's approver be there until the test ends.
func (n *treeNode) present() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.desk.Present(ctx) }()
	n.t.Cleanup(func() { cancel(); <-done })
}

func bashAsk(command string) protocol.Ask {
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return protocol.Ask{ID: protocol.NewAskID(), Source: protocol.SourceToolCall, Cwd: "/repo", Home: "/home/dev", Platform: "linux",
		Session: protocol.Session{ID: "s1"}, Tool: protocol.Tool{Name: "bash", Input: input}}
}

// told is what an agent was told, and when.
type told struct {
	protocol.Decision
	err error
	at  time.Time
}

// asks starts an ask of the node's agent.
func (n *treeNode) asks(a protocol.Ask) <-chan told {
	out := make(chan told, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), treeTime)
		defer cancel()
		d, err := n.agent.Ask(ctx, a)
		out <- told{d, err, time.Now()}
	}()
	return out
}

func hear(t *testing.T, ch <-chan told, result protocol.FinalChoice, outcome protocol.Outcome) told {
	t.Helper()
	select {
	case d := <-ch:
		if d.err != nil {
			t.Fatal(d.err)
		}
		if d.Result != result || d.Outcome != outcome {
			t.Fatalf("decision is %s (%s, %q), want %s (%s)", d.Result, d.Outcome, d.Reason, result, outcome)
		}
		return d
	case <-time.After(treeTime):
		t.Fatal("no decision")
		panic("unreachable")
	}
}

// waits waits until the ask stands before a person at n.
func (n *treeNode) waits(id string) pending.Item {
	n.t.Helper()
	var found pending.Item
	nodetest.CheckFor(n.t, treeTime, 20*time.Millisecond, func() error {
		items, err := n.desk.Pending(n.t.Context())
		if err != nil {
			return err
		}
		for _, i := range items {
			if i.Ask.ID == id && !i.Taken.IsZero() {
				found = i
				return nil
			}
		}
		return fmt.Errorf("ask %s does not wait at %s", id, n.Name())
	})
	return found
}

// goesUp asks until the ask stands before a person at top: a parent that is slow
// for 2 s, as on a busy machine, is as good as away, and the ask then ends
// unavailable.
func (n *treeNode) goesUp(top *treeNode, ask protocol.Ask) (protocol.Ask, <-chan told) {
	n.t.Helper()
	for range 5 {
		decided := n.asks(ask)
		if early := top.reached(ask.ID, decided); early == nil {
			return ask, decided
		} else if early.err != nil || early.Outcome != protocol.Unavailable {
			n.t.Fatalf("ended before it reached %s: %+v", top.Name(), early)
		}
		ask.ID = protocol.NewAskID()
	}
	n.t.Fatalf("%s is out of reach again and again", top.Name())
	panic("unreachable")
}

// reached waits until the ask stands before a person at n, and returns how it
// ended if it did before.
func (n *treeNode) reached(id string, decided <-chan told) *told {
	n.t.Helper()
	for deadline := time.Now().Add(treeTime); time.Now().Before(deadline); {
		select {
		case d := <-decided:
			return &d
		case <-time.After(20 * time.Millisecond):
		}
		items, err := n.desk.Pending(n.t.Context())
		if err == nil && slices.ContainsFunc(items, func(i pending.Item) bool { return i.Ask.ID == id && !i.Taken.IsZero() }) {
			return nil
		}
	}
	n.t.Fatalf("ask %s neither waits at %s nor ends", id, n.Name())
	panic("unreachable")
}

// closed waits until nothing of the ask is open at n.
func (n *treeNode) closed(id string) {
	n.t.Helper()
	nodetest.CheckFor(n.t, treeTime, 20*time.Millisecond, func() error {
		items, err := n.desk.Pending(n.t.Context())
		if slices.ContainsFunc(items, func(i pending.Item) bool { return i.Ask.ID == id }) {
			err = errors.New("still open at " + n.Name())
		}
		return err
	})
}

func (n *treeNode) answer(id string, v protocol.FinalChoice) {
	n.t.Helper()
	r, err := n.desk.Answer(n.t.Context(), protocol.Answer{Ask: id, Verdict: v, Approver: n.desk.Approver()})
	if err != nil || !r.Accepted {
		n.t.Fatalf("answer: %+v %v", r, err)
	}
}

// recorded are the decisions on id at n.
func (n *treeNode) recorded(id string) (out []protocol.Decision) {
	n.t.Helper()
	of, err := n.Subjects.DecisionOf(id)
	if err != nil {
		n.t.Fatal(err)
	}
	for m, err := range bus.ReadStream(n.t.Context(), n.op, protocol.StreamDecisions, 1, of) {
		if err != nil {
			n.t.Fatal(err)
		}
		d, err := protocol.Read[protocol.Decision](m.Data)
		if err != nil {
			n.t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

// reviewed counts the review records of an event on id at n.
func (n *treeNode) reviewed(id, event string) (count int) {
	n.t.Helper()
	for m, err := range bus.ReadStream(n.t.Context(), n.op, protocol.StreamReview, 1, protocol.SubjectRoot+"."+n.Name()+".review."+id+".>") {
		if err != nil {
			n.t.Fatal(err)
		}
		if strings.HasSuffix(m.Subject, "."+event) {
			count++
		}
	}
	return count
}

// denies waits until a rule that denies a command is in force at the node's gates.
func (n *treeNode) denies(command string) {
	n.t.Helper()
	nodetest.CheckFor(n.t, treeTime, 50*time.Millisecond, func() error {
		probe := bashAsk(command)
		probe.MaxWaitMS = 100
		d, err := n.agent.Ask(n.t.Context(), probe)
		if err == nil && d.Outcome != protocol.DeniedByRule {
			err = fmt.Errorf("%s is %s", command, d.Outcome)
		}
		return err
	})
}

func stepsOf(d protocol.Decision) string {
	var way []string
	for _, e := range d.Trail {
		way = append(way, strings.Trim(e.Node+"/"+e.Link, "/"))
	}
	return strings.Join(way, " ")
}
