//go:build load

// Package load holds what takes too long, or too much of a machine, for every
// run of the tests.
package load

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/internal/record"
	"github.com/assent-dev/assent/pkg/client"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/gate"
	"github.com/assent-dev/assent/services/terminal"
	"github.com/assent-dev/assent/services/terminal/human"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	agents   = 50
	opening  = 512 // asks that are opened at once
	answers  = 64  // answers that are on their way at once
	patience = 15 * time.Minute
	policy   = `{"permission":{"*":"ask"},"terminal":{"kind":"human"},"limits":{"asksPerSecond":100000,"pending":100000}}`
)

// asksAtOnce is how many are pending at once; ASSENT_LOAD_ASKS sets another number.
func asksAtOnce(t *testing.T) int {
	text := os.Getenv("ASSENT_LOAD_ASKS")
	if text == "" {
		return 20000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < agents {
		t.Fatalf("ASSENT_LOAD_ASKS=%s: want a number from %d on", text, agents)
	}
	return n
}

// crowd is a node with two gates, a terminal, and agents whose asks all wait for
// one person.
type crowd struct {
	*nodetest.Node
	t     *testing.T
	conns []*nats.Conn   // of the agents
	asks  []protocol.Ask // by number; agent i%agents asks number i
	looks *nats.Conn
	// again is how often one was told that nothing could be told now.
	again atomic.Int64
}

func newCrowd(t *testing.T, n int) *crowd {
	c := &crowd{Node: nodetest.Start(t, nodetest.Quiet()), t: t}
	c.looks = c.Connect(t, protocol.RoleGate, "looks")
	js, err := bus.JetStream(c.Connect(t, protocol.RoleOperator, "op"))
	c.ok(err)
	kv, err := js.KeyValue(t.Context(), protocol.BucketPolicy)
	c.ok(err)
	_, err = kv.PutString(t.Context(), "fleet", policy)
	c.ok(err)
	c.terminal()
	c.gate("g1")
	c.gate("g2")
	for i := range agents {
		name := "agent-" + strconv.Itoa(i)
		c.conns = append(c.conns, c.Connect(t, protocol.RoleAgent, name))
	}
	for i := range n {
		c.asks = append(c.asks, protocol.Ask{
			ID: protocol.NewAskID(), Agent: "agent-" + strconv.Itoa(i%agents), Source: protocol.SourceToolCall, Session: protocol.Session{ID: "s1"},
			Tool: protocol.Tool{Name: "bash", Input: jsontext.Value(fmt.Sprintf(`{"command":"make target-%d"}`, i))}, Cwd: "/repo", Home: "/home/dev", Platform: "linux",
		})
	}
	return c
}

func (c *crowd) ok(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// serve runs one service until the test is over.
func (c *crowd) serve(run func(ctx context.Context, ready func()) error) {
	ctx, stop := context.WithCancel(context.Background())
	done, ready := make(chan error, 1), make(chan struct{})
	go func() { done <- run(ctx, sync.OnceFunc(func() { close(ready) })) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			c.t.Error(err)
		}
	})
	select {
	case <-ready:
	case <-time.After(30 * time.Second):
		c.t.Fatal("a service does not serve")
	}
}

func (c *crowd) gate(name string) {
	g, err := gate.New(c.t.Context(), c.Connect(c.t, protocol.RoleGate, name), gate.Config{Node: nodetest.Name, Name: name, Logger: slog.New(slog.DiscardHandler)})
	c.ok(err)
	c.serve(g.Run)
}

func (c *crowd) terminal() {
	nc := c.Connect(c.t, protocol.RoleTerminal, "t")
	js, err := bus.JetStream(nc)
	c.ok(err)
	open, err := pending.Open(c.t.Context(), js)
	c.ok(err)
	decisions, err := record.Open(c.t.Context(), js, c.Subjects)
	c.ok(err)
	log := slog.New(slog.DiscardHandler)
	person := human.New(open, decisions, terminal.Notifier(nc, c.Subjects, log))
	s, err := terminal.New(nc, nodetest.Name, log, person, person)
	c.ok(err)
	c.serve(s.Run)
}

// sideBySide runs do for each number, at most limit at once, and fails at the
// first error.
func (c *crowd) sideBySide(limit int, do func(i int) error) {
	c.t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(limit, len(c.asks)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(c.asks) && !c.t.Failed(); i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					c.t.Errorf("ask %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	if c.t.Failed() {
		c.t.FailNow()
	}
}

// ask asks number i to its end, or that of ctx.
func (c *crowd) ask(ctx context.Context, i int, opts ...client.Option) (protocol.Decision, error) {
	a, err := client.New(c.conns[i%agents], nodetest.Name, c.asks[i].Agent, opts...)
	if err != nil {
		return protocol.Decision{}, err
	}
	return a.Ask(ctx, c.asks[i])
}

// sign asks number i until a gate says that it is pending. A gate that cannot tell
// now, or that has too much to do to answer, is an error.
func (c *crowd) sign(i int) (pending bool, err error) {
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	// The client asks until there is a decision; here the first sign of life is enough.
	d, err := c.ask(ctx, i, client.OnProgress(func(protocol.Progress) { cancel() }))
	switch {
	case ctx.Err() != nil:
		return true, nil
	case err == nil:
		err = fmt.Errorf("%s: want it to be pending", d.Outcome)
	}
	return false, err
}

// open asks each once, until the gate says that it is pending, and waits until
// all are before a person.
func (c *crowd) open() {
	until := time.Now().Add(patience)
	c.sideBySide(opening, func(i int) error {
		for {
			pending, err := c.sign(i)
			if pending || time.Now().After(until) {
				return err
			}
			c.again.Add(1)
		}
	})
	nodetest.CheckFor(c.t, patience, time.Second, func() error {
		parked := 0
		for _, p := range c.pending() {
			if !p.Taken.IsZero() && p.Owner == "" {
				parked++
			}
		}
		if parked != len(c.asks) {
			return fmt.Errorf("%d of %d are before a person", parked, len(c.asks))
		}
		return nil
	})
}

func (c *crowd) pending() (out []pending.Item) {
	c.t.Helper()
	entries, err := bus.LastPerKey(c.t.Context(), c.looks, protocol.BucketPending)
	c.ok(err)
	for _, e := range entries {
		item, err := pending.Decode(e.Key, e.Value, e.Revision)
		c.ok(err)
		out = append(out, item)
	}
	return out
}

// follow asks all again at once and keeps asking, as long as a gate says that it
// cannot tell; heard gets each decision.
func (c *crowd) follow(heard []protocol.Decision) (wait func()) {
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	for i := range c.asks {
		wg.Go(func() {
			for heard[i].Result == 0 || heard[i].Outcome == protocol.Unavailable {
				d, err := c.ask(ctx, i)
				if ctx.Err() != nil {
					c.t.Errorf("ask %d: %v", i, err)
					return
				}
				if heard[i] = d; err != nil || d.Outcome != protocol.AllowedByHuman {
					c.again.Add(1)
				}
			}
		})
	}
	return func() { wg.Wait(); cancel() }
}

// answerAll allows each as one person.
func (c *crowd) answerAll() {
	person := c.Connect(c.t, protocol.RoleApprover, "oncall")
	c.sideBySide(answers, func(i int) error {
		subject, err := c.Subjects.Answer("oncall", c.asks[i].ID)
		if err != nil {
			return err
		}
		body, err := protocol.Write(protocol.Answer{Ask: c.asks[i].ID, Verdict: protocol.FinalAllow, Approver: "oncall"})
		if err != nil {
			return err
		}
		for until := time.Now().Add(patience); ; c.again.Add(1) {
			m, err := person.Request(subject, body, 10*time.Second)
			if err == nil {
				var receipt protocol.AnswerReceipt
				receipt, err = protocol.Read[protocol.AnswerReceipt](m.Data)
				switch {
				case err == nil && (receipt.Accepted || receipt.AnsweredBy == "oncall"):
					return nil // the latter: the receipt of the answer before was lost
				case err == nil:
					return fmt.Errorf("not accepted: %s", receipt.Error)
				}
			}
			if time.Now().After(until) {
				return fmt.Errorf("no receipt: %w", err)
			}
		}
	})
}

// recorded is how many decisions the stream holds, and on how many asks.
func (c *crowd) recorded() (records int, by map[string]protocol.Decision) {
	c.t.Helper()
	by = map[string]protocol.Decision{}
	for m, err := range bus.ReadStream(c.t.Context(), c.looks, protocol.StreamDecisions, 1, c.Subjects.All(protocol.KindDecision)) {
		c.ok(err)
		d, err := protocol.Read[protocol.Decision](m.Data)
		c.ok(err)
		records++
		by[d.Ask] = d
	}
	return records, by
}

// heap is what this process holds once everything that nobody holds is gone.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// resident is what the system says this process holds, in bytes.
func resident() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseUint(strings.Fields(string(text))[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}

func TestTwentyThousandAsksArePendingAtOnce(t *testing.T) {
	n := asksAtOnce(t)
	c := newCrowd(t, n)
	perAsk := func(from, to uint64) string {
		return fmt.Sprintf("%.1f KiB", (float64(to)-float64(from))/float64(n)/1024)
	}
	heap0, resident0 := heap(), resident()

	began := time.Now()
	c.open()
	t.Logf("%d asks opened, stored and before a person in %s", n, time.Since(began).Round(time.Millisecond))
	heap1 := heap()
	t.Logf("a pending ask that nobody asks for: %s of heap and stacks (server, two gates, terminal and agents in one process), %s resident", perAsk(heap0, heap1), perAsk(resident0, resident()))

	heard := make([]protocol.Decision, n)
	wait := c.follow(heard)
	time.Sleep(5 * time.Second) // a round of Progress for everybody
	t.Logf("one that its agent asks for as well: %s more", perAsk(heap1, heap()))

	began = time.Now()
	c.answerAll()
	t.Logf("all answered in %s", time.Since(began).Round(time.Millisecond))
	wait()
	took := time.Since(began)
	t.Logf("all heard in %s, %.0f a second; %d times one was told to ask again", took.Round(time.Millisecond), float64(n)/took.Seconds(), c.again.Load())

	records, by := c.recorded()
	if records != n || len(by) != n {
		t.Errorf("%d records on %d asks, want %d", records, len(by), n)
	}
	for i, ask := range c.asks {
		d := heard[i]
		if !d.Allowed() || d.Outcome != protocol.AllowedByHuman || d.Ask != ask.ID || !by[ask.ID].DecidedAt.Equal(d.DecidedAt) || by[ask.ID].Gate != d.Gate {
			t.Fatalf("ask %d heard %+v, recorded %+v", i, d, by[ask.ID])
		}
	}
	nodetest.CheckFor(t, patience, 20*time.Millisecond, func() error {
		if left := len(c.pending()); left > 0 {
			return fmt.Errorf("%d are still open", left)
		}
		return nil
	})
	t.Logf("heap and stacks afterwards: %s an ask more than before the first", perAsk(heap0, heap()))
}
