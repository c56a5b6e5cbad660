package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/internal/record"
	"github.com/assent-dev/assent/pkg/protocol"
)

// earless is a connection on which nothing is heard while it is shut.
type earless struct {
	bus.InProcess
	mu   sync.Mutex
	open chan struct{} // closed while it hears
}

func (e *earless) shut() (hear func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	open := make(chan struct{})
	e.open = open
	return sync.OnceFunc(func() { close(open) })
}

func (e *earless) InProcessConn() (net.Conn, error) {
	c, err := e.InProcess.InProcessConn()
	return &earlessConn{Conn: c, e: e}, err
}

type earlessConn struct {
	net.Conn
	e *earless
}

func (c *earlessConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.e.mu.Lock()
	open := c.e.open
	c.e.mu.Unlock()
	if open != nil {
		<-open
	}
	return n, err
}

// slowReader is a gate whose looks into the record are answered by the server at
// once, and heard when the test says so; all else it does at once.
func (r *rig) slowReader(name string, brief time.Duration) (*served, *earless) {
	r.t.Helper()
	g := r.newGate(name, r.Connect(r.t, protocol.RoleGate, name))
	ear := &earless{InProcess: r.Node}
	nc := must(bus.Connect(context.Background(), bus.Config{InProcess: ear, CredsBytes: r.Creds(r.t, protocol.RoleGate, name), Logger: nodetest.Logger(r.t)}))(r.t)
	r.t.Cleanup(nc.Close)
	g.recorder.Reader = must(record.Open(context.Background(), must(bus.JetStream(nc))(r.t), r.Subjects))(r.t)
	g.times.brief, g.times.patience, g.times.lease = brief, 4*time.Second, time.Minute
	return g, ear
}

// A link decides while it is looked whether the ask was decided before it was
// stored. What is settled then is not open when the look comes back.
func TestWhatIsSettledWhileItIsStoredIsNotOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, oneLink)
	r.person()
	asked := make(chan linkCall, 4)
	r.link("one", func(c linkCall) { c.accept(); asked <- c })
	g, ear := r.slowReader("g1", 200*time.Millisecond)
	g.start()
	a := r.agent("ci")
	ask := a.bash("make")
	got := make(chan protocol.Decision, 1)
	go func() { d, _ := a.follow(ask); got <- d }()
	c := receive(t, asked)
	hear := ear.shut()
	defer hear()
	r.stored(ask.ID)
	c.verdict("allow", "", "")
	want(t, receive(t, got), allow, protocol.AllowedByLink)
	until(t, "taken away", func() error {
		if _, err := r.open.Get(context.Background(), ask.ID); !errors.Is(err, pending.ErrGone) {
			return fmt.Errorf("still there: %v", err)
		}
		if _, open := g.mirror.get(ask.ID); open {
			return errors.New("its end was not seen")
		}
		return nil
	})
	hear()
	until(t, "forgotten", func() error { return g.isEmpty() })
}

// The entry was made, and neither could it be looked whether the ask was decided
// before, nor the entry be taken away. Its agent may have left: somebody carries it.
func TestAnEntryThatCouldNotBeTakenBackIsCarriedOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, oneLink)
	r.person()
	asked := make(chan linkCall, 4)
	r.link("one", func(c linkCall) { c.accept(); asked <- c })
	g, ear := r.slowReader("g1", 200*time.Millisecond)
	g.times.patience, g.times.lease = 400*time.Millisecond, 2*time.Second
	g.start()
	a := r.agent("ci")
	ask := a.bash("make")
	got := make(chan heard, 1)
	go func() { h, _ := a.try(ask.ID, must(protocol.Write(ask))(t)); got <- h }()
	receive(t, asked)
	hear := ear.shut()
	defer hear()
	h := receive(t, got)
	if h.decision == nil {
		t.Fatalf("heard %+v", h)
	}
	want(t, *h.decision, deny, protocol.Unavailable)
	hear()
	r.stored(ask.ID)
	c := receive(t, asked)
	c.verdict("defer", "", "")
	r.waiting(ask.ID)
}
