package auditor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// recorded is one decision that a test put into the stream.
type recorded struct {
	id, agent, surface string
	result             protocol.FinalChoice
	outcome            protocol.Outcome
}

// fill records n decisions of a mixed kind.
func (w *world) fill(t *testing.T, n int) []recorded {
	t.Helper()
	js, err := bus.JetStream(w.gate)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := []protocol.Outcome{protocol.AllowedByRule, protocol.AllowedByHuman, protocol.DeniedByRule, protocol.Expired}
	rnd := rand.New(rand.NewPCG(1, 2))
	var all []recorded
	for i := range n {
		r := recorded{id: protocol.NewAskID(), agent: fmt.Sprintf("a%d", rnd.IntN(3)), outcome: outcomes[rnd.IntN(4)], result: protocol.FinalDeny,
			surface: []string{"bash", "read", "mcp exa.search"}[rnd.IntN(3)]}
		if i == n/10 {
			r.agent = "rare"
		}
		if r.outcome.Allows() {
			r.result = protocol.FinalAllow
		}
		subject, err := w.node.Subjects.Decision(r.id, r.agent, r.surface, r.result)
		if err != nil {
			t.Fatal(err)
		}
		body := decision(func(d *protocol.Decision) {
			d.Ask, d.Agent, d.Surface, d.Result, d.Outcome = r.id, r.agent, r.surface, r.result, r.outcome
		})
		if _, err := js.PublishAsync(subject, body); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(20 * time.Second):
		t.Fatal("the decisions are not stored")
	}
	return all
}

func (w *world) reader(t *testing.T) *Reader {
	t.Helper()
	r, err := NewReader(w.auditor, nodetest.Name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLast finds, for every query, exactly the newest records that a slow and
// plain look through all of them finds.
func TestLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.fill(t, 600)
	r := w.reader(t)
	queries := map[string]Query{
		"all":                           {},
		"the newest":                    {Limit: 1},
		"the newest fifty":              {Limit: 50},
		"more than there are":           {Limit: 5000},
		"an agent":                      {Agent: "a1", Limit: 20},
		"an agent with one record":      {Agent: "rare", Limit: 50},
		"an agent that never asked":     {Agent: "nobody", Limit: 50},
		"denials":                       {Result: protocol.FinalDeny, Limit: 30},
		"an outcome":                    {Outcome: protocol.Expired, Limit: 300},
		"a surface":                     {Surface: "read", Limit: 40},
		"a surface that is no token":    {Surface: "mcp exa.search", Limit: 40},
		"another that is no token":      {Surface: "mcp exa.fetch", Limit: 40},
		"all of it together":            {Agent: "a2", Surface: "bash", Result: protocol.FinalAllow, Outcome: protocol.AllowedByHuman, Limit: 10},
		"what contradicts itself":       {Result: protocol.FinalAllow, Outcome: protocol.Expired, Limit: 10},
		"since before the first":        {Since: time.Now().Add(-time.Hour), Limit: 2000},
		"since a moment after the last": {Since: time.Now().Add(time.Hour), Limit: 50},
	}
	for name, q := range queries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, end, err := r.Last(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if want := slowly(all, q); !slices.Equal(asksOf(got), want) {
				t.Errorf("%d records, want %d; or in another order", len(got), len(want))
			}
			if end != uint64(len(all)) {
				t.Errorf("read up to %d, want %d", end, len(all))
			}
		})
	}
}

// slowly is the oracle.
func slowly(all []recorded, q Query) []string {
	ids := []string{}
	for _, r := range all {
		if (q.Agent == "" || r.agent == q.Agent) && (q.Surface == "" || r.surface == q.Surface) &&
			(!q.Result.Valid() || r.result == q.Result) && (q.Outcome == "" || r.outcome == q.Outcome) && q.Since.Before(time.Now()) {
			ids = append(ids, r.id)
		}
	}
	if q.Limit > 0 && len(ids) > q.Limit {
		ids = ids[len(ids)-q.Limit:]
	}
	return ids
}

func asksOf(records []Record) []string {
	ids := []string{}
	for _, r := range records {
		ids = append(ids, r.Ask)
	}
	return ids
}

// TestLastSince: the time is the stream's, and its border belongs to the answer.
func TestLastSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill(t, 300)
	r := w.reader(t)
	all, _, err := r.Last(t.Context(), Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []int{0, 1, 150, 299} {
		got, _, err := r.Last(t.Context(), Query{Since: all[from].At, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 300-from || got[0].Seq != all[from].Seq {
			t.Errorf("since record %d: %d records, want %d", from, len(got), 300-from)
		}
	}
}

func TestLastOfAnEmptyStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, kind := range []Kind{"", KindReview} {
		if got, end, err := w.reader(t).Last(t.Context(), Query{Kind: kind, Limit: 50}); err != nil || len(got) != 0 || end != 0 {
			t.Errorf("%q: %d records up to %d, %v; want nothing", kind, len(got), end, err)
		}
	}
}

// TestOf: everything about one ask, in order, and nothing about another.
func TestOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.publish(t, 5)
	for _, e := range []string{"authorizer_chain_resolved", "permission_request.waiting"} {
		w.send(t, "assent.v1.main.review."+ids[2]+"."+e, review(func(r *protocol.ReviewRecord) { r.Ask, r.Event = ids[2], e }))
	}
	got, err := w.reader(t).Of(t.Context(), ids[2])
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, r := range got {
		kinds = append(kinds, string(r.Kind))
		if r.Ask != ids[2] || r.Broken != "" {
			t.Errorf("record %+v, want a sound one of ask %s", r, ids[2])
		}
	}
	if s := strings.Join(kinds, " "); s != "review decision review review" {
		t.Errorf("records %q, want them in the order of storing", s)
	}
	if got, err := w.reader(t).Of(t.Context(), protocol.NewAskID()); err != nil || len(got) != 0 {
		t.Errorf("an ask that never was: %d records, %v; want none", len(got), err)
	}
	for _, id := range []string{"", "*", ">", strings.ToLower(ids[0])} {
		if _, err := w.reader(t).Of(t.Context(), id); !errors.Is(err, protocol.ErrAskID) {
			t.Errorf("ask %q: %v, want ErrAskID", id, err)
		}
	}
}

// TestQueryCheck: a query that nothing could match, or that would address other
// subjects, is refused and not answered with nothing.
func TestQueryCheck(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]Query{
		"an agent that is a wildcard":   {Agent: ">"},
		"an agent that is two tokens":   {Agent: "a.b"},
		"an agent of the review log":    {Kind: KindReview, Agent: "a1"},
		"a result of the review log":    {Kind: KindReview, Result: protocol.FinalDeny},
		"an outcome of the review log":  {Kind: KindReview, Outcome: protocol.Expired},
		"a surface of the review log":   {Kind: KindReview, Surface: "bash"},
		"a limit that makes no sense":   {Limit: -1},
		"an agent with a space in it":   {Agent: "a b"},
		"an agent that is a lone star":  {Agent: "*"},
		"a negative limit of the other": {Kind: KindReview, Limit: -1},
	} {
		if err := q.Check(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, q := range map[string]Query{
		"nothing":                    {},
		"all of it":                  {Agent: "a1", Surface: "bash", Result: protocol.FinalDeny, Outcome: protocol.Expired, Limit: 1, Since: time.Now()},
		"a surface that is no token": {Surface: "mcp > exa.*"},
		"the review log":             {Kind: KindReview, Limit: 3, Since: time.Now()},
	} {
		if err := q.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// collector takes what Follow hands out.
type collector struct {
	mu  sync.Mutex
	ids []string
}

func (c *collector) add(r Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = append(c.ids, r.Ask)
	return nil
}

func (c *collector) is(want []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.ids, want) {
		return fmt.Errorf("followed %d records, want %d", len(c.ids), len(want))
	}
	return nil
}

// follow runs Follow until the test is over.
func follow(t *testing.T, r *Reader, q Query, after uint64) *collector {
	t.Helper()
	c := &collector{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Follow(ctx, q, after, nodetest.Logger(t), c.add) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Follow: %v", err)
		}
	})
	return c
}

// TestFollow: what is stored after the given place, once, in order, filtered.
func TestFollow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.fill(t, 20)
	r := w.reader(t)
	all := follow(t, r, Query{}, uint64(len(old)))
	denied := follow(t, r, Query{Result: protocol.FinalDeny}, 0)
	rest := w.fill(t, 40)
	nodetest.CheckFor(t, 20*time.Second, 20*time.Millisecond, func() error {
		return errors.Join(all.is(slowly(rest, Query{})), denied.is(slowly(append(old, rest...), Query{Result: protocol.FinalDeny})))
	})
}

func TestFollowEndsWhenItsReaderDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill(t, 2)
	broken := errors.New("the pipe is closed")
	err := w.reader(t).Follow(t.Context(), Query{}, 0, nodetest.Logger(t), func(Record) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("Follow: %v, want the reader's error", err)
	}
}

// TestFollowSurvivesItsServer: nothing is missing and nothing twice over a
// restart of the server.
func TestFollowSurvivesItsServer(t *testing.T) {
	t.Parallel()
	dir := nodetest.Dir(t)
	n, err := node.Start(t.Context(), node.Config{Listen: "127.0.0.1:0", Node: nodetest.Name, Store: dir, NoSyncAlways: true, Logger: nodetest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(n.ClientURL(), "nats://")
	w := worldOn(t, &nodetest.Node{Node: n, Subjects: subjects(t)}, func(creds []byte) *nats.Conn { return dial(t, n.ClientURL(), creds) })
	c := follow(t, w.reader(t), Query{}, 0)
	before := w.fill(t, 5)
	nodetest.CheckFor(t, 20*time.Second, 20*time.Millisecond, func() error { return c.is(slowly(before, Query{})) })
	if err := n.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}

	w.node = nodetest.Start(t, nodetest.Store(dir), func(c *node.Config) { c.Listen = address })
	w.gate = w.node.Connect(t, protocol.RoleGate, "g1")
	after := w.fill(t, 5)
	nodetest.CheckFor(t, 30*time.Second, 20*time.Millisecond, func() error { return c.is(slowly(append(before, after...), Query{})) })
}
