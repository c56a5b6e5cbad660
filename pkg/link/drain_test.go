package link_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestDrainLosesNone(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	const asks = 40
	begun := make(chan struct{}, asks)
	w := serve(t, n, func(ctx context.Context, _ link.Request) (protocol.Verdict, error) {
		begun <- struct{}{}
		select {
		case <-time.After(150 * time.Millisecond): // work, under way when the link is told to leave
			return link.Deny("no"), nil
		case <-ctx.Done():
			return link.Defer(""), ctx.Err()
		}
	}, link.Concurrency(asks))
	type result struct {
		v   protocol.Verdict
		err error
	}
	results := make(chan result, asks)
	for range asks {
		go func() { v, err := g.ask(g.request(5 * time.Second)); results <- result{v, err} }()
	}
	<-begun
	if err := w.stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	answered, never := 0, 0
	for range asks {
		switch r := <-results; {
		case r.err == nil && r.v.Verdict == protocol.ChoiceDeny:
			answered++
		case errors.Is(r.err, nats.ErrNoResponders):
			never++ // came after the link had left: the gate knows at once
		default:
			t.Errorf("lost: %+v, %v", r.v, r.err)
		}
	}
	if answered == 0 || answered+never != asks {
		t.Errorf("%d answered, %d came too late, of %d", answered, never, asks)
	}
	if _, err := g.ask(g.request(time.Second)); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after it left: %v", err)
	}
	if m := running(t, n); len(m) != 0 {
		t.Errorf("after it left it is still announced: %v", m)
	}
}

func TestGraceEndsTheWork(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	begun, release := make(chan struct{}), make(chan struct{})
	w := serve(t, n, func(ctx context.Context, r link.Request) (protocol.Verdict, error) {
		close(begun)
		if r.Ask.AgentName == "deaf" {
			<-release
		}
		<-ctx.Done()
		return link.Allow(""), nil
	}, link.Grace(50*time.Millisecond))
	verdict := make(chan protocol.Verdict, 1)
	r := g.request(time.Minute)
	r.Ask.AgentName = "deaf"
	go func() { v, _ := g.ask(r); verdict <- v }()
	<-begun
	if err := w.stop(); !errors.Is(err, link.ErrStuck) {
		t.Errorf("Serve with a link that does not return: %v", err)
	}
	if v := <-verdict; v.Verdict != protocol.ChoiceDefer || v.Failure != "timeout" {
		t.Errorf("its gate hears %+v", v)
	}
	close(release)
}

func TestConnectionThatCloses(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	nc := n.Connect(t, protocol.RoleJudge, "j1")
	w := serveOn(t, nc, always(link.Defer("")))
	nc.Close()
	if err := w.wait(); !errors.Is(err, link.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
}
