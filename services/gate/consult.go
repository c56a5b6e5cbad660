package gate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	// acceptance is how long a worker may take to say that it is at work, before
	// the gate asks the link once more: one stuck worker must not cost the ask its
	// link.
	acceptance = 500 * time.Millisecond
	// A worker that is full says so at once, and another one is asked: after
	// busyPause, then after twice as long, up to busyLongest, for half of the link's
	// time, and never after more than a busyShare of what is left of it: who has waited
	// longest asks most often, so that those who come anew do not take every place
	// that gets free. Whoever has room then has the other half to judge.
	busyPause   = 10 * time.Millisecond
	busyLongest = 320 * time.Millisecond
	busyShare   = 16
)

// attempt is the outcome of one request to a link.
type attempt struct {
	verdict protocol.Verdict
	failure string
}

// turnedAway says whether a worker took no note of the ask because it is full.
// That is no verdict: nobody has judged.
func (a attempt) turnedAway() bool {
	return a.failure == "" && a.verdict.Verdict == protocol.ChoiceDefer && a.verdict.Failure == protocol.FailureBusy
}

// consultation is one link being asked about one ask. It belongs to the goroutine
// that walks the chain.
type consultation struct {
	g       *Gate
	p       protocol.Pending
	link    string
	results chan attempt
	issued  []*capability
	running int
	turned  int             // how often it was turned away
	patient time.Time       // until when it goes on after that
	tried   map[string]bool // workers that were asked by their own name
}

// consult asks link, and once more when no worker says within acceptance that
// it is at work, but never after an answer. The first verdict counts, and none is
// waited for after it. That a worker is full is no verdict: another one is asked.
func (g *Gate) consult(ctx context.Context, p protocol.Pending, link string) (protocol.Verdict, string) {
	c := &consultation{
		g: g, p: p, link: link, results: make(chan attempt, 4),
		patient: time.Now().Add(time.Until(deadlineOf(ctx)) / 2), tried: map[string]bool{},
	}
	actx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() { g.capabilities.revoke(c.issued...) }()
	r := c.run(ctx, actx)
	return r.verdict, r.failure
}

// run asks until there is an answer or ctx ends; the requests live as long as
// actx.
func (c *consultation) run(ctx, actx context.Context) attempt {
	last := attempt{failure: protocol.FailureTimeout}
	waits, seconded := false, false
	c.begin(actx, c.anybody)
	second := time.NewTimer(acceptance)
	defer second.Stop()
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	for {
		select {
		case r := <-c.results:
			c.running--
			if r.turnedAway() {
				last = r
			}
			switch {
			case r.turnedAway() && time.Now().Before(c.patient) && !waits && !c.accepted():
				again.Reset(c.pause())
				waits = true
			// An attempt that comes to nothing says nothing about the other, which
			// may still be at work.
			case (r.failure != "" || r.turnedAway()) && (c.running > 0 || waits):
			default:
				return r
			}
		case <-again.C:
			waits = false
			switch {
			case !c.accepted():
				c.begin(actx, c.another())
				if !seconded {
					second.Reset(acceptance)
				}
			case c.running == 0:
				return last
			}
		case <-second.C:
			// All that came while the timer ran counts, in whatever order it is seen.
			if !c.accepted() && len(c.results) == 0 && c.running > 0 {
				seconded = true
				c.begin(actx, c.somebodyElse)
			}
		case <-ctx.Done():
			return last
		}
	}
}

// pause is how long to wait before another worker is asked. It is not the same
// for all asks that were turned away together.
func (c *consultation) pause() time.Duration {
	left := time.Until(c.patient)
	d := min(busyPause<<min(c.turned, 8), busyLongest, max(left/busyShare, busyPause))
	c.turned++
	return min(d/2+rand.N(d/2), left)
}

// accepted says whether any worker has said that it is at work.
func (c *consultation) accepted() bool {
	for _, i := range c.issued {
		if isClosed(i.accepted) {
			return true
		}
	}
	return false
}

// begin sends one request by way of ask.
func (c *consultation) begin(ctx context.Context, ask func(context.Context, *capability) attempt) {
	capability := c.g.capabilities.issue(c.p, c.link, deadlineOf(ctx))
	c.issued = append(c.issued, capability)
	c.running++
	c.g.desk.wg.Go(func() {
		select {
		case c.results <- ask(ctx, capability):
		case <-ctx.Done(): // nobody waits any more
		}
	})
}

// anybody asks whichever worker the queue group picks.
func (c *consultation) anybody(ctx context.Context, with *capability) attempt {
	subject, err := c.g.subjects.Link(c.link)
	if err != nil {
		return c.unasked(err)
	}
	return c.g.request(ctx, c.p, c.link, subject, with)
}

// somebodyElse asks a worker that answers at this moment: a queue group picks
// blindly, and may pick the worker again that is stuck with the first attempt.
func (c *consultation) somebodyElse(ctx context.Context, with *capability) attempt {
	return c.byName(ctx, c.g.links.awake(ctx, c.link), with)
}

// another asks the workers by their names, one after another: a queue group may
// pick the full ones again and again, while one has room. When all have been asked
// it begins anew, for the first may have room by now.
func (c *consultation) another() func(context.Context, *capability) attempt {
	names, name := c.g.links.workers(c.link), ""
	if !slices.ContainsFunc(names, func(n string) bool { return !c.tried[n] }) {
		clear(c.tried)
	}
	for _, n := range names {
		if !c.tried[n] {
			name, c.tried[n] = n, true
			break
		}
	}
	return func(ctx context.Context, with *capability) attempt { return c.byName(ctx, name, with) }
}

// byName asks one worker; where it has no name, or does not serve under it, that
// is the queue group's choice. A name is what a worker says of itself and grants
// nothing: only a credential for the link may hear on a worker's subject.
func (c *consultation) byName(ctx context.Context, name string, with *capability) attempt {
	if name != "" {
		subject, err := c.g.subjects.Worker(c.link, name)
		if err != nil {
			return c.unasked(err)
		}
		if r := c.g.request(ctx, c.p, c.link, subject, with); r.failure != protocol.FailureUnregistered {
			return r
		}
	}
	return c.anybody(ctx, with)
}

func (c *consultation) unasked(err error) attempt {
	c.g.fail("link", "link could not be asked", c.p.Ask.ID, err)
	return attempt{failure: protocol.FailureError}
}

// request sends one link request to subject and reads the one reply.
func (g *Gate) request(ctx context.Context, p protocol.Pending, link, subject string, c *capability) attempt {
	body, err := protocol.Write(protocol.LinkRequest{
		Link: link, Ask: p.Ask, Asks: p.Asks, Units: p.Units, Deadline: c.deadline, Query: c.query, Log: c.log,
		PolicyRevision: p.Policy.Revision,
	})
	if err != nil {
		g.fail("link", "link could not be asked", p.Ask.ID, fmt.Errorf("asking link %s: %w", link, err))
		return attempt{failure: protocol.FailureError}
	}
	answer, err := g.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: body})
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return attempt{failure: protocol.FailureUnregistered}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return attempt{failure: protocol.FailureTimeout}
	case err != nil:
		g.log.Warn("link could not be asked", "ask", p.Ask.ID, "link", link, "err", err)
		return attempt{failure: protocol.FailureError}
	case answer.Header.Get(protocol.HeaderErrorCode) != "":
		return attempt{failure: protocol.FailureError}
	}
	v, err := protocol.ReadVerdictFor(p.Ask.ID, answer.Data)
	if err != nil {
		g.log.Warn("link's answer is no verdict", "ask", p.Ask.ID, "link", link, "err", err)
		return attempt{failure: protocol.FailureMalformed}
	}
	return attempt{verdict: v}
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
