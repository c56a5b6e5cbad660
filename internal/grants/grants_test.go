package grants_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func grant(agent string, uses int) protocol.Grant {
	return protocol.Grant{Scope: protocol.ScopeAgent, Surface: "bash", Patterns: []string{"git *"}, Uses: uses,
		Node: nodetest.Name, Agent: agent, GrantedBy: "p1", Ask: protocol.NewAskID()}
}

// stores are the bucket as two gates and the operator see it.
func stores(t *testing.T) (*nodetest.Node, *grants.Store, *grants.Store, *grants.Store) {
	t.Helper()
	n := nodetest.Start(t, nodetest.Quiet())
	open := func(role protocol.Role, name string) *grants.Store {
		return must(grants.New(n.Connect(t, role, name)))(t)
	}
	return n, open(protocol.RoleGate, "g1"), open(protocol.RoleGate, "g2"), open(protocol.RoleOperator, "op")
}

// TestAHoldersGrantsAreItsOwn: of agents of one name at several nodes each finds
// its own in the bucket, and the operator takes back any.
func TestAHoldersGrantsAreItsOwn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, g1, g2, op := stores(t)
	ways := [][]string{nil, {"child1"}, {"low", "child1"}, {"low"}}
	ids := map[string]string{}
	for _, way := range ways {
		g := grant("ci", 2)
		g.Hops = way
		if len(way) > 0 {
			g.Via = way[len(way)-1]
		}
		if err := g1.Put(ctx, g); err != nil {
			t.Fatal(err)
		}
		ids[grants.Holder("ci", way)] = g.Ask
	}
	for who, id := range ids {
		got := must(g2.Of(ctx, who))(t)
		if len(got) != 1 || got[0].Ask != id {
			t.Fatalf("%s has %+v", who, got)
		}
		if err := g2.Use(ctx, got[0]); err != nil {
			t.Fatal(err)
		}
		if got := must(g1.Of(ctx, who))(t); len(got) != 1 || got[0].Uses != 1 {
			t.Fatalf("%s, used once: %+v", who, got)
		}
	}
	if all := must(op.All(ctx))(t); len(all) != len(ways) {
		t.Fatalf("%d grants, want %d", len(all), len(ways))
	}
	for who, id := range ids {
		must(op.Revoke(ctx, id))(t)
		if got := must(g1.Of(ctx, who))(t); len(got) != 0 {
			t.Fatalf("%s, revoked: %+v", who, got)
		}
	}
	for _, bad := range []string{"", "*", "child1/*", "/ci", "child1/", "a.b", ">"} {
		if got, err := g1.Of(ctx, bad); err == nil {
			t.Errorf("%q is a holder of %+v", bad, got)
		}
	}
}

func TestAGrantIsSeenAtOnceAndGoneAtOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, g1, g2, op := stores(t)
	for range 50 {
		g := grant("ci", 0)
		if err := g1.Put(ctx, g); err != nil {
			t.Fatal(err)
		}
		if got := must(g2.Of(ctx, "ci"))(t); len(got) != 1 || !grants.Same(g, got[0].Grant) {
			t.Fatalf("another gate sees %+v", got)
		}
		if got := must(g2.Of(ctx, "ci-2"))(t); len(got) != 0 {
			t.Fatalf("another agent has %+v", got)
		}
		must(op.Revoke(ctx, g.Ask))(t)
		if got := must(g2.Of(ctx, "ci"))(t); len(got) != 0 {
			t.Fatalf("revoked, another gate sees %+v", got)
		}
		if err := g1.Put(ctx, g); err != nil { // carried through again
			t.Fatal(err)
		}
		if got := must(g2.Of(ctx, "ci"))(t); len(got) != 0 {
			t.Fatalf("it is there again: %+v", got)
		}
	}
	if _, err := op.Revoke(ctx, protocol.NewAskID()); !errors.Is(err, grants.ErrGone) {
		t.Errorf("%v", err)
	}
}

func TestPutTwiceIsOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, g1, g2, _ := stores(t)
	g := grant("ci", 2)
	for _, s := range []*grants.Store{g1, g2, g1} {
		if err := s.Put(ctx, g); err != nil {
			t.Fatal(err)
		}
	}
	read := must(g1.Of(ctx, "ci"))(t)[0]
	if err := g2.Use(ctx, read); err != nil {
		t.Fatal(err)
	}
	if err := g1.Put(ctx, g); err != nil {
		t.Fatal(err)
	}
	if got := must(g1.Of(ctx, "ci"))(t); len(got) != 1 || got[0].Uses != 1 {
		t.Errorf("%+v", got)
	}
}

func TestUsesRace(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, g1, g2, _ := stores(t)
	g := grant("ci", 5)
	if err := g1.Put(ctx, g); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	used, lost := 0, 0
	var wg sync.WaitGroup
	for i := range 40 {
		s := []*grants.Store{g1, g2}[i%2]
		wg.Go(func() {
			held, err := s.Of(ctx, "ci")
			if err != nil {
				t.Error(err)
				return
			}
			if len(held) == 0 {
				return
			}
			err = s.Use(ctx, held[0])
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				used++
			case errors.Is(err, grants.ErrLost):
				lost++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	left := 0
	for _, h := range must(g1.Of(ctx, "ci"))(t) {
		left += h.Uses
	}
	if used+left != 5 {
		t.Errorf("%d used (%d lost the race), %d left, of 5", used, lost, left)
	}
	t.Run("one that was revoked is not used", func(t *testing.T) {
		g := grant("ci-2", 2)
		if err := g1.Put(ctx, g); err != nil {
			t.Fatal(err)
		}
		held := must(g1.Of(ctx, "ci-2"))(t)[0]
		must(g2.Revoke(ctx, g.Ask))(t)
		if err := g1.Use(ctx, held); !errors.Is(err, grants.ErrLost) {
			t.Errorf("%v", err)
		}
	})
}

func TestAnEndedGrantLeavesTheBucket(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, g1, g2, _ := stores(t)
	past, soon := grant("ci", 0), grant("ci", 2)
	past.Expires = time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	soon.Expires = time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)
	for _, g := range []protocol.Grant{past, soon} {
		if err := g1.Put(ctx, g); err != nil {
			t.Fatal(err)
		}
	}
	held := must(g2.Of(ctx, "ci"))(t)
	if len(held) != 1 || held[0].Ask != soon.Ask {
		t.Fatalf("%+v", held)
	}
	if err := g2.Use(ctx, held[0]); err != nil { // which keeps its end
		t.Fatal(err)
	}
	nodetest.CheckFor(t, 15*time.Second, 50*time.Millisecond, func() error {
		if got, err := g2.Of(ctx, "ci"); err != nil || len(got) > 0 {
			return fmt.Errorf("%+v %w", got, err)
		}
		return nil
	})
}

func TestWhatIsNoGrantIsSaidAndLeftOut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n, g1, _, op := stores(t)
	good := grant("ci", 0)
	if err := g1.Put(ctx, good); err != nil {
		t.Fatal(err)
	}
	js := must(bus.JetStream(n.Connect(t, protocol.RoleOperator, "op2")))(t)
	other := grant("ci-2", 0)
	for key, value := range map[string]string{
		"ci." + protocol.NewAskID(): "{}", "ci." + other.Ask: string(must(protocol.Write(protocol.StoredGrant{Grant: other}))(t)),
		"ci.x": "", "ci." + protocol.NewAskID() + "x": `{"v":2}`,
	} {
		must(js.Publish(ctx, "$KV."+protocol.BucketGrants+"."+key, []byte(value)))(t)
	}
	got, err := g1.Of(ctx, "ci")
	if !errors.Is(err, grants.ErrBroken) || len(got) != 1 || got[0].Ask != good.Ask {
		t.Errorf("%+v, %v", got, err)
	}
	if all, err := op.All(ctx); !errors.Is(err, grants.ErrBroken) || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestTooManyGrantsAreSaid(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, g1, _, _ := stores(t)
	var first string
	for i := range grants.PerAgent + 3 {
		g := grant("ci", 0)
		if i == 0 {
			first = g.Ask
		}
		if err := g1.Put(ctx, g); err != nil {
			t.Fatal(err)
		}
	}
	got, err := g1.Of(ctx, "ci")
	if !errors.Is(err, grants.ErrMany) || len(got) != grants.PerAgent || !slices.ContainsFunc(got, func(s grants.Stored) bool { return s.Ask == first }) {
		t.Errorf("%d, %v", len(got), err)
	}
}

func TestNobodyElseReadsOrWritesGrants(t *testing.T) {
	t.Parallel()
	n, g1, _, _ := stores(t)
	g := grant("ci", 0)
	if err := g1.Put(context.Background(), g); err != nil {
		t.Fatal(err)
	}
	for _, role := range []protocol.Role{protocol.RoleAgent, protocol.RoleJudge, protocol.RoleTerminal, protocol.RoleApprover, protocol.RoleAuditor, protocol.RoleChild} {
		t.Run(string(role), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			s := must(grants.New(n.Connect(t, role, "x")))(t)
			if got, err := s.Of(ctx, "ci"); err == nil {
				t.Errorf("it reads %+v", got)
			}
			if err := s.Put(ctx, grant("x", 0)); err == nil {
				t.Error("it writes")
			}
		})
	}
	if all := must(g1.Of(context.Background(), "x"))(t); len(all) > 0 {
		t.Errorf("written: %+v", all)
	}
}
