package gate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// ruled is what recorded authority says about an ask, and under which policy.
type ruled struct {
	ruling   policy.Ruling
	snapshot *policy.Snapshot
	// grants are those that the ruling rests on.
	grants []grants.Stored
	// project is the digest of the project's own policy, "" for none.
	project string
	// checked is what the permission modules say; ruling holds it.
	checked checked
}

// known waits until the policy that rule works with is that of this moment, for
// patience at most.
func (g *Gate) known(ctx context.Context) error {
	if g.policy.present() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.times.patience)
	defer cancel()
	return g.policy.await(ctx)
}

// leftToAPerson is why a person is asked about what this node's rules let pass.
const leftToAPerson = "Whoever asks leaves this to a person: a node below has a rule that only one answers."

// rule rules ask under the policy of this moment, the project's own that the ask
// names, and the permission modules of this moment. errNeedProject where the
// project's policy is not stored.
func (g *Gate) rule(ctx context.Context, ask protocol.Ask) (ruled, error) {
	file, err := g.files.of(ctx, ask)
	if err != nil {
		return ruled{}, err
	}
	who := whoAsks(ask, file)
	s := g.policy.of(who)
	r := ruled{ruling: s.Rule(grants.Call(ask)), snapshot: s, project: projectDigest(ask)}
	if ask.HumanOnly {
		r.ruling = r.ruling.LeftToPeople(leftToAPerson)
	}
	return g.moduled(ctx, ask, trustedModules(s, who, file), r), nil
}

// settled says whether nobody else need be asked. Only an explicit ask is open:
// no action at all is a refusal.
func (r ruled) settled() bool { return r.ruling.Action != policy.Ask }

// decision is the decision of a settled ruling.
func (r ruled) decision(g *Gate, c call) protocol.Decision {
	d := g.newDecision(c.ask, c.digest, c.requester, c.askedAt)
	r.describe(&d)
	e := r.ruling.Decisive
	d.Reason = e.Reason
	d.DecidedBy = protocol.Decider{Kind: protocol.DeciderRule, Name: e.Surface, Node: g.node}
	switch {
	case r.checked.denies(e):
		d.Result, d.Outcome = protocol.FinalDeny, r.checked.outcome
		d.DecidedBy.Kind, d.DecidedBy.Name = protocol.DeciderModule, r.checked.by
	case r.ruling.Action != policy.Allow:
		d.Result, d.Outcome = protocol.FinalDeny, protocol.DeniedByRule
	case e.Origin == policy.OriginYolo:
		d.Result, d.Outcome = protocol.FinalAllow, protocol.AllowedByYolo
		d.DecidedBy.Kind = protocol.DeciderYolo
	case len(r.ruling.Cleared) > 0:
		d.Result, d.Outcome, d.Asks = protocol.FinalAllow, protocol.AllowedByGrant, entries(r.ruling.Cleared)
		d.Approver = r.giver(e)
		d.DecidedBy.Kind, d.DecidedBy.Name = protocol.DeciderGrant, d.Approver
	default:
		d.Result, d.Outcome = protocol.FinalAllow, protocol.AllowedByRule
	}
	return d
}

// giver is the person whose grant cleared an entry.
func (r ruled) giver(e policy.Entry) string {
	for _, g := range r.grants {
		if policy.OriginGrant+g.Ask == e.Origin {
			return g.GrantedBy
		}
	}
	return ""
}

// describe fills in which rule a decision is about.
func (r ruled) describe(d *protocol.Decision) {
	e := r.ruling.Decisive
	d.Surface, d.Value, d.MatchedPattern, d.Origin = e.Surface, e.Value, e.MatchedPattern, e.Origin
	d.Policy = r.ref()
}

func (r ruled) ref() protocol.PolicyRef {
	used := append(r.ruling.Grants(), r.checked.muted...)
	return protocol.PolicyRef{Revision: r.snapshot.Revision(), Digest: r.snapshot.Digest(), Project: r.project, Modules: r.checked.digest, Grants: strings.Join(used, ",")}
}

// open are the entries that the rules left open, as the wire says them.
func (r ruled) open() []protocol.Entry { return entries(r.ruling.Open()) }

func entries(of []policy.Entry) []protocol.Entry {
	out := make([]protocol.Entry, 0, len(of))
	for _, e := range of {
		out = append(out, protocol.Entry{
			Surface: e.Surface, Value: e.Value, MatchedPattern: e.MatchedPattern, Origin: e.Origin, Unit: e.Unit,
			HumanOnly: e.HumanOnly, Floor: e.Floor,
		})
	}
	return out
}

func (r ruled) units() []protocol.Unit {
	units := make([]protocol.Unit, 0, len(r.ruling.Units))
	for _, u := range r.ruling.Units {
		units = append(units, protocol.Unit{Text: u.Text, Decision: wireAction(u.Action), Pattern: u.Pattern, Note: u.Note})
	}
	return units
}

// prompt is how an open call is put to a person: in the words of the module that
// asks for one, here or at the node below, else in those of the open entry to
// report.
func (r ruled) prompt(ask protocol.Ask) protocol.Prompt {
	e := r.ruling.Decisive
	asked := r.checked.prompt
	if asked == nil && ask.Prompt != nil {
		below := ask.Prompt.Shown()
		below.Check = "" // the node below alone knows it, and turns it off
		asked = &below
	}
	if asked != nil {
		p := *asked
		if !byModule(e) && e.Guidance != "" { // a rule speaks to the approver, too
			p.Guidance = strings.TrimPrefix(p.Guidance+"\n"+saidBy(e.Origin, e.Guidance), "\n")
		}
		return p
	}
	return protocol.Prompt{Name: ask.Tool.Name, Description: e.Reason, Guidance: saidBy(e.Origin, e.Guidance)}
}

// saidBy is a word to the approver with the layer that it comes from, unless that
// is the operator's. A project's file is the agent's to write: "checked, allow
// it" must not read as the operator's advice.
func saidBy(origin, text string) string {
	if text == "" || origin == policy.LayerFleet {
		return text
	}
	return origin + " says: " + text
}

// wireAction is the action's word on the wire; no action is written as deny.
func wireAction(a policy.Action) protocol.Action {
	switch a {
	case policy.Allow:
		return protocol.ActionAllow
	case policy.Ask:
		return protocol.ActionAsk
	default:
		return protocol.ActionDeny
	}
}

// conclude makes the decision of an open ask that ended. Before an allow that a
// link or a person gave, the call as edited is ruled again under the policy of
// this moment: a static deny is final, whoever allowed and whenever it came.
func (g *Gate) conclude(ctx context.Context, p protocol.Pending, end ending) (protocol.Decision, error) {
	d := g.newDecision(p.Ask, p.Digest, p.Requester, p.Since)
	d.Asks, d.Trail, d.Policy = p.Asks, append(slices.Clone(p.Trail), end.trail...), p.Policy
	if len(p.Asks) > 0 {
		e := p.Asks[0]
		d.Surface, d.Value, d.MatchedPattern, d.Origin = e.Surface, e.Value, e.MatchedPattern, e.Origin
	}
	switch end.by.Kind {
	case protocol.DeciderLink:
		d.Origin = "authorizer:" + end.by.Name
	case protocol.DeciderParent:
		d.Origin = "parent:" + end.by.Node
	}
	if end.result == protocol.FinalAllow {
		again, err := g.ruleEntry(ctx, p, edited(p.Ask, end))
		switch by, refused := again.refuses(end); {
		case errors.Is(err, errNeedProject):
			end = denial(protocol.Unavailable, "The project's own policy that this was asked under is not stored any more, so nobody knows what it would deny. Ask again.").after(end)
		case err != nil:
			return protocol.Decision{}, err
		case refused:
			again.describe(&d)
			end = end.overruled(by, again.checked)
		default:
			d.Policy = again.ref()
			if why := g.outgrown(ctx, p, again, end); why != "" {
				end = denial(protocol.Unavailable, why).after(end)
			}
		}
		d.Policy.Grants = p.Policy.Grants // what they cleared was not put to anybody
	}
	if end.outcome == protocol.NoApprover && end.by.Kind != protocol.DeciderParent {
		end.reason = unanswered(p, end.reason)
	}
	d.Result, d.Outcome, d.Reason, d.Note, d.Abort, d.EditedInput = end.result, end.outcome, end.reason, end.note, end.abort, end.edited
	d.Approver = end.approver
	d.DecidedBy = end.by
	if end.by.Kind != protocol.DeciderParent {
		d.DecidedBy.Node = g.node
	}
	end.ruledAs(&d)
	d.Grant = g.given(p, end)
	return d, nil
}

// refuses returns the entry to which an allow falls, if any: the rules deny the
// call, or a person has made something of it of which nobody can tell what it
// does.
func (r ruled) refuses(end ending) (by policy.Entry, refused bool) {
	by = r.ruling.Decisive
	switch {
	case r.ruling.Action != policy.Allow && r.ruling.Action != policy.Ask:
		return by, true
	case len(end.edited) > 0 && r.ruling.Unreadable():
		by.Reason = "The changed call does not say what it would do."
		return by, true
	default:
		return policy.Entry{}, false
	}
}

// outgrown says why an allow that no person gave does not stand any more: the
// rules leave the call open for somebody else than those who allowed. They came
// while it was on its way here, from a link or from the parent node. "" if it
// stands.
func (g *Gate) outgrown(ctx context.Context, p protocol.Pending, again ruled, end ending) string {
	const changed = "The rules have changed while this was decided, and by those of now "
	open := again.ruling.Open()
	switch {
	case end.outcome == protocol.AllowedByHuman || len(open) == 0:
		return ""
	case slices.ContainsFunc(open, func(e policy.Entry) bool { return e.HumanOnly }):
		return changed + "only a person may allow it. Ask again."
	case end.by.Kind != protocol.DeciderLink:
		return ""
	}
	less := g.lessOpen(ctx, p, again)
	if ok, _ := less.mayDelegate(p.Ask); ok || len(less.ruling.Open()) == 0 {
		return ""
	}
	return changed + "no link may allow it. Ask again."
}

func edited(ask protocol.Ask, end ending) protocol.Ask {
	if len(end.edited) > 0 && end.edited.Kind() == '{' {
		ask.Tool.Input = end.edited
	}
	return ask
}

func (g *Gate) newDecision(ask protocol.Ask, digest string, who protocol.Requester, askedAt time.Time) protocol.Decision {
	return protocol.Decision{
		Ask: ask.ID, Node: g.node, Gate: g.name, Agent: ask.Agent, Via: ask.Via(), Hops: ask.Hops, Session: ask.Session, Tool: ask.Tool.Name, Input: protocol.Shorten(ask.Tool.Input, recordedString, recordedInput),
		CallDigest: digest, Requester: who, AskedAt: askedAt.UTC(), DecidedAt: time.Now().UTC(), Trail: []protocol.TrailEntry{}, Asks: []protocol.Entry{},
	}
}
