package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// acceptance is how long a worker may take to say that it is at work, before
// the gate asks the link once more. A queue group picks blindly: one stuck
// worker must not cost the ask its link.
const acceptance = 500 * time.Millisecond

// walkChain asks the links of h that have not been asked, in the order of the
// configuration, until one decides. What each did is stored before the next is
// asked, so whoever takes the ask over goes on behind it. An allow alone is not:
// the decision that follows at once holds it, the entry stands at the link until
// then and is closed to answers, and a gate that dies in between loses no more
// than one more question to that link. A deny is stored, so that a record which
// fails for a while gives nobody a second chance to allow. The zero ending means
// that every link deferred.
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
			g.review.resolved(ctx, p, g.links.resolve(ctx, p.Chain))
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
	if r, err := g.rule(ctx, p.Ask); err != nil {
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

// attempt is the outcome of one request to a link.
type attempt struct {
	verdict protocol.Verdict
	failure string
}

// consult asks link, and once more when no worker says within acceptance that
// it is at work, but never after an answer. The first verdict counts, and none is
// waited for after it.
func (g *Gate) consult(ctx context.Context, p protocol.Pending, link string) (protocol.Verdict, string) {
	actx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan attempt, 2)
	running := 0
	var issued []*capability
	defer func() { g.capabilities.revoke(issued...) }()
	begin := func() *capability {
		c := g.capabilities.issue(p, link, deadlineOf(ctx))
		issued = append(issued, c)
		running++
		g.desk.wg.Go(func() {
			v, failure := g.request(actx, p, link, c)
			results <- attempt{v, failure}
		})
		return c
	}

	accepted := begin().accepted
	second := time.NewTimer(acceptance)
	defer second.Stop()
	for {
		select {
		case r := <-results:
			running--
			// An attempt that comes to nothing says nothing about the other, which
			// may still be at work.
			if r.failure != "" && running > 0 {
				continue
			}
			return r.verdict, r.failure
		case <-accepted:
			second.Stop()
			accepted = nil
		case <-second.C:
			// All that came while the timer ran counts, in whatever order it is seen.
			if !isClosed(accepted) && len(results) == 0 {
				begin()
			}
		case <-ctx.Done():
			return protocol.Verdict{}, protocol.FailureTimeout
		}
	}
}

// request sends one link request and reads the one reply.
func (g *Gate) request(ctx context.Context, p protocol.Pending, link string, c *capability) (protocol.Verdict, string) {
	msg, err := g.linkRequest(p, link, c)
	if err != nil {
		g.fail("link", "link could not be asked", p.Ask.ID, err)
		return protocol.Verdict{}, protocol.FailureError
	}
	answer, err := g.nc.RequestMsgWithContext(ctx, msg)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return protocol.Verdict{}, protocol.FailureUnregistered
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return protocol.Verdict{}, protocol.FailureTimeout
	case err != nil:
		g.log.Warn("link could not be asked", "ask", p.Ask.ID, "link", link, "err", err)
		return protocol.Verdict{}, protocol.FailureError
	case answer.Header.Get(protocol.HeaderErrorCode) != "":
		return protocol.Verdict{}, protocol.FailureError
	}
	v, err := protocol.ReadVerdictFor(p.Ask.ID, answer.Data)
	if err != nil {
		g.log.Warn("link's answer is no verdict", "ask", p.Ask.ID, "link", link, "err", err)
		return protocol.Verdict{}, protocol.FailureMalformed
	}
	return v, ""
}

func (g *Gate) linkRequest(p protocol.Pending, link string, c *capability) (*nats.Msg, error) {
	subject, err := g.subjects.Link(link)
	if err != nil {
		return nil, err
	}
	body, err := protocol.Write(protocol.LinkRequest{
		Link: link, Ask: p.Ask, Asks: p.Asks, Units: p.Units, Deadline: c.deadline, Query: c.query, Log: c.log,
		PolicyRevision: p.Policy.Revision,
	})
	if err != nil {
		return nil, fmt.Errorf("asking link %s: %w", link, err)
	}
	return &nats.Msg{Subject: subject, Data: body}, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func deadlineOf(ctx context.Context) time.Time {
	d, _ := ctx.Deadline()
	return d.UTC()
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
