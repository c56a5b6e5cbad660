package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/desk"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/internal/record"
	"github.com/assent-dev/assent/pkg/client"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/gate"
	"github.com/assent-dev/assent/services/terminal"
	"github.com/assent-dev/assent/services/terminal/deny"
	"github.com/assent-dev/assent/services/terminal/human"
)

// The tests of this file are accidents between an approver and an ask, on a real
// gate and a real terminal; docs/stories.md lists them.

// place is a node whose gates and terminals come and go, with one agent.
type place struct {
	*nodetest.Node
	t     *testing.T
	agent *client.Client
}

func newPlace(t *testing.T, policy string) *place {
	t.Helper()
	p := &place{Node: nodetest.Start(t, nodetest.Quiet()), t: t}
	js := ok(bus.JetStream(p.Connect(t, protocol.RoleOperator, "op")))(t)
	kv := ok(js.KeyValue(t.Context(), protocol.BucketPolicy))(t)
	ok(kv.Put(t.Context(), "fleet", []byte(policy)))(t)
	p.agent = ok(client.New(p.Connect(t, protocol.RoleAgent, "ci"), nodetest.Name, "ci"))(t)
	return p
}

func ok[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// run runs a service until the test or stop ends it.
func (p *place) run(serve func(ctx context.Context, ready func()) error) (stop func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- serve(ctx, func() { close(ready) }) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			p.t.Error(err)
		}
	})
	p.t.Cleanup(stop)
	select {
	case <-ready:
	case <-time.After(patience):
		p.t.Fatal("service is not ready")
	}
	return stop
}

func (p *place) gate(name string) (stop func()) {
	p.t.Helper()
	g := ok(gate.New(p.t.Context(), p.Connect(p.t, protocol.RoleGate, name), gate.Config{Node: nodetest.Name, Name: name, Logger: slog.New(slog.DiscardHandler)}))(p.t)
	return p.run(g.Run)
}

func (p *place) terminal(name string) (stop func()) {
	p.t.Helper()
	nc := p.Connect(p.t, protocol.RoleTerminal, name)
	js := ok(bus.JetStream(nc))(p.t)
	open := ok(pending.Open(p.t.Context(), js))(p.t)
	log := slog.New(slog.DiscardHandler)
	person := human.New(open, ok(record.Open(p.t.Context(), js, p.Subjects))(p.t), terminal.Notifier(nc, p.Subjects, log))
	s := ok(terminal.New(nc, nodetest.Name, log, person, person, deny.Terminal{}))(p.t)
	return p.run(s.Run)
}

func (p *place) approver(name string) *desk.Desk {
	p.t.Helper()
	return ok(desk.New(p.Connect(p.t, protocol.RoleApprover, name), nodetest.Name, name))(p.t)
}

// ask asks in the background.
func (p *place) ask(command string, wait time.Duration) (id string, heard <-chan protocol.Decision) {
	p.t.Helper()
	input := ok(jsontext.AppendQuote([]byte(`{"command":`), command))(p.t)
	a := protocol.Ask{ID: protocol.NewAskID(), Source: protocol.SourceToolCall, Session: protocol.Session{ID: "s1"},
		Tool: protocol.Tool{Name: "bash", Input: jsontext.Value(string(input) + "}")}, Cwd: "/repo", Home: "/home/dev", Platform: "linux", MaxWaitMS: wait.Milliseconds()}
	ch := make(chan protocol.Decision, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		d, err := p.agent.Ask(ctx, a)
		if err != nil {
			p.t.Errorf("asking %s: %v", a.ID, err)
		}
		ch <- d
	}()
	return a.ID, ch
}

// shown waits until a screen lists an ask as one to answer, or lists it no more.
func shown(t *testing.T, d *desk.Desk, id string, want bool) {
	t.Helper()
	nodetest.CheckFor(t, patience, 20*time.Millisecond, func() error {
		items, err := d.Pending(t.Context())
		if err != nil {
			return err
		}
		listed := slices.ContainsFunc(items, func(i pending.Item) bool { return i.Ask.ID == id && desk.Waiting(i, time.Now()) })
		if listed != want {
			return fmt.Errorf("ask %s: listed %v, want %v", id, listed, want)
		}
		return nil
	})
}

func hear(t *testing.T, heard <-chan protocol.Decision, outcome protocol.Outcome) {
	t.Helper()
	select {
	case d := <-heard:
		if d.Outcome != outcome || d.Allowed() != strings.HasPrefix(string(outcome), "allowed") {
			t.Fatalf("the agent heard %s (%s), want %s", d.Outcome, d.Reason, outcome)
		}
	case <-time.After(patience):
		t.Fatalf("the agent heard nothing, want %s", outcome)
	}
}

func answerTo(id string, v protocol.FinalChoice) protocol.Answer {
	return protocol.Answer{Ask: id, Verdict: v}
}

const asksPeople = `{"permission":{"*":"ask"},"terminal":{"kind":"human"}}`

func TestALateApprovalIsRefusedAloudAndNothingRuns(t *testing.T) {
	t.Parallel()
	p := newPlace(t, asksPeople)
	p.gate("g1")
	p.terminal("t1")
	d := p.approver("oncall-1")
	id, heard := p.ask("make deploy", 1500*time.Millisecond)
	shown(t, d, id, true)
	hear(t, heard, protocol.Expired)
	receipt := ok(d.Answer(t.Context(), answerTo(id, protocol.FinalAllow)))(t)
	if receipt.Accepted || !strings.Contains(receipt.Error, "expired") || receipt.Verdict == protocol.FinalAllow {
		t.Errorf("the approver is told %+v", receipt)
	}
	shown(t, d, id, false)
}

func TestAnApprovalWhileNoTerminalRunsIsNotLostInSilence(t *testing.T) {
	t.Parallel()
	p := newPlace(t, asksPeople)
	p.gate("g1")
	stop := p.terminal("t1")
	d := p.approver("oncall-1")
	id, heard := p.ask("make a", 0)
	shown(t, d, id, true)
	stop()
	if receipt, err := d.Answer(t.Context(), answerTo(id, protocol.FinalAllow)); err == nil || receipt.Accepted {
		t.Fatalf("the approver is told %+v, %v", receipt, err)
	}
	p.terminal("t2")
	shown(t, d, id, true) // it is still there to be answered
	if receipt := ok(d.Answer(t.Context(), answerTo(id, protocol.FinalAllow)))(t); !receipt.Accepted {
		t.Fatalf("the approver is told %+v", receipt)
	}
	hear(t, heard, protocol.AllowedByHuman)
}

func TestAScreenThatIsReloadedTakesTheAnswerOrShowsNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, asksPeople)
	p.gate("g1")
	p.terminal("t1")
	first := p.approver("oncall-1")
	id, heard := p.ask("make a", 0)
	shown(t, first, id, true)
	reloaded := p.approver("oncall-2")
	shown(t, reloaded, id, true)
	if receipt := ok(reloaded.Answer(t.Context(), answerTo(id, protocol.FinalDeny)))(t); !receipt.Accepted {
		t.Fatalf("the approver is told %+v", receipt)
	}
	hear(t, heard, protocol.DeniedByHuman)
	shown(t, first, id, false)
	if receipt := ok(first.Answer(t.Context(), answerTo(id, protocol.FinalAllow)))(t); receipt.Accepted || receipt.AnsweredBy != "oncall-2" {
		t.Errorf("the old screen is told %+v", receipt)
	}
}

// An approver's answer to ten like asks is one: the other prompts close, and the
// screen that shows them shows them no more.
func TestParallelCallsOfOneKindAreOneAnswer(t *testing.T) {
	t.Parallel()
	p := newPlace(t, asksPeople)
	p.gate("g1")
	p.gate("g2")
	p.terminal("t1")
	d := p.approver("oncall-1")
	ids, heard := make([]string, 10), make([]<-chan protocol.Decision, 10)
	for i := range ids {
		ids[i], heard[i] = p.ask(fmt.Sprintf("make x%d", i), 0)
	}
	other, waits := p.ask("cargo build", 0)
	nodetest.CheckFor(t, patience, 20*time.Millisecond, func() error {
		items, err := d.Pending(t.Context())
		n := 0
		for _, item := range items {
			if desk.Waiting(item, time.Now()) && !item.Taken.IsZero() {
				n++
			}
		}
		if err == nil && n != len(ids)+1 {
			err = errors.New("not all are before the person yet")
		}
		return err
	})
	answer := answerTo(ids[3], protocol.FinalAllow)
	answer.Grant = &protocol.Grant{Scope: protocol.ScopeSession, Surface: "bash", Patterns: []string{"make *"}}
	if receipt := ok(d.Answer(t.Context(), answer))(t); !receipt.Accepted {
		t.Fatalf("the approver is told %+v", receipt)
	}
	for i, id := range ids {
		outcome := protocol.AllowedByGrant
		if i == 3 {
			outcome = protocol.AllowedByHuman
		}
		hear(t, heard[i], outcome)
		shown(t, d, id, false)
	}
	if receipt := ok(d.Answer(t.Context(), answerTo(ids[4], protocol.FinalDeny)))(t); receipt.Accepted || !strings.Contains(receipt.Error, "allowed_by_grant") {
		t.Errorf("who answers one of them then is told %+v", receipt)
	}
	if receipt := ok(d.Answer(t.Context(), answerTo(other, protocol.FinalDeny)))(t); !receipt.Accepted {
		t.Errorf("the one that is not alike: %+v", receipt)
	}
	hear(t, waits, protocol.DeniedByHuman)
}

func TestWhoOnlySeesAnAskCannotApproveIt(t *testing.T) {
	t.Parallel()
	p := newPlace(t, asksPeople)
	p.gate("g1")
	p.terminal("t1")
	id, heard := p.ask("make deploy", 0)
	d := p.approver("oncall-1")
	shown(t, d, id, true)
	for _, role := range []protocol.Role{protocol.RoleAgent, protocol.RoleAuditor, protocol.RoleJudge, protocol.RoleOperator} {
		guest := ok(desk.New(p.Connect(t, role, "guest"), nodetest.Name, "oncall-1"))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		receipt, err := guest.Answer(ctx, answerTo(id, protocol.FinalAllow))
		cancel()
		if err == nil && receipt.Accepted {
			t.Errorf("a %s approved", role)
		}
	}
	shown(t, d, id, true)
	if receipt := ok(d.Answer(t.Context(), answerTo(id, protocol.FinalDeny)))(t); !receipt.Accepted {
		t.Errorf("the approver is told %+v", receipt)
	}
	hear(t, heard, protocol.DeniedByHuman)
}

func TestAHeadlessRunIsToldThatNobodyIsThere(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `{"permission":{"*":"allow","bash":{"*":"allow","gh issue create *":"ask"}}}`)
	p.gate("g1")
	p.terminal("t1")
	began := time.Now()
	_, heard := p.ask("gh issue create --title t --body b", 0)
	hear(t, heard, protocol.NoApprover)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("after %s", took)
	}
	_, heard = p.ask("gh issue list", 0)
	hear(t, heard, protocol.AllowedByRule)
}
