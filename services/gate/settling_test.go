package gate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestWhatALinkDecidedIsNotOpenToAPerson(t *testing.T) {
	t.Parallel()
	const link = "second"
	for name, row := range map[string]struct {
		entry protocol.TrailEntry
		open  bool
	}{
		"an allow":            {protocol.TrailEntry{Link: link, Verdict: protocol.ChoiceAllow}, false},
		"a deny":              {protocol.TrailEntry{Link: link, Verdict: protocol.ChoiceDeny, Reason: "no"}, false},
		"a defer":             {protocol.TrailEntry{Link: link, Verdict: protocol.ChoiceDefer}, true},
		"a capped allow":      {protocol.TrailEntry{Link: link, Verdict: protocol.ChoiceDefer, Capped: true}, true},
		"a link that is gone": {protocol.TrailEntry{Link: link, Verdict: protocol.ChoiceDefer, Failure: protocol.FailureUnregistered}, true},
	} {
		p := protocol.Pending{Role: protocol.TerminalHuman, Chain: []string{"first", link}, Trail: []protocol.TrailEntry{{Link: "first", Verdict: protocol.ChoiceDefer}}}
		appendTrail(1, row.entry)(&p)
		if p.AtTerminal() != row.open {
			t.Errorf("%s of the last link: stage %s", name, p.Stage)
		}
	}
	p := protocol.Pending{Role: protocol.TerminalHuman, Chain: []string{"first", link}}
	if appendTrail(0, protocol.TrailEntry{Link: "first", Verdict: protocol.ChoiceAllow})(&p); p.Stage != protocol.StageSettling {
		t.Errorf("an allow of the first link: stage %s", p.Stage)
	}
}

func TestAnAnswerAfterTheGateGaveUpOnTheTerminalIsNotTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"terminal":{"kind":"human"}}`)
	g := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	g.times.terminal = 300 * time.Millisecond
	g.start()
	r.bound(protocol.StreamDecisions, 1) // the denial cannot be recorded, so the entry stays
	a := r.agent("ci")
	ask := a.bash("make")
	a.once(ask)
	until(t, "given up", func() error {
		item, err := r.open.Get(context.Background(), ask.ID)
		if err == nil && item.Stage != protocol.StageSettling {
			err = fmt.Errorf("stage %s", item.Stage)
		}
		return err
	})
	_, err := r.open.Update(context.Background(), ask.ID, func(p *protocol.Pending) error {
		if !p.AtTerminal() {
			return errors.New("it is not before a person")
		}
		return nil
	})
	if err == nil {
		t.Error("an answer is taken to an ask that is being denied")
	}
	// It is tried again, with a terminal this time: a person may answer then.
	r.bound(protocol.StreamDecisions, -1)
	r.person()
	r.waiting(ask.ID)
	r.answer(ask.ID, yes())
	want(t, a.decide(ask), allow, protocol.AllowedByHuman)
}

func TestAPromptWhoseTerminalDiedStandsAndIsNotDenied(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"terminal":{"kind":"human"}}`)
	g := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	g.times.terminal = 300 * time.Millisecond
	g.start()
	// It puts the ask to people and dies before its reply.
	r.terminal(protocol.TerminalHuman, func(q protocol.TerminalRequest) string {
		_, err := r.open.Update(context.Background(), q.Ask.ID, func(p *protocol.Pending) error {
			p.Taken = time.Now().UTC()
			return nil
		})
		if err != nil && !errors.Is(err, pending.ErrGone) {
			t.Error(err)
		}
		return `{}`
	})
	a := r.agent("ci")
	ask := a.bash("make")
	a.once(ask)
	r.waiting(ask.ID)
	r.answer(ask.ID, yes())
	want(t, a.decide(ask), allow, protocol.AllowedByHuman)
}

func TestAnEndedAskIsClosedToAnswersByWhoeverFindsIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, plainPolicy)
	g := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	a := r.agent("ci")
	now := time.Now().UTC()
	for name, row := range map[string]struct {
		change func(*protocol.Pending)
		open   bool
	}{
		"one that waits":        {func(*protocol.Pending) {}, true},
		"one past its time":     {func(p *protocol.Pending) { p.Deadline = now.Add(-time.Millisecond) }, false},
		"one that is withdrawn": {func(p *protocol.Pending) { p.Withdrawn = &protocol.Cancel{V: protocol.CurrentVersion, Ask: p.Ask.ID} }, false},
	} {
		ask := a.bash("make")
		p := protocol.Pending{Ask: ask, Digest: must(ask.Digest(nodetest.Name))(t), Node: nodetest.Name, Role: protocol.TerminalHuman,
			Stage: "terminal:human", Since: now, Deadline: now.Add(time.Hour)}
		row.change(&p)
		must(r.open.Create(context.Background(), p))(t)
		h, err := g.claim(context.Background(), ask.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.item(); got.AtTerminal() != row.open {
			t.Errorf("%s stands at %s", name, got.Stage)
		}
	}
}
