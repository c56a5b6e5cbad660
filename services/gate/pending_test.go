package gate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestARepeatedAskJoinsAtTheOtherGate(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	person := r.person()
	g1 := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make")
	a.pend(ask)
	r.gate("g2")
	g1.stop() // what comes now comes to the other gate
	h := a.once(ask)
	if h.progress == nil || h.progress.Stage != "terminal:human" || h.took < quick.patience {
		t.Fatalf("want to join, got %+v", h)
	}
	got := make(chan protocol.Decision, 3)
	for range 3 { // the same call, asked by several
		go func() { d, _ := a.follow(ask); got <- d }()
	}
	r.answer(ask.ID, yes())
	for range 3 {
		want(t, <-got, allow, protocol.AllowedByHuman)
	}
	if person.times(ask.ID) != 1 || len(r.decisions(ask.ID)) != 1 {
		t.Errorf("asked %d times, %d records", person.times(ask.ID), len(r.decisions(ask.ID)))
	}
	t.Run("another call under the id does not join", func(t *testing.T) {
		ask := a.bash("make")
		a.pend(ask)
		other := a.bash("make install")
		other.ID = ask.ID
		learnsNothing(t, a.once(other), "make")
		r.answer(ask.ID, no("no"))
		want(t, a.decide(ask), deny, protocol.DeniedByHuman)
	})
}

// Two gates get one ask at the same moment: each directly, as no queue group
// would do it on purpose and a retry does by accident.
func TestTwoGatesThatRaceMakeOneRecord(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		command string
		outcome protocol.Outcome
	}{
		{"over what a rule settles", "git status", protocol.AllowedByRule},
		{"over what nobody settles", "make", protocol.NoApprover},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, plainPolicy)
			r.denying()
			gates := []*served{r.gate("g1"), r.gate("g2")}
			a := r.agent("ci")
			for range 20 {
				ask := a.bash(row.command)
				c := call{ask: ask, digest: must(ask.Digest(nodetest.Name))(t), askedAt: time.Now()}
				got := make([]protocol.Decision, len(gates))
				var wg sync.WaitGroup
				for i, g := range gates {
					wg.Go(func() {
						for deadline := time.Now().Add(soon); time.Now().Before(deadline); {
							rep, err := g.Decide(context.Background(), c)
							if err != nil {
								t.Errorf("gate %d: %v", i, err)
								return
							}
							if rep.decision != nil {
								got[i] = *rep.decision
								return
							}
						}
					})
				}
				wg.Wait()
				if got[0].Outcome != row.outcome || !got[0].DecidedAt.Equal(got[1].DecidedAt) || got[0].Gate != got[1].Gate {
					t.Fatalf("two answers: %+v and %+v", got[0], got[1])
				}
				if n := len(r.decisions(ask.ID)); n != 1 {
					t.Fatalf("%d records", n)
				}
			}
		})
	}
	t.Run("over one id for two calls, one of which is refused", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, plainPolicy)
		r.denying()
		gates := []*served{r.gate("g1"), r.gate("g2")}
		a := r.agent("ci")
		for range 10 {
			ask := a.bash("make")
			other := a.bash("git status")
			other.ID = ask.ID
			errs := make([]error, 2)
			var wg sync.WaitGroup
			for i, ask := range []protocol.Ask{ask, other} {
				c := call{ask: ask, digest: must(ask.Digest(nodetest.Name))(t), askedAt: time.Now()}
				wg.Go(func() { _, errs[i] = gates[i].Decide(context.Background(), c) })
			}
			wg.Wait()
			r.settled(ask.ID)
			if n := len(r.decisions(ask.ID)); n != 1 {
				t.Fatalf("%d records", n)
			}
			if (errs[0] == nil) == (errs[1] == nil) {
				t.Fatalf("want one conflict: %v, %v", errs[0], errs[1])
			}
		}
	})
}

func TestAnotherGateTakesOverBehindTheLastLink(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"authorizerChain":["one","two"],"linkTimeout":"8s","terminal":{"kind":"human"}}`)
	person := r.person()
	g1 := r.gate("g1")
	one := r.link("one", always("defer", "not mine"))
	reached := make(chan string, 8)
	two := r.link("two", func(c linkCall) {
		c.accept()
		reached <- c.Query
		if strings.Contains(c.Query, ".g2.") {
			c.verdict("defer", "nor mine", "")
		}
	})
	a := r.agent("ci")
	ask := a.bash("make")
	go a.try(ask.ID, must(protocol.Write(ask))(t)) //nolint:errcheck // its gate dies
	if gate := <-reached; !strings.Contains(gate, ".g1.") {
		t.Fatalf("asked by %s", gate)
	}
	g1.kill()
	r.gate("g2")
	if gate := <-reached; !strings.Contains(gate, ".g2.") {
		t.Fatalf("asked by %s", gate)
	}
	r.waiting(ask.ID)
	item := must(r.open.Get(context.Background(), ask.ID))(t)
	if len(item.Trail) != 2 || item.Trail[0].Link != "one" || item.Trail[1].Link != "two" {
		t.Errorf("trail %+v", item.Trail)
	}
	if one.times(ask.ID) != 1 || two.times(ask.ID) != 2 || person.times(ask.ID) != 1 {
		t.Errorf("asked one %d, two %d, the person %d times", one.times(ask.ID), two.times(ask.ID), person.times(ask.ID))
	}
	r.answer(ask.ID, no("no"))
	d := a.decide(ask)
	want(t, d, deny, protocol.DeniedByHuman)
	wantTrail(t, d, "one=defer two=defer")
}

func TestNobodyIsPromptedTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	person := r.person()
	g := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make")
	a.pend(ask)
	for i := range 3 {
		g.kill()
		g = r.gate(fmt.Sprintf("h%d", i))
		if h := a.once(ask); h.progress == nil {
			t.Fatalf("got %+v", h)
		}
	}
	if n := person.times(ask.ID); n != 1 {
		t.Errorf("prompted %d times", n)
	}
	r.answer(ask.ID, yes())
	want(t, a.decide(ask), allow, protocol.AllowedByHuman)
}

func TestATerminalThatForgetsToMarkTheEntryPromptsNobodyTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	person := r.terminal(protocol.TerminalHuman, func(q protocol.TerminalRequest) string { return progressFor(q.Ask.ID) })
	g := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make")
	a.pend(ask)
	g.stop()
	r.gate("g2")
	if h := a.once(ask); h.progress == nil {
		t.Fatalf("got %+v", h)
	}
	if n := person.times(ask.ID); n != 1 {
		t.Errorf("prompted %d times", n)
	}
}

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
	open, count, opening := len(g.mirror.open), len(g.mirror.count), len(g.mirror.opening)
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
	if open+count+opening+waiting+running+out != 0 {
		return fmt.Errorf("open %d, counts %d and %d, waiters %d, running %d, capabilities %d", open, count, opening, waiting, running, out)
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
		<-slow
		if b.cancel(ask.ID).Cancelled {
			t.Fatal("another agent withdrew it")
		}
		began := time.Now()
		if !a.cancel(ask.ID).Cancelled {
			t.Fatal("not withdrawn")
		}
		for range 2 {
			d := <-got
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
		c := <-slow
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
		c := <-slow
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

// A stored answer is settled at once, not after a lease: the claim's own change
// must not interrupt the claim.
func TestAnAnswerIsSettledAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	r.person()
	r.gate("g1")
	r.gate("g2")
	a := r.agent("ci")
	for i := range 40 {
		ask := a.bash("make")
		go a.try(ask.ID, must(protocol.Write(ask))(t)) //nolint:errcheck // the record counts
		until(t, "taken", func() error {
			item, err := r.open.Get(context.Background(), ask.ID)
			if err == nil && item.Taken.IsZero() {
				err = fmt.Errorf("at %s", item.Stage)
			}
			return err
		})
		// Sometimes before the gate has let go of it, sometimes behind.
		began := time.Now()
		r.answer(ask.ID, yes())
		r.settled(ask.ID)
		if took := time.Since(began); took > quick.lease*3/4 {
			t.Fatalf("answer %d was settled after %s", i, took)
		}
		want(t, r.decisions(ask.ID)[0], allow, protocol.AllowedByHuman)
	}
}

func TestABrokenEntryIsNeverAYesAndStopsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	r.person()
	g := r.gate("g1")
	a := r.agent("ci")
	broken, sound := a.bash("make a"), a.bash("make b")
	a.pend(broken)
	kv := must(r.js.KeyValue(context.Background(), protocol.BucketPending))(t)
	for key, value := range map[string]string{
		broken.ID:           `{"v":1,"verdict":{"v":1,"verdict":"allow"}}`,
		protocol.NewAskID(): `junk`,
		"no-ask-id":         `{}`,
	} {
		r.write(kv, key, value)
	}
	until(t, "told", func() error { return has(r.events(broken.ID), protocol.EventGateError) })
	// The watch goes on.
	a.pend(sound)
	r.answer(sound.ID, yes())
	want(t, a.decide(sound), allow, protocol.AllowedByHuman)
	want(t, a.decide(broken), deny, protocol.Unavailable)
	if n := r.count(broken.ID, protocol.EventGateError); n > 3 {
		t.Errorf("told %d times", n)
	}
	t.Run("nor at a gate just started", func(t *testing.T) {
		g.stop()
		r.gate("g2")
		want(t, a.decide(broken), deny, protocol.Unavailable)
		ask := a.bash("make c")
		a.pend(ask)
		r.answer(ask.ID, yes())
		want(t, a.decide(ask), allow, protocol.AllowedByHuman)
	})
}

// write puts a value into the bucket of pending asks, with a terminal's rights.
func (r *rig) write(kv jetstream.KeyValue, key, value string) {
	r.t.Helper()
	must(r.term.Request("$KV."+kv.Bucket()+"."+key, []byte(value), soon))(r.t)
}

func TestAnEntryOfAnotherAskUnderAKeyIsNotThatAsk(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	r.person()
	r.gate("g1")
	a := r.agent("ci")
	mine, other := a.bash("make"), a.bash("make")
	a.pend(other)
	item := must(r.open.Get(context.Background(), other.ID))(t)
	item.Verdict = &protocol.TerminalVerdict{Ask: other.ID, Verdict: allow, Outcome: protocol.AllowedByHuman, Approver: "oncall-1"}
	kv := must(r.js.KeyValue(context.Background(), protocol.BucketPending))(t)
	r.write(kv, mine.ID, string(must(protocol.Write(item.Pending))(t)))
	want(t, a.decide(mine), deny, protocol.Unavailable)
	if h := a.once(other); h.progress == nil {
		t.Errorf("the other: %+v", h)
	}
}
