package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// book is what a script does with each ask: written by a test, read by a link.
type book[T any] struct{ m sync.Map }

func (b *book[T]) put(id string, v T) { b.m.Store(id, v) }

func (b *book[T]) get(id string) T {
	v, _ := b.m.Load(id)
	return v.(T)
}

// script is a scripted responder that counts what it was asked.
type script struct {
	mu    sync.Mutex
	asked map[string]int // by ask id
	order []string
	total atomic.Int32
	sub   *nats.Subscription
}

func (s *script) note(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[id]++
	s.order = append(s.order, id)
	s.total.Add(1)
}

func (s *script) times(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[id]
}

// linkCall is one request to a scripted link.
type linkCall struct {
	t   testing.TB
	nc  *nats.Conn
	msg *nats.Msg
	protocol.LinkRequest
}

func (c linkCall) reply(data string) { _ = c.msg.Respond([]byte(data)) }

func (c linkCall) verdict(choice, reason, failure string) {
	c.reply(fmt.Sprintf(`{"v":1,"ask":%q,"verdict":%q,"reason":%q,"failure":%q}`, c.Ask.ID, choice, reason, failure))
}

func (c linkCall) accept() { c.log("debug", protocol.EventAccepted) }

func (c linkCall) log(level, event string) (*protocol.LogReceipt, *protocol.Fault) {
	return logTo(c.t, c.nc, c.Log, level, event)
}

func logTo(t testing.TB, nc *nats.Conn, subject, level, event string) (*protocol.LogReceipt, *protocol.Fault) {
	m, err := nc.Request(subject, fmt.Appendf(nil, `{"v":1,"level":%q,"event":%q,"fields":{"x":1}}`, level, event), soon)
	if errors.Is(err, nats.ErrConnectionClosed) {
		return nil, nil // the test is over, and an ask that it left open is asked about still
	}
	if err != nil {
		t.Errorf("log: %v", err)
		return nil, nil
	}
	if f, err := protocol.Read[protocol.ErrorReply](m.Data); err == nil {
		return nil, &f.Error
	}
	r, err := protocol.Read[protocol.LogReceipt](m.Data)
	if err != nil {
		t.Errorf("log: %v", err)
	}
	return &r, nil
}

func queryTo(t testing.TB, nc *nats.Conn, subject, body string) (*protocol.Check, *protocol.Fault) {
	m, err := nc.Request(subject, []byte(body), soon)
	if err != nil {
		t.Errorf("query: %v", err)
		return nil, nil
	}
	if f, err := protocol.Read[protocol.ErrorReply](m.Data); err == nil {
		return nil, &f.Error
	}
	c, err := protocol.Read[protocol.Check](m.Data)
	if err != nil {
		t.Errorf("query: %v", err)
	}
	return &c, nil
}

// link serves a link by script, on a connection of its own.
func (r *rig) link(name string, serve func(linkCall)) *script {
	r.t.Helper()
	return r.linkOn(r.Connect(r.t, protocol.RoleJudge, "judge-"+name), name, serve)
}

func (r *rig) linkOn(nc *nats.Conn, name string, serve func(linkCall)) *script {
	r.t.Helper()
	s := &script{asked: map[string]int{}}
	subject := must(r.Subjects.Link(name))(r.t)
	s.sub = must(nc.QueueSubscribe(subject, name, func(m *nats.Msg) {
		req, err := protocol.Read[protocol.LinkRequest](m.Data)
		if err != nil {
			r.t.Errorf("link %s was sent no link request: %v", name, err)
			return
		}
		s.note(req.Ask.ID)
		serve(linkCall{t: r.t, nc: nc, msg: m, LinkRequest: req})
	}))(r.t)
	flush(r.t, nc)
	return s
}

// receive waits for what a script hands over.
func receive[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(soon):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func flush(t testing.TB, nc *nats.Conn) {
	t.Helper()
	if err := nc.FlushTimeout(soon); err != nil {
		t.Fatal(err)
	}
}

// announce makes a link seen by discovery, and waits until g has seen it.
func (r *rig) announce(nc *nats.Conn, name string, g *served) {
	r.t.Helper()
	must(micro.AddService(nc, micro.Config{Name: protocol.ServiceLink, Version: "1.0.0", Metadata: map[string]string{"link": name, "node": nodetest.Name, "version": "1.0.0"}}))(r.t)
	until(r.t, "seen", func() error {
		if seen := strings.Join(g.links.resolve(context.Background(), []string{name}), " "); !strings.Contains(seen, name) {
			return fmt.Errorf("running: %s", seen)
		}
		return nil
	})
}

// always is a link that gives one verdict.
func always(choice, reason string) func(linkCall) {
	return func(c linkCall) { c.accept(); c.verdict(choice, reason, "") }
}

// terminal serves one kind of terminal by script; what it returns is the reply.
func (r *rig) terminal(kind protocol.TerminalKind, serve func(protocol.TerminalRequest) string) *script {
	r.t.Helper()
	s := &script{asked: map[string]int{}}
	subject := must(r.Subjects.Terminal(string(kind)))(r.t)
	s.sub = must(r.term.QueueSubscribe(subject, protocol.QueueTerminal, func(m *nats.Msg) {
		req, err := protocol.Read[protocol.TerminalRequest](m.Data)
		if err != nil {
			r.t.Errorf("terminal was sent no terminal request: %v", err)
			return
		}
		s.note(req.Ask.ID)
		if reply := serve(req); reply != "" {
			_ = r.term.Publish(m.Reply, []byte(reply))
		}
	}))(r.t)
	flush(r.t, r.term)
	return s
}

// denying is the terminal of a node where nobody is.
func (r *rig) denying() *script {
	r.t.Helper()
	return r.terminal(protocol.TerminalDeny, func(q protocol.TerminalRequest) string {
		return fmt.Sprintf(`{"v":1,"ask":%q,"verdict":"deny","outcome":"no_approver","reason":"Nobody is there."}`, q.Ask.ID)
	})
}

// person is a terminal that puts asks to a person.
func (r *rig) person() *script {
	r.t.Helper()
	return r.terminal(protocol.TerminalHuman, func(q protocol.TerminalRequest) string {
		_, err := r.open.Update(context.Background(), q.Ask.ID, func(p *protocol.Pending) error {
			if p.Taken.IsZero() {
				p.Taken = time.Now().UTC()
			}
			return nil
		})
		if err != nil {
			return ""
		}
		return progressFor(q.Ask.ID)
	})
}

func progressFor(id string) string {
	return fmt.Sprintf(`{"v":1,"ask":%q,"status":"pending","stage":"terminal:human","since":%q}`, id, time.Now().UTC().Format(time.RFC3339))
}

// answer stores a person's verdict, as a terminal does when one answers.
func (r *rig) answer(id string, v protocol.TerminalVerdict) {
	r.t.Helper()
	v.Ask, v.Approver, v.At = id, "oncall-1", time.Now().UTC()
	v.Outcome = protocol.DeniedByHuman
	if v.Verdict == allow {
		v.Outcome = protocol.AllowedByHuman
	}
	must(r.open.Update(context.Background(), id, func(p *protocol.Pending) error {
		if p.Verdict != nil {
			return errors.New("answered already")
		}
		p.Verdict = &v
		return nil
	}))(r.t)
}

func yes() protocol.TerminalVerdict { return protocol.TerminalVerdict{Verdict: allow} }
func no(reason string) protocol.TerminalVerdict {
	return protocol.TerminalVerdict{Verdict: deny, Reason: reason}
}
