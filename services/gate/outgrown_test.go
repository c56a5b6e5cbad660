package gate

import (
	"context"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// delegating is a policy whose link may allow; narrowed are two by which it may
// not any more.
const delegating = `{"permission":{"*":"ask"},"authorizerChain":["one"],"modelDelegation":{"allowedSurfaces":["bash"]},"terminal":{"kind":"human"}}`

var narrowed = map[string]string{
	"to no link":         strings.Replace(delegating, `"modelDelegation":{"allowedSurfaces":["bash"]},`, "", 1),
	"to another surface": strings.Replace(delegating, `["bash"]`, `["read"]`, 1),
	"to a person alone":  strings.Replace(delegating, `"*":"ask"`, `"*":"ask","bash":{"*":{"action":"ask","humanOnly":true}}`, 1),
}

// A gate died over a link's allow, and the operator has narrowed the policy
// before another one carries it on.
func TestALinksAllowIsHeldAgainstTheEnvelopeOfTheMoment(t *testing.T) {
	t.Parallel()
	for name, policy := range narrowed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, ask := allowedByDeadGate(t)
			person := r.person()
			r.put(policy)
			r.gate("g2")
			r.waiting(ask.ID)
			r.answer(ask.ID, no("not now"))
			d := r.ended(ask.ID)
			want(t, d, deny, protocol.DeniedByHuman)
			if wantTrail(t, d, "one=defer*"); person.times(ask.ID) != 1 {
				t.Errorf("a person was asked %d times", person.times(ask.ID))
			}
		})
	}
	t.Run("and stands where it still covers it", func(t *testing.T) {
		t.Parallel()
		r, ask := allowedByDeadGate(t)
		r.put(strings.Replace(delegating, `["bash"]`, `["read","bash"]`, 1))
		r.gate("g2")
		want(t, r.ended(ask.ID), allow, protocol.AllowedByLink)
	})
}

// allowedByDeadGate is a node whose link has allowed an ask, and whose gate died
// before the allow was recorded.
func allowedByDeadGate(t *testing.T) (*rig, protocol.Ask) {
	t.Helper()
	r := newRig(t, delegating)
	asked := make(chan linkCall, 4)
	r.link("one", func(c linkCall) { c.accept(); asked <- c })
	g := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make")
	go a.try(ask.ID, must(protocol.Write(ask))(t)) //nolint:errcheck // its gate dies
	receive(t, asked)
	r.stored(ask.ID)
	g.kill()
	must(r.open.Update(context.Background(), ask.ID, func(p *protocol.Pending) error {
		p.Trail, p.Stage = []protocol.TrailEntry{{Link: "one", Verdict: protocol.ChoiceAllow}}, protocol.StageSettling
		return nil
	}))(t)
	return r, ask
}

// The policy came between the link's verdict and the record.
func TestAnAllowOfNoPersonIsNotRecordedBeyondTheRulesOfTheMoment(t *testing.T) {
	t.Parallel()
	r := newRig(t, delegating)
	g := r.gate("g1")
	ask := r.agent("ci").bash("make")
	p := protocol.Pending{Ask: ask, Digest: must(ask.Digest(nodetest.Name))(t), Node: nodetest.Name, Role: protocol.TerminalHuman, Chain: []string{"one"}}
	byOne := byLink(protocol.TrailEntry{Link: "one", Verdict: protocol.ChoiceAllow})
	byPerson := byTerminal(protocol.TerminalHuman, protocol.TerminalVerdict{Ask: ask.ID, Verdict: allow, Outcome: protocol.AllowedByHuman, Approver: "oncall-1"})
	conclude := func(end ending) protocol.Decision {
		return must(g.conclude(context.Background(), p, end))(t)
	}
	want(t, conclude(byOne), allow, protocol.AllowedByLink)
	for name, policy := range narrowed {
		g.inForce(r.put(policy))
		t.Log(name)
		d := conclude(byOne)
		want(t, d, deny, protocol.Unavailable)
		if !strings.Contains(d.Reason, "rules have changed") {
			t.Errorf("reason %q", d.Reason)
		}
		want(t, conclude(byPerson), allow, protocol.AllowedByHuman)
	}
	g.inForce(r.put(`{"permission":{"*":"allow"}}`))
	want(t, conclude(byOne), allow, protocol.AllowedByLink)
}

func TestWhatOnlyAPersonMayAllowByNowNoRuleOfTheParentAllows(t *testing.T) {
	t.Parallel()
	r := newRig(t, upward)
	var answers book[string]
	r.relays(&answers)
	g := r.gate("g1")
	r.hasParent("mid", g)
	a := r.agent("ci")
	byRule, byPerson := a.bash("make"), a.bash("make all")
	for _, ask := range []protocol.Ask{byRule, byPerson} {
		if h := a.once(ask); h.progress == nil {
			t.Fatalf("got %+v", h)
		}
	}
	g.inForce(r.put(strings.Replace(upward, `"bash":{"*":"ask"`, `"bash":{"*":{"action":"ask","humanOnly":true}`, 1)))
	answers.put(byRule.ID, r.said(byRule.ID, func(v *protocol.TerminalVerdict) { v.Outcome, v.Approver = protocol.AllowedByRule, "" }))
	answers.put(byPerson.ID, r.said(byPerson.ID, func(*protocol.TerminalVerdict) {}))
	want(t, a.decide(byRule), deny, protocol.Unavailable)
	want(t, a.decide(byPerson), allow, protocol.AllowedByHuman)
}
