package gate

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/pkg/protocol"
)

// announceAs says of a worker of link one what pkg/link says.
func (r *rig) announceAs(nc *nats.Conn, worker, health string) micro.Service {
	r.t.Helper()
	meta := map[string]string{"link": "one", "node": "main", "version": "1.0.0", metadataHealth: health, metadataWorker: worker}
	s := must(micro.AddService(nc, micro.Config{Name: protocol.ServiceLink, Version: "1.0.0", Metadata: meta}))(r.t)
	flush(r.t, nc)
	return s
}

// workerOn serves what is for that worker of link one alone.
func (r *rig) workerOn(nc *nats.Conn, worker string, serve func(linkCall)) {
	r.t.Helper()
	must(nc.Subscribe(must(r.Subjects.Worker("one", worker))(r.t), func(m *nats.Msg) {
		req := must(protocol.Read[protocol.LinkRequest](m.Data))(r.t)
		serve(linkCall{t: r.t, nc: nc, msg: m, LinkRequest: req})
	}))(r.t)
	flush(r.t, nc)
}

// TestThatAWorkerIsFullIsNoVerdict: another one is asked, at once and as often as
// it takes, but not without end, and never once somebody is at work.
func TestThatAWorkerIsFullIsNoVerdict(t *testing.T) {
	t.Parallel()
	busy := func(c linkCall) { c.verdict("defer", "full", protocol.FailureBusy) }
	for name, row := range map[string]struct {
		serve       func(n int, c linkCall)
		trail       string
		least, most int
	}{
		"the next one has room": {func(n int, c linkCall) {
			if n < 3 {
				busy(c)
				return
			}
			c.accept()
			c.verdict("deny", "no", "")
		}, "one=deny", 3, 3},
		"the next one allows": {func(n int, c linkCall) {
			if n < 2 {
				busy(c)
				return
			}
			c.accept()
			c.verdict("allow", "", "")
		}, "one=allow", 2, 2},
		"the next one is stuck, and the one after it is not": {func(n int, c linkCall) {
			switch n {
			case 1:
				busy(c)
			case 2:
			default:
				c.verdict("deny", "no", "")
			}
		}, "one=deny", 3, 3},
		"all stay full": {func(_ int, c linkCall) { busy(c) }, "one=defer/busy", 3, 80},
		"one has room after a while": {func(n int, c linkCall) {
			if time.Until(c.Deadline) > 600*time.Millisecond {
				busy(c)
				return
			}
			c.verdict("deny", "no", "")
		}, "one=deny", 3, 80},
		"one has room too late to judge": {func(n int, c linkCall) {
			if time.Until(c.Deadline) > 200*time.Millisecond {
				busy(c)
				return
			}
			c.verdict("allow", "", "")
		}, "one=defer/busy", 3, 80},
		"one is stuck and the others full": {func(n int, c linkCall) {
			if n > 1 {
				busy(c)
			}
		}, "one=defer/busy", 2, 80},
		"said after it was taken up, it is the verdict": {func(_ int, c linkCall) { c.accept(); busy(c) }, "one=defer/busy", 1, 1},
		"a defer with another word is one":              {func(_ int, c linkCall) { c.verdict("defer", "", "over_budget") }, "one=defer/over_budget", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, chainPolicy("one"))
			r.denying()
			r.gate("g1")
			var n counter
			r.link("one", func(c linkCall) { row.serve(int(n.next()), c) })
			a := r.agent("ci")
			wantTrail(t, a.decide(a.bash("make")), row.trail)
			if got := int(n.n.Load()); got < row.least || got > row.most {
				t.Errorf("workers were asked %d times, want %d to %d", got, row.least, row.most)
			}
		})
	}
}

// TestOneWorkerWithRoomIsFoundAmongFullOnes: the queue group here never picks it.
func TestOneWorkerWithRoomIsFoundAmongFullOnes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		room  string // the worker that has room
		trail string
	}{
		"one has room":  {"w3", "one=deny"},
		"none has room": {"", "one=defer/busy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, chainPolicy("one"))
			r.denying()
			g := r.gate("g1")
			busy := func(c linkCall) { c.verdict("defer", "full", protocol.FailureBusy) }
			r.link("one", busy)
			nc := r.Connect(t, protocol.RoleJudge, "j2")
			for _, worker := range []string{"w1", "w2", "w3", "w4"} {
				serve := busy
				if worker == row.room {
					serve = always("deny", "no")
				}
				r.workerOn(nc, worker, serve)
				r.announceAs(nc, worker, healthOK)
			}
			until(t, "seen", func() error {
				if got := g.links.workers("one"); len(got) != 4 {
					return fmt.Errorf("%v", got)
				}
				return nil
			})
			a := r.agent("ci")
			wantTrail(t, a.decide(a.bash("make")), row.trail)
		})
	}
}

// TestTheSecondAttemptGoesToAWorkerThatIsAwake, and not to whichever the queue
// group picks: here it would pick the stuck one every time. Saying that one is
// another link's worker brings no ask of it: the name alone is believed, and
// nobody hears on it.
func TestTheSecondAttemptGoesToAWorkerThatIsAwake(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		worker, health string
		serves         bool
		trail          string
		queue          int32
	}{
		"it is asked by its name":              {"w2", healthOK, true, "one=deny", 1},
		"one that cannot work is not":          {"w2", "no key", true, "one=defer/timeout", 2},
		"one that does not serve is not":       {"w2", healthOK, false, "one=defer/timeout", 2},
		"one whose name is no token is not":    {"w2.>", healthOK, false, "one=defer/timeout", 2},
		"one without a name is as any other":   {"", healthOK, false, "one=defer/timeout", 2},
		"a wildcard does not address them all": {"*", healthOK, true, "one=defer/timeout", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, chainPolicy("one"))
			r.denying()
			r.gate("g1")
			var stuck atomic.Int32
			r.link("one", func(linkCall) { stuck.Add(1) })
			nc := r.Connect(t, protocol.RoleJudge, "j2")
			if row.serves {
				r.workerOn(nc, "w2", always("deny", "no"))
			}
			r.announceAs(nc, row.worker, row.health)
			a := r.agent("ci")
			wantTrail(t, a.decide(a.bash("make")), row.trail)
			if got := stuck.Load(); got != row.queue {
				t.Errorf("the queue group was asked %d times, want %d", got, row.queue)
			}
		})
	}
}
