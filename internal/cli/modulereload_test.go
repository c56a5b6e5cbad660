package cli

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/fleet"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// saysGeneration is a bundled module that blocks every call with its generation.
func saysGeneration(n int) module.Source {
	return module.Source{Name: "says", Level: module.LevelFleet, Code: fmt.Sprintf(`(() => ({
  checks: JSON.stringify([{name: "generation", description: "d", tools: null, function: false}]),
  async ask() { return JSON.stringify({decision: "block", check: 0, reason: "generation %d", failures: []}); },
}))()`, n)}
}

// TestAPushUnderLoadChangesBetweenTwoAsksAndNeverWithinOne: at a whole node, with
// two modules in each list. A decision names module, version and check of one list,
// under the digest of that same list, and no asker sees an older one after a newer.
func TestAPushUnderLoadChangesBetweenTwoAsksAndNeverWithinOne(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, `{"permission":{"*":"allow","bash":"allow"},"terminal":{"kind":"deny"},"limits":{"asksPerSecond":10000}}`)
	b := d.node.Creds(t, protocol.RoleOperator, "op")
	creds, err := bus.ParseCreds(b)
	if err != nil {
		t.Fatal(err)
	}
	store, err := fleet.Open(t.Context(), d.node.ConnectAs(t, b, bus.Config{}), creds)
	if err != nil {
		t.Fatal(err)
	}
	const generations = 5
	push := func(n int) {
		first := module.Source{Name: "first", Level: module.LevelFleet, Code: oneCheck + fmt.Sprintf("// %d", n)}
		if _, err := store.Push(t.Context(), []module.Source{first, saysGeneration(n)}); err != nil {
			t.Error(err)
		}
	}
	push(0)
	var seen [generations]atomic.Int64 // decisions under each
	var digests sync.Map               // generation by digest of the modules
	over := make(chan struct{})
	var askers sync.WaitGroup
	for range 3 {
		askers.Go(func() {
			for newest := 0; ; {
				select {
				case <-over:
					return
				default:
				}
				dec := <-d.asks(t, "ls")
				if dec.Outcome == protocol.AllowedByRule && newest == 0 && seen[0].Load() == 0 {
					continue // the first push is not in force yet
				}
				n, err := generationOf(dec)
				if err != nil || n < newest {
					t.Errorf("generation %d after %d: %v: %+v", n, newest, err, dec)
					return
				}
				newest = n
				if other, _ := digests.LoadOrStore(dec.Policy.Modules, n); other != n {
					t.Errorf("generations %v and %d under one digest", other, n)
					return
				}
				seen[n].Add(1)
			}
		})
	}
	for n := range generations {
		if n > 0 {
			push(n)
		}
		nodetest.CheckFor(t, 30*time.Second, 5*time.Millisecond, func() error {
			if seen[n].Load() > 3 || t.Failed() {
				return nil
			}
			return fmt.Errorf("generation %d is not in force", n)
		})
	}
	close(over)
	askers.Wait()
}

// generationOf is which list a decision was ruled by, as all that it says agrees.
func generationOf(d protocol.Decision) (n int, err error) {
	if _, err := fmt.Sscanf(d.Reason, "generation %d", &n); err != nil {
		return -1, fmt.Errorf("reason %q", d.Reason)
	}
	version := shortVersion(saysGeneration(n).Version())
	switch {
	case d.Outcome != protocol.DeniedByModule || d.DecidedBy.Kind != protocol.DeciderModule || d.DecidedBy.Name != "says/generation":
		return n, fmt.Errorf("decided by %+v", d.DecidedBy)
	case d.MatchedPattern != "generation" || !strings.HasSuffix(d.Origin, "fleet:says@"+version):
		return n, fmt.Errorf("%s of %s, want version %s", d.MatchedPattern, d.Origin, version)
	}
	return n, nil
}
