package parent_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/terminal"
	"github.com/assent-dev/assent/services/terminal/parent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const soon = 15 * time.Second

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// credsFile issues credentials at n into a file.
func credsFile(t testing.TB, n *nodetest.Node, role protocol.Role, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".creds")
	if err := node.WritePrivate(file, n.Creds(t, role, name)); err != nil {
		t.Fatal(err)
	}
	return file
}

// signs are what a terminal said of its parent.
type signs struct {
	mu   sync.Mutex
	last protocol.ParentSign
}

func (s *signs) tell(_ context.Context, p protocol.ParentSign) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = p
	return nil
}

func (s *signs) until(t testing.TB, answers bool) protocol.ParentSign {
	t.Helper()
	var last protocol.ParentSign
	nodetest.CheckFor(t, soon, 10*time.Millisecond, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		last = s.last
		if last.Parent == "" || last.Answers != answers {
			return fmt.Errorf("sign %+v", last)
		}
		return nil
	})
	return last
}

// run runs a terminal of node child under n until the test ends.
func run(t testing.TB, cfg parent.Config) (*parent.Terminal, *signs) {
	t.Helper()
	cfg.Logger = nodetest.Logger(t)
	term := must(parent.New(cfg))(t)
	var said signs
	ctx, cancel := context.WithCancel(context.Background())
	begun, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); term.Run(ctx, said.tell, func() { close(begun) }) }()
	t.Cleanup(func() { cancel(); <-done })
	select {
	case <-begun:
	case <-time.After(soon):
		t.Fatal("the terminal does not begin")
	}
	return term, &said
}

// gate answers as a gate of n does, by reply; the zero message is silence.
func gate(t testing.TB, n *nodetest.Node, reply func(kind protocol.Kind, body []byte) *nats.Msg) *nats.Conn {
	t.Helper()
	nc := n.Connect(t, protocol.RoleGate, "g1")
	for _, kind := range []protocol.Kind{protocol.KindRelay, protocol.KindWithdraw} {
		must(nc.QueueSubscribe(n.Subjects.All(kind), protocol.QueueGate, func(m *nats.Msg) {
			if id, err := bus.IdentityOf(m); err != nil || id.Name != "child" {
				t.Errorf("sender %+v: %v", id, err)
			}
			if r := reply(kind, m.Data); r != nil {
				r.Subject = m.Reply
				_ = nc.PublishMsg(r)
			}
		}))(t)
	}
	if err := nc.FlushTimeout(soon); err != nil {
		t.Fatal(err)
	}
	return nc
}

func text(s string) *nats.Msg { return &nats.Msg{Data: []byte(s)} }

func receipt(body []byte, cancelled bool) *nats.Msg {
	return text(fmt.Sprintf(`{"v":1,"ask":%q,"cancelled":%v}`, protocol.PeekAskID(body, "ask"), cancelled))
}

func request(changes ...func(*protocol.TerminalRequest)) protocol.TerminalRequest {
	r := protocol.TerminalRequest{
		Kind: protocol.TerminalParent, Deadline: time.Now().Add(time.Minute), Asks: []protocol.Entry{{Surface: "bash", Value: "make"}},
		Ask: protocol.Ask{ID: protocol.NewAskID(), Agent: "ci", Tool: protocol.Tool{Name: "bash", Input: jsontext.Value(`{"command":"make"}`)}},
	}
	for _, f := range changes {
		f(&r)
	}
	return r
}

func decision(t testing.TB, ask protocol.Ask, change func(*protocol.Decision)) string {
	d := protocol.Decision{
		Ask: ask.ID, Node: nodetest.Name, Gate: "g1", Agent: ask.Agent, Result: protocol.FinalAllow, Outcome: protocol.AllowedByHuman, Approver: "boss",
		DecidedBy: protocol.Decider{Kind: protocol.DeciderHuman, Name: "boss", Node: nodetest.Name}, Via: "child", Hops: ask.Hops,
		Trail: []protocol.TrailEntry{{Link: "judge", Verdict: protocol.ChoiceDefer}}, Asks: []protocol.Entry{},
	}
	change(&d)
	return string(must(protocol.Write(d))(t))
}

func TestAnAskIsRelayedAndItsDecisionBroughtBack(t *testing.T) {
	n := nodetest.Start(t, nodetest.Quiet())
	var mu sync.Mutex
	var heard protocol.Ask
	var reply func(protocol.Ask) *nats.Msg
	gate(t, n, func(kind protocol.Kind, body []byte) *nats.Msg {
		if kind == protocol.KindWithdraw {
			return receipt(body, false)
		}
		mu.Lock()
		defer mu.Unlock()
		ask, err := protocol.Read[protocol.Ask](body)
		if err != nil {
			t.Errorf("relayed is no ask: %v", err)
			return nil
		}
		heard = ask
		return reply(ask)
	})
	term, said := run(t, parent.Config{Node: "child", Parent: nodetest.Name, URL: n.ClientURL(), Creds: credsFile(t, n, protocol.RoleChild, "child")})
	if s := said.until(t, true); s.Parent != nodetest.Name || s.Release == "" {
		t.Errorf("sign %+v", s)
	}
	says := func(change func(*protocol.Decision)) func(protocol.Ask) *nats.Msg {
		return func(a protocol.Ask) *nats.Msg { return text(decision(t, a, change)) }
	}
	fault := func(code protocol.Code) func(protocol.Ask) *nats.Msg {
		return func(a protocol.Ask) *nats.Msg {
			body := must(protocol.Write(protocol.ErrorReply{Ask: a.ID, Error: protocol.Fault{Code: code, Message: "loop a → b"}}))(t)
			return &nats.Msg{Data: body, Header: nats.Header{protocol.HeaderErrorCode: {string(code)}}}
		}
	}
	denied := func(d *protocol.Decision) {
		d.Result, d.Outcome, d.Abort = protocol.FinalDeny, protocol.DeniedByHuman, true
	}
	for name, row := range map[string]struct {
		reply func(protocol.Ask) *nats.Msg
		want  string
	}{
		"allowed by a person":      {says(func(*protocol.Decision) {}), "allow allowed_by_human boss main/judge"},
		"denied, and stop":         {says(denied), "deny denied_by_human boss main/judge abort"},
		"decided further up":       {says(func(d *protocol.Decision) { d.DecidedBy.Node, d.Trail[0].Node = "root", "root" }), "allow allowed_by_human boss root/judge"},
		"allowed and changed":      {says(func(d *protocol.Decision) { d.EditedInput = jsontext.Value(`{"command":"x"}`) }), `allow allowed_by_human boss main/judge {"command":"x"}`},
		"overruled as changed":     {says(func(d *protocol.Decision) { denied(d); d.Abort, d.EditedInput = false, jsontext.Value(`{}`) }), "deny denied_by_human boss main/judge"},
		"an outcome of later days": {says(func(d *protocol.Decision) { denied(d); d.Outcome = "denied_by_court" }), "deny denied_by_court boss main/judge abort"},
		"not decided yet": {func(a protocol.Ask) *nats.Msg {
			return text(fmt.Sprintf(`{"v":1,"ask":%q,"status":"pending","stage":"terminal:human","since":"2026-01-01T00:00:00Z"}`, a.ID))
		}, "taken"},
		"refused for good":              {fault(protocol.CodeInvalid), "fault invalid"},
		"refused for now":               {fault(protocol.CodeUnavailable), "fault unavailable"},
		"an allow of another node":      {says(func(d *protocol.Decision) { d.Node = "other" }), "fault unavailable"},
		"an allow on one of its own":    {says(func(d *protocol.Decision) { d.Via, d.Hops = "", nil }), "fault unavailable"},
		"an allow on another child's":   {says(func(d *protocol.Decision) { d.Via, d.Hops = "sister", []string{"sister"} }), "fault unavailable"},
		"another agent's":               {says(func(d *protocol.Decision) { d.Agent = "cj" }), "fault unavailable"},
		"another ask's":                 {says(func(d *protocol.Decision) { d.Ask = protocol.NewAskID() }), "fault unavailable"},
		"an allow by what nobody knows": {says(func(d *protocol.Decision) { d.Outcome = "allowed_by_court" }), "fault unavailable"},
		"another ask's progress": {func(protocol.Ask) *nats.Msg {
			return text(`{"v":1,"ask":"01KB9XYZ8P3N5Q7R9S1T3V5W7X","status":"pending","stage":"x"}`)
		}, "fault unavailable"},
		"a verdict of a link": {func(a protocol.Ask) *nats.Msg { return text(fmt.Sprintf(`{"v":1,"ask":%q,"verdict":"allow"}`, a.ID)) }, "fault unavailable"},
		"junk":                {func(protocol.Ask) *nats.Msg { return text("%%%") }, "fault unavailable"},
		"an allow under an error's header": {func(a protocol.Ask) *nats.Msg {
			return &nats.Msg{Data: []byte(decision(t, a, func(*protocol.Decision) {})), Header: nats.Header{protocol.HeaderErrorCode: {"unavailable"}}}
		}, "fault unavailable"},
		"nothing": {func(protocol.Ask) *nats.Msg { return nil }, "fault unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			mu.Lock()
			reply = row.reply
			mu.Unlock()
			ctx, cancel := context.WithTimeout(context.Background(), soon)
			defer cancel()
			v, err := term.End(ctx, request())
			if got := word(v, err); got != row.want {
				t.Errorf("got %s (%v), want %s", got, err, row.want)
			}
			if err == nil {
				must(protocol.Write(v))(t)
			}
		})
	}
	t.Run("with the way it took and the time that is left", func(t *testing.T) {
		mu.Lock()
		reply = says(func(*protocol.Decision) {})
		mu.Unlock()
		must(term.End(context.Background(), request(func(r *protocol.TerminalRequest) {
			r.Ask.Hops, r.Asks[0].HumanOnly, r.Deadline = []string{"below"}, true, time.Now().Add(10*time.Second)
		})))(t)
		mu.Lock()
		defer mu.Unlock()
		if strings.Join(heard.Hops, " ") != "below child" || !heard.HumanOnly || heard.MaxWaitMS > 10_000 || heard.MaxWaitMS < 5_000 {
			t.Errorf("relayed %+v", heard)
		}
	})
	t.Run("with the words of the module that asks", func(t *testing.T) {
		prompt := protocol.Prompt{Name: "Tag", Description: "Tags are for good.", Guidance: "Look\x1b[2J.", ApproveLabel: "Tag it", Check: "user:release/Tag", Highlight: []protocol.Span{{Start: 0, End: 3}}}
		byModule := protocol.Entry{Surface: "module", Value: "user:release/Tag", Origin: "module:user:release@0123", HumanOnly: true}
		for name, row := range map[string]struct {
			change func(*protocol.TerminalRequest)
			want   string
		}{
			"a module here":  {func(r *protocol.TerminalRequest) { r.Asks = append(r.Asks, byModule) }, "Tag: Look·[2J."},
			"one below":      {func(r *protocol.TerminalRequest) { r.Ask.Hops, r.Ask.Prompt = []string{"below"}, &prompt }, "Tag: Look·[2J."},
			"a rule alone":   {func(r *protocol.TerminalRequest) { r.Asks[0].HumanOnly = true }, ""},
			"a rule's entry": {func(r *protocol.TerminalRequest) { r.Asks[0].Surface = "module" }, ""},
		} {
			mu.Lock()
			reply, heard = says(func(*protocol.Decision) {}), protocol.Ask{}
			mu.Unlock()
			must(term.End(context.Background(), request(func(r *protocol.TerminalRequest) { r.Prompt = prompt; row.change(r) })))(t)
			mu.Lock()
			got := ""
			if heard.Prompt != nil {
				got = heard.Prompt.Name + ": " + heard.Prompt.Guidance
			}
			if got != row.want || heard.Prompt != nil && (heard.Prompt.Check != "" || len(heard.Prompt.Highlight) != 1 || heard.Prompt.ApproveLabel != "Tag it") {
				t.Errorf("%s: %q, want %q: %+v", name, got, row.want, heard.Prompt)
			}
			if heard.HumanOnly != (row.change != nil && name != "one below" && name != "a rule's entry") {
				t.Errorf("%s: human_only %v", name, heard.HumanOnly)
			}
			mu.Unlock()
		}
	})
}

// word is what End returned, in one line.
func word(v protocol.TerminalVerdict, err error) string {
	var f *protocol.Fault
	switch {
	case errors.Is(err, terminal.ErrTaken):
		return "taken"
	case errors.As(err, &f):
		return "fault " + string(f.Code)
	case err != nil:
		return err.Error()
	}
	s := fmt.Sprintf("%s %s %s", v.Verdict, v.Outcome, v.Approver)
	for _, e := range v.Parent.Trail {
		s += " " + e.Node + "/" + e.Link
	}
	if v.Abort {
		s += " abort"
	}
	if len(v.EditedInput) > 0 {
		s += " " + string(v.EditedInput)
	}
	return s
}

func TestALoopOfNodesIsRefusedByItsPath(t *testing.T) {
	n := nodetest.Start(t, nodetest.Quiet())
	creds := credsFile(t, n, protocol.RoleChild, "child")
	if _, err := parent.New(parent.Config{Node: "child", Parent: "child", URL: n.ClientURL(), Creds: creds}); !errors.Is(err, parent.ErrOwnParent) || !strings.Contains(err.Error(), "child → child") {
		t.Errorf("its own parent: %v", err)
	}
	term, _ := run(t, parent.Config{Node: "child", Parent: nodetest.Name, URL: n.ClientURL(), Creds: creds})
	for name, row := range map[string]struct {
		hops []string
		path string
	}{
		"to where it came from":      {[]string{nodetest.Name}, "main → child → main"},
		"by a node it has passed":    {[]string{"child", "other"}, "child → other → child → main"},
		"longer than any tree needs": {[]string{"a", "b", "c", "d", "e", "f", "g", "h"}, "h → child → main"},
	} {
		_, err := term.End(context.Background(), request(func(r *protocol.TerminalRequest) { r.Ask.Hops = row.hops }))
		if got := word(protocol.TerminalVerdict{}, err); got != "fault invalid" || !strings.Contains(err.Error(), row.path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCredentialsOfSomebodyElseAreRefusedAtOnce(t *testing.T) {
	n := nodetest.Start(t, nodetest.Quiet())
	for name, creds := range map[string]string{
		"another child's": credsFile(t, n, protocol.RoleChild, "sister"),
		"an agent's":      credsFile(t, n, protocol.RoleAgent, "child"),
		"none":            filepath.Join(t.TempDir(), "none.creds"),
	} {
		if _, err := parent.New(parent.Config{Node: "child", Parent: nodetest.Name, URL: n.ClientURL(), Creds: creds}); !errors.Is(err, bus.ErrCreds) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAParentMayComeLateAndGoAndComeAgain(t *testing.T) {
	dir := nodetest.Dir(t)
	n := nodetest.Start(t, nodetest.Quiet(), nodetest.Store(dir))
	creds, url := credsFile(t, n, protocol.RoleChild, "child"), n.ClientURL()
	serve := func(n *nodetest.Node) {
		gate(t, n, func(_ protocol.Kind, body []byte) *nats.Msg { return receipt(body, true) })
	}
	if err := n.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	term, said := run(t, parent.Config{Node: "child", Parent: nodetest.Name, URL: url, Creds: creds})
	if s := said.until(t, false); s.Reason == "" {
		t.Errorf("no reason: %+v", s)
	}
	began := time.Now()
	if _, err := term.End(context.Background(), request()); word(protocol.TerminalVerdict{}, err) != "fault unavailable" || time.Since(began) > time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	again := nodetest.Start(t, nodetest.Quiet(), nodetest.Store(dir), nodetest.Listen(strings.TrimPrefix(url, "nats://")))
	serve(again)
	said.until(t, true)
	got := must(term.Withdraw(context.Background(), request()))(t)
	if !got.Cancelled {
		t.Error("not taken back")
	}
	if err := again.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := term.Withdraw(context.Background(), request()); err == nil {
		t.Error("taken back where nobody is")
	}
	serve(nodetest.Start(t, nodetest.Quiet(), nodetest.Store(dir), nodetest.Listen(strings.TrimPrefix(url, "nats://"))))
	nodetest.CheckFor(t, soon, 20*time.Millisecond, func() error {
		_, err := term.Withdraw(context.Background(), request())
		return err
	})
}
