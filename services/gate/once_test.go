package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// decideAt asks one gate, and no other, until the ask is decided.
func (g *served) decideAt(ask protocol.Ask) (protocol.Decision, error) {
	ask = must(protocol.ReadAskFor(ask.Agent, must(protocol.Write(ask))(g.t)))(g.t) // as it comes off the wire
	c := call{ask: ask, digest: must(ask.Digest(nodetest.Name))(g.t), askedAt: time.Now()}
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); {
		r, err := g.Decide(context.Background(), c)
		if err != nil {
			return protocol.Decision{}, err
		}
		if r.decision != nil {
			return *r.decision, nil
		}
	}
	return protocol.Decision{}, fmt.Errorf("gate %s does not decide %s within %s", g.name, ask.ID, soon)
}

// However an ask ends, everyone who waits for it hears the same decision, at
// whichever gate, and its prompt is closed once.
func TestEachEndFreesEveryWaiterAtEveryGate(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanGrants)
	person := r.person()
	gates := []*served{r.gate("g1"), r.gate("g2"), r.gate("g3")}
	a := r.agent("ci")
	for _, row := range []struct {
		name    string
		command string
		outcome protocol.Outcome
		wait    time.Duration
		end     func(ask protocol.Ask)
	}{
		{"a person allows", "make it", protocol.AllowedByHuman, 0, func(ask protocol.Ask) { r.answer(ask.ID, yes()) }},
		{"a person denies", "make it", protocol.DeniedByHuman, 0, func(ask protocol.Ask) { r.answer(ask.ID, no("not now")) }},
		{"its agent withdraws it", "make it", protocol.Cancelled, 0, func(ask protocol.Ask) { a.cancel(ask.ID) }},
		{"its time is over", "make it", protocol.Expired, 2 * time.Second, func(protocol.Ask) {}},
		{"the like is granted", "make it", protocol.AllowedByGrant, 0, func(protocol.Ask) {
			want(t, r.give(a, a.bash("make like"), granting(protocol.ScopeSession, "make *")), allow, protocol.AllowedByHuman)
		}},
		{"a policy denies it", "cargo build", protocol.DeniedByRule, 0, func(protocol.Ask) {
			r.put(strings.Replace(humanGrants, `"deploy *"`, `"cargo *":"deny","deploy *"`, 1))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			closed := r.closings()
			ask := a.bash(row.command)
			ask.MaxWaitMS = row.wait.Milliseconds()
			heard := make(chan protocol.Decision, 2*len(gates))
			for range 2 {
				for _, g := range gates {
					go func() {
						d, err := g.decideAt(ask)
						if err != nil {
							t.Errorf("gate %s: %v", g.name, err)
						}
						heard <- d
					}()
				}
			}
			r.waiting(ask.ID)
			for _, g := range gates {
				until(t, "waits", func() error {
					if !g.waiters.waiting(ask.ID) {
						return errors.New("nobody waits at " + g.name)
					}
					return nil
				})
			}
			row.end(ask)
			stored := r.ended(ask.ID)
			if stored.Outcome != row.outcome {
				t.Fatalf("on record is %s, want %s", stored.Outcome, row.outcome)
			}
			for range 2 * len(gates) {
				if d := receive(t, heard); d.Outcome != row.outcome || d.Gate != stored.Gate || !d.DecidedAt.Equal(stored.DecidedAt) {
					t.Errorf("somebody heard %s of %s at %s, on record is %s at %s", d.Outcome, d.Gate, d.DecidedAt, stored.Gate, stored.DecidedAt)
				}
			}
			if person.times(ask.ID) != 1 || closed(ask.ID) != 1 {
				t.Errorf("put to a person %d times, closed %d times", person.times(ask.ID), closed(ask.ID))
			}
		})
	}
	for _, g := range gates {
		until(t, "forgotten", func() error { return g.isEmpty() })
	}
}

// An id belongs to one call of one agent, at every gate and in every state.
func TestAnIdIsOneCallsAtEveryGate(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	r.person()
	gates := []*served{r.gate("g1"), r.gate("g2"), r.gate("g3")}
	a, b := r.agent("ci"), r.agent("other")
	conflicts := func(t *testing.T, ask protocol.Ask) {
		t.Helper()
		input, cwd, session := a.bash("make install"), ask, ask
		input.ID, cwd.Cwd, session.Session.ID = ask.ID, "/elsewhere", "s2"
		another := b.bash("make")
		another.ID = ask.ID
		for name, other := range map[string]protocol.Ask{"input": input, "directory": cwd, "session": session, "agent": another} {
			for _, g := range gates {
				if d, err := g.decideAt(other); !errors.Is(err, errConflict) {
					t.Errorf("another %s at %s: %v, %+v", name, g.name, err, d)
				}
			}
		}
	}
	ask := a.bash("make")
	t.Run("while it waits", func(t *testing.T) {
		a.pend(ask)
		for _, g := range gates { // each mirror has it
			until(t, "seen", func() error {
				if _, open := g.mirror.get(ask.ID); !open {
					return errors.New("not seen by " + g.name)
				}
				return nil
			})
		}
		conflicts(t, ask)
	})
	t.Run("when it is decided", func(t *testing.T) {
		r.answer(ask.ID, yes())
		r.settled(ask.ID)
		conflicts(t, ask)
	})
	for _, g := range gates {
		d, err := g.decideAt(ask)
		if err != nil {
			t.Fatal(err)
		}
		want(t, d, allow, protocol.AllowedByHuman)
	}
	if len(r.decisions(ask.ID)) != 1 {
		t.Errorf("%d records", len(r.decisions(ask.ID)))
	}
}
