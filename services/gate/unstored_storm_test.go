package gate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Every ask comes to several gates within the moment in which it is in memory
// alone, and is withdrawn, runs out, is decided by a link or a person in that same
// moment. Whoever asks hears the one decision, and no gate is left with a trace: a
// lease is far too long here for another look to mend that.
func TestAStormOfAsksThatAreNotStoredYetLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"authorizerChain":["one","two"],"modelDelegation":{"allowedSurfaces":["bash"]},"terminal":{"kind":"human"},"limits":{"pending":64,"asksPerSecond":5000}}`)
	r.terminal(protocol.TerminalHuman, func(q protocol.TerminalRequest) string {
		_, err := r.open.Update(context.Background(), q.Ask.ID, func(p *protocol.Pending) error {
			p.Taken = time.Now().UTC()
			p.Verdict = &protocol.TerminalVerdict{Ask: q.Ask.ID, Verdict: deny, Approver: "oncall-1", Outcome: protocol.DeniedByHuman, At: p.Taken}
			return nil
		})
		if err != nil {
			return ""
		}
		return progressFor(q.Ask.ID)
	})
	some := func(n int) time.Duration { return time.Duration(rand.IntN(n)) * time.Millisecond }
	serve := func(c linkCall) {
		time.AfterFunc(some(24), func() { c.verdict([]string{"allow", "deny", "defer", "defer"}[rand.IntN(4)], "because", "") })
	}
	r.link("one", serve)
	r.link("two", serve)
	var gates []*served
	for _, name := range []string{"g1", "g2", "g3"} {
		g := r.newGate(name, r.Connect(t, protocol.RoleGate, name))
		g.times.brief, g.times.lease, g.times.patience = 12*time.Millisecond, 5*time.Minute, 3*time.Second
		g.start()
		gates = append(gates, g)
	}
	a := r.agent("ci")
	one := func() error {
		ask := a.bash("make")
		if rand.IntN(6) == 0 {
			ask.MaxWaitMS = int64(1 + rand.IntN(30))
		}
		var asking sync.WaitGroup
		heard := make([]protocol.Decision, 3)
		errs := make([]error, len(heard))
		for i := range heard {
			asking.Go(func() {
				time.Sleep(some(20))
				heard[i], errs[i] = gates[rand.IntN(len(gates))].decideAt(ask)
			})
		}
		if rand.IntN(6) == 0 {
			asking.Go(func() { time.Sleep(some(30)); a.cancel(ask.ID) })
		}
		asking.Wait()
		for i, d := range heard {
			if errs[i] != nil || !d.DecidedAt.Equal(heard[0].DecidedAt) || d.Outcome != heard[0].Outcome {
				return fmt.Errorf("%s: %s (%v) beside %s", ask.ID, d.Outcome, errs[i], heard[0].Outcome)
			}
		}
		return nil
	}
	var storm sync.WaitGroup
	for range 8 {
		storm.Go(func() {
			for range 25 {
				if err := one(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	storm.Wait()
	for _, g := range gates {
		nodetest.CheckFor(t, soon, 5*time.Millisecond, g.isEmpty)
	}
}
