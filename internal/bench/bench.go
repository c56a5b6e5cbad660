// Package bench measures what an ask costs beside what NATS alone costs, on the
// same machine and in the same moments. Figures of a shared machine move by a
// third with its neighbours; ratios of what was measured side by side hold.
package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Work is one thing that is measured: Do is one operation of one caller, and is
// called by many at once.
type Work struct {
	Name string
	Do   func(ctx context.Context) error
	// Wait, if not nil, is called before each operation and not measured.
	Wait func(ctx context.Context) error
}

// Plan says how to measure. Each round runs every work once, one after another,
// so that what disturbs the machine for a while disturbs all of them.
type Plan struct {
	Rounds  int
	Warm    time.Duration // before each sample, not counted
	Sample  time.Duration
	Callers []int
}

// Errors of a plan.
var (
	ErrPlan = errors.New("nothing can be measured like this")
	// ErrWork: an operation failed. Figures of what fails are figures of failing.
	ErrWork = errors.New("measuring failed")
)

// Check says what is wrong with a plan: ErrPlan.
func (p Plan) Check() error {
	switch {
	case p.Rounds < 1 || p.Sample <= 0 || p.Warm < 0 || len(p.Callers) == 0:
		return fmt.Errorf("%w: want at least one round, a time for each sample and a number of callers", ErrPlan)
	case p.Rounds > maxRounds:
		return fmt.Errorf("%w: %d rounds, the limit is %d", ErrPlan, p.Rounds, maxRounds)
	}
	for _, c := range p.Callers {
		if c < 1 || c > maxCallers {
			return fmt.Errorf("%w: %d callers, want 1 to %d", ErrPlan, c, maxCallers)
		}
	}
	return nil
}

const (
	maxRounds  = 1000
	maxCallers = 4096
)

// Step is how far a run is, for whoever waits for it.
type Step struct {
	Done, Of int
	Work     string
	Callers  int
}

// Run measures every work with every number of callers. It ends with ErrWork at
// the first operation that fails, and with the cause of ctx when that ends.
// progress, if not nil, is called before each sample.
func Run(ctx context.Context, plan Plan, works []Work, progress func(Step)) (Report, error) {
	if err := plan.Check(); err != nil {
		return Report{}, err
	}
	report := newReport(plan, works)
	step := Step{Of: plan.Rounds * len(plan.Callers) * len(works)}
	for range plan.Rounds {
		for _, callers := range plan.Callers {
			for _, w := range works {
				step.Work, step.Callers = w.Name, callers
				if progress != nil {
					progress(step)
				}
				s, err := measure(ctx, plan, w, callers)
				if err != nil {
					return Report{}, err
				}
				report.add(w.Name, callers, s)
				step.Done++
			}
		}
	}
	return report, nil
}

// measure lets callers do w side by side, first to warm up and then in earnest.
func measure(ctx context.Context, plan Plan, w Work, callers int) (sample, error) {
	if _, err := load(ctx, w, callers, plan.Warm); err != nil {
		return sample{}, err
	}
	return load(ctx, w, callers, plan.Sample)
}

// load runs w in a closed loop of callers for a while. Each caller ends with the
// operation that it began in time.
func load(ctx context.Context, w Work, callers int, during time.Duration) (sample, error) {
	if during == 0 {
		return sample{}, nil
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	took := make([][]time.Duration, callers)
	began, busy := time.Now(), cpuTime()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for time.Since(began) < during && ctx.Err() == nil {
				d, err := w.once(ctx)
				if err != nil {
					fail(fmt.Errorf("%w: %s: %w", ErrWork, w.Name, err))
					return
				}
				took[i] = append(took[i], d)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return sample{}, context.Cause(ctx)
	}
	return newSample(time.Since(began), cpuTime()-busy, took), nil
}

func (w Work) once(ctx context.Context) (time.Duration, error) {
	if w.Wait != nil {
		if err := w.Wait(ctx); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	err := w.Do(ctx)
	return time.Since(began), err
}
