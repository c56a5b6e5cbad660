package link_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const name = "careful"

// gate plays the gate's side of the wire, with a gate's own credentials.
type gate struct {
	t  testing.TB
	n  *nodetest.Node
	nc *nats.Conn

	mu   sync.Mutex
	logs []protocol.LogRecord
	// onLog and onQuery answer the capabilities instead of the defaults.
	onLog, onQuery func(*nats.Msg)
}

func newGate(t testing.TB, n *nodetest.Node) *gate {
	t.Helper()
	g := &gate{t: t, n: n, nc: n.Connect(t, protocol.RoleGate, "g1")}
	logs, _ := n.Subjects.Logs("g1")
	queries, _ := n.Subjects.Queries("g1")
	g.subscribe(logs, g.log)
	g.subscribe(queries, g.query)
	if err := g.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *gate) subscribe(subject string, f nats.MsgHandler) {
	g.t.Helper()
	if _, err := g.nc.Subscribe(subject, f); err != nil {
		g.t.Fatal(err)
	}
}

// log keeps each record; the capability token is the ask's id.
func (g *gate) log(m *nats.Msg) {
	rec, err := protocol.Read[protocol.LogRecord](m.Data)
	if err != nil {
		g.t.Errorf("log record: %v", err)
		return
	}
	g.mu.Lock()
	g.logs = append(g.logs, rec)
	answer := g.onLog
	g.mu.Unlock()
	if answer != nil {
		answer(m)
		return
	}
	respond(g.t, m, protocol.LogReceipt{Ask: capability(m), Kept: rec.Level == protocol.LevelReview})
}

func (g *gate) query(m *nats.Msg) {
	if g.onQuery != nil {
		g.onQuery(m)
		return
	}
	q, err := protocol.Read[protocol.Query](m.Data)
	if err != nil {
		g.t.Errorf("query: %v", err)
		return
	}
	respond(g.t, m, protocol.Check{State: protocol.ActionAsk, MatchedPattern: q.Value, Origin: "fleet"})
}

func capability(m *nats.Msg) string { return m.Subject[strings.LastIndexByte(m.Subject, '.')+1:] }

func respond(t testing.TB, m *nats.Msg, v any) {
	data, err := json.Marshal(v)
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		t.Errorf("responding: %v", err)
	}
}

func (g *gate) events() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var events []string
	for _, r := range g.logs {
		events = append(events, r.Level+" "+r.Event+" "+string(r.Fields))
	}
	return events
}

// request is a link request on a new ask, good for patience.
func (g *gate) request(patience time.Duration) protocol.LinkRequest {
	id := protocol.NewAskID()
	query, _ := g.n.Subjects.Query("g1", id)
	log, _ := g.n.Subjects.Log("g1", id)
	return protocol.LinkRequest{
		Link: name,
		Ask: protocol.Ask{V: 1, ID: id, Agent: "ci-42", Cwd: "/repo",
			Tool: protocol.Tool{Name: "bash", Input: []byte(`{"command":"git push"}`)}},
		Asks:     []protocol.Entry{{Surface: "bash", Value: "git push", MatchedPattern: "*", Origin: "fleet"}},
		Units:    []protocol.Unit{{Text: "git push", Decision: protocol.ActionAsk}},
		Deadline: time.Now().Add(patience), Query: query, Log: log, PolicyRevision: 12,
	}
}

func (g *gate) subject() string {
	s, _ := g.n.Subjects.Link(name)
	return s
}

// ask sends r and reads the verdict as a gate does.
func (g *gate) ask(r protocol.LinkRequest) (protocol.Verdict, error) {
	data, err := protocol.Write(r)
	if err != nil {
		return protocol.Verdict{}, err
	}
	m, err := g.nc.Request(g.subject(), data, 5*time.Second)
	if err != nil {
		return protocol.Verdict{}, err
	}
	return protocol.ReadVerdictFor(r.Ask.ID, m.Data)
}

func (g *gate) mustAsk(r protocol.LinkRequest) protocol.Verdict {
	g.t.Helper()
	v, err := g.ask(r)
	if err != nil {
		g.t.Fatalf("asking the link: %v", err)
	}
	return v
}

// worker is a link being served; stop ends it and returns what Serve said, wait
// waits for it to end by itself.
type worker struct {
	stop, wait func() error
}

func serve(t testing.TB, n *nodetest.Node, l link.Link, opts ...link.Option) *worker {
	t.Helper()
	return serveOn(t, n.Connect(t, protocol.RoleJudge, "j1"), l, opts...)
}

func serveOn(t testing.TB, nc *nats.Conn, l link.Link, opts ...link.Option) *worker {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	ready := make(chan struct{})
	opts = append([]link.Option{link.Logger(slog.New(slog.DiscardHandler)), link.Version("1.2.3"), link.Ready(func() { close(ready) })}, opts...)
	go func() { done <- link.Serve(ctx, nc, name, l, opts...) }()
	wait := sync.OnceValue(func() error { return <-done })
	w := &worker{stop: func() error { cancel(); return wait() }, wait: wait}
	t.Cleanup(func() {
		if err := w.stop(); err != nil && !errors.Is(err, link.ErrClosed) && !errors.Is(err, link.ErrStuck) {
			t.Errorf("Serve: %v", err)
		}
	})
	select {
	case <-ready:
	case <-time.After(10 * time.Second):
		t.Fatal("the link is not ready")
	}
	return w
}

// running is the metadata of the links that the operator sees.
func running(t testing.TB, n *nodetest.Node) []map[string]string {
	t.Helper()
	nc := n.Connect(t, protocol.RoleOperator, "op")
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	subject, _ := micro.ControlSubject(micro.PingVerb, protocol.ServiceLink, "")
	if err := nc.PublishRequest(subject, inbox, nil); err != nil {
		t.Fatal(err)
	}
	var found []map[string]string
	for {
		m, err := sub.NextMsg(200 * time.Millisecond)
		if err != nil {
			return found
		}
		meta := pingMetadata(t, m.Data)
		if meta != nil && !slices.ContainsFunc(found, func(o map[string]string) bool { return o["link"] == meta["link"] }) {
			found = append(found, meta)
		}
	}
}

func pingMetadata(t testing.TB, data []byte) map[string]string {
	t.Helper()
	var ping struct {
		Metadata map[string]string `json:"metadata"`
	}
	if len(data) == 0 {
		return nil // no responders
	}
	if err := json.Unmarshal(data, &ping); err != nil {
		t.Fatal(err)
	}
	return ping.Metadata
}
