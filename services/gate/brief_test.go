package gate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

// writes is how often the bucket of pending asks has been written.
func (r *rig) writes() uint64 {
	r.t.Helper()
	stream := must(r.js.Stream(context.Background(), "KV_"+protocol.BucketPending))(r.t)
	return must(stream.Info(context.Background()))(r.t).State.LastSeq
}

// gateThatStores is a gate that has an open ask in its memory alone for as long.
func (r *rig) gateThatStores(name string, after time.Duration) *served {
	r.t.Helper()
	g := r.newGate(name, r.Connect(r.t, protocol.RoleGate, name))
	g.times.brief = after
	g.start()
	return g
}

func TestWhatALinkDecidesAtOnceIsNeverStored(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"authorizerChain":["first","second"],"modelDelegation":{"allowedSurfaces":["bash"]},"terminal":{"kind":"human"}}`)
	person := r.person()
	g := r.gate("g1")
	r.link("first", always("defer", "not mine"))
	r.link("second", func(c linkCall) {
		c.accept()
		if strings.Contains(string(c.Ask.Tool.Input), "rm") {
			c.verdict("deny", "not here", "")
			return
		}
		c.verdict("allow", "", "")
	})
	a := r.agent("ci")
	before := r.writes()
	for command, row := range map[string]struct {
		result       protocol.FinalChoice
		outcome      protocol.Outcome
		trail, event string
	}{"make": {allow, protocol.AllowedByLink, "first=defer second=allow", protocol.EventRequestApproved}, "rm x": {deny, protocol.DeniedByLink, "first=defer second=deny", protocol.EventRequestDenied}} {
		ask := a.bash(command)
		h := a.once(ask)
		if h.decision == nil {
			t.Fatalf("%s: answered %+v", command, h)
		}
		want(t, *h.decision, row.result, row.outcome)
		if d := r.ended(ask.ID); d.DecidedAt != h.decision.DecidedAt {
			t.Errorf("%s: the answer is not the record", command)
		}
		wantTrail(t, *h.decision, row.trail)
		until(t, "told", func() error { return has(r.events(ask.ID), row.event) })
	}
	if after := r.writes(); after != before {
		t.Errorf("%d entries were written", after-before)
	}
	ask := a.bash("ls") // and again under one id
	first, again := a.decide(ask), a.decide(ask)
	if first.DecidedAt != again.DecidedAt || len(r.decisions(ask.ID)) != 1 || person.times(ask.ID) != 0 {
		t.Errorf("decided at %s and %s", first.DecidedAt, again.DecidedAt)
	}
	until(t, "forgotten", func() error { return g.isEmpty() })
}

// Nobody but a link has heard of the ask yet, and its agent takes it back: at the
// gate that has it, or at the other one.
func TestAnAskThatIsNotStoredYetIsWithdrawn(t *testing.T) {
	t.Parallel()
	r := newRig(t, chainPolicy("slow"))
	asked := make(chan linkCall, 64)
	r.link("slow", func(c linkCall) { c.accept(); asked <- c })
	gates := []*served{r.gate("g1"), r.gate("g2")}
	a, b := r.agent("ci"), r.agent("other")
	for range 12 {
		ask := a.bash("make")
		got := make(chan protocol.Decision, 1)
		go func() { d, _ := a.follow(ask); got <- d }()
		receive(t, asked)
		if b.cancel(ask.ID).Cancelled {
			t.Fatal("another agent withdrew it")
		}
		if !a.cancel(ask.ID).Cancelled {
			t.Fatal("not withdrawn")
		}
		want(t, receive(t, got), deny, protocol.Cancelled)
	}
	for _, g := range gates {
		until(t, "forgotten", func() error { return g.isEmpty() })
	}
}

func TestAFreezeEndsAnAskThatIsNotStoredYet(t *testing.T) {
	t.Parallel()
	r := newRig(t, chainPolicy("slow"))
	asked := make(chan linkCall, 4)
	r.link("slow", func(c linkCall) { c.accept(); asked <- c })
	g := r.gateThatStores("g1", soon) // too late to be seen
	a := r.agent("ci")
	ask := a.bash("make")
	got := make(chan protocol.Decision, 1)
	go func() { d, _ := a.follow(ask); got <- d }()
	receive(t, asked)
	before := r.writes()
	r.freeze("all", g)
	want(t, receive(t, got), deny, protocol.Frozen)
	if r.writes() != before {
		t.Error("it was stored")
	}
	until(t, "forgotten", func() error { return g.isEmpty() })
}

// One ask comes to two gates at the same moment. One decides it by a link; the
// other had looked for a decision before there was one.
func TestAnEntryBehindADecisionThatWasNeverStoredGoes(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"authorizerChain":["one"],"modelDelegation":{"allowedSurfaces":["bash"]},"terminal":{"kind":"human"}}`)
	person := r.person()
	r.link("one", always("allow", ""))
	r.gate("g1")
	a := r.agent("ci")
	ask, open := a.bash("make"), a.bash("make all")
	want(t, a.decide(ask), allow, protocol.AllowedByLink)
	for _, ask := range []protocol.Ask{ask, open} {
		entry := r.entryOf(ask)
		entry.Owner, entry.Lease = "elsewhere", time.Now().UTC().Add(time.Hour) // that gate lives
		must(r.open.Create(context.Background(), entry))(t)
	}
	r.settled(ask.ID)
	if _, err := r.open.Get(context.Background(), open.ID); err != nil {
		t.Errorf("an ask that nobody decided went with it: %v", err)
	}
	if person.times(ask.ID) != 0 || len(r.decisions(ask.ID)) != 1 {
		t.Errorf("a person was asked %d times, %d records", person.times(ask.ID), len(r.decisions(ask.ID)))
	}
}

// The same at two gates that run, many times: one record, nobody is asked, and
// nothing is left.
func TestTwoGatesThatHaveAnAskAtOnceEndWithOneRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"authorizerChain":["one"],"modelDelegation":{"allowedSurfaces":["bash"]},"terminal":{"kind":"human"}}`)
	person := r.person()
	gates := []*served{r.gateThatStores("g1", 3*time.Millisecond), r.gateThatStores("g2", 3*time.Millisecond)}
	r.link("one", func(c linkCall) {
		c.accept()
		if strings.Contains(c.Query, ".g2.") {
			time.Sleep(2 * time.Millisecond) // about as long as it takes to be stored
		}
		c.verdict("allow", "", "")
	})
	a := r.agent("ci")
	for range 40 {
		ask := a.bash("make")
		c := call{ask: ask, digest: must(ask.Digest(r.Name()))(t), askedAt: time.Now()}
		heard := make([]reply, 2)
		var wg sync.WaitGroup
		for i, g := range gates {
			wg.Go(func() {
				r, err := g.Decide(context.Background(), c)
				if err != nil {
					t.Errorf("gate %d: %v", i, err)
				}
				heard[i] = r
			})
		}
		wg.Wait()
		r.settled(ask.ID)
		for i, h := range heard {
			if h.decision == nil || h.decision.DecidedAt != r.decisions(ask.ID)[0].DecidedAt {
				t.Errorf("gate %d answered %+v", i, h)
			}
		}
		if n := len(r.decisions(ask.ID)); n != 1 || person.times(ask.ID) != 0 {
			t.Fatalf("%d records, a person was asked %d times", n, person.times(ask.ID))
		}
	}
	for _, g := range gates {
		until(t, "forgotten", func() error { return g.isEmpty() })
	}
}

// What cannot be stored is refused, and frees its place.
func TestAnAskThatCannotBeStoredIsDenied(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"authorizerChain":["slow"],"terminal":{"kind":"human"},"limits":{"pending":1}}`)
	r.person()
	g := r.gate("g1")
	r.link("slow", func(c linkCall) { c.accept() })
	r.bound("KV_"+protocol.BucketPending, 1)
	a := r.agent("ci")
	for range 2 { // one after another there is room for each
		h := a.once(a.bash("make"))
		if h.decision == nil {
			t.Fatalf("answered %+v", h)
		}
		want(t, *h.decision, deny, protocol.Unavailable)
		until(t, "forgotten", func() error { return g.isEmpty() })
	}
	r.bound("KV_"+protocol.BucketPending, -1)
	ask := a.bash("make")
	if h := a.once(ask); h.progress == nil {
		t.Fatalf("answered %+v", h)
	}
	r.stored(ask.ID)
}

// A gate dies over an ask that only a link has heard of. Its adapter asks the next
// gate, with the same id.
func TestAnAskOutlivesAGateThatHadNotStoredIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"authorizerChain":["one"],"modelDelegation":{"allowedSurfaces":["bash"]},"terminal":{"kind":"human"}}`)
	asked := make(chan linkCall, 4)
	r.link("one", func(c linkCall) { c.accept(); asked <- c })
	g1 := r.gateThatStores("g1", soon)
	a := r.agent("ci")
	ask := a.bash("make")
	data := must(protocol.Write(ask))(t)
	go a.try(ask.ID, data) //nolint:errcheck // its gate dies
	receive(t, asked)
	g1.kill()
	if err := r.unstored(ask.ID); err != nil {
		t.Fatal(err)
	}
	r.gate("g2")
	got := make(chan protocol.Decision, 1)
	go func() { d, _ := a.follow(ask); got <- d }()
	c := receive(t, asked)
	c.verdict("allow", "", "")
	want(t, receive(t, got), allow, protocol.AllowedByLink)
	if n := len(r.decisions(ask.ID)); n != 1 {
		t.Errorf("%d records", n)
	}
}

// A gate that leaves over such an ask stores it for another one.
func TestAGateThatLeavesStoresWhatItHad(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"authorizerChain":["one"],"modelDelegation":{"allowedSurfaces":["bash"]},"terminal":{"kind":"human"}}`)
	asked := make(chan linkCall, 4)
	r.link("one", func(c linkCall) { c.accept(); asked <- c })
	g1 := r.gateThatStores("g1", soon)
	a := r.agent("ci")
	ask := a.bash("make")
	heard := make(chan heard, 1)
	go func() { h, _ := a.try(ask.ID, must(protocol.Write(ask))(t)); heard <- h }()
	receive(t, asked)
	g1.stop()
	if h := receive(t, heard); h.progress == nil {
		t.Errorf("answered %+v", h)
	}
	if p := r.stored(ask.ID); p.Owner != "" {
		t.Errorf("left to %q", p.Owner)
	}
	r.gate("g2")
	c := receive(t, asked)
	c.verdict("allow", "", "")
	want(t, r.ended(ask.ID), allow, protocol.AllowedByLink)
}

func (r *rig) unstored(id string) error {
	if item, err := r.open.Get(context.Background(), id); err == nil {
		return fmt.Errorf("stored at %s", item.Stage)
	}
	return nil
}
