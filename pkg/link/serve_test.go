package link_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

func always(v protocol.Verdict) link.Link {
	return func(context.Context, link.Request) (protocol.Verdict, error) { return v, nil }
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	var judge atomic.Pointer[link.Link]
	serve(t, n, func(ctx context.Context, r link.Request) (protocol.Verdict, error) { return (*judge.Load())(ctx, r) })
	rows := []struct {
		name     string
		judge    link.Link
		verdict  protocol.Choice
		failure  string
		inReason string
	}{
		{"an allow is passed on", always(link.Allow("harmless")), protocol.ChoiceAllow, "", "harmless"},
		{"a deny is passed on", always(link.Deny("use pnpm")), protocol.ChoiceDeny, "", "use pnpm"},
		{"a defer is passed on", always(link.Defer("not mine")), protocol.ChoiceDefer, "", "not mine"},
		{"the link's own failure is passed on", always(link.Unable("breaker_open", "resting")), protocol.ChoiceDefer, "breaker_open", "resting"},
		{"a verdict for this ask is passed on", func(_ context.Context, r link.Request) (protocol.Verdict, error) {
			v := link.Allow("")
			v.Ask = r.Ask.ID
			return v, nil
		}, protocol.ChoiceAllow, "", ""},

		{"the zero verdict defers", always(protocol.Verdict{}), protocol.ChoiceDefer, "malformed", "verdict is missing"},
		{"a deny without a reason defers", always(link.Deny("")), protocol.ChoiceDefer, "malformed", "without a reason"},
		{"an endless reason defers", always(link.Deny(strings.Repeat("x", protocol.MaxReason+1))), protocol.ChoiceDefer, "malformed", "limit"},
		{"a failure that is no word defers", always(link.Unable("a b", "")), protocol.ChoiceDefer, "malformed", "failure"},
		{"an allow with a failure defers", always(protocol.Verdict{Verdict: protocol.ChoiceAllow, Failure: "x"}), protocol.ChoiceDefer, "malformed", "failure"},
		{"a verdict on another ask defers", always(protocol.Verdict{Ask: protocol.NewAskID(), Verdict: protocol.ChoiceAllow}), protocol.ChoiceDefer, "error", "another ask"},
		{"an error defers, also beside an allow", func(context.Context, link.Request) (protocol.Verdict, error) {
			return link.Allow("yes"), errors.New("disk on fire\x1b[2J" + strings.Repeat("!", 1000))
		}, protocol.ChoiceDefer, "error", "disk on fire·[2J"},
		{"a panic defers", func(context.Context, link.Request) (protocol.Verdict, error) { panic("boom") }, protocol.ChoiceDefer, "error", "panicked: boom"},
		{"a goroutine that ends defers", func(context.Context, link.Request) (protocol.Verdict, error) {
			runtime.Goexit()
			return link.Allow(""), nil
		}, protocol.ChoiceDefer, "error", "ended its goroutine"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			judge.Store(&row.judge)
			v := g.mustAsk(g.request(5 * time.Second))
			if v.Verdict != row.verdict || v.Failure != row.failure || !strings.Contains(v.Reason, row.inReason) {
				t.Errorf("verdict %s, failure %q, reason %q", v.Verdict, v.Failure, v.Reason)
			}
			if row.failure != "" && len(v.Reason) > 310 {
				t.Errorf("the cause takes %d bytes of the trail", len(v.Reason))
			}
		})
	}
}

func TestRequestIsHandedOver(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	want := g.request(5 * time.Second)
	got := make(chan link.Request, 1)
	serve(t, n, func(ctx context.Context, r link.Request) (protocol.Verdict, error) {
		if d, ok := ctx.Deadline(); !ok || !d.Equal(r.Deadline) {
			t.Errorf("the context ends at %v, the request at %v", d, r.Deadline)
		}
		got <- r
		return link.Defer(""), nil
	})
	g.mustAsk(want)
	r := <-got
	if r.Ask.ID != want.Ask.ID || r.Asks[0] != want.Asks[0] || r.Units[0] != want.Units[0] || !r.Deadline.Equal(want.Deadline) || r.PolicyRevision != 12 {
		t.Errorf("handed over %+v, sent %+v", r, want)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	release := make(chan struct{})
	called := make(chan struct{}, 10)
	serve(t, n, func(ctx context.Context, r link.Request) (protocol.Verdict, error) {
		called <- struct{}{}
		if r.Ask.AgentName == "deaf" {
			<-release
			return link.Allow("late"), nil
		}
		<-ctx.Done()
		return link.Allow("late"), ctx.Err()
	}, link.Concurrency(1))

	if v := g.mustAsk(g.request(-time.Second)); v.Verdict != protocol.ChoiceDefer || v.Failure != "expired" || len(called) != 0 {
		t.Errorf("a request after its deadline: %+v, the link was called %d times", v, len(called))
	}
	if v := g.mustAsk(g.request(200 * time.Millisecond)); v.Verdict != protocol.ChoiceDefer || v.Failure != "timeout" {
		t.Errorf("a link that heeds its context: %+v", v)
	}
	deaf := g.request(200 * time.Millisecond)
	deaf.Ask.AgentName = "deaf"
	nodetest.CheckFor(t, 5*time.Second, time.Millisecond, func() error {
		// The one before may need a moment to return.
		deaf.Deadline = time.Now().Add(200 * time.Millisecond)
		if v := g.mustAsk(deaf); v.Verdict != protocol.ChoiceDefer || v.Failure != "timeout" {
			return fmt.Errorf("a link that does not heed its context: %+v", v)
		}
		return nil
	})
	if v := g.mustAsk(g.request(5 * time.Second)); v.Failure != "busy" {
		t.Errorf("while a link is still at work its slot is taken: %+v", v)
	}
	close(release)
}

func TestForeignReplySubjectIsNotAnswered(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	called := make(chan string, 20)
	w := serve(t, n, func(_ context.Context, r link.Request) (protocol.Verdict, error) {
		called <- r.Ask.ID
		return link.Deny("no"), nil
	}, link.Concurrency(20))
	op := n.Connect(t, protocol.RoleOperator, "watcher")
	before := streams(t, op)

	hostile := []string{
		"", "$KV.ASSENT_POLICY.fleet", "$JS.API.STREAM.DELETE.ASSENT_DECISIONS",
		decisionSubject(n), "_INBOX.judge.j1.x.y", "_INBOX.agent.a1.x.y", "_INBOX.gate.g1", "_INBOX.gate", "_R_.abc.def",
	}
	for _, reply := range hostile {
		data, err := protocol.Write(g.request(5 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if err := g.nc.PublishMsg(&nats.Msg{Subject: g.subject(), Reply: reply, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	// The same connection, the same subscription: what came before is done when
	// this one is answered.
	honest := g.request(5 * time.Second)
	if v := g.mustAsk(honest); v.Verdict != protocol.ChoiceDeny {
		t.Errorf("an honest request after them: %+v", v)
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if id := <-called; id != honest.Ask.ID || len(called) != 0 {
		t.Errorf("the link judged an ask whose answer goes elsewhere")
	}
	if after := streams(t, op); after != before {
		t.Errorf("the streams were %s and are %s", before, after)
	}
}

func decisionSubject(n *nodetest.Node) string {
	s, _ := n.Subjects.Decision(protocol.NewAskID(), "ci-42", "bash", protocol.FinalAllow)
	return s
}

// streams counts what every stream of the node holds, buckets included.
func streams(t *testing.T, op *nats.Conn) string {
	t.Helper()
	js, err := jetstream.New(op)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, name := range []string{protocol.StreamDecisions, protocol.StreamReview, "KV_" + protocol.BucketPolicy, "KV_" + protocol.BucketPending} {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatalf("stream %s: %v", name, err)
		}
		fmt.Fprintf(&b, "%s=%d ", name, s.CachedInfo().State.LastSeq)
	}
	return b.String()
}

func TestRequestsThatAreNone(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	var calls atomic.Int32
	serve(t, n, func(context.Context, link.Request) (protocol.Verdict, error) {
		calls.Add(1)
		return link.Allow(""), nil
	})
	good, err := protocol.Write(g.request(5 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	swap := func(old, new string) string {
		if !strings.Contains(string(good), old) {
			t.Fatalf("%s is not in %s", old, good)
		}
		return strings.Replace(string(good), old, new, 1)
	}
	rows := []struct{ name, data, code string }{
		{"nothing", "", "invalid"},
		{"no JSON", "allow", "invalid"},
		{"another version", swap(`"v":1`, `"v":2`), "invalid"},
		{"a key twice", swap(`"v":1`, `"v":1,"v":1`), "invalid"},
		{"invalid UTF-8", swap("ci-42", "ci-\xff"), "invalid"},
		{"for another link", swap(`"careful"`, `"other"`), "invalid"},
		{"capabilities of another node", swap("assent.v1.main.log", "assent.v1.evil.log"), "invalid"},
		{"a capability that is none", swap("assent.v1.main.query", "assent.v1.main.decision"), "invalid"},
		{"nothing open", swap(`"asks":[{`, `"asks":[],"x":[{`), "invalid"},
		{"too large", swap(`"v":1`, `"v":1,"x":"`+strings.Repeat("x", protocol.CarrierMaxBytes-len(good))+`"`), "too_large"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			m, err := g.nc.Request(g.subject(), []byte(row.data), 5*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if m.Header.Get(protocol.HeaderErrorCode) != row.code {
				t.Errorf("headers %v", m.Header)
			}
			e, err := protocol.Read[protocol.ErrorReply](m.Data)
			if err != nil || string(e.Error.Code) != row.code || e.Error.Message == "" || e.Error.Remedy == "" {
				t.Errorf("body %s: %v", m.Data, err)
			}
			if _, err := protocol.Read[protocol.Verdict](m.Data); err == nil {
				t.Error("a refusal reads as a verdict")
			}
		})
	}
	if calls.Load() != 0 {
		t.Errorf("the link judged %d requests that are none", calls.Load())
	}
}

func TestOverTheBoundIsBusy(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	begun, release := make(chan struct{}), make(chan struct{})
	serve(t, n, func(ctx context.Context, _ link.Request) (protocol.Verdict, error) {
		begun <- struct{}{}
		<-release
		return link.Deny("no"), nil
	}, link.Concurrency(2))
	first := make(chan protocol.Verdict, 2)
	for range 2 {
		go func() { v, _ := g.ask(g.request(5 * time.Second)); first <- v }()
		<-begun
	}
	v := g.mustAsk(g.request(5 * time.Second))
	if v.Verdict != protocol.ChoiceDefer || v.Failure != link.FailureBusy || !strings.Contains(v.Reason, "2 asks") {
		t.Errorf("over the bound: %+v", v)
	}
	if m, err := g.nc.Request(g.subject(), []byte("{}"), 5*time.Second); err != nil || m.Header.Get(protocol.HeaderErrorCode) != "invalid" {
		t.Errorf("over the bound, no request: %v, %v", m, err)
	}
	close(release)
	for range 2 {
		if v := <-first; v.Verdict != protocol.ChoiceDeny {
			t.Errorf("within the bound: %+v", v)
		}
	}
}

func TestTwoWorkersShareTheAsks(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	var one, two atomic.Int32
	counting := func(c *atomic.Int32) link.Link {
		return func(context.Context, link.Request) (protocol.Verdict, error) {
			c.Add(1)
			return link.Deny("no"), nil
		}
	}
	serveOn(t, n.Connect(t, protocol.RoleJudge, "j1"), counting(&one))
	second := serveOn(t, n.Connect(t, protocol.RoleJudge, "j2"), counting(&two))
	const asks = 60
	for range asks {
		if v := g.mustAsk(g.request(5 * time.Second)); v.Verdict != protocol.ChoiceDeny {
			t.Fatalf("%+v", v)
		}
	}
	if one.Load() == 0 || two.Load() == 0 || one.Load()+two.Load() != asks {
		t.Errorf("the workers judged %d and %d of %d asks", one.Load(), two.Load(), asks)
	}
	if err := second.stop(); err != nil {
		t.Fatal(err)
	}
	before := one.Load()
	for range 10 {
		g.mustAsk(g.request(5 * time.Second))
	}
	if one.Load() != before+10 {
		t.Errorf("with one worker left it judged %d of 10", one.Load()-before)
	}
}

func TestAnnouncement(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	serve(t, n, always(link.Defer("")))
	m := running(t, n)
	if len(m) != 1 || m[0]["link"] != name || m[0]["node"] != "main" || m[0]["version"] != "1.2.3" || m[0][link.MetadataHealth] != link.HealthOK {
		t.Errorf("announced as %v", m)
	}
}

// A link that cannot work says why, in bounded plain text.
func TestALinkThatCannotWorkSaysSo(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	serve(t, n, always(link.Defer("")), link.Unhealthy("no key\x1b[2K "+strings.Repeat("x", 1000)))
	m := running(t, n)
	if len(m) != 1 || !strings.HasPrefix(m[0][link.MetadataHealth], "no key") || len(m[0][link.MetadataHealth]) > 210 || strings.Contains(m[0][link.MetadataHealth], "\x1b") {
		t.Errorf("announced as %v", m)
	}
}

func TestWhatCannotBeServed(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	judge := n.Connect(t, protocol.RoleJudge, "j1", node.IssueOptions{Links: []string{name}})
	never := always(link.Defer(""))
	rows := []struct {
		name  string
		nc    *nats.Conn
		link  string
		judge link.Link
		opts  []link.Option
		want  error
	}{
		{"a link that the credential is not for", judge, "other", never, nil, link.ErrForbidden},
		{"a link of another node", judge, name, never, []link.Option{link.Node("elsewhere")}, link.ErrForbidden},
		{"a connection that is no judge's", n.Connect(t, protocol.RoleGate, "g9"), name, never, nil, link.ErrInbox},
		{"a name that is no token", judge, "a.b", never, nil, link.ErrName},
		{"a node that is no token", judge, name, never, []link.Option{link.Node(">")}, link.ErrName},
		{"no function", judge, name, nil, nil, link.ErrName},
		{"no room", judge, name, never, []link.Option{link.Concurrency(0)}, link.ErrName},
		{"no grace", judge, name, never, []link.Option{link.Grace(0)}, link.ErrName},
		{"no logger", judge, name, never, []link.Option{link.Logger(nil)}, link.ErrName},
		{"health looked at all the time", judge, name, never, []link.Option{link.HealthEvery(0)}, link.ErrName},
		{"a version that is none", judge, name, never, []link.Option{link.Version("new")}, link.ErrName},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := link.Serve(ctx, row.nc, row.link, row.judge, row.opts...); !errors.Is(err, row.want) {
				t.Errorf("Serve: %v, want %v", err, row.want)
			}
		})
	}
}
