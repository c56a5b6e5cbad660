// Package eval scores a link on labelled calls: the very link that a gate would
// ask, without a gate. Each call is ruled by a policy; what the rules leave open
// is put to the link with a query capability over the same rules, and what it
// says is held against what the label wants.
//
// Start at Run, which asks, and NewScore, which counts; data.go reads labelled
// calls, ask.go plays the gate.
package eval

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/assent-dev/assent/internal/llm/replay"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Subject is a link that is to be scored.
type Subject struct {
	Name string
	Link link.Link
	// Concurrency is how many cases it judges at once, at least 1.
	Concurrency int
}

// Result is what came of one case.
type Result struct {
	Case Case
	// Ruled is what the rules make of the call: the link is asked only where they
	// leave it open.
	Ruled protocol.Action
	// Got is the link's verdict; none where it was not asked.
	Got protocol.Choice
	// Cause is the one word for a defer; Said are the verdict's own words.
	Cause, Said string
	// Capped says why the policy's envelope would have made a defer of the link's
	// allow; "" where it would not. The allow counts all the same: it is the link
	// that is scored.
	Capped string
	// Model is what the case cost at the model.
	Model Spent
}

// Asked says whether the link was asked.
func (r Result) Asked() bool { return r.Got.Valid() }

// Run puts each case to the link and returns the results in the order of cases.
// progress is called after each, by one goroutine at a time. An error means that
// the run came to nothing: ctx ended, a case that no gate could send, or an
// answer that a recording does not hold.
func Run(ctx context.Context, cases []Case, rules *policy.Snapshot, of Subject, progress func(done, all int)) ([]Result, error) {
	results := make([]Result, len(cases))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(of.Concurrency, 1))
	var mu sync.Mutex
	done := 0
	for i, c := range cases {
		group.Go(func() error {
			r, err := one(ctx, c, rules, of)
			if err != nil {
				return fmt.Errorf("case %s: %w", c.ID, err)
			}
			mu.Lock()
			defer mu.Unlock()
			results[i] = r
			done++
			progress(done, len(cases))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return results, nil
}

// one puts one case to the link.
func one(ctx context.Context, c Case, rules *policy.Snapshot, of Subject) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	a, err := newAsking(c, rules, of.Name)
	if err != nil {
		return Result{}, err
	}
	r := Result{Case: c, Ruled: wireAction(a.ruling.Action)}
	if a.ruling.Action != policy.Ask {
		return r, nil
	}
	within, cancel := context.WithDeadline(withTally(ctx, &a.tally), a.request.Deadline)
	defer cancel()
	v := a.consult(within, of.Link)
	if err := a.tally.broken(replay.ErrMissing, replay.ErrStale); err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err // the person has had enough: what it said since is no verdict
	}
	r.Got, r.Said, r.Model = v.Verdict, protocol.Safe(v.Reason, protocol.MaxReason, true), a.tally.sum()
	if v.Verdict == protocol.ChoiceDefer {
		r.Cause = a.log.cause(v)
	}
	if v.Verdict == protocol.ChoiceAllow {
		if ok, why := rules.LinkMayAllow(a.ruling.Open(), a.call); !ok {
			r.Capped = why
		}
	}
	return r, nil
}

// consult asks the link as pkg/link does: whatever is no verdict is a defer.
func (a *asking) consult(ctx context.Context, ask link.Link) (v protocol.Verdict) {
	defer a.over.Store(true)
	defer func() {
		if p := recover(); p != nil {
			v = link.Unable(protocol.FailureError, fmt.Sprintf("the link panicked: %v\n%s", p, debug.Stack()))
		}
	}()
	v, err := ask(ctx, a.request)
	late := errors.Is(ctx.Err(), context.DeadlineExceeded)
	v.Ask = a.request.Ask.ID
	switch _, invalid := protocol.Write(v); {
	case late:
		return link.Unable(protocol.FailureTimeout, "the link's time was over")
	case err != nil:
		return link.Unable(protocol.FailureError, err.Error())
	case invalid != nil:
		return link.Unable(protocol.FailureMalformed, invalid.Error())
	}
	return v
}
