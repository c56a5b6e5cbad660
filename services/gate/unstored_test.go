package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

const oneLink = `{"permission":{"*":"ask"},"authorizerChain":["one"],"linkTimeout":"9s","modelDelegation":{"allowedSurfaces":["bash"]},"terminal":{"kind":"human"}}`

// callOf is an ask as it comes off the wire.
func (r *rig) callOf(ask protocol.Ask) call {
	r.t.Helper()
	ask = must(protocol.ReadAskFor(ask.Agent, must(protocol.Write(ask))(r.t)))(r.t)
	return call{ask: ask, digest: must(ask.Digest(nodetest.Name))(r.t), askedAt: time.Now()}
}

// openAs opens an ask as Decide does that saw neither an open ask of the id nor a
// decision on it: another request with the id was faster by a hair.
func (g *served) openAs(c call) (reply, error) {
	g.t.Helper()
	return g.open(context.Background(), c, must(g.rule(context.Background(), c.ask))(g.t))
}

func (g *served) waitsFor(id string, n int) {
	g.t.Helper()
	until(g.t, "requests wait", func() error {
		g.waiters.mu.Lock()
		defer g.waiters.mu.Unlock()
		if have := len(g.waiters.ids[id]); have != n {
			return fmt.Errorf("%d, want %d", have, n)
		}
		return nil
	})
}

// Two calls come under one id at the same moment, and neither is stored.
func TestAnIdIsOneCallsBeforeItIsStored(t *testing.T) {
	t.Parallel()
	r := newRig(t, oneLink)
	asked := make(chan linkCall, 4)
	r.link("one", func(c linkCall) { c.accept(); asked <- c })
	g := r.gateThatStores("g1", soon)
	a, b := r.agent("ci"), r.agent("other")
	ask, another, theirs := a.bash("make"), a.bash("rm x"), b.bash("make")
	another.ID, theirs.ID = ask.ID, ask.ID
	got := make(chan protocol.Decision, 1)
	go func() { d, _ := a.follow(ask); got <- d }()
	c := receive(t, asked)
	for name, other := range map[string]protocol.Ask{"call": another, "agent": theirs} {
		if rep, err := g.openAs(r.callOf(other)); !errors.Is(err, errConflict) {
			t.Errorf("another %s: %+v %v", name, rep, err)
		}
	}
	c.verdict("allow", "", "")
	want(t, receive(t, got), allow, protocol.AllowedByLink)
	until(t, "forgotten", func() error { return g.isEmpty() })
}

// A request that looked for a decision before there was one opens its ask when it
// is decided: no link judges it again.
func TestWhatALinkHasDecidedIsPutToNoLinkAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, oneLink)
	link := r.link("one", always("allow", ""))
	g := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make")
	want(t, a.decide(ask), allow, protocol.AllowedByLink)
	until(t, "forgotten", func() error { return g.isEmpty() })
	rep, err := g.openAs(r.callOf(ask))
	if err != nil || link.times(ask.ID) != 1 {
		t.Errorf("%+v %v, judged %d times", rep, err, link.times(ask.ID))
	}
}

// Everybody who asks for an ask that cannot be stored hears so, not the one alone
// who asked first: Progress says that it is on disk.
func TestNobodyHearsProgressOfAnAskThatCannotBeStored(t *testing.T) {
	t.Parallel()
	r := newRig(t, oneLink)
	r.bound("KV_"+protocol.BucketPending, 1)
	asked := make(chan linkCall, 4)
	r.link("one", func(c linkCall) { c.accept(); asked <- c })
	g := r.gateThatStores("g1", 500*time.Millisecond)
	a := r.agent("ci")
	ask := a.bash("make")
	got := make(chan heard, 3)
	for range 3 {
		go func() { h, _ := a.try(ask.ID, must(protocol.Write(ask))(t)); got <- h }()
	}
	receive(t, asked)
	for range 3 {
		h := receive(t, got)
		if h.decision == nil {
			t.Fatalf("heard %+v of an ask that is stored nowhere", h.progress)
		}
		want(t, *h.decision, deny, protocol.Unavailable)
	}
	until(t, "forgotten", func() error { return g.isEmpty() })
}

// A gate leaves within the window, and nothing can be stored.
func TestAGateThatLeavesAndCannotStoreSaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t, oneLink)
	r.bound("KV_"+protocol.BucketPending, 1)
	asked := make(chan linkCall, 4)
	r.link("one", func(c linkCall) { c.accept(); asked <- c })
	g := r.gateThatStores("g1", 2*time.Second)
	a := r.agent("ci")
	ask := a.bash("make")
	got := make(chan heard, 2)
	for range 2 {
		go func() { h, _ := a.try(ask.ID, must(protocol.Write(ask))(t)); got <- h }()
	}
	receive(t, asked)
	g.waitsFor(ask.ID, 1)
	g.stop()
	for range 2 {
		if h := receive(t, got); h.decision == nil || h.decision.Outcome != protocol.Unavailable {
			t.Errorf("heard %+v", h)
		}
	}
	if err := g.isEmpty(); err != nil {
		t.Error(err)
	}
}

// The walk breaks the gate before the ask is stored: it is stored then, and whoever
// asks hears in time that it is pending.
func TestAnAskThatBreaksTheGateIsNotLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, oneLink)
	r.person()
	r.link("one", always("defer", ""))
	g := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	g.times.brief = soon
	whole := g.capabilities
	g.capabilities = nil // no link can be asked without
	g.start()
	a := r.agent("ci")
	ask := a.bash("make")
	c := r.callOf(ask)
	began := time.Now()
	rep, err := g.Decide(context.Background(), c)
	if took := time.Since(began); err != nil || rep.progress == nil || took > patience {
		t.Errorf("heard %+v %v after %s", rep, err, took)
	}
	r.stored(ask.ID)
	if n := g.counted("panic"); n == 0 {
		t.Error("it is silent")
	}
	g.stop()
	g.capabilities = whole
	r.gate("g2") // which does not break
	r.waiting(ask.ID)
}

func TestAnAskThatRunsOutBeforeItIsStoredExpires(t *testing.T) {
	t.Parallel()
	r := newRig(t, oneLink)
	r.link("one", func(c linkCall) { c.accept() })
	g := r.gateThatStores("g1", soon)
	a := r.agent("ci")
	before := r.writes()
	ask := a.bash("make")
	ask.MaxWaitMS = 50
	want(t, a.decide(ask), deny, protocol.Expired)
	if r.writes() != before {
		t.Error("it was stored")
	}
	until(t, "forgotten", func() error { return g.isEmpty() })
}

// An ask may wait here behind other work on its id before it is stored.
func TestAnAskIsStoredUnderAFullLease(t *testing.T) {
	t.Parallel()
	r := newRig(t, oneLink)
	g := r.gate("g1")
	c := r.callOf(r.agent("ci").bash("make"))
	p := g.newPending(c, must(g.rule(context.Background(), c.ask))(t))
	p.Lease = time.Now().Add(-time.Second)
	h := g.hold(c, p)
	if created, err := h.create(context.Background()); err != nil || !created {
		t.Fatal(created, err)
	}
	if left := time.Until(h.item().Lease); left <= 0 {
		t.Errorf("stored with a lease that is over since %s", -left)
	}
}

// An agent that loses an id to another's call neither keeps a place nor takes one
// of theirs.
func TestTheMirrorCountsAnAskForWhoeverHasIt(t *testing.T) {
	t.Parallel()
	item := func(id, agent string, revision uint64) pending.Item {
		return pending.Item{Pending: protocol.Pending{Ask: protocol.Ask{ID: id, Agent: agent}}, Revision: revision}
	}
	m := newMirror()
	m.put(item("other", "b", 1))
	m.begin(item("id", "a", 0), nil, 9)
	m.put(item("id", "b", 2)) // stored by another gate at that moment
	if m.count["a"] != 0 || m.count["b"] != 2 {
		t.Errorf("counted %v", m.count)
	}
	m.drop("id")
	if m.count["a"] != 0 || m.count["b"] != 1 {
		t.Errorf("counted %v when it is over", m.count)
	}
}

// An entry that is taken away as soon as it is made: the watch shows its end alone,
// perhaps before the gate that made it hears that it stands.
func TestAnEntryThatHasGoneBeforeItWasSeenIsNotOpen(t *testing.T) {
	t.Parallel()
	item := func(revision uint64) pending.Item {
		return pending.Item{Pending: protocol.Pending{Ask: protocol.Ask{ID: "id", Agent: "a"}}, Revision: revision}
	}
	for name, row := range map[string]struct {
		seen func(*mirror)
		open bool
	}{
		"nothing was seen":       {func(*mirror) {}, true},
		"it came":                {func(m *mirror) { m.put(item(7)) }, true},
		"it came and went":       {func(m *mirror) { m.put(item(7)); m.gone("id") }, false},
		"its end was seen alone": {func(m *mirror) { m.gone("id") }, false},
		"an earlier one went":    {func(m *mirror) { m.gone("id"); m.put(item(7)) }, true},
		"it was begun anew":      {func(m *mirror) { m.put(item(7)); m.gone("id"); m.begin(item(0), new(fate), 9) }, true},
	} {
		m, mine := newMirror(), new(fate)
		m.begin(item(0), mine, 9)
		row.seen(m)
		m.stored(item(7), mine)
		if name == "it was begun anew" && m.open["id"].stored() {
			t.Errorf("%s: it is taken for the one that has gone", name)
		}
		m.unopened("id", mine) // it is carried no longer
		if _, open := m.open["id"]; open != row.open || (len(m.count) > 0) != row.open {
			t.Errorf("%s: open %v, counted %v", name, open, m.count)
		}
	}
}

// The end of an earlier entry is seen late, when the id has been opened again.
func TestTheEndOfAnEarlierEntryEndsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, oneLink)
	asked := make(chan linkCall, 4)
	r.link("one", func(c linkCall) { c.accept(); asked <- c })
	g := r.gateThatStores("g1", soon)
	a := r.agent("ci")
	ask := a.bash("make")
	got := make(chan protocol.Decision, 1)
	go func() { d, _ := a.follow(ask); got <- d }()
	c := receive(t, asked)
	g.seen(pending.Change{ID: ask.ID, Gone: true})
	if s, open := g.mirror.get(ask.ID); !open {
		t.Errorf("forgotten: %+v", s)
	}
	c.verdict("allow", "", "")
	want(t, receive(t, got), allow, protocol.AllowedByLink)
	until(t, "forgotten", func() error { return g.isEmpty() })
}

// A child that hears Progress takes its ask for stored, whichever of its requests
// it is.
func TestAChildHearsProgressOfWhatIsStoredAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, oneLink)
	asked := make(chan linkCall, 4)
	r.link("one", func(c linkCall) { c.accept(); asked <- c })
	g := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	g.times.brief, g.times.relay, g.times.late = soon, 10*time.Millisecond, 300*time.Millisecond
	g.start()
	c := r.child("below")
	ask := c.bash("ci", "make")
	for range 2 {
		if h := c.once(ask); h.code() != protocol.CodeUnavailable {
			t.Errorf("heard %+v", h)
		}
	}
	receive(t, asked).verdict("allow", "", "")
	want(t, c.decide(ask), allow, protocol.AllowedByLink)
	until(t, "forgotten", func() error { return g.isEmpty() })
}

// What cannot be read stands in the place of an ask. It is refused, and no trace of
// it is left here.
func TestAnAskWhoseEntryIsBrokenLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, oneLink)
	r.link("one", func(c linkCall) { c.accept() })
	g := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make")
	must(r.term.Request("$KV."+protocol.BucketPending+"."+ask.ID, []byte("junk"), soon))(t)
	until(t, "seen", func() error {
		if g.counted("pending_broken") == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	h := a.once(ask)
	if h.decision == nil {
		t.Fatalf("heard %+v", h)
	}
	want(t, *h.decision, deny, protocol.Unavailable)
	until(t, "forgotten", func() error { return g.isEmpty() })
	if n := g.counted("claim"); n != 0 {
		t.Errorf("it was taken up %v times", n)
	}
}

// Two gates have an ask at once. One has put it to a terminal that is slow to
// answer when a link decides at the other: the first one lets go of it.
func TestAGateLetsGoOfWhatAnotherHasDecided(t *testing.T) {
	t.Parallel()
	r := newRig(t, oneLink)
	asked, put := make(chan linkCall, 4), make(chan string, 16)
	r.link("one", func(c linkCall) {
		c.accept()
		if strings.Contains(c.Query, ".g1.") {
			c.verdict("defer", "", "")
			return
		}
		asked <- c
	})
	r.terminal(protocol.TerminalHuman, func(q protocol.TerminalRequest) string { put <- q.Ask.ID; return "" })
	g1, g2 := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1")), r.gateThatStores("g2", soon)
	g1.times.terminal = time.Minute
	g1.start()
	a := r.agent("ci")
	ask := a.bash("make")
	got := make(chan protocol.Decision, 2)
	for _, g := range []*served{g2, g1} {
		go func() {
			d, err := g.decideAt(ask)
			if err != nil {
				t.Error(err)
			}
			got <- d
		}()
	}
	c := receive(t, asked)
	receive(t, put)
	c.verdict("allow", "", "")
	for range 2 {
		want(t, receive(t, got), allow, protocol.AllowedByLink)
	}
	nodetest.CheckFor(t, terminalTimeout/2, 5*time.Millisecond, func() error { return errors.Join(g1.isEmpty(), g2.isEmpty()) })
	if n := g1.counted("terminal"); n != 0 || len(r.decisions(ask.ID)) != 1 {
		t.Errorf("a terminal is blamed %v times, %d records", n, len(r.decisions(ask.ID)))
	}
}
