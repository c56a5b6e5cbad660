package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	// grantTime bounds everything that is done about grants for one call.
	grantTime = 2 * time.Second
	// useAttempts is how often a use is tried that other calls race for.
	useAttempts = 3
)

// granted looks whether a person has allowed the like of a call before, where
// the rules leave it open. Whatever is wrong with a grant, it is none: the call
// stays open, and a person is asked.
//
// Nothing is kept between calls: every look goes through the bucket's leader, so
// that a grant which was acknowledged counts, and one which was revoked does not,
// whichever gate that came from.
func (g *Gate) granted(ctx context.Context, c call, r ruled) ruled {
	return g.cleared(ctx, c, r, g.use)
}

// spend counts one use of each grant that a call rests on.
type spend func(ctx context.Context, c call, used []grants.Stored) error

// spendNothing only looks.
func spendNothing(context.Context, call, []grants.Stored) error { return nil }

// cleared is granted with a word on what becomes of the uses.
func (g *Gate) cleared(ctx context.Context, c call, r ruled, use spend) ruled {
	if r.ruling.Action != policy.Ask || r.snapshot.Clamped() != "" || c.ask.HumanOnly {
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, grantTime)
	defer cancel()
	proof := proofs{g: g, of: map[string]bool{}}
	for range useAttempts {
		held := g.applying(ctx, c.ask)
		full := proof.rule(ctx, c.ask, r, held)
		if full.ruling.Action != policy.Allow {
			// A use is spent where it lets a call pass, not where it leaves less open.
			return proof.rule(ctx, c.ask, r, slices.DeleteFunc(held, limited))
		}
		err := use(ctx, c, full.grants)
		if err == nil {
			return full
		}
		if !errors.Is(err, grants.ErrLost) {
			g.fail("grant_use", "use of a grant could not be counted; the call is asked about", c.ask.ID, err)
			return r
		}
	}
	return r
}

// lessOpen is r without what grants had cleared before the links were asked, as
// far as they still hold: that is not open, so a link's allow need not reach it.
func (g *Gate) lessOpen(ctx context.Context, p protocol.Pending, r ruled) ruled {
	if p.Policy.Grants == "" || r.ruling.Action != policy.Ask || r.snapshot.Clamped() != "" || p.Ask.HumanOnly {
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, grantTime)
	defer cancel()
	proof := proofs{g: g, of: map[string]bool{}}
	return proof.rule(ctx, p.Ask, r, slices.DeleteFunc(g.applying(ctx, p.Ask), limited))
}

func limited(h grants.Stored) bool { return h.Uses > 0 }

// applying are the grants that apply to an ask now.
func (g *Gate) applying(ctx context.Context, ask protocol.Ask) []grants.Stored {
	held, err := g.grants.Of(ctx, grants.Holder(ask.Agent, ask.Hops))
	if err != nil {
		g.fail("grants_unread", "grants cannot be read; they clear nothing", ask.ID, err)
	}
	now := time.Now()
	held = slices.DeleteFunc(held, func(h grants.Stored) bool { return !grants.Applies(h.Grant, g.node, ask, now) })
	// One without a limit is used before one that has few uses left.
	slices.SortStableFunc(held, func(a, b grants.Stored) int { return min(a.Uses, 1) - min(b.Uses, 1) })
	return held
}

// proofs are what the record says of grants, for one call: by the grant's id,
// whether the decision that it names gave it.
type proofs struct {
	g  *Gate
	of map[string]bool
}

// rule rules ask once more, with those of held that the record proves.
func (p proofs) rule(ctx context.Context, ask protocol.Ask, r ruled, held []grants.Stored) ruled {
	if len(held) == 0 {
		return r
	}
	with := r
	with.grants = p.clearing(ctx, ask, held, func(proven []policy.Grant) []string {
		// The modules were asked, and no grant on what the rules ask answers them.
		with.ruling = r.checked.tighten(r.snapshot.RuleWith(grants.Call(ask), proven))
		return with.ruling.Grants()
	})
	return with
}

// clearing evaluates with those of held that the record proves, and returns the
// ones that the last evaluation rests on; evaluate returns their ids.
func (p proofs) clearing(ctx context.Context, ask protocol.Ask, held []grants.Stored, evaluate func([]policy.Grant) []string) (used []grants.Stored) {
	for {
		ids := evaluate(p.compiled(ask, held))
		bad := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return p.proven(ctx, ask, byID(held, id)) })
		if len(bad) == 0 {
			for _, id := range ids {
				used = append(used, byID(held, id))
			}
			return used
		}
		held = slices.DeleteFunc(slices.Clone(held), func(h grants.Stored) bool { return slices.Contains(bad, h.Ask) })
	}
}

func byID(held []grants.Stored, id string) grants.Stored {
	i := slices.IndexFunc(held, func(h grants.Stored) bool { return h.Ask == id })
	return held[i] // a ruling names no grants but those that it was handed
}

func (p proofs) compiled(ask protocol.Ask, held []grants.Stored) []policy.Grant {
	var out []policy.Grant
	for _, h := range held {
		if grants.OfModules(h.Grant) {
			continue // it turns a check off, and clears nothing that rules ask
		}
		compiled, err := grants.Compile(h.Grant)
		if err != nil {
			p.g.fail("grant_broken", "grant cannot be followed; it clears nothing", ask.ID, fmt.Errorf("grant %s: %w", h.Ask, err))
			continue
		}
		out = append(out, compiled)
	}
	return out
}

// proven says whether the record holds the decision by which a person gave the
// grant. Who can write the bucket alone has made none.
func (p proofs) proven(ctx context.Context, ask protocol.Ask, h grants.Stored) bool {
	if known, ok := p.of[h.Ask]; ok {
		return known
	}
	d, found, err := p.g.recorder.Find(ctx, h.Ask)
	if err == nil && (!found || d.Grant == nil || !grants.Same(*d.Grant, h.Grant)) {
		err = errors.New("no decision on record gave it")
	}
	if err != nil {
		p.g.fail("grant_unproven", "grant is not followed", ask.ID, fmt.Errorf("grant %s: %w", h.Ask, err))
	}
	p.of[h.Ask] = err == nil
	return err == nil
}

// use counts one use of each grant, before the allow is recorded that rests on
// them. A call that comes again after its decision uses nothing up.
func (g *Gate) use(ctx context.Context, c call, used []grants.Stored) error {
	if !slices.ContainsFunc(used, limited) {
		return nil
	}
	if _, decided, err := g.standing(ctx, c); decided || err != nil {
		return err
	}
	for _, h := range used {
		if err := g.grants.Use(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// given is the grant of a person's allow that stands, bound to whoever asked;
// nil if there is none.
func (g *Gate) given(p protocol.Pending, end ending) *protocol.Grant {
	if end.grant == nil || end.outcome != protocol.AllowedByHuman || end.result != protocol.FinalAllow {
		return nil
	}
	v := protocol.TerminalVerdict{Verdict: end.result, EditedInput: end.edited, Grant: end.grant}
	if err := grants.Check(p, v, time.Now()); err != nil {
		g.fail("grant_refused", "the answer stands, its grant does not", p.Ask.ID, err)
		return nil
	}
	bound := grants.Bind(*end.grant, p, end.approver)
	return &bound
}

// remember stores what a decision grants. The decision is on record by then, and
// whoever carries the ask through does this again: a grant is neither there
// without its decision, nor lost behind it.
func (g *Gate) remember(ctx context.Context, d protocol.Decision) error {
	if d.Grant == nil {
		return nil
	}
	return g.grants.Put(ctx, *d.Grant)
}
