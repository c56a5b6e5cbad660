package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/pkg/protocol"
)

// TestALinkMayComeAndGo: whoever starts, stops and starts again is asked from the
// next ask on. The gate is not restarted, and the record says what it saw.
func TestALinkMayComeAndGo(t *testing.T) {
	t.Parallel()
	r := newRig(t, chainPolicy("one"))
	r.denying()
	g := r.gate("g1")
	a := r.agent("ci")
	missing := func(when string) {
		t.Helper()
		ask := a.bash("make")
		d := a.decide(ask)
		want(t, d, deny, protocol.NoApprover)
		wantTrail(t, d, "one=defer/unregistered")
		if n := r.count(ask.ID, protocol.EventChainUnregistered); n != 1 {
			t.Errorf("%s: %d records of a link that is not there", when, n)
		}
	}
	there := func(when, reason string) {
		t.Helper()
		ask := a.bash("make")
		d := a.decide(ask)
		want(t, d, deny, protocol.DeniedByLink)
		if d.Reason != reason {
			t.Errorf("%s: %q", when, d.Reason)
		}
		if got := r.events(ask.ID); !slices.Contains(got, protocol.EventChainResolved) || slices.Contains(got, protocol.EventChainUnregistered) {
			t.Errorf("%s: events %v", when, got)
		}
	}
	missing("before it was ever started")
	first := r.Connect(t, protocol.RoleJudge, "j1")
	r.linkOn(first, "one", always("deny", "the first"))
	r.announce(first, "one", g)
	there("started late", "the first")
	first.Close()
	missing("while it is stopped")
	second := r.Connect(t, protocol.RoleJudge, "j2")
	r.linkOn(second, "one", always("deny", "the second"))
	r.announce(second, "one", g)
	there("started again", "the second")
	g.inForce(r.put(strings.Replace(chainPolicy("two", "one"), `"900ms"`, `"2s"`, 1)))
	ask := a.bash("make")
	d := a.decide(ask)
	wantTrail(t, d, "two=defer/unregistered one=deny")
}

// TestAWorkerThatDiesIsFollowedByAnother: it took the ask and is gone, with or
// without having said so; the gate hears nothing from it, and never asks a third.
func TestAWorkerThatDiesIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		dying func(c linkCall)
		trail string
		asked int
	}{
		"before it accepted: another is asked": {func(c linkCall) { c.nc.Close() }, "one=deny", 2},
		"after it accepted: none is":           {func(c linkCall) { c.accept(); c.nc.Close() }, "one=defer/timeout", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, chainPolicy("one"))
			r.denying()
			r.gate("g1")
			var n counter
			serve := func(c linkCall) {
				if n.next() == 1 {
					row.dying(c)
					return
				}
				c.accept()
				c.verdict("deny", "no", "")
			}
			for _, name := range []string{"j1", "j2", "j3"} {
				r.linkOn(r.Connect(t, protocol.RoleJudge, name), "one", serve)
			}
			a := r.agent("ci")
			wantTrail(t, a.decide(a.bash("make")), row.trail)
			if got := int(n.n.Load()); got != row.asked {
				t.Errorf("%d workers were asked, want %d", got, row.asked)
			}
		})
	}
}

// TestAnAttemptThatComesToNothingLeavesTheOther: while one worker is at work, the
// other's broken answer does not speak for the link.
func TestAnAttemptThatComesToNothingLeavesTheOther(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		second func(c linkCall)
		trail  string
	}{
		"junk of the second":      {func(c linkCall) { c.reply("yes!") }, "one=deny"},
		"an error of the second":  {func(c linkCall) { c.header(protocol.HeaderErrorCode, "500") }, "one=deny"},
		"a verdict of the second": {func(c linkCall) { c.verdict("defer", "", "over_budget") }, "one=defer/over_budget"},
		"silence of the second":   {func(linkCall) {}, "one=deny"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, chainPolicy("one"))
			r.denying()
			r.gate("g1")
			var n counter
			first := make(chan linkCall, 1)
			asked := make(chan struct{})
			serve := func(c linkCall) {
				if n.next() == 1 {
					first <- c
					return
				}
				row.second(c)
				close(asked)
			}
			r.link("one", serve)
			a := r.agent("ci")
			done := make(chan protocol.Decision, 1)
			go func() { d, _ := a.follow(a.bash("make")); done <- d }()
			c := receive(t, first)
			<-asked
			flush(t, c.nc)               // what the second said is on its way before the first speaks
			if row.trail == "one=deny" { // else the first stays silent, and the second's word ends it
				c.verdict("deny", "no", "")
			}
			wantTrail(t, receive(t, done), row.trail)
		})
	}
}

// TestTheChainIsResolvedOnRecordBeforeALinkRuns, once, also when a gate dies in
// between and another one takes the ask over.
func TestTheChainIsResolvedOnRecordBeforeALinkRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, strings.Replace(chainPolicy("one"), `"900ms"`, `"20s"`, 1))
	r.denying()
	g := r.gate("g1")
	nc := r.Connect(t, protocol.RoleJudge, "j")
	calls := make(chan linkCall, 8)
	seen := make(chan []string, 8)
	r.linkOn(nc, "one", func(c linkCall) { seen <- r.events(c.Ask.ID); c.accept(); calls <- c })
	r.announce(nc, "one", g)
	a := r.agent("ci")
	ask := a.bash("make")
	if h := a.once(ask); h.progress == nil { // nobody is asking when the gate dies
		t.Fatalf("heard %+v", h)
	}
	receive(t, calls)
	if got := receive(t, seen); !slices.Equal(got, []string{protocol.EventChainResolved}) {
		t.Errorf("on record when the link is asked: %v", got)
	}
	r.gate("g2")
	g.kill()
	c := receive(t, calls)
	c.verdict("deny", "no", "")
	want(t, a.decide(ask), deny, protocol.DeniedByLink)
	r.settled(ask.ID)
	if n := r.count(ask.ID, protocol.EventChainResolved); n != 1 {
		t.Errorf("%d records of the chain", n)
	}
}

// TestALinkThatCannotWorkIsPassedOverAloud: it runs, takes no asks and says why.
// The record says it too, and does not list it among those that will be asked.
func TestALinkThatCannotWorkIsPassedOverAloud(t *testing.T) {
	t.Parallel()
	r := newRig(t, chainPolicy("one"))
	r.denying()
	g := r.gate("g1")
	nc := r.Connect(t, protocol.RoleJudge, "j1")
	announce := func(health string) {
		t.Helper()
		must(micro.AddService(nc, micro.Config{Name: protocol.ServiceLink, Version: "1.0.0", Metadata: map[string]string{"link": "one", "node": "main", "health": health}}))(t)
		flush(t, nc)
	}
	announce("no key\x1b[2K")
	until(t, "seen", func() error {
		g.links.resolve(t.Context(), []string{"one"})
		if got := g.links.unable("one"); !strings.HasPrefix(got, "no key") {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	a := r.agent("ci")
	ask := a.bash("make")
	d := a.decide(ask)
	wantTrail(t, d, "one=defer/unregistered")
	if !strings.HasPrefix(d.Trail[0].Reason, "no key") || strings.Contains(d.Trail[0].Reason, "\x1b") {
		t.Errorf("the trail says %q", d.Trail[0].Reason)
	}
	r.settled(ask.ID)
	for _, rec := range r.reviews(ask.ID) {
		if rec.Event == protocol.EventChainResolved || rec.Event == protocol.EventChainUnregistered && !strings.Contains(string(rec.Fields), `"health":"no key`) {
			t.Errorf("%s: %s", rec.Event, rec.Fields)
		}
	}
	// One of its workers can: the link is asked, whatever the other says.
	r.linkOn(nc, "one", always("deny", "no"))
	announce("ok")
	until(t, "seen", func() error {
		if got := g.links.unable("one"); got != "" {
			return errors.New(got)
		}
		return nil
	})
	ask = a.bash("make")
	wantTrail(t, a.decide(ask), "one=deny")
	if r.count(ask.ID, protocol.EventChainResolved) != 1 {
		t.Error("it is not on record as seen")
	}
}
