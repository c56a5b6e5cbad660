package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

const asks = "assent.v1.main.ask.*"

func respond(s string) bus.Handler {
	return func(m *nats.Msg) { _ = m.Respond([]byte(s)) }
}

func TestHandlersRunSideBySideUpToTheLimit(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	const limit = 4
	release := make(chan struct{})
	var running, most atomic.Int32
	sub, err := bus.Subscribe(n.Connect(t, protocol.RoleGate, "g1"), asks, "gate", limit, func(m *nats.Msg) {
		most.Store(max(most.Load(), running.Add(1)))
		<-release
		running.Add(-1)
		_ = m.Respond([]byte("done"))
	}, respond("busy"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Drain(context.Background()) }()
	agent := n.Connect(t, protocol.RoleAgent, "a1")
	replies := make(chan string, 2*limit)
	for range limit {
		go func() {
			m, err := agent.Request("assent.v1.main.ask.a1", nil, 10*time.Second)
			if err != nil {
				replies <- err.Error()
				return
			}
			replies <- string(m.Data)
		}()
	}
	nodetest.CheckFor(t, 5*time.Second, time.Millisecond, func() error {
		if sub.Busy() != limit {
			return fmt.Errorf("%d busy", sub.Busy())
		}
		return nil
	})
	for range limit {
		// The next ones are refused at once although nobody is done.
		m, err := agent.Request("assent.v1.main.ask.a1", nil, 5*time.Second)
		if err != nil || string(m.Data) != "busy" {
			t.Errorf("over the limit: %v %v", m, err)
		}
	}
	close(release)
	for range limit {
		if r := <-replies; r != "done" {
			t.Errorf("within the limit: %s", r)
		}
	}
	if most.Load() != limit {
		t.Errorf("%d ran at once", most.Load())
	}
}

func TestDrainingLosesNoReply(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	gate := n.Connect(t, protocol.RoleGate, "g1")
	const inFlight = 20
	started := make(chan struct{}, inFlight)
	release := make(chan struct{})
	sub, err := bus.Subscribe(gate, asks, "gate", inFlight, func(m *nats.Msg) {
		started <- struct{}{}
		<-release
		_ = m.Respond([]byte("done"))
	}, respond("busy"))
	if err != nil {
		t.Fatal(err)
	}
	agent := n.Connect(t, protocol.RoleAgent, "a1")
	var wg sync.WaitGroup
	var lost atomic.Int32
	for range inFlight {
		wg.Go(func() {
			if m, err := agent.Request("assent.v1.main.ask.a1", nil, 10*time.Second); err != nil || string(m.Data) != "done" {
				t.Errorf("%v %v", m, err)
				lost.Add(1)
			}
		})
	}
	for range inFlight {
		<-started
	}
	drained := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() { drained <- bus.Drain(ctx, gate, sub) }()
	select {
	case err := <-drained:
		t.Fatalf("drained while handlers run: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if err := <-drained; err != nil {
		t.Error(err)
	}
	wg.Wait()
	if lost.Load() != 0 {
		t.Errorf("%d replies were lost", lost.Load())
	}
	if !gate.IsClosed() {
		t.Error("the connection is still open")
	}
	if _, err := agent.Request("assent.v1.main.ask.a1", nil, 5*time.Second); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after draining: %v", err)
	}
}

func TestDrainingGivesUpInTime(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	gate := n.Connect(t, protocol.RoleGate, "g1")
	stuck, started := make(chan struct{}), make(chan struct{})
	defer close(stuck)
	sub, err := bus.Subscribe(gate, asks, "gate", 1, func(*nats.Msg) { close(started); <-stuck }, respond("busy"))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Connect(t, protocol.RoleAgent, "a1").Publish("assent.v1.main.ask.a1", nil); err != nil {
		t.Fatal(err)
	}
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := bus.Drain(ctx, gate, sub); !errors.Is(err, bus.ErrDrain) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if !gate.IsClosed() {
		t.Error("the connection is still open")
	}
}

func TestDrainingAfterTheServerIsGone(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Quiet())
	gate := n.Connect(t, protocol.RoleGate, "g1")
	sub, err := bus.Subscribe(gate, asks, "gate", 1, respond("x"), respond("busy"))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	start := time.Now()
	if err := bus.Drain(ctx, gate, sub); err != nil || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}

func TestSubscribingToWhatIsNotAllowedFails(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Quiet())
	for role, want := range map[protocol.Role]error{
		protocol.RoleGate: nil, protocol.RoleJudge: bus.ErrNotAllowed, protocol.RoleAgent: bus.ErrNotAllowed, protocol.RoleTerminal: bus.ErrNotAllowed,
	} {
		for _, queue := range []string{"", "gate"} {
			sub, err := bus.Subscribe(n.Connect(t, role, "x"), asks, queue, 1, respond("x"), respond("x"))
			if !errors.Is(err, want) || (want == nil) != (sub != nil) {
				t.Errorf("%s with queue %q: %v", role, queue, err)
			}
			if sub != nil {
				if err := sub.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestAPanicTakesOneMessageAndNotTheService(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	sub, err := bus.Subscribe(n.Connect(t, protocol.RoleGate, "g1"), asks, "gate", 1, func(m *nats.Msg) {
		if len(m.Data) == 0 {
			panic("a test")
		}
		_ = m.Respond([]byte("done"))
	}, respond("busy"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Drain(context.Background()) }()
	agent := n.Connect(t, protocol.RoleAgent, "a1")
	if err := agent.Publish("assent.v1.main.ask.a1", nil); err != nil {
		t.Fatal(err)
	}
	nodetest.CheckFor(t, 5*time.Second, time.Millisecond, func() error {
		m, err := agent.Request("assent.v1.main.ask.a1", []byte("x"), 5*time.Second)
		if err != nil || string(m.Data) != "done" {
			return fmt.Errorf("%v %v", m, err)
		}
		return nil
	})
}

func TestSubscribingNeedsALimitAndHandlers(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		second(bus.Subscribe(nil, asks, "", 0, respond(""), respond(""))),
		second(bus.Subscribe(nil, asks, "", 1, nil, respond(""))),
		second(bus.Subscribe(nil, asks, "", 1, respond(""), nil)),
	} {
		if err == nil {
			t.Error("taken")
		}
	}
}

func second(_ *bus.Sub, err error) error { return err }

func TestGoroutinesWaitForTheNextMessageUpToABound(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	const burst = 3 * bus.MaxIdle
	release := make(chan struct{})
	sub, err := bus.Subscribe(n.Connect(t, protocol.RoleGate, "g1"), asks, "gate", burst, func(m *nats.Msg) {
		if len(m.Data) > 0 {
			panic("broken")
		}
		<-release
		_ = m.Respond(nil)
	}, respond("busy"))
	if err != nil {
		t.Fatal(err)
	}
	agent := n.Connect(t, protocol.RoleAgent, "a1")
	ask := func(body []byte, wait time.Duration) error {
		_, err := agent.Request("assent.v1.main.ask.a1", body, wait)
		return err
	}
	idle := func(want int) {
		t.Helper()
		nodetest.CheckFor(t, 5*time.Second, time.Millisecond, func() error {
			if sub.Idle() != want || sub.Busy() > 0 {
				return fmt.Errorf("%d wait, %d busy", sub.Idle(), sub.Busy())
			}
			return nil
		})
	}
	var wg sync.WaitGroup
	for range burst {
		wg.Go(func() {
			if err := ask(nil, 10*time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	nodetest.CheckFor(t, 5*time.Second, time.Millisecond, func() error {
		if sub.Busy() != burst {
			return fmt.Errorf("%d busy", sub.Busy())
		}
		return nil
	})
	close(release)
	wg.Wait()
	idle(bus.MaxIdle)
	// One that panicked, and one after another, leave as many as were there.
	_ = ask([]byte("x"), 50*time.Millisecond)
	for range 10 {
		if err := ask(nil, 10*time.Second); err != nil {
			t.Error(err)
		}
	}
	idle(bus.MaxIdle)
	if err := sub.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	idle(0)
}
