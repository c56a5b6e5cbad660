package bus_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// lost collects what an outbox says of messages that are not acknowledged.
type lost struct {
	mu  sync.Mutex
	all []string
}

func (l *lost) note(m *nats.Msg, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.all = append(l.all, string(m.Data))
	}
}

func (l *lost) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

func reviewOf(id string) string { return protocol.SubjectRoot + ".main.review." + id + ".gate_error" }

func TestAnOutboxKeepsTheOrderAndSaysWhatIsLost(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	nc := n.Connect(t, protocol.RoleGate, "g1")
	var failed lost
	box, err := bus.NewOutbox(nc, 8, 5*time.Second, failed.note)
	if err != nil {
		t.Fatal(err)
	}
	id := protocol.NewAskID()
	const messages = 50 // more than may be unacknowledged at once
	for i := range messages {
		if err := box.Send(&nats.Msg{Subject: reviewOf(id), Data: []byte(strconv.Itoa(i))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := box.Send(&nats.Msg{Subject: reviewOf(id), Data: []byte("refused")}, jetstream.WithExpectLastSequencePerSubject(1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := box.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if failed.count() != 1 || failed.all[0] != "refused" {
		t.Errorf("told of %v, want the one that the stream refused", failed.all)
	}
	next := 0
	for m, err := range bus.ReadStream(ctx, n.Connect(t, protocol.RoleOperator, "op"), protocol.StreamReview, 1, reviewOf(id)) {
		if err != nil || string(m.Data) != strconv.Itoa(next) {
			t.Fatalf("number %d is %q, %v", next, m.Data, err)
		}
		next++
	}
	if next != messages {
		t.Errorf("%d messages in the stream, want %d", next, messages)
	}
}

func TestAnOutboxThatNobodyEmptiesHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	nc := n.Connect(t, protocol.RoleGate, "g1")
	judge := n.Connect(t, protocol.RoleJudge, "j")
	silent, err := judge.SubscribeSync(protocol.SubjectRoot + ".main.link.silent") // takes, and never acknowledges
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Unsubscribe() //nolint:errcheck // the connection ends with the test
	if err := judge.Flush(); err != nil {
		t.Fatal(err)
	}
	var failed lost
	box, err := bus.NewOutbox(nc, 2, 700*time.Millisecond, failed.note)
	if err != nil {
		t.Fatal(err)
	}
	send := func() error { return box.Send(&nats.Msg{Subject: silent.Subject, Data: []byte("x")}) }
	began := time.Now()
	refused := 0
	for range 4 {
		if send() != nil {
			refused++
		}
	}
	if took := time.Since(began); refused == 0 || took > 5*time.Second {
		t.Errorf("%d of 4 refused after %s: two may be on their way", refused, took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := box.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("drained: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := box.Drain(ctx); err != nil {
		t.Errorf("what is not acknowledged in time is lost, and waited for no longer: %v", err)
	}
	if failed.count()+refused != 4 {
		t.Errorf("%d refused and %d told of, want 4 together", refused, failed.count())
	}
	nc.Close()
	if err := send(); err == nil {
		t.Error("sent on a connection that is closed")
	}
}
