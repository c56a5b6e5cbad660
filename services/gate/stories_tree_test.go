package gate

import (
	"context"
	"strings"
	"testing"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Where asks go is a setting, not a guess from who happens to be there.
func TestAChildToldToForwardAsksNobodyHere(t *testing.T) {
	t.Parallel()
	r := newRig(t, strings.Replace(upward, `"kind":"auto"`, `"kind":"parent"`, 1))
	person := r.person()
	var answers book[string]
	above := r.relays(&answers)
	g := r.gate("g1")
	r.hasParent("mid", g)
	presence := must(r.js.KeyValue(context.Background(), protocol.BucketPresence))(t)
	must(presence.Put(context.Background(), "oncall-1", []byte(`{"v":1}`)))(t)
	a := r.agent("ci")
	ask := a.bash("git status")
	ask.Session.Interactive = true
	answers.put(ask.ID, r.said(ask.ID, func(*protocol.TerminalVerdict) {}))
	d := a.decide(ask)
	want(t, d, allow, protocol.AllowedByHuman)
	if d.DecidedBy.Node != "root" || above.times(ask.ID) == 0 || person.total.Load() != 0 {
		t.Errorf("decided by %+v, put above %d times, here %d times", d.DecidedBy, above.times(ask.ID), person.total.Load())
	}
	want(t, a.decide(a.bash("rm -rf x")), deny, protocol.DeniedByRule) // what is settled here stays here
}

// What a child's agent is granted settles nothing of an agent here that has its
// name, and the other way round.
func TestAGrantSettlesTheAsksOfOneNodesAgentAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanGrants)
	r.person()
	g := r.gate("g1")
	a, c := r.agent("ci"), r.child("child1")
	own, ownLike, below, belowLike := a.bash("make a"), a.bash("make b"), c.bash("ci", "make c"), c.bash("ci", "make d")
	for _, ask := range []protocol.Ask{own, ownLike} {
		a.pend(ask)
	}
	for _, ask := range []protocol.Ask{below, belowLike} {
		c.pend(ask)
	}
	r.answer(below.ID, granting(protocol.ScopeAgent, "make *"))
	want(t, r.ended(belowLike.ID), allow, protocol.AllowedByGrant)
	r.stays(g, own.ID, ownLike.ID)
	r.answer(own.ID, granting(protocol.ScopeAgent, "make *"))
	want(t, r.ended(ownLike.ID), allow, protocol.AllowedByGrant)
}
