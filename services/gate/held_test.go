package gate

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// entry creates an entry that nobody owns, which no running gate sees.
func (r *rig) entry(ask protocol.Ask) pending.Item {
	r.t.Helper()
	return must(r.open.Create(context.Background(), r.entryOf(ask)))(r.t)
}

func (r *rig) entryOf(ask protocol.Ask) protocol.Pending {
	r.t.Helper()
	now := time.Now().UTC()
	return protocol.Pending{
		Ask: ask, Via: ask.Via(), Digest: must(ask.Digest(nodetest.Name))(r.t), Node: nodetest.Name, Role: protocol.TerminalHuman,
		Stage: "terminal:human", Since: now, Deadline: now.Add(time.Hour),
	}
}

func TestOneGateOwnsAnAskAtATime(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := newRig(t, plainPolicy)
	g1, g2 := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1")), r.newGate("g2", r.Connect(t, protocol.RoleGate, "g2"))
	a := r.agent("ci")
	id := r.entry(a.bash("make")).Ask.ID
	first, err := g1.claim(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g2.claim(ctx, id); !errors.Is(err, errLost) {
		t.Errorf("claimed twice: %v", err)
	}
	if err := first.update(ctx, func(p *protocol.Pending) { p.Suggest = []string{"kept"} }); err != nil {
		t.Errorf("its owner: %v", err)
	}
	until(t, "lapsed", func() error {
		if left := time.Until(first.item().Lease); left > 0 {
			return errors.New(left.String())
		}
		return nil
	})
	second, err := g2.claim(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"a change":   first.update(ctx, func(p *protocol.Pending) { p.Stage = "stolen" }),
		"a release":  first.release(ctx),
		"an owner's": second.update(ctx, func(*protocol.Pending) {}),
	} {
		if (err != nil) != (what != "an owner's") || err != nil && !errors.Is(err, errLost) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if item := must(r.open.Get(ctx, id))(t); item.Owner != "g2" || len(item.Suggest) != 1 || item.Stage != "terminal:human" {
		t.Errorf("owner %s, stage %s", item.Owner, item.Stage)
	}
	if err := g2.pending.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := second.update(ctx, func(*protocol.Pending) {}); !errors.Is(err, errLost) || !errors.Is(err, pending.ErrGone) {
		t.Errorf("what is settled: %v", err)
	}
	if _, err := g1.claim(ctx, id); !errors.Is(err, errLost) || !errors.Is(err, pending.ErrGone) {
		t.Errorf("what is settled: %v", err)
	}
}

func TestALeaseIsRenewedWhileALinkThinks(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"authorizerChain":["one"],"linkTimeout":"9s","terminal":{"kind":"deny"}}`)
	r.denying()
	r.gate("g1")
	r.gate("g2")
	one := r.link("one", func(c linkCall) { c.accept(); wait(2500); c.verdict("deny", "no", "") })
	a := r.agent("ci")
	ask := a.bash("make")
	d := a.decide(ask)
	want(t, d, deny, protocol.DeniedByLink)
	wantTrail(t, d, "one=deny")
	if n := one.times(ask.ID); n != 1 {
		t.Errorf("asked %d times: the other gate took a live ask over", n)
	}
}

// The change by which a gate claims an answered ask shows an answered ask, and
// so interrupts the work on it. However often that happens, the claim stands.
func TestAnInterruptionDoesNotCutOffAClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	r.person()
	g := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make")
	a.pend(ask)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				g.desk.interrupt(ask.ID)
			}
		}
	})
	began := time.Now()
	r.answer(ask.ID, yes())
	r.settled(ask.ID)
	close(stop)
	wg.Wait()
	if took := time.Since(began); took > quick.lease*3/4 {
		t.Errorf("settled after %s", took)
	}
	want(t, a.decide(ask), allow, protocol.AllowedByHuman)
}

func TestAGateThatDiesBehindThePromptPromptsNobodyAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	reached, dead := make(chan string), make(chan struct{})
	person := r.terminal(protocol.TerminalHuman, func(q protocol.TerminalRequest) string {
		must(r.open.Update(context.Background(), q.Ask.ID, func(p *protocol.Pending) error { p.Taken = time.Now().UTC(); return nil }))(t)
		reached <- q.Ask.ID
		<-dead
		return progressFor(q.Ask.ID) // into nothing
	})
	g := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make")
	go a.try(ask.ID, must(protocol.Write(ask))(t)) //nolint:errcheck // its gate dies
	receive(t, reached)
	g.kill()
	close(dead)
	r.gate("g2")
	r.waiting(ask.ID) // given up by the second gate, which found it prompted
	if n := person.times(ask.ID); n != 1 {
		t.Errorf("prompted %d times", n)
	}
	r.answer(ask.ID, no("no"))
	want(t, a.decide(ask), deny, protocol.DeniedByHuman)
}
