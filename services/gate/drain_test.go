package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestAGateThatLeavesLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"authorizerChain":["one"],"linkTimeout":"9s","terminal":{"kind":"human"}}`)
	person := r.person()
	g1 := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	g1.times.patience, g1.times.first, g1.times.lease = 4*time.Second, 4*time.Second, 10*time.Second // nobody is answered before it leaves
	g1.start()
	a := r.agent("ci")
	calls := make(chan linkCall, 8)
	r.link("one", func(c linkCall) { c.accept(); calls <- c })
	ask := a.bash("make")
	got := make(chan heard, 3)
	for range 3 {
		go func() {
			h, err := a.try(ask.ID, must(protocol.Write(ask))(t))
			if err != nil {
				t.Error(err)
			}
			got <- h
		}()
	}
	receive(t, calls)
	nodetest.CheckFor(t, soon, 5*time.Millisecond, func() error {
		g1.waiters.mu.Lock()
		defer g1.waiters.mu.Unlock()
		if n := len(g1.waiters.ids[ask.ID]); n != 3 {
			return fmt.Errorf("%d requests wait", n)
		}
		return nil
	})
	began := time.Now()
	g1.stop()
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("left after %s", took)
	}
	for range 3 {
		if h := receive(t, got); h.progress == nil {
			t.Errorf("who waits must hear Progress, heard %+v", h)
		}
	}
	item := must(r.open.Get(context.Background(), ask.ID))(t)
	if item.Owner != "" || len(item.Trail) != 0 {
		t.Errorf("not given up: owner %q, trail %v", item.Owner, item.Trail)
	}
	if err := g1.isEmpty(); err != nil && !strings.HasPrefix(err.Error(), "open 1,") {
		t.Error(err)
	}
	// Another gate carries on at once, not after a lease of the one that left.
	g2 := r.newGate("g2", r.Connect(t, protocol.RoleGate, "g2"))
	g2.times.lease = 10 * time.Second
	began = time.Now()
	g2.start()
	c := receive(t, calls)
	if took := time.Since(began); took > 5*time.Second || !strings.Contains(c.Query, ".g2.") {
		t.Errorf("after %s, by %s", took, c.Query)
	}
	c.verdict("defer", "", "")
	r.waiting(ask.ID)
	r.answer(ask.ID, yes())
	want(t, a.decide(ask), allow, protocol.AllowedByHuman)
	if n := person.times(ask.ID); n != 1 {
		t.Errorf("the person was asked %d times", n)
	}
}

// network is a connection within the process that can go dead: what is written
// lies in a buffer, as in that of a socket, nothing comes, and nobody is told.
type network struct {
	bus.InProcess
	mu   sync.Mutex
	dead chan struct{} // closed while the network lives
	lies []func()
}

func newNetwork(n bus.InProcess) *network {
	w := &network{InProcess: n}
	w.kill()
	w.revive()
	return w
}

func (n *network) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead = make(chan struct{})
}

func (n *network) revive() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.dead)
	for _, write := range n.lies {
		write()
	}
	n.lies = nil
}

func (n *network) alive() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dead
}

func (n *network) InProcessConn() (net.Conn, error) {
	c, err := n.InProcess.InProcessConn()
	if err != nil {
		return nil, err
	}
	return &deadly{Conn: c, n: n}, nil
}

type deadly struct {
	net.Conn
	n *network
}

func (c *deadly) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	<-c.n.alive()
	return n, err
}

func (c *deadly) Write(b []byte) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	select {
	case <-c.n.dead:
		return c.Conn.Write(b)
	default:
		late := append([]byte(nil), b...)
		c.n.lies = append(c.n.lies, func() { _, _ = c.Conn.Write(late) })
		return len(b), nil
	}
}

func TestADeadNetworkHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(`,"authorizerChain":["one"],"linkTimeout":"20s"`))
	r.person()
	wire := newNetwork(r.Node)
	nc := must(bus.Connect(context.Background(), bus.Config{InProcess: wire, CredsBytes: r.Creds(t, protocol.RoleGate, "g1"), Logger: nodetest.Logger(t)}))(t)
	t.Cleanup(nc.Close)
	g1 := r.newGate("g1", nc)
	g1.start()
	calls := make(chan linkCall, 8)
	r.link("one", func(c linkCall) { c.accept(); calls <- c })
	a := r.agent("ci")
	ask := a.bash("make")
	go a.try(ask.ID, must(protocol.Write(ask))(t)) //nolint:errcheck // its gate goes dead
	receive(t, calls)
	r.stored(ask.ID)

	wire.kill()
	t.Cleanup(func() {
		select {
		case <-wire.alive():
		default:
			wire.revive() // the test failed
		}
	})
	decide := func(ask protocol.Ask) (reply, error, time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), serveTime)
		defer cancel()
		began := time.Now()
		rep, err := g1.Decide(ctx, call{ask: ask, digest: must(ask.Digest(nodetest.Name))(t), askedAt: time.Now()})
		return rep, err, time.Since(began)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if rep, err, took := decide(a.bash("rm x")); err == nil || took > serveTime {
			t.Errorf("what a rule settles: %+v %v after %s", rep, err, took)
		}
	})
	wg.Go(func() {
		if rep, err, took := decide(a.bash("make")); err == nil || took > serveTime {
			t.Errorf("what would be opened: %+v %v after %s", rep, err, took)
		}
	})
	wg.Go(func() {
		if rep, err, took := decide(ask); err != nil || rep.progress == nil || took > quick.patience+2*lastLook {
			t.Errorf("what is open: %+v %v after %s", rep, err, took)
		}
	})

	// Meanwhile another gate has the ask.
	g2 := r.gate("g2")
	c := receive(t, calls)
	if !strings.Contains(c.Query, ".g2.") {
		t.Errorf("asked by %s", c.Query)
	}
	c.verdict("defer", "", "")
	r.waiting(ask.ID)
	wg.Wait()

	wire.revive()
	r.answer(ask.ID, yes())
	r.settled(ask.ID)
	if stored := r.decisions(ask.ID); len(stored) != 1 || stored[0].Outcome != protocol.AllowedByHuman {
		t.Errorf("record: %+v", stored)
	}
	until(t, "the first gate has let go of it", func() error { return errors.Join(g1.isEmptyBut(ask.ID), g2.isEmptyBut(ask.ID)) })
}

// isEmptyBut says whether id is still held in memory.
func (g *served) isEmptyBut(id string) error {
	g.desk.mu.Lock()
	defer g.desk.mu.Unlock()
	if _, busy := g.desk.running[id]; busy {
		return fmt.Errorf("gate %s still carries it", g.name)
	}
	if _, open := g.mirror.get(id); open {
		return fmt.Errorf("gate %s still sees it open", g.name)
	}
	return nil
}

func TestAGateThatNeverServesLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	g := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := g.Run(ctx, func() { t.Log("ready before the end was seen") }); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := g.isEmpty(); err != nil {
		t.Error(err)
	}
}
