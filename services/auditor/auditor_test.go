package auditor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// TestDurableIsTheNodes: an auditor may not make the consumer, so it has to
// call it what the node calls it.
func TestDurableIsTheNodes(t *testing.T) {
	t.Parallel()
	if Durable != node.AuditorDurable {
		t.Errorf("the auditor pulls from %q, the node makes %q", Durable, node.AuditorDurable)
	}
}

// TestRunKeepsBothStreams: every message of both streams becomes a line, also
// the broken ones, and then is acknowledged.
func TestRunKeepsBothStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.publish(t, 30)
	w.send(t, decisionAt(ids[0], "a1"), decision(nil)) // says another ask than its subject
	w.send(t, decisionAt(protocol.NewAskID(), "a1"), []byte("junk"))
	w.run(t, nil)
	w.waitDone(t, 30+2, 30)

	records := readLines(t, w.dir)
	got := map[string][]string{}
	broken := 0
	for _, r := range records {
		got[r.Ask] = append(got[r.Ask], string(r.Kind))
		if r.Broken != "" {
			broken++
		}
	}
	if broken != 2 || len(records) != 62 {
		t.Errorf("%d records, %d of them broken; want 62 and 2", len(records), broken)
	}
	for _, id := range ids[1:] {
		if kinds := got[id]; !slices.Contains(kinds, "decision") || !slices.Contains(kinds, "review") || len(kinds) != 2 {
			t.Errorf("ask %s has %v, want a decision and a review record", id, kinds)
		}
	}
}

// TestRunAfterACrash: a process that dies between writing and acknowledging
// leaves records that come again; each stands in the log once. One that dies
// while writing leaves a torn line; its record comes again and stands there
// whole.
func TestRunAfterACrash(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name string
		torn bool
	}{{"between writing and acknowledging", false}, {"while writing", true}}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.publish(t, 10)
			w.writeWithoutAck(t, 10)
			if row.torn {
				line, err := sample(1, 1)[0].AppendLine(nil)
				if err != nil {
					t.Fatal(err)
				}
				addTo(t, w.dir+"/review-00000001.jsonl", line[:40])
			}
			w.publish(t, 5)
			w.redeliverNow(t)
			stats := w.run(t, nil)
			w.waitDone(t, 15, 15)
			wantOnce(t, w.dir, 15)
			if s := stats.all()[0]; s.Again != 10 || s.Written != 5 {
				t.Errorf("written %d, known already %d; want 5 and 10", s.Written, s.Again)
			}
		})
	}
}

// TestRunWhileTheDiskIsFull: nothing is acknowledged and nothing lost; the
// trouble shows in the statistics; when there is room again it goes on.
func TestRunWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var full atomic.Bool
	full.Store(true)
	stats := w.run(t, &full)
	w.publish(t, 3)
	nodetest.CheckFor(t, 20*time.Second, 20*time.Millisecond, func() error {
		if s := stats.all()[0]; s.WriteFailures < 2 || s.Lag != 3 || !strings.Contains(s.Trouble, "no space") {
			return fmt.Errorf("statistics %+v, want two failures and a lag of 3", s)
		}
		return nil
	})
	w.wantUnacked(t, 3)
	for _, nc := range []*nats.Conn{w.operator, w.auditor} {
		if lag, err := Lag(t.Context(), nc); err != nil || lag[protocol.StreamDecisions] != 3 || len(lag) != 2 {
			t.Errorf("Lag: %v, %v; want 3 decisions", lag, err)
		}
	}
	full.Store(false)
	w.waitDone(t, 3, 3)
	wantOnce(t, w.dir, 3)
	if s := stats.all()[0]; s.Trouble != "" {
		t.Errorf("trouble %q is still told", s.Trouble)
	}
}

// TestRunFinishesItsBatch: what was written when the end came is acknowledged,
// so that the next start finds nothing again.
func TestRunFinishesItsBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(t, 200)
	stats := w.run(t, nil)
	nodetest.CheckFor(t, 20*time.Second, time.Millisecond, func() error {
		if s := stats.all()[0]; s.Written == 0 {
			return errors.New("nothing written yet")
		}
		return nil
	})
	w.stop(t)
	lines := 0
	for _, r := range readLines(t, w.dir) {
		if r.Kind == KindDecision {
			lines++
		}
	}
	// The server takes acknowledgements in after they have arrived.
	nodetest.CheckFor(t, 10*time.Second, 10*time.Millisecond, func() error {
		if acked := int(w.consumer(t, protocol.StreamDecisions).AckFloor.Stream); acked != lines {
			return fmt.Errorf("%d records are written and %d acknowledged", lines, acked)
		}
		return nil
	})
}

// TestRunSurvivesItsServer: the auditor goes on when its server comes back.
func TestRunSurvivesItsServer(t *testing.T) {
	t.Parallel()
	dir := nodetest.Dir(t)
	n, err := node.Start(t.Context(), node.Config{Listen: "127.0.0.1:0", Node: nodetest.Name, Store: dir, NoSyncAlways: true, Logger: nodetest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(n.ClientURL(), "nats://")
	w := worldOn(t, &nodetest.Node{Node: n, Subjects: subjects(t)}, func(creds []byte) *nats.Conn { return dial(t, n.ClientURL(), creds) })
	w.run(t, nil)
	w.publish(t, 2)
	w.waitDone(t, 2, 2)
	if err := n.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}

	again := nodetest.Start(t, nodetest.Store(dir), func(c *node.Config) { c.Listen = address })
	w.node, w.gate, w.operator = again, again.Connect(t, protocol.RoleGate, "g1"), again.Connect(t, protocol.RoleOperator, "op")
	w.publish(t, 2)
	w.waitDone(t, 4, 4)
	wantOnce(t, w.dir, 4)
}

// TestRunRefuses: what cannot work ends at once, with an error.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	closed := w.node.Connect(t, protocol.RoleAuditor, "au2")
	closed.Close()
	rows := []struct {
		name string
		nc   *nats.Conn
		cfg  Config
	}{
		{"a node that is no token", w.auditor, Config{Node: "a.b", Dir: newDir(t)}},
		{"a folder that cannot be made", w.auditor, Config{Node: "main", Dir: "/proc/nowhere"}},
		{"a connection that is closed for good", closed, Config{Node: "main", Dir: newDir(t)}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			row.cfg.Logger = nodetest.Logger(t)
			if err := Run(ctx, row.nc, row.cfg); err == nil || ctx.Err() != nil {
				t.Errorf("Run: %v, want an error at once", err)
			}
		})
	}
}

// world is a node with a gate that records, and an auditor that may run.
type world struct {
	node     *nodetest.Node
	gate     *nats.Conn
	operator *nats.Conn
	auditor  *nats.Conn
	dir      string
	cancel   context.CancelFunc
	done     chan error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	n := nodetest.Start(t)
	return worldOn(t, n, func(creds []byte) *nats.Conn { return n.ConnectAs(t, creds, bus.Config{}) })
}

func worldOn(t *testing.T, n *nodetest.Node, connect func(creds []byte) *nats.Conn) *world {
	t.Helper()
	return &world{node: n, dir: newDir(t),
		gate: n.Connect(t, protocol.RoleGate, "g1"), operator: n.Connect(t, protocol.RoleOperator, "op"),
		auditor: connect(n.Creds(t, protocol.RoleAuditor, "au"))}
}

func dial(t *testing.T, url string, creds []byte) *nats.Conn {
	t.Helper()
	nc, err := bus.Connect(t.Context(), bus.Config{URL: url, CredsBytes: creds, Logger: nodetest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func subjects(t *testing.T) protocol.Subjects {
	t.Helper()
	s, err := protocol.NewSubjects(nodetest.Name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fullable is a Log whose disk is full while full is set.
type fullable struct {
	Log
	full *atomic.Bool
}

func (f fullable) Append(batch []Record) (int, error) {
	if f.full != nil && f.full.Load() {
		return 0, fmt.Errorf("%w: no space left", ErrWrite)
	}
	return f.Log.Append(batch)
}

// run starts the auditor, until the test is over or stop.
func (w *world) run(t *testing.T, full *atomic.Bool) *stats {
	t.Helper()
	files, err := OpenFiles(FilesConfig{Dir: w.dir, Logger: nodetest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := newStats(Streams)
	w.cancel, w.done = cancel, make(chan error, 1)
	ready := make(chan struct{})
	cfg := Config{Node: nodetest.Name, Batch: 64, Logger: nodetest.Logger(t), Ready: func() { close(ready) }}
	go func() { w.done <- errors.Join(keep(ctx, w.auditor, cfg, fullable{files, full}, s), files.Close()) }()
	t.Cleanup(func() { w.stop(t) })
	select {
	case <-ready:
	case <-time.After(20 * time.Second):
		t.Fatal("the auditor is not ready")
	}
	return s
}

func (w *world) stop(t *testing.T) {
	t.Helper()
	if w.cancel == nil {
		return
	}
	w.cancel()
	w.cancel = nil
	select {
	case err := <-w.done:
		if err != nil {
			t.Errorf("the auditor ended: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the auditor did not end")
	}
}

// publish records n decisions and n review records as a gate does.
func (w *world) publish(t *testing.T, n int) []string {
	t.Helper()
	var ids []string
	for range n {
		id := protocol.NewAskID()
		ids = append(ids, id)
		w.send(t, "assent.v1.main.review."+id+".model_judge.decision", review(func(r *protocol.ReviewRecord) { r.Ask = id }))
		w.send(t, decisionAt(id, "a1"), decision(func(d *protocol.Decision) { d.Ask = id }))
	}
	return ids
}

func decisionAt(id, agent string) string {
	return "assent.v1.main.decision." + id + "." + agent + ".bash.deny"
}

func (w *world) send(t *testing.T, subject string, body []byte) {
	t.Helper()
	js, err := bus.JetStream(w.gate)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := js.Publish(ctx, subject, body); err != nil {
		t.Fatalf("recording on %s: %v", subject, err)
	}
}

func (w *world) consumer(t *testing.T, stream string) *jetstream.ConsumerInfo {
	t.Helper()
	js, err := bus.JetStream(w.operator)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cons, err := js.Consumer(ctx, stream, Durable)
	if err != nil {
		t.Fatal(err)
	}
	return cons.CachedInfo()
}

// waitDone waits until both streams are acknowledged up to their ends.
func (w *world) waitDone(t *testing.T, decisions, reviews uint64) {
	t.Helper()
	nodetest.CheckFor(t, 30*time.Second, 20*time.Millisecond, func() error {
		for stream, want := range map[string]uint64{protocol.StreamDecisions: decisions, protocol.StreamReview: reviews} {
			if i := w.consumer(t, stream); i.NumPending != 0 || i.NumAckPending != 0 || i.AckFloor.Stream != want {
				return fmt.Errorf("%s: acknowledged up to %d, want %d; %d pending, %d not acknowledged", stream, i.AckFloor.Stream, want, i.NumPending, i.NumAckPending)
			}
		}
		return nil
	})
}

func (w *world) wantUnacked(t *testing.T, n int) {
	t.Helper()
	i := w.consumer(t, protocol.StreamDecisions)
	if i.AckFloor.Stream != 0 || int(i.NumPending)+i.NumAckPending != n {
		t.Errorf("acknowledged up to %d, %d pending, %d not acknowledged; want none of %d acknowledged", i.AckFloor.Stream, i.NumPending, i.NumAckPending, n)
	}
}

// writeWithoutAck does what an auditor does up to the acknowledgement.
func (w *world) writeWithoutAck(t *testing.T, n int) {
	t.Helper()
	files, err := OpenFiles(FilesConfig{Dir: w.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	js, err := bus.JetStream(w.auditor)
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range Streams {
		cons, err := js.Consumer(t.Context(), stream, Durable)
		if err != nil {
			t.Fatal(err)
		}
		got, err := cons.Fetch(n, jetstream.FetchMaxWait(10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		c := &consumer{cfg: Config{Node: nodetest.Name}, stream: stream, stats: newStats(Streams).of(stream)}
		var batch []Record
		for m := range got.Messages() {
			r, err := c.record(m)
			if err != nil {
				t.Fatal(err)
			}
			batch = append(batch, r)
		}
		appendAll(t, files, n, batch...)
	}
}

// redeliverNow lets the server think that the time to acknowledge is over.
func (w *world) redeliverNow(t *testing.T) {
	t.Helper()
	js, err := bus.JetStream(w.operator)
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range Streams {
		cfg := w.consumer(t, stream).Config
		cfg.AckWait = 500 * time.Millisecond
		if _, err := js.UpdateConsumer(t.Context(), stream, cfg); err != nil {
			t.Fatal(err)
		}
	}
}

func wantOnce(t *testing.T, dir string, each int) {
	t.Helper()
	seen := map[string]int{}
	for _, r := range readLines(t, dir) {
		seen[fmt.Sprint(r.Stream, " ", r.Seq)]++
	}
	for k, n := range seen {
		if n != 1 {
			t.Errorf("%s stands in the log %d times", k, n)
		}
	}
	if len(seen) != 2*each {
		t.Errorf("the log holds %d records, want %d", len(seen), 2*each)
	}
}
