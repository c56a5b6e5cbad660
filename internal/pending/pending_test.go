package pending_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const soon = 15 * time.Second

// bucket is the bucket of a real node, as a gate and a terminal see it.
type bucket struct {
	t              *testing.T
	node           *nodetest.Node
	gate, terminal *pending.Store
	raw            *nats.Conn
}

func open(t *testing.T, opts ...nodetest.Option) *bucket {
	t.Helper()
	n := nodetest.Start(t, append(opts, nodetest.Quiet())...)
	b := &bucket{t: t, node: n, raw: n.Connect(t, protocol.RoleTerminal, "raw")}
	b.gate = b.store(n.Connect(t, protocol.RoleGate, "g"))
	b.terminal = b.store(n.Connect(t, protocol.RoleTerminal, "t"))
	return b
}

func (b *bucket) store(nc *nats.Conn) *pending.Store {
	b.t.Helper()
	js, err := bus.JetStream(nc)
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := pending.Open(context.Background(), js)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func entry() protocol.Pending {
	now := time.Now().UTC()
	return protocol.Pending{
		Ask:    protocol.Ask{V: protocol.CurrentVersion, ID: protocol.NewAskID(), Agent: "ci", Tool: protocol.Tool{Name: "bash", Input: jsontext.Value(`{"command":"make"}`)}},
		Digest: "sha256:x", Node: nodetest.Name, Role: protocol.TerminalHuman, Stage: "terminal:human", Since: now, Deadline: now.Add(time.Hour),
	}
}

func (b *bucket) create(p protocol.Pending) pending.Item {
	b.t.Helper()
	item, err := b.gate.Create(context.Background(), p)
	if err != nil {
		b.t.Fatal(err)
	}
	return item
}

// write puts a value under a key, whatever it is.
func (b *bucket) write(key, value string) {
	b.t.Helper()
	if _, err := b.raw.Request("$KV."+protocol.BucketPending+"."+key, []byte(value), soon); err != nil {
		b.t.Fatal(err)
	}
}

func TestAnEntryIsCreatedOnceAndGoesOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := open(t)
	p := entry()
	item := b.create(p)
	if _, err := b.gate.Create(ctx, p); !errors.Is(err, pending.ErrExists) {
		t.Errorf("created twice: %v", err)
	}
	got, err := b.terminal.Get(ctx, p.Ask.ID)
	if err != nil || got.Revision != item.Revision || got.Ask.ID != p.Ask.ID || !got.Deadline.Equal(p.Deadline) {
		t.Errorf("%+v %v", got, err)
	}
	for range 2 {
		if err := b.gate.Delete(ctx, p.Ask.ID); err != nil {
			t.Errorf("deleting: %v", err)
		}
	}
	for what, err := range map[string]error{
		"get":    second(b.gate.Get(ctx, p.Ask.ID)),
		"update": second(b.gate.Update(ctx, p.Ask.ID, func(*protocol.Pending) error { return nil })),
		"from":   second(b.gate.UpdateFrom(ctx, item, func(*protocol.Pending) error { return nil })),
		"never":  second(b.gate.Get(ctx, protocol.NewAskID())),
	} {
		if !errors.Is(err, pending.ErrGone) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if again := b.create(p); again.Revision <= item.Revision {
		t.Error("an id may be opened again, under a later revision")
	}
}

func second[T any](_ T, err error) error { return err }

func TestChangesThatMeetAreAllMade(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := open(t)
	item := b.create(entry())
	const writers, each = 8, 5
	var wg sync.WaitGroup
	for i := range writers {
		store := b.gate
		if i%2 == 1 {
			store = b.terminal
		}
		wg.Go(func() {
			for range each {
				// From the oldest state there is: every one but the first has to try again.
				if _, err := store.UpdateFrom(ctx, item, func(p *protocol.Pending) error {
					p.Suggest = append(p.Suggest, "x")
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := b.gate.Get(ctx, item.Ask.ID)
	if err != nil || len(got.Suggest) != writers*each {
		t.Errorf("%d changes of %d: %v", len(got.Suggest), writers*each, err)
	}
}

func TestAChangeThatIsRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := open(t)
	item := b.create(entry())
	no := errors.New("no")
	ran := 0
	_, err := b.gate.Update(ctx, item.Ask.ID, func(p *protocol.Pending) error { ran++; p.Stage = "stolen"; return no })
	if !errors.Is(err, no) || ran != 1 {
		t.Errorf("%v after %d runs", err, ran)
	}
	if _, err := b.gate.Update(ctx, item.Ask.ID, func(p *protocol.Pending) error { p.Role = ""; return nil }); !errors.Is(err, protocol.ErrField) {
		t.Errorf("an entry that nobody could read: %v", err)
	}
	if _, err := b.gate.Update(ctx, item.Ask.ID, func(p *protocol.Pending) error {
		p.Prompt.Description = strings.Repeat("a", pending.MaxBytes)
		return nil
	}); !errors.Is(err, protocol.ErrTooLarge) {
		t.Errorf("an entry too large: %v", err)
	}
	got, err := b.gate.Get(ctx, item.Ask.ID)
	if err != nil || got.Revision != item.Revision || got.Stage != item.Stage {
		t.Errorf("%+v %v", got, err)
	}
	big := entry()
	big.Prompt.Description = strings.Repeat("a", pending.MaxBytes)
	if _, err := b.gate.Create(ctx, big); !errors.Is(err, protocol.ErrTooLarge) {
		t.Errorf("created too large: %v", err)
	}
}

func TestABrokenEntryIsNoEntry(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := open(t)
	other := b.create(entry())
	body, err := protocol.Write(other.Pending)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"junk": "%%%", "nothing": "", "no ask": `{"v":1}`, "another ask": string(body), "another version": strings.Replace(string(body), `"v":1`, `"v":2`, 1)} {
		t.Run(name, func(t *testing.T) {
			id := protocol.NewAskID()
			b.write(id, value)
			if _, err := b.gate.Get(ctx, id); !errors.Is(err, pending.ErrBroken) {
				t.Errorf("get: %v", err)
			}
			if _, err := b.gate.Update(ctx, id, func(*protocol.Pending) error { return nil }); !errors.Is(err, pending.ErrBroken) {
				t.Errorf("update: %v", err)
			}
			p := entry()
			p.Ask.ID = id
			if _, err := b.gate.Create(ctx, p); !errors.Is(err, pending.ErrExists) {
				t.Errorf("create: %v", err)
			}
			if _, err := b.gate.UpdateFrom(ctx, pending.Item{Pending: p, Revision: 1}, func(*protocol.Pending) error { return nil }); !errors.Is(err, pending.ErrBroken) {
				t.Errorf("from: %v", err)
			}
		})
	}
}

func TestADeadBucketHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	b := open(t)
	item := b.create(entry())
	op := b.node.Connect(t, protocol.RoleOperator, "op")
	js, err := bus.JetStream(op)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteKeyValue(context.Background(), protocol.BucketPending); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background() // without a deadline of its own
	for what, call := range map[string]func() error{
		"create": func() error { return second(b.gate.Create(ctx, entry())) },
		"get":    func() error { return second(b.gate.Get(ctx, item.Ask.ID)) },
		"update": func() error {
			return second(b.gate.UpdateFrom(ctx, item, func(*protocol.Pending) error { return nil }))
		},
		"delete": func() error { return b.gate.Delete(ctx, item.Ask.ID) },
	} {
		began := time.Now()
		err := call()
		if took := time.Since(began); err == nil || took > 8*time.Second || errors.Is(err, pending.ErrGone) {
			t.Errorf("%s: %v after %s", what, err, took)
		}
	}
}

func TestWhatIsOpenOutlivesTheNode(t *testing.T) {
	t.Parallel()
	dir := nodetest.Dir(t)
	b := open(t, nodetest.Store(dir))
	item := b.create(entry())
	b.raw.Close()
	if err := b.node.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, nodetest.Store(dir)).gate.Get(context.Background(), item.Ask.ID)
	if err != nil || got.Revision != item.Revision || got.Stage != item.Stage {
		t.Errorf("%+v %v", got, err)
	}
}

func TestWithoutABucketThereIsNoStore(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Quiet())
	js, err := bus.JetStream(n.Connect(t, protocol.RoleAgent, "ci"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s, err := pending.Open(ctx, js); err == nil || s != nil || errors.Is(err, jetstream.ErrJetStreamNotEnabled) && s != nil {
		t.Errorf("an agent has the bucket: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	p := entry()
	good, err := protocol.Write(p)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(p.Ask.ID, good)
	f.Add(protocol.NewAskID(), good)
	f.Add("", []byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		item, err := pending.Decode(key, value, 7)
		if err != nil {
			if !errors.Is(err, pending.ErrBroken) || item.Revision != 0 || item.Ask.ID != "" {
				t.Fatalf("%+v with %v", item, err)
			}
			return
		}
		// What is read is that key's ask, and can be stored again.
		if item.Ask.ID != key || item.Revision != 7 {
			t.Fatalf("%s holds %s", key, item.Ask.ID)
		}
		again, err := protocol.Write(item.Pending, protocol.MaxBytes(2*pending.MaxBytes))
		if err != nil {
			t.Fatalf("cannot be stored again: %v", err)
		}
		if _, err := pending.Decode(key, again, 8); err != nil && len(again) <= pending.MaxBytes {
			t.Fatalf("cannot be read again: %v", err)
		}
	})
}
