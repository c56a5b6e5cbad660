package gate

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/pkg/protocol"
)

// TestNoAllowIsRecordedBehindAConfirmedFreeze: agents ask at two gates without a
// pause while the fleet is frozen. Once both have confirmed, no allow comes into
// the stream any more, of rules or of people.
func TestNoAllowIsRecordedBehindAConfirmedFreeze(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask","bash":{"*":"ask","git status":"allow"}},"terminal":{"kind":"human"},"limits":{"asksPerSecond":10000,"pending":1000}}`)
	r.person()
	gates := []*served{r.gate("g1"), r.gate("g2")}
	for round, who := range []string{"all", "agent ci", "session s1"} {
		a := r.agent("ci")
		asking, stop := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		begun := make(chan string, 8)
		for i := range 8 {
			wg.Go(func() {
				for n := 0; asking.Err() == nil; n++ {
					ask := a.bash("git status")
					d, err := a.follow(ask)
					if err != nil || d.Outcome != protocol.AllowedByRule && d.Outcome != protocol.Frozen {
						t.Errorf("%s: %s, %v", who, d.Outcome, err)
						return
					}
					if n == 5+i {
						begun <- ask.ID
					}
				}
			})
		}
		// Answers that are stored at the same moment as the freeze.
		var open []protocol.Ask
		for range 8 {
			open = append(open, a.bash("make"))
			a.pend(open[len(open)-1])
		}
		for range 8 {
			receive(t, begun)
		}
		for _, ask := range open[:4] {
			wg.Go(func() {
				_, _ = r.open.Update(context.Background(), ask.ID, func(p *protocol.Pending) error {
					v := protocol.TerminalVerdict{Ask: ask.ID, Verdict: allow, Outcome: protocol.AllowedByHuman, Approver: "oncall-1", At: time.Now().UTC()}
					p.Verdict = &v
					return nil
				}) // the freeze may have been faster
			})
		}
		at := r.freeze(who, gates...)
		last := must(r.js.Stream(context.Background(), protocol.StreamDecisions))(t).CachedInfo().State.LastSeq
		frozen := 0
		for range 20 {
			wantFrozen(t, a.decide(a.bash("git status")))
		}
		for _, ask := range open {
			r.settled(ask.ID)
		}
		stop()
		wg.Wait()
		for m, err := range bus.ReadStream(context.Background(), r.op, protocol.StreamDecisions, last+1, "") {
			d := must(protocol.Read[protocol.Decision](must(m, err)(t).Data))(t)
			if d.Allowed() {
				t.Errorf("round %d, %s: allow %s recorded behind the freeze, at %d of %d", round, who, d.Outcome, m.Seq, last)
			}
			frozen++
		}
		if frozen < 20 {
			t.Errorf("%s: only %d decisions behind the freeze", who, frozen)
		}
		r.thaw(who, at, gates...)
	}
}

// TestAConfirmationWaitsForAllowsUnderWay: one that was looked at before the
// freeze belies it when its record comes behind it.
func TestAConfirmationWaitsForAllowsUnderWay(t *testing.T) {
	t.Parallel()
	now := time.Now()
	freeze := layers.Freezes{}.With(layers.Freeze{Frozen: layers.Fleet(), Revision: 7, Word: protocol.Freeze{Reason: incident}})
	d := protocol.Decision{Agent: "ci"}
	for _, row := range []struct {
		name      string
		end       func(done func(bool))
		settled   bool
		afterLate bool
	}{
		{"that stands", func(done func(bool)) { done(false) }, true, true},
		{"that is under way", func(func(bool)) {}, false, false},
		{"of which nobody knows whether it stands", func(done func(bool)) { done(true) }, false, true},
	} {
		f := newFreezes()
		done, _, stopped := f.pass(d)
		if stopped {
			t.Fatal("stopped by nothing")
		}
		f.swap(freeze)
		if _, by, stopped := f.pass(d); !stopped || by.Revision != 7 {
			t.Fatal("not stopped")
		}
		revision, age := f.at("freeze.all")
		if revision != 7 || f.settledBefore(age, now) {
			t.Errorf("an allow %s: revision %d; settled while it is under way", row.name, revision)
		}
		row.end(done)
		if got := f.settledBefore(age, now); got != row.settled {
			t.Errorf("an allow %s: settled %v", row.name, got)
		}
		if got := f.settledBefore(age, now.Add(2*lateRecord)); got != row.afterLate {
			t.Errorf("an allow %s: settled later %v", row.name, got)
		}
		// One that passes under the new freezes is no matter of theirs.
		f.swap(layers.Freezes{})
		_, age = f.at("freeze.all")
		if _, _, stopped := f.pass(d); stopped {
			t.Error("stopped after the thaw")
		}
		if got := f.settledBefore(age, now.Add(2*lateRecord)); got != row.afterLate {
			t.Errorf("an allow %s, and one behind it: settled %v", row.name, got)
		}
	}
}
