package gate

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestAnAgentThatAsksTooFastIsRefusedAndNotStored(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"allow"},"limits":{"asksPerSecond":3,"pending":2}}`)
	g := r.gate("g1")
	a, b := r.agent("ci"), r.agent("other")
	var limited []protocol.Ask
	for range 12 {
		ask := a.bash("git status")
		if d := a.decide(ask); d.Outcome == protocol.RateLimited {
			want(t, d, deny, protocol.RateLimited)
			limited = append(limited, ask)
		} else {
			want(t, d, allow, protocol.AllowedByRule)
		}
	}
	if len(limited) < 6 {
		t.Fatalf("%d of 12 refused at 3 a second", len(limited))
	}
	want(t, b.decide(b.bash("git status")), allow, protocol.AllowedByRule) // another agent's is its own
	told := 0
	for _, ask := range limited {
		if n := len(r.decisions(ask.ID)); n != 0 {
			t.Errorf("%d records of a refusal by limit", n)
		}
		told += r.count(ask.ID, protocol.EventRateLimited)
	}
	if told != 1 {
		t.Errorf("told %d times in one window", told)
	}
	t.Run("malformed asks count too", func(t *testing.T) {
		refused := false
		for range 12 {
			id := protocol.NewAskID()
			h := a.raw(id, fmt.Appendf(nil, `{"v":1,"id":%q}`, id))
			refused = refused || h.decision != nil && h.decision.Outcome == protocol.RateLimited
		}
		if !refused {
			t.Error("none was refused")
		}
	})
	t.Run("and other calls under an id that is open", func(t *testing.T) {
		r := newRig(t, `{"permission":{"*":"ask"},"terminal":{"kind":"human"},"limits":{"asksPerSecond":3}}`)
		r.person()
		r.gate("g1")
		a := r.agent("ci")
		ask := a.bash("make")
		a.pend(ask)
		refused, conflicts := 0, 0
		for range 12 {
			other := a.bash("make all")
			other.ID = ask.ID
			switch h := a.once(other); {
			case h.code() == protocol.CodeConflict:
				conflicts++
			case h.decision != nil && h.decision.Outcome == protocol.RateLimited:
				refused++
			}
		}
		if refused < 6 || conflicts == 0 || refused+conflicts != 12 {
			t.Errorf("%d of 12 refused by rate, %d as conflicts", refused, conflicts)
		}
		if h := a.once(ask); h.progress == nil {
			t.Errorf("the ask itself: %+v", h)
		}
	})
	t.Run("the id is not used up", func(t *testing.T) {
		until(t, "allowed", func() error {
			if d := a.decide(limited[0]); d.Outcome != protocol.AllowedByRule {
				return fmt.Errorf("%s", d.Outcome)
			}
			return nil
		})
	})
	t.Run("and who asks no more is forgotten", func(t *testing.T) {
		g.limits.forget(time.Now().Add(time.Hour))
		if n := len(g.limits.agents); n != 0 {
			t.Errorf("%d remembered", n)
		}
	})
}

func TestAnAgentWithTooManyOpenAsksMayNotOpenMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask","bash":{"*":"ask","git status":"allow"}},"terminal":{"kind":"human"},"limits":{"pending":4}}`)
	r.person()
	g := r.gate("g1")
	a, b := r.agent("ci"), r.agent("other")
	// All at once: those that are being opened count each other.
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open, refused []protocol.Ask
	for range 12 {
		ask := a.bash("make")
		wg.Go(func() {
			h, err := a.try(ask.ID, must(protocol.Write(ask))(t))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case h.progress != nil:
				open = append(open, ask)
			case h.decision != nil && h.decision.Outcome == protocol.RateLimited:
				refused = append(refused, ask)
			default:
				t.Errorf("got %+v", h)
			}
		})
	}
	wg.Wait()
	if len(open) != 4 || len(refused) != 8 {
		t.Fatalf("%d open, %d refused, want 4 and 8", len(open), len(refused))
	}
	t.Run("but what rules settle, it may", func(t *testing.T) {
		want(t, a.decide(a.bash("git status")), allow, protocol.AllowedByRule)
	})
	t.Run("it may go on asking for those that are open", func(t *testing.T) {
		if h := a.once(open[0]); h.progress == nil {
			t.Errorf("got %+v", h)
		}
	})
	t.Run("another agent may open its own", func(t *testing.T) { b.pend(b.bash("make")) })
	t.Run("one that was settled meanwhile gives its decision", func(t *testing.T) {
		r.answer(open[0].ID, yes())
		r.settled(open[0].ID)
		until(t, "seen", func() error {
			if _, still := g.mirror.get(open[0].ID); still {
				return fmt.Errorf("still open")
			}
			return nil
		})
		a.pend(refused[0]) // the room is taken again, by an id that was not used up
		want(t, a.decide(open[0]), allow, protocol.AllowedByHuman)
		if h := a.once(refused[1]); h.decision == nil || h.decision.Outcome != protocol.RateLimited {
			t.Errorf("one too many: %+v", h)
		}
	})
}

func TestALimitIsToldOnceAWindow(t *testing.T) {
	t.Parallel()
	l := newLimits()
	now := time.Now()
	c := call{ask: protocol.Ask{Agent: "ci"}, askedAt: now}
	s, err := policy.Compile("fleet", []byte(`{"limits":{"asksPerSecond":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	if l.tooFast(c, s) || !l.tooFast(c, s) {
		t.Fatal("the bound is not one")
	}
	for at, want := range []bool{true, false, false, false, true, false} { // every 2.5 s
		if got := l.tell("ci", now.Add(time.Duration(at)*limitWindow/4)); got != want {
			t.Errorf("%d: %v", at, got)
		}
	}
	if l.tell("nobody", now) {
		t.Error("told of an agent that never asked")
	}
}

// A hostile agent sends one ask, or one withdrawal, as often as would fill the gate.
func TestAFloodOfOneAgentLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	r.person()
	g := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	g.times.patience = standardTimes.patience // as long as each of them is kept in earnest
	g.start()
	a, b := r.agent("ci"), r.agent("other")
	ask := a.bash("make")
	a.pend(ask)
	// flood sends n bodies and returns how many were refused.
	flood := func(subject string, n int, body func() []byte) (refused int) {
		inbox := a.nc.NewRespInbox()
		replies := must(a.nc.SubscribeSync(inbox))(t)
		for range n {
			if err := a.nc.PublishRequest(subject, inbox, body()); err != nil {
				t.Fatal(err)
			}
		}
		flush(t, a.nc)
		other := b.bash("rm x") // in the middle of it
		want(t, b.decide(other), deny, protocol.DeniedByRule)
		if b.cancel(other.ID).Cancelled {
			t.Error("what is decided was withdrawn")
		}
		for {
			m, err := replies.NextMsg(200 * time.Millisecond)
			if err != nil {
				return refused
			}
			if m.Header.Get(protocol.HeaderErrorCode) != "" {
				refused++
			}
		}
	}
	flood(must(r.Subjects.Ask("ci"))(t), 100*maxWaiting, func() []byte { return must(protocol.Write(ask))(t) })
	g.waiters.mu.Lock()
	if n := len(g.waiters.ids[ask.ID]); n != maxWaiting {
		t.Errorf("%d wait for one ask", n)
	}
	g.waiters.mu.Unlock()
	unknown := func() []byte { return must(protocol.Write(protocol.Cancel{Ask: protocol.NewAskID()}))(t) }
	if refused := flood(must(r.Subjects.Cancel("ci"))(t), 300, unknown); refused < 100 {
		t.Errorf("%d of 300 withdrawals were refused", refused)
	}
	r.answer(ask.ID, yes())
	want(t, a.decide(ask), allow, protocol.AllowedByHuman)
	mine := b.bash("make")
	b.pend(mine)
	if !b.cancel(mine.ID).Cancelled {
		t.Error("not withdrawn")
	}
}
