package link_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

const often = 20 * time.Millisecond

// asked says which worker answers now, "" for none.
func asked(t testing.TB, g *gate) string {
	t.Helper()
	v, err := g.ask(g.request(5 * time.Second))
	if errors.Is(err, nats.ErrNoResponders) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return v.Reason
}

func until(t testing.TB, what string, f func() error) {
	t.Helper()
	nodetest.CheckFor(t, 10*time.Second, 5*time.Millisecond, func() error {
		if err := f(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

// health waits until a link is announced in that way, and only so.
func health(t testing.TB, n *nodetest.Node, want string) {
	t.Helper()
	until(t, "announced", func() error {
		m := running(t, n)
		if len(m) != 1 || !strings.Contains(m[0][link.MetadataHealth], want) {
			return fmt.Errorf("%v, want %q", m, want)
		}
		return nil
	})
}

// TestAWorkerThatCannotWorkIsNotAsked, and says why, until it can: its asks go to
// the link's other worker.
func TestAWorkerThatCannotWorkIsNotAsked(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]func(context.Context) error{
		"its check fails":          func(context.Context) error { return errors.New("no key") },
		"its check panics":         func(context.Context) error { panic("no key") },
		"its check waits for ever": func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("no key: %w", ctx.Err()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := nodetest.Start(t)
			g := newGate(t, n)
			var sick atomic.Bool
			examined := func(ctx context.Context) error {
				if sick.Load() {
					return check(ctx)
				}
				return nil
			}
			serve(t, n, always(link.Defer("the first")), link.Health(examined), link.HealthEvery(often))
			health(t, n, link.HealthOK)
			if got := asked(t, g); got != "the first" {
				t.Fatalf("well, and %q is asked", got)
			}
			sick.Store(true)
			until(t, "the sick one is left alone", func() error {
				if got := asked(t, g); got != "" {
					return fmt.Errorf("%q is asked", got)
				}
				return nil
			})
			health(t, n, "no key")
			serveOn(t, n.Connect(t, protocol.RoleJudge, "j2"), always(link.Defer("the second")))
			for range 20 {
				if got := asked(t, g); got != "the second" {
					t.Fatalf("%q is asked beside a sick one", got)
				}
			}
			sick.Store(false)
			until(t, "well again", func() error {
				if got := asked(t, g); got != "the first" {
					return fmt.Errorf("%q is asked", got)
				}
				return nil
			})
		})
	}
}

// TestAWorkerThatIsSickFromTheStartJoinsWhenItIsWell: it is ready all the same,
// for it has said how it is.
func TestAWorkerThatIsSickFromTheStartJoinsWhenItIsWell(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	var well atomic.Bool
	serve(t, n, always(link.Defer("here")), link.HealthEvery(often), link.Health(func(context.Context) error {
		if well.Load() {
			return nil
		}
		return errors.New("the model is not loaded")
	}))
	health(t, n, "the model is not loaded")
	if got := asked(t, g); got != "" {
		t.Errorf("%q is asked", got)
	}
	well.Store(true)
	health(t, n, link.HealthOK)
	if got := asked(t, g); got != "here" {
		t.Errorf("%q is asked", got)
	}
}

func TestOneThatIsUnhealthyForGoodIsNotAsked(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	serve(t, n, always(link.Defer("here")), link.Unhealthy("no key"), link.HealthEvery(often))
	health(t, n, "no key")
	if got := asked(t, g); got != "" {
		t.Errorf("%q is asked", got)
	}
}

// TestAWorkerThatIsStuckIsNotAsked: links that ignore the end of their time hold
// every slot. One that is merely busy, or has a slot left, is asked on.
func TestAWorkerThatIsStuckIsNotAsked(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	release := make(chan struct{})
	serve(t, n, func(_ context.Context, r link.Request) (protocol.Verdict, error) {
		if r.Ask.AgentName == "deaf" {
			<-release
		}
		return link.Defer("here"), nil
	}, link.Concurrency(2))
	deaf := func() {
		r := g.request(100 * time.Millisecond)
		r.Ask.AgentName = "deaf"
		if v := g.mustAsk(r); v.Failure != protocol.FailureTimeout {
			t.Errorf("a stuck one: %+v", v)
		}
	}
	deaf()
	if got := asked(t, g); got != "here" {
		t.Errorf("with a slot left %q is asked", got)
	}
	deaf()
	health(t, n, "stuck")
	if got := asked(t, g); got != "" {
		t.Errorf("%q is asked", got)
	}
	close(release)
	health(t, n, link.HealthOK)
	if got := asked(t, g); got != "here" {
		t.Errorf("%q is asked", got)
	}
}

// TestLeavingTheGroupEndsNoAsk: what a worker has taken up before it fell sick, it
// answers.
func TestLeavingTheGroupEndsNoAsk(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	var sick atomic.Bool
	begun, release := make(chan struct{}), make(chan struct{})
	serve(t, n, func(context.Context, link.Request) (protocol.Verdict, error) {
		close(begun)
		<-release
		return link.Deny("done all the same"), nil
	}, link.HealthEvery(often), link.Health(func(context.Context) error {
		if sick.Load() {
			return errors.New("no key")
		}
		return nil
	}))
	verdict := make(chan protocol.Verdict, 1)
	r := g.request(20 * time.Second)
	go func() { v, _ := g.ask(r); verdict <- v }()
	<-begun
	sick.Store(true)
	health(t, n, "no key")
	close(release)
	if v := <-verdict; v.Verdict != protocol.ChoiceDeny || v.Reason != "done all the same" {
		t.Errorf("%+v", v)
	}
}
