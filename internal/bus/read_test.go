package bus_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

func jetStream(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := bus.JetStream(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestAnApproverReadsEveryPendingEntryOverTheBorder(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	ctx := t.Context()
	kv, err := jetStream(t, n.Connect(t, protocol.RoleGate, "g1")).KeyValue(ctx, protocol.BucketPending)
	if err != nil {
		t.Fatal(err)
	}
	desk := n.Connect(t, protocol.RoleApprover, "p1")
	if all, err := bus.LastPerKey(ctx, desk, protocol.BucketPending); err != nil || len(all) != 0 {
		t.Fatalf("empty: %v %v", all, err)
	}
	const keys = 600 // more than two batches
	want := map[string]string{}
	for i := range keys {
		key := fmt.Sprintf("k%d", i)
		if _, err := kv.Put(ctx, key, []byte("first")); err != nil {
			t.Fatal(err)
		}
		want[key] = "first"
	}
	for i := 0; i < keys; i += 7 {
		key := fmt.Sprintf("k%d", i)
		switch i % 3 {
		case 0:
			_, err = kv.Put(ctx, key, []byte("second"))
			want[key] = "second"
		case 1:
			err = kv.Delete(ctx, key)
			delete(want, key)
		default:
			err = kv.Purge(ctx, key, jetstream.PurgeTTL(time.Hour))
			delete(want, key)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := bus.LastPerKey(ctx, desk, protocol.BucketPending)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d entries, want %d: %v", len(got), len(want), err)
	}
	for i, e := range got {
		if want[e.Key] != string(e.Value) {
			t.Errorf("%s: %q, want %q", e.Key, e.Value, want[e.Key])
		}
		if i > 0 && got[i-1].Revision >= e.Revision {
			t.Errorf("out of order at %s", e.Key)
		}
		if again, err := kv.Get(ctx, e.Key); i%50 == 0 && (err != nil || again.Revision() != e.Revision) {
			t.Errorf("%s: revision %d, %v %v", e.Key, e.Revision, again, err)
		}
	}
	t.Run("and one by its key", func(t *testing.T) {
		m, err := desk.Request(bus.BorderAPI+".DIRECT.GET.KV_ASSENT_PENDING.$KV.ASSENT_PENDING.k1", nil, 5*time.Second)
		if err != nil || string(m.Data) != want["k1"] {
			t.Errorf("%v %v", m, err)
		}
	})
}

func TestReadingWhatOneMayNotReadIsAnErrorAndNotAnEmptyList(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Quiet())
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	desk := n.Connect(t, protocol.RoleApprover, "p1")
	if all, err := bus.LastPerKey(ctx, desk, protocol.BucketGrants); !errors.Is(err, bus.ErrRead) || all != nil {
		t.Errorf("%v %v", all, err)
	}
	if all, err := bus.LastPerKey(t.Context(), n.Connect(t, protocol.RoleOperator, "op"), "NONE"); !errors.Is(err, bus.ErrRead) || all != nil {
		t.Errorf("%v %v", all, err)
	}
	seen := 0
	for m, err := range bus.ReadStream(ctx, desk, protocol.StreamDecisions, 0, "") {
		seen++
		if !errors.Is(err, bus.ErrRead) {
			t.Errorf("%v %v", m, err)
		}
	}
	if seen != 1 {
		t.Errorf("%d yields", seen)
	}
}

// record writes n decisions and returns the id of the last one's ask.
func record(t *testing.T, node *nodetest.Node, n int) (last string) {
	t.Helper()
	gate := jetStream(t, node.Connect(t, protocol.RoleGate, "g1"))
	for i := range n {
		last = protocol.NewAskID()
		subject, err := node.Subjects.Decision(last, "a1", "bash", protocol.FinalDeny)
		if err != nil {
			t.Fatal(err)
		}
		msg := nats.NewMsg(subject)
		msg.Data = fmt.Append(nil, i)
		msg.Header.Set("traceparent", "x")
		if _, err := gate.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

func TestAnAuditorReadsTheRecordBySequence(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	last := record(t, n, 5)
	of, err := n.Subjects.DecisionOf(last)
	if err != nil {
		t.Fatal(err)
	}
	auditor := n.Connect(t, protocol.RoleAuditor, "u1")
	for _, row := range []struct {
		from   uint64
		filter string
		want   []uint64
	}{
		{0, "", []uint64{1, 2, 3, 4, 5}}, {1, "", []uint64{1, 2, 3, 4, 5}}, {4, "", []uint64{4, 5}},
		{0, of, []uint64{5}}, {6, "", nil}, {0, "assent.v1.main.decision.none.>", nil},
	} {
		var got []uint64
		for m, err := range bus.ReadStream(t.Context(), auditor, protocol.StreamDecisions, row.from, row.filter) {
			if err != nil {
				t.Fatal(err)
			}
			if string(m.Data) != fmt.Sprint(m.Seq-1) || m.Header.Get("traceparent") != "x" || m.Time.IsZero() {
				t.Errorf("%+v", m)
			}
			got = append(got, m.Seq)
		}
		if fmt.Sprint(got) != fmt.Sprint(row.want) {
			t.Errorf("from %d %q: %v, want %v", row.from, row.filter, got, row.want)
		}
	}
	for range bus.ReadStream(t.Context(), auditor, protocol.StreamDecisions, 0, "") {
		break // stopping early is allowed
	}
}

func TestAnAuditorPullsAndAcknowledgesItsConsumer(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	record(t, n, 40)
	auditor := n.Connect(t, protocol.RoleAuditor, "u1")
	cons, err := jetStream(t, auditor).Consumer(t.Context(), protocol.StreamDecisions, "auditor")
	if err != nil {
		t.Fatal(err)
	}
	batch, err := cons.Fetch(25, jetstream.FetchMaxWait(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for m := range batch.Messages() {
		meta, err := m.Metadata()
		if err != nil || meta.Sequence.Stream != uint64(seen+1) || meta.Stream != protocol.StreamDecisions {
			t.Errorf("%+v %v", meta, err)
		}
		if err := m.DoubleAck(t.Context()); err != nil {
			t.Error(err)
		}
		seen++
	}
	if seen != 25 || batch.Error() != nil {
		t.Fatalf("%d of 25: %v", seen, batch.Error())
	}
	it, err := cons.Messages(jetstream.PullMaxMessages(10))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Stop()
	for seen < 40 {
		m, err := it.Next(jetstream.NextMaxWait(5 * time.Second))
		if err != nil {
			t.Fatalf("after %d: %v", seen, err)
		}
		if err := m.DoubleAck(t.Context()); err != nil {
			t.Error(err)
		}
		seen++
	}
	info, err := cons.Info(t.Context())
	if err != nil || info.AckFloor.Stream != 40 || info.NumAckPending != 0 || info.NumPending != 0 {
		t.Errorf("%+v %v", info, err)
	}
	t.Run("and what comes later", func(t *testing.T) {
		record(t, n, 1)
		m, err := it.Next(jetstream.NextMaxWait(5 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.DoubleAck(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
