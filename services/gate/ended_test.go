package gate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/assent-dev/assent/pkg/protocol"
)

func TestWhatEndedWhileNoGateRanIsSettledByTheNext(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	r.person()
	g := r.gate("g1")
	a := r.agent("ci")
	answered, withdrawn, expired, waits := a.bash("make a"), a.bash("make b"), a.bash("make c"), a.bash("make d")
	expired.MaxWaitMS = 1500
	for _, ask := range []protocol.Ask{answered, withdrawn, expired, waits} {
		if h := a.once(ask); h.progress == nil {
			t.Fatalf("got %+v", h)
		}
		r.waiting(ask.ID)
	}
	g.kill()
	r.answer(answered.ID, yes())
	must(r.open.Update(context.Background(), withdrawn.ID, func(p *protocol.Pending) error {
		p.Withdrawn = &protocol.Cancel{Ask: withdrawn.ID, Reason: "enough"}
		return nil
	}))(t)
	until(t, "its time is over", func() error {
		if item := must(r.open.Get(context.Background(), expired.ID))(t); time.Now().Before(item.Deadline) {
			return fmt.Errorf("until %s", item.Deadline)
		}
		return nil
	})
	r.gate("g2")
	// Nobody asks: they are settled all the same.
	for _, row := range []struct {
		ask     protocol.Ask
		result  protocol.FinalChoice
		outcome protocol.Outcome
	}{{answered, allow, protocol.AllowedByHuman}, {withdrawn, deny, protocol.Cancelled}, {expired, deny, protocol.Expired}} {
		r.settled(row.ask.ID)
		stored := r.decisions(row.ask.ID)
		if len(stored) != 1 {
			t.Fatalf("%s: %d records", row.outcome, len(stored))
		}
		want(t, stored[0], row.result, row.outcome)
		want(t, a.decide(row.ask), row.result, row.outcome)
	}
	if _, err := r.open.Get(context.Background(), waits.ID); err != nil {
		t.Errorf("the one that waits: %v", err)
	}
}

func TestAnExpiryIsRecordedThoughNobodyAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	r.person()
	gates := []*served{r.gate("g1"), r.gate("g2")}
	events := must(r.op.SubscribeSync(r.Subjects.All(protocol.KindEvent)))(t)
	flush(t, r.op)
	a := r.agent("ci")
	ask := a.bash("make")
	ask.MaxWaitMS = 900
	a.pend(ask)
	r.settled(ask.ID)
	stored := r.decisions(ask.ID)
	if len(stored) != 1 {
		t.Fatalf("%d records", len(stored))
	}
	want(t, stored[0], deny, protocol.Expired)
	if late := stored[0].DecidedAt.Sub(stored[0].AskedAt); late < 900*time.Millisecond || late > 5*time.Second {
		t.Errorf("expired after %s", late)
	}
	closed := 0
	for {
		m, err := events.NextMsg(2 * quick.sweep)
		if err != nil {
			break
		}
		if n, err := protocol.Read[protocol.Notice](m.Data); err == nil && n.Kind == protocol.NoticePromptClosed && n.Ask == ask.ID {
			closed++
			if n.Outcome != protocol.Expired || n.Agent != "ci" {
				t.Errorf("notice %+v", n)
			}
		}
	}
	if closed != 1 || r.count(ask.ID, protocol.EventRequestDenied) != 1 {
		t.Errorf("%d closing notices, %d records of it", closed, r.count(ask.ID, protocol.EventRequestDenied))
	}
	for _, g := range gates {
		until(t, "forgotten", func() error { return g.isEmpty() })
	}
}

// isEmpty says what the gate still holds in memory.
func (g *served) isEmpty() error {
	g.mirror.mu.Lock()
	open, count := len(g.mirror.open), len(g.mirror.count)
	g.mirror.mu.Unlock()
	g.waiters.mu.Lock()
	waiting := len(g.waiters.ids)
	g.waiters.mu.Unlock()
	g.desk.mu.Lock()
	running := len(g.desk.running)
	g.desk.mu.Unlock()
	g.capabilities.mu.Lock()
	out := len(g.capabilities.out)
	g.capabilities.mu.Unlock()
	if open+count+waiting+running+out != 0 {
		return fmt.Errorf("open %d, counts %d, waiters %d, running %d, capabilities %d", open, count, waiting, running, out)
	}
	return nil
}

func TestAnAgentWithdrawsItsOwnAskAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(`,"authorizerChain":["slow"],"linkTimeout":"9s"`))
	r.person()
	g := r.gate("g1")
	a, b := r.agent("ci"), r.agent("other")
	slow := make(chan linkCall, 8)
	r.link("slow", func(c linkCall) { c.accept(); slow <- c })
	t.Run("while a link is asked, at once", func(t *testing.T) {
		ask := a.bash("make")
		got := make(chan protocol.Decision, 2)
		for range 2 {
			go func() { d, _ := a.follow(ask); got <- d }()
		}
		receive(t, slow)
		if b.cancel(ask.ID).Cancelled {
			t.Fatal("another agent withdrew it")
		}
		began := time.Now()
		if !a.cancel(ask.ID).Cancelled {
			t.Fatal("not withdrawn")
		}
		for range 2 {
			d := receive(t, got)
			want(t, d, deny, protocol.Cancelled)
			if d.Reason != "changed my mind" {
				t.Errorf("reason %q", d.Reason)
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("waiters freed after %s", took)
		}
		r.settled(ask.ID)
		if a.cancel(ask.ID).Cancelled || len(r.decisions(ask.ID)) != 1 {
			t.Error("withdrawn twice")
		}
	})
	t.Run("while a person is asked, though another agent may not", func(t *testing.T) {
		ask := a.bash("make")
		go a.follow(ask) //nolint:errcheck // ends with the ask
		c := receive(t, slow)
		c.verdict("defer", "", "")
		r.waiting(ask.ID)
		if b.cancel(ask.ID).Cancelled {
			t.Fatal("another agent withdrew it")
		}
		if !a.cancel(ask.ID).Cancelled {
			t.Fatal("not withdrawn")
		}
		want(t, a.decide(ask), deny, protocol.Cancelled)
	})
	t.Run("not what is answered, decided or unknown", func(t *testing.T) {
		ask := a.bash("make")
		go a.follow(ask) //nolint:errcheck // ends with the ask
		c := receive(t, slow)
		c.verdict("deny", "no", "")
		want(t, a.decide(ask), deny, protocol.DeniedByLink)
		if a.cancel(ask.ID).Cancelled || a.cancel(protocol.NewAskID()).Cancelled {
			t.Error("withdrawn")
		}
	})
	t.Run("and not with what is no cancel", func(t *testing.T) {
		for _, body := range []string{"junk", `{"v":1}`, `{"v":1,"ask":"x"}`, `{"v":2,"ask":"` + protocol.NewAskID() + `"}`} {
			m := must(a.nc.Request(must(r.Subjects.Cancel("ci"))(t), []byte(body), soon))(t)
			if f, err := protocol.Read[protocol.ErrorReply](m.Data); err != nil || f.Error.Code != protocol.CodeInvalid {
				t.Errorf("%s: %s", body, m.Data)
			}
		}
	})
	until(t, "forgotten", func() error { return g.isEmpty() })
}

// A gate died between opening an ask anew and looking whether it is decided.
func TestAnEntryMadeBehindItsDecisionAsksNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	person := r.person()
	r.gate("g1")
	a := r.agent("ci")
	ask, other := a.bash("make"), a.bash("make all")
	a.pend(ask)
	r.answer(ask.ID, yes())
	want(t, a.decide(ask), allow, protocol.AllowedByHuman)
	r.settled(ask.ID)
	r.entry(ask)
	r.entry(other) // never decided: somebody is asked
	r.settled(ask.ID)
	r.waiting(other.ID)
	if person.times(ask.ID) != 1 || person.times(other.ID) != 1 || len(r.decisions(ask.ID)) != 1 {
		t.Errorf("asked %d times about one and %d about the other, %d records", person.times(ask.ID), person.times(other.ID), len(r.decisions(ask.ID)))
	}
	want(t, a.decide(ask), allow, protocol.AllowedByHuman)
}

// A gate died between recording a decision and taking the entry away, and what
// decided holds no more.
func TestWhatIsDecidedComesBackToNobody(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*protocol.Pending){
		"from before a person":          func(*protocol.Pending) {},
		"from between two links":        func(p *protocol.Pending) { p.Taken, p.Stage = time.Time{}, "link:two" },
		"that was closed to be settled": func(p *protocol.Pending) { p.Stage = protocol.StageSettling },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, humanPolicy(`,"authorizerChain":["one","two"]`))
			person := r.person()
			one, two := r.link("one", always("defer", "not mine")), r.link("two", always("defer", "not mine"))
			g := r.gate("g1")
			a := r.agent("ci")
			ask := a.bash("make")
			a.pend(ask)
			entry := r.stored(ask.ID)
			frozen := r.freeze("all", g)
			want(t, r.ended(ask.ID), deny, protocol.Frozen)
			r.thaw("all", frozen, g)
			closed := r.closings()
			entry.Owner, entry.Lease = "dead", time.Now().UTC()
			if change(&entry); entry.Taken.IsZero() {
				entry.Trail = entry.Trail[:1]
			}
			must(r.open.Create(context.Background(), entry))(t)
			want(t, r.ended(ask.ID), deny, protocol.Frozen)
			want(t, a.decide(ask), deny, protocol.Frozen)
			if person.times(ask.ID) != 1 || one.times(ask.ID) != 1 || two.times(ask.ID) != 1 {
				t.Errorf("asked a person %d times, the links %d and %d times", person.times(ask.ID), one.times(ask.ID), two.times(ask.ID))
			}
			if closed(ask.ID) != 1 || r.count(ask.ID, protocol.EventRequestDenied) != 1 {
				t.Errorf("closed %d times, %q", closed(ask.ID), r.events(ask.ID))
			}
		})
	}
}

// A person may have many days; the id of the ask is as old as the wait.
func TestAnAskIsAskedOnAndEndsThoughItsIdIsOld(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	r.person()
	r.gate("g1")
	a, c := r.agent("ci"), r.child("edge")
	old := func(ask protocol.Ask) protocol.Ask {
		ask.ID = ulid.MustNew(ulid.Timestamp(time.Now().Add(-2*protocol.MaxAskAge)), ulid.DefaultEntropy()).String()
		return ask
	}
	mine, theirs := old(a.bash("make")), old(c.bash("ci", "make"))
	for _, ask := range []protocol.Ask{mine, theirs} {
		r.entry(ask)
		r.waiting(ask.ID)
	}
	if h := a.once(mine); h.progress == nil {
		t.Fatalf("got %+v", h)
	}
	if h := c.once(theirs); h.progress == nil {
		t.Fatalf("got %+v", h)
	}
	for _, ask := range []protocol.Ask{mine, theirs} {
		r.answer(ask.ID, yes())
		r.settled(ask.ID)
	}
	want(t, a.decide(mine), allow, protocol.AllowedByHuman)
	want(t, c.decide(theirs), allow, protocol.AllowedByHuman)
	t.Run("but another call under it does not, nor one that was never asked", func(t *testing.T) {
		other := a.bash("make all")
		other.ID = mine.ID
		if h := a.once(other); h.code() != protocol.CodeConflict {
			t.Errorf("got %+v", h)
		}
		want(t, a.decide(old(a.bash("make"))), deny, protocol.Invalid)
		if h := c.once(old(c.bash("ci", "make"))); h.code() != protocol.CodeInvalid {
			t.Errorf("got %+v", h)
		}
	})
}
