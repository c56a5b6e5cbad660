package gate

import (
	"context"
	"slices"
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

// walkChain asks the links of h that have not been asked, in the order of the
// configuration, until one decides. What each did is in the entry before the next
// is asked, so whoever takes a stored ask over goes on behind it. An allow alone is
// not: the decision that follows at once holds it, the entry stands at the link
// until then and is closed to answers, and a gate that dies in between loses no
// more than one more question to that link. A deny is, so that a record which fails
// for a while gives nobody a second chance to allow. The zero ending means that
// every link deferred.
func (g *Gate) walkChain(ctx context.Context, h *held) (ending, error) {
	if err := g.reconsider(ctx, h); err != nil {
		return ending{}, err
	}
	for {
		p := h.item().Pending
		if end := interruption(p, g.policy.freezes.current(), time.Now()); end.decided() {
			return end, nil
		}
		if n := len(p.Trail); n > 0 {
			if end := byLink(p.Trail[n-1]); end.decided() {
				return end, nil
			}
		}
		if len(p.Trail) >= len(p.Chain) {
			return ending{}, nil
		}
		if len(p.Trail) == 0 {
			g.review.resolved(p, g.links.resolve(ctx, p.Chain))
		}
		entry, err := g.askLink(ctx, p, p.Chain[len(p.Trail)])
		if err != nil {
			return ending{}, err
		}
		if end := byLink(entry); end.result == protocol.FinalAllow {
			end.trail = []protocol.TrailEntry{entry}
			return end, nil
		}
		if err := h.update(ctx, appendTrail(len(p.Trail), entry)); err != nil {
			return ending{}, err
		}
	}
}

// appendTrail adds entry as number at, once, however often it runs.
func appendTrail(at int, entry protocol.TrailEntry) func(*protocol.Pending) {
	return func(p *protocol.Pending) {
		if len(p.Trail) == at {
			p.Trail = append(p.Trail, entry)
		}
		p.Stage = nextStage(*p)
	}
}

// nextStage is where p stands. A link that decided leaves nothing to a person: an
// answer that came before the record would be accepted, and count for nothing.
func nextStage(p protocol.Pending) string {
	if n := len(p.Trail); n > 0 && byLink(p.Trail[n-1]).decided() {
		return protocol.StageSettling
	}
	if len(p.Trail) < len(p.Chain) {
		return "link:" + p.Chain[len(p.Trail)]
	}
	return "terminal:" + string(p.Role)
}

// askLink asks one link and says what came of it. Whatever is not a verdict of
// the link for this ask, in time, is a defer with its failure. An error means
// that the ask itself ended or the gate stops, not that the link failed.
func (g *Gate) askLink(ctx context.Context, p protocol.Pending, link string) (protocol.TrailEntry, error) {
	began := time.Now()
	lctx, cancel := context.WithTimeout(ctx, g.policy.current().LinkTimeout())
	defer cancel()
	v, failure := g.consult(lctx, p, link)
	if ctx.Err() != nil {
		return protocol.TrailEntry{}, context.Cause(ctx)
	}
	t := protocol.TrailEntry{Link: link, Verdict: protocol.ChoiceDefer, Failure: failure, MS: milliseconds(time.Since(began))}
	if failure == "" {
		t.Verdict, t.Reason, t.Failure = v.Verdict, protocol.Safe(v.Reason, protocol.MaxReason, true), v.Failure
	}
	if t.Verdict == protocol.ChoiceAllow {
		g.applyEnvelope(ctx, p, &t)
	}
	if t.Failure != "" {
		g.count("link", t.Failure)
	}
	// The gate's own finding alone: a running link that says so of itself must
	// not write this record.
	if failure == protocol.FailureUnregistered {
		t.Reason = g.links.unable(link)
		g.review.unregistered(p.Ask.ID, link, t.Reason)
	}
	return t, nil
}

// applyEnvelope makes a defer of an allow that the operator's bound does not
// cover. The envelope is the gate's: no link is asked whether it keeps to it.
func (g *Gate) applyEnvelope(ctx context.Context, p protocol.Pending, t *protocol.TrailEntry) {
	ok, why := false, ""
	if r, err := g.ruleEntry(ctx, p, p.Ask); err != nil {
		why = err.Error()
	} else {
		ok, why = g.lessOpen(ctx, p, r).mayDelegate(p.Ask)
	}
	if !ok {
		t.Verdict, t.Capped = protocol.ChoiceDefer, true
		g.log.Info("link's allow is outside the envelope", "ask", p.Ask.ID, "link", t.Link, "why", why)
	}
}

// reconsider holds a link's allow that a gate which is gone has left behind
// against the envelope of this moment: the operator may have narrowed it since.
func (g *Gate) reconsider(ctx context.Context, h *held) error {
	item := h.item()
	last := len(item.Trail) - 1
	if last < 0 || byLink(item.Trail[last]).result != protocol.FinalAllow {
		return nil
	}
	entry := item.Trail[last]
	g.applyEnvelope(ctx, item.Pending, &entry)
	switch {
	case ctx.Err() != nil: // cut off, which says nothing about the allow
		return context.Cause(ctx)
	case !entry.Capped:
		return nil
	}
	return h.update(ctx, func(p *protocol.Pending) {
		p.Trail = append(slices.Clone(p.Trail[:last]), entry)
		p.Stage = nextStage(*p)
	})
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
