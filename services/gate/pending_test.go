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
		want(t, receive(t, got), allow, protocol.AllowedByHuman)
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
	if gate := receive(t, reached); !strings.Contains(gate, ".g1.") {
		t.Fatalf("asked by %s", gate)
	}
	r.stored(ask.ID)
	g1.kill()
	r.gate("g2")
	if gate := receive(t, reached); !strings.Contains(gate, ".g2.") {
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
