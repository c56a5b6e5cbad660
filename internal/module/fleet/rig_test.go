package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestMain(m *testing.M) {
	nodetest.Patient()
	// The client's own: an object that is put may leave it behind, with the connection
	// closed and nobody to write to the channel that it waits on.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"))
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// src is a module of that name; its code is whatever text makes of it.
func src(name, code string) module.Source {
	return module.Source{Name: name, Level: module.LevelFleet, Code: code}
}

// rig is a node with one operator.
type rig struct {
	*nodetest.Node
	t     *testing.T
	nc    *nats.Conn // the operator's
	creds bus.Creds
	store *Store
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Node: nodetest.Start(t, nodetest.Quiet()), t: t}
	r.nc, r.creds, r.store = r.operator("op")
	return r
}

// as connects with new credentials of a role.
func (r *rig) as(role protocol.Role, name string) (*nats.Conn, bus.Creds) {
	r.t.Helper()
	b := r.Creds(r.t, role, name)
	return r.ConnectAs(r.t, b, bus.Config{}), must(bus.ParseCreds(b))(r.t)
}

func (r *rig) operator(name string) (*nats.Conn, bus.Creds, *Store) {
	r.t.Helper()
	nc, c := r.as(protocol.RoleOperator, name)
	return nc, c, must(Open(r.t.Context(), nc, c))(r.t)
}

func (r *rig) push(sources ...module.Source) Standing {
	r.t.Helper()
	return must(r.store.Push(r.t.Context(), sources))(r.t)
}

// put writes bytes where the list stands, as whoever can write the bucket could.
func (r *rig) put(data []byte) {
	r.t.Helper()
	must(r.store.kv.Put(r.t.Context(), protocol.KeyModules, data))(r.t)
}

func (r *rig) stored() []byte {
	r.t.Helper()
	return must(r.store.kv.Get(r.t.Context(), protocol.KeyModules))(r.t).Value()
}

// follower is a gate's side: what it was handed last.
type follower struct {
	t  *testing.T
	nc *nats.Conn

	mu       sync.Mutex
	calls    int
	sources  []module.Source
	problems []module.Problem
}

// follow watches as a gate until the test is over.
func (r *rig) follow(name string) *follower {
	nc, c := r.as(protocol.RoleGate, name)
	return r.followAs(nc, TrustOf(c))
}

func (r *rig) followAs(nc *nats.Conn, trust Trust) *follower {
	r.t.Helper()
	f := &follower{t: r.t, nc: nc}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Watch(ctx, nc, trust, nodetest.Logger(r.t), f.take) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("watching: %v", err)
		}
	})
	return f
}

func (f *follower) take(sources []module.Source, problems []module.Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	f.sources, f.problems = sources, problems
}

// sees waits until exactly these are in force, as "name=code", and a problem holds
// each of the texts, and none where there is no text.
func (f *follower) sees(want []string, problems ...string) {
	f.t.Helper()
	nodetest.CheckFor(f.t, 20*time.Second, 5*time.Millisecond, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.calls == 0 {
			return fmt.Errorf("nothing was handed over")
		}
		var have []string
		for _, s := range f.sources {
			if s.Level != module.LevelFleet {
				return fmt.Errorf("%s is of level %s", s.Name, s.Level)
			}
			have = append(have, s.Name+"="+s.Code)
		}
		var texts []string
		for _, p := range f.problems {
			texts = append(texts, p.String())
		}
		if !slices.Equal(have, want) || len(texts) != len(problems) {
			return fmt.Errorf("in force %q, want %q; problems %q, want %q", have, want, texts, problems)
		}
		for i, text := range problems {
			if !strings.Contains(texts[i], text) {
				return fmt.Errorf("problems %q, want %q", texts, problems)
			}
		}
		return nil
	})
}
