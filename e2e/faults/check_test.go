//go:build faults

package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/record"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/auditor"
)

func (f *fleet) operator() *nats.Conn { return f.cluster.Connect(f.t, protocol.RoleOperator, "check") }

func (f *fleet) recordReader() *record.Reader {
	js, err := bus.JetStream(f.cluster.Connect(f.t, protocol.RoleGate, "reader"))
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := record.Open(f.t.Context(), js, f.cluster.Subjects)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// check holds what was heard against what is recorded.
func (f *fleet) check() {
	nc := f.operator()
	f.nothingPending(nc)
	stored := f.decisions(nc)
	asked := map[string]*told{}
	for _, a := range f.agents {
		for _, w := range a.asks {
			asked[w.id] = w
			f.endedInOne(w, stored[w.id])
		}
	}
	for id := range stored {
		if asked[id] == nil {
			f.t.Errorf("ask %s is decided and nobody asked it", id)
		}
	}
	f.person.check(stored)
	f.auditorHasAll(nc)
}

// nothingPending waits until the last entry is settled: an agent may hear its
// decision a moment before.
func (f *fleet) nothingPending(nc *nats.Conn) {
	nodetest.CheckFor(f.t, settleTime, 100*time.Millisecond, func() error {
		left, err := bus.LastPerKey(context.Background(), nc, protocol.BucketPending)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d asks are pending, the first: %s", len(left), left[0].Value)
		}
		return err
	})
}

func (f *fleet) decisions(nc *nats.Conn) map[string][]protocol.Decision {
	out := map[string][]protocol.Decision{}
	for m, err := range bus.ReadStream(context.Background(), nc, protocol.StreamDecisions, 1, "") {
		if err != nil {
			f.t.Fatal(err)
		}
		d, err := protocol.Read[protocol.Decision](m.Data)
		if err != nil {
			f.t.Fatal(err)
		}
		out[d.Ask] = append(out[d.Ask], d)
	}
	return out
}

// endedInOne: one decision on the record, and it is the one that was heard.
func (f *fleet) endedInOne(w *told, stored []protocol.Decision) {
	switch {
	case w.fault != nil || w.decision == nil:
		f.t.Errorf("ask %s (%s) has no decision: %v; %d on the record", w.id, w.command, w.fault, len(stored))
		return
	case len(stored) != 1:
		f.t.Errorf("ask %s (%s) has %d decisions on the record; heard %s", w.id, w.command, len(stored), w.decision.Outcome)
		return
	}
	heard, kept := w.decision, stored[0]
	if heard.Result != kept.Result || heard.Outcome != kept.Outcome || heard.Gate != kept.Gate || !heard.DecidedAt.Equal(kept.DecidedAt) {
		f.t.Errorf("ask %s (%s): heard %s of %s, on the record is %s of %s", w.id, w.command, heard.Outcome, heard.Gate, kept.Outcome, kept.Gate)
	}
	if len(w.kind.settle) > 0 && !slices.Contains(w.kind.settle, kept.Outcome) {
		f.t.Errorf("ask %s (%s) ended as %s, by %s", w.id, w.command, kept.Outcome, kept.Reason)
	}
	if w.cancelled && kept.Outcome != protocol.Cancelled {
		f.t.Errorf("ask %s (%s): the agent heard that it is withdrawn, on the record is %s", w.id, w.command, kept.Outcome)
	}
}

// check: nobody was asked twice, and an answer that was said to be stored is
// what was decided.
func (p *person) check(stored map[string][]protocol.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, verdict := range p.accepted {
		if d := stored[id]; len(d) != 1 || d[0].Result != verdict || d[0].DecidedBy.Kind != protocol.DeciderHuman {
			p.f.t.Errorf("ask %s: %s was accepted from the person, on the record is %+v", id, verdict, d)
		}
	}
	for id, at := range p.taken {
		if len(at) > 1 {
			p.f.t.Errorf("ask %s was put to people %d times: %v", id, len(at), at)
		}
	}
	for _, heard := range p.prompts {
		for id, n := range heard {
			if n > 1 {
				p.f.t.Errorf("ask %s was prompted %d times", id, n)
			}
		}
	}
}

type place struct {
	stream string
	seq    uint64
}

// auditorHasAll: each message of the two streams stands in the auditor's files
// once, as it is in the stream.
func (f *fleet) auditorHasAll(nc *nats.Conn) {
	want := map[place]string{}
	for _, stream := range auditor.Streams {
		for m, err := range bus.ReadStream(context.Background(), nc, stream, 1, "") {
			if err != nil {
				f.t.Fatal(err)
			}
			want[place{stream, m.Seq}] = string(m.Data)
		}
	}
	nodetest.CheckFor(f.t, settleTime, 200*time.Millisecond, func() error {
		got, err := f.written()
		if err != nil {
			return err
		}
		for at, body := range want {
			if len(got[at]) != 1 || got[at][0] != body {
				return fmt.Errorf("%s %d stands %d times in the auditor's files", at.stream, at.seq, len(got[at]))
			}
		}
		return nil
	})
}

func (f *fleet) written() (map[place][]string, error) {
	files, err := filepath.Glob(filepath.Join(f.dir, "review-*.jsonl"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, errors.New("the auditor has written nothing"))
	}
	out := map[place][]string{}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			var r auditor.Record
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				return nil, err
			}
			at := place{r.Stream, r.Seq}
			out[at] = append(out[at], string(r.Record))
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
