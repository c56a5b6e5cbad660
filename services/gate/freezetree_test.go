package gate

import (
	"testing"

	"github.com/assent-dev/assent/pkg/protocol"
)

// TestAFreezeOfAChildNodeStopsWhatItRelays, also what waits for a person; a freeze
// of an agent's name is about this node's agents alone.
func TestAFreezeOfAChildNodeStopsWhatItRelays(t *testing.T) {
	t.Parallel()
	r := newRig(t, treePolicy+`}`)
	r.person()
	g := r.gate("g1")
	c, other := r.child("child1"), r.child("child2")
	a := r.agent("ci-42")
	open := c.bash("ci-42", "make")
	c.pend(open)
	theirs := other.bash("ci-42", "make")
	other.pend(theirs)

	at := r.freeze("agent ci-42", g)
	wantFrozen(t, a.decide(a.bash("git status")))
	want(t, c.decide(c.bash("ci-42", "git status")), allow, protocol.AllowedByRule)
	r.thaw("agent ci-42", at, g)

	at = r.freeze("agent child1", g)
	d := c.decide(open)
	wantFrozen(t, d)
	if d.Via != "child1" {
		t.Errorf("via %q", d.Via)
	}
	r.settled(open.ID)
	wantFrozen(t, c.decide(c.bash("ci-42", "git status")))
	wantFrozen(t, c.decide(c.bash("ci-42", "git status", "low"))) // from further below
	want(t, other.decide(other.bash("ci-42", "git status")), allow, protocol.AllowedByRule)
	want(t, a.decide(a.bash("git status")), allow, protocol.AllowedByRule)
	r.answer(theirs.ID, yes())
	want(t, other.decide(theirs), allow, protocol.AllowedByHuman)
	r.thaw("agent child1", at, g)
	want(t, c.decide(c.bash("ci-42", "git status")), allow, protocol.AllowedByRule)
}

// TestAFreezeHereTakesBackWhatTheParentWasAsked, and the parent's allow falls to
// one that comes in the same moment.
func TestAFreezeHereTakesBackWhatTheParentWasAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, upward)
	var answers book[string]
	parent := r.relays(&answers)
	g := r.gate("g1")
	r.hasParent("mid", g)
	a := r.agent("ci")
	ask, other := a.bash("make"), a.bash("make")
	other.Session.ID = "s2"
	for _, of := range []protocol.Ask{ask, other} {
		if h := a.once(of); h.progress == nil {
			t.Fatalf("want Progress, got %+v", h)
		}
	}
	r.freeze("session s1", g)
	wantFrozen(t, a.decide(ask))
	parent.tookBack(t, ask.ID)
	answers.put(ask.ID, r.said(ask.ID, func(*protocol.TerminalVerdict) {})) // too late
	answers.put(other.ID, r.said(other.ID, func(*protocol.TerminalVerdict) {}))
	want(t, a.decide(other), allow, protocol.AllowedByHuman)
	if n := len(r.decisions(ask.ID)); n != 1 {
		t.Errorf("%d records", n)
	}
	fresh := a.bash("make")
	answers.put(fresh.ID, r.said(fresh.ID, func(*protocol.TerminalVerdict) {}))
	wantFrozen(t, a.decide(fresh))
	if parent.times(fresh.ID) != 0 {
		t.Error("the parent was asked about what is frozen")
	}
}
