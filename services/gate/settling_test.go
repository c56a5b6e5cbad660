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

func TestALinksDenyOutlivesARecordThatFails(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		first, second string // what the link says, should it be asked again
		want          protocol.FinalChoice
		outcome       protocol.Outcome
		asked         int
	}{
		"a deny stands, whatever it would say now": {"deny", "allow", deny, protocol.DeniedByLink, 1},
		"an allow is asked for again":              {"allow", "deny", deny, protocol.DeniedByLink, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, chainPolicy("one"))
			r.denying()
			r.gate("g1")
			say := make(chan string, 2)
			say <- row.first
			say <- row.second
			link := r.link("one", func(c linkCall) { c.accept(); c.verdict(<-say, "by the link", "") })
			r.bound(protocol.StreamDecisions, 1) // nothing can be recorded
			a := r.agent("ci")
			ask := a.bash("make")
			a.once(ask)
			until(t, "stored after "+row.first, func() error {
				item, err := r.open.Get(context.Background(), ask.ID)
				if err == nil && item.AtTerminal() {
					t.Errorf("open to a person at %s", item.Stage)
				}
				if err == nil && len(item.Trail) == 0 {
					err = fmt.Errorf("asked %d times, stage %s", link.times(ask.ID), item.Stage)
				}
				return err
			})
			r.bound(protocol.StreamDecisions, -1)
			want(t, a.decide(ask), row.want, row.outcome)
			if got := link.times(ask.ID); got != row.asked {
				t.Errorf("the link was asked %d times, want %d", got, row.asked)
			}
		})
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
