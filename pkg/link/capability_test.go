package link_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// inside runs f as a link on one ask and returns the verdict.
func inside(t *testing.T, g *gate, n *nodetest.Node, f func(ctx context.Context, r link.Request)) protocol.Verdict {
	t.Helper()
	serve(t, n, func(ctx context.Context, r link.Request) (protocol.Verdict, error) {
		f(ctx, r)
		return link.Deny("no"), nil
	})
	return g.mustAsk(g.request(5 * time.Second))
}

func TestCapabilities(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	var kept link.Request
	inside(t, g, n, func(ctx context.Context, r link.Request) {
		kept = r
		check, err := r.Query.Check(ctx, protocol.Query{Surface: "bash", Value: "rm -rf x"})
		if err != nil || check.State != protocol.ActionAsk || check.MatchedPattern != "rm -rf x" {
			t.Errorf("query: %+v, %v", check, err)
		}
		if err := r.Log.Review(ctx, "careful.decision", struct {
			Path string `json:"path"`
		}{"/x"}); err != nil {
			t.Errorf("review: %v", err)
		}
		if err := r.Log.Debug(ctx, "careful.detail", nil); err != nil {
			t.Errorf("debug: %v", err)
		}

		refused := []struct {
			name string
			err  error
			want error
		}{
			{"a query about nothing", second(r.Query.Check(ctx, protocol.Query{})), protocol.ErrField},
			{"an event that is no name", r.Log.Review(ctx, "a b", nil), protocol.ErrToken},
			{"fields that are no object", r.Log.Review(ctx, "e", []int{1}), link.ErrFields},
			{"fields without end", r.Log.Review(ctx, "e", map[string]string{"x": strings.Repeat("x", link.MaxFields)}), link.ErrFields},
			{"fields that do not encode", r.Log.Review(ctx, "e", map[string]any{"x": func() {}}), link.ErrFields},
		}
		for _, row := range refused {
			if !errors.Is(row.err, row.want) {
				t.Errorf("%s: %v, want %v", row.name, row.err, row.want)
			}
		}
	})
	want := "debug accepted  | review careful.decision {\"path\":\"/x\"} | debug careful.detail "
	if got := strings.Join(g.events(), " | "); got != want {
		t.Errorf("the gate got %q, want %q", got, want)
	}
	if _, err := kept.Query.Check(t.Context(), protocol.Query{Tool: "write"}); !errors.Is(err, link.ErrOver) {
		t.Errorf("a query after the verdict: %v", err)
	}
	if err := kept.Log.Review(t.Context(), "careful.late", nil); !errors.Is(err, link.ErrOver) {
		t.Errorf("a record after the verdict: %v", err)
	}
}

func second(_ protocol.Check, err error) error { return err }

func refuseWith(t *testing.T, code protocol.Code) func(*nats.Msg) {
	return func(m *nats.Msg) {
		data, err := protocol.Write(protocol.ErrorReply{Ask: capability(m), Error: protocol.Fault{Code: code, Message: "no"}})
		if err != nil {
			t.Error(err)
		}
		reply := nats.NewMsg(m.Reply)
		reply.Header.Set(protocol.HeaderErrorCode, string(code))
		reply.Header.Set(protocol.HeaderError, "no")
		reply.Data = data
		if err := m.RespondMsg(reply); err != nil {
			t.Error(err)
		}
	}
}

func TestGateThatRefuses(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	g.onQuery = refuseWith(t, protocol.CodeForbidden)
	v := inside(t, g, n, func(ctx context.Context, r link.Request) {
		_, err := r.Query.Check(ctx, protocol.Query{Tool: "write"})
		if fault := new(protocol.Fault); !errors.As(err, &fault) || fault.Code != protocol.CodeForbidden {
			t.Errorf("a refused query: %v", err)
		}
	})
	if v.Verdict != protocol.ChoiceDeny {
		t.Errorf("a refused query is the link's to judge: %+v", v)
	}
}

func TestAskThatTheGateDoesNotHold(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	g.onLog = refuseWith(t, protocol.CodeExpired)
	v := inside(t, g, n, func(context.Context, link.Request) { t.Error("the link judged an ask that nobody waits for") })
	if v.Verdict != protocol.ChoiceDefer || v.Failure != "error" || !strings.Contains(v.Reason, "expired") {
		t.Errorf("verdict %+v", v)
	}
}

func TestRepliesThatAreNone(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	other := protocol.NewAskID()
	rows := map[string]string{
		"junk": "{", "another version": `{"v":2,"state":"allow","ask":"` + other + `"}`, "another ask": `{"v":1,"ask":"` + other + `","kept":true}`,
		"an unknown state": `{"v":1,"state":"yes","matched_pattern":"","origin":"","reason":""}`, "no state": `{"v":1}`,
	}
	var reply atomic.Value
	answer := func(m *nats.Msg) { _ = m.Respond(reply.Load().([]byte)) }
	g.onQuery = answer
	inside(t, g, n, func(ctx context.Context, r link.Request) {
		g.mu.Lock()
		g.onLog = answer
		g.mu.Unlock()
		for name, text := range rows {
			reply.Store([]byte(text))
			if check, err := r.Query.Check(ctx, protocol.Query{Tool: "write"}); !errors.Is(err, link.ErrReply) || check.State.Valid() {
				t.Errorf("%s: query: %+v, %v", name, check, err)
			}
			if err := r.Log.Review(ctx, "careful.x", nil); !errors.Is(err, link.ErrReply) {
				t.Errorf("%s: record: %v", name, err)
			}
		}
	})
}

func TestCapabilityEndsWithTheAsk(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	g.onQuery = func(*nats.Msg) {} // never answered
	failed := make(chan error, 1)
	serve(t, n, func(_ context.Context, r link.Request) (protocol.Verdict, error) {
		_, err := r.Query.Check(context.Background(), protocol.Query{Tool: "write"})
		failed <- err
		return link.Allow(""), nil
	})
	if v := g.mustAsk(g.request(300 * time.Millisecond)); v.Verdict != protocol.ChoiceDefer || v.Failure != "timeout" {
		t.Errorf("verdict %+v", v)
	}
	if err := <-failed; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the query ended with %v", err)
	}
}

func TestSlowReceiptIsNoReasonToDefer(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	g.onLog = func(*nats.Msg) {}
	if v := inside(t, g, n, func(context.Context, link.Request) {}); v.Verdict != protocol.ChoiceDeny {
		t.Errorf("verdict %+v", v)
	}
}
