package module

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Bounds of one walk over the checks of a call.
const (
	maxStep    = 32 // checks of one module in a step
	maxFrameOf = 16 // steps in a frame
	maxCrashes = 8  // workers that one call may take down
	walkTime   = 5 * time.Second
)

// planned are the checks of one module that are asked together.
type planned struct {
	module *loaded
	checks []int
}

// walk asks the checks of one call.
type walk struct {
	ctx    context.Context
	set    *Set
	steps  []planned // not asked yet
	began  time.Time
	time   time.Duration // what a frame may take of a processor
	ask    string        // its id
	agent  string
	party  string // whose turn it takes: the agent's, or of the node below that relays
	input  jsontext.Value
	detail string
	// careful: a worker ended under more than one check. From now on each is
	// asked alone, so that the right one is named.
	careful bool
	// alone: a worker died, perhaps of what other modules hold in it, or somebody
	// else has ended it. From now on a worker holds none but the module that is asked.
	alone   bool
	crashes int
	failed  *Verdict // the first failure
}

func (w *walk) run(call *Call, f policy.ToolFields, path string) Verdict {
	var err error
	w.ask, w.agent, w.party = call.Ask.ID, call.Ask.Agent, call.Ask.Agent
	if via := call.Ask.Via(); via != "" { // what it says of its agents is its own word
		w.agent, w.party = via+"/"+w.agent, via+"/"
	}
	if w.input, w.detail, err = inputOf(&call.Ask, f, path); err != nil {
		return w.giveUp(fmt.Errorf("the call cannot be put to modules: %w", err))
	}
	for len(w.steps) > 0 {
		if err := w.exhausted(); err != nil {
			return w.giveUp(err)
		}
		if w.rested() {
			continue
		}
		frame := w.frame()
		results, err := w.set.engine.ask(w.ctx, w, frame)
		switch {
		case errors.Is(err, errTime), errors.Is(err, errDied):
			w.crashed(frame, err)
		case err != nil:
			return w.giveUp(err)
		default:
			if v := w.weigh(frame, results); v != nil {
				return *v
			}
		}
	}
	if w.failed != nil {
		return *w.failed
	}
	return Verdict{Decision: Pass}
}

// exhausted bounds what one call can cost: an agent can choose it so that many
// checks run away.
func (w *walk) exhausted() error {
	switch {
	case w.ctx.Err() != nil:
		return fmt.Errorf("the time for the call was over: %w", context.Cause(w.ctx))
	case w.crashes >= maxCrashes:
		return fmt.Errorf("it was not asked: %d checks before it took down their workers", w.crashes)
	case time.Since(w.began) > walkTime:
		return fmt.Errorf("it was not asked: the checks before it took more than %s", walkTime)
	}
	return nil
}

// frame is what is asked next, in one go.
func (w *walk) frame() []planned {
	if first := w.steps[0]; w.careful || first.module.slow() {
		w.split()
		return w.steps[:1]
	}
	// What is asked together must have room in a worker together.
	n, room := 1, w.set.engine.codeLimit()-len(w.steps[0].module.code)
	for ; n < min(len(w.steps), maxFrameOf); n++ {
		m := w.steps[n].module
		if room -= len(m.code); room < 0 || m.slow() {
			break
		}
	}
	return w.steps[:n]
}

// rested fails the next check if it is not asked about this agent's calls now.
func (w *walk) rested() bool {
	if !w.steps[0].module.slow() {
		return false // whatever took down a worker lately is
	}
	w.split()
	err := w.set.engine.rests.over(w.rest(), time.Now())
	if err == nil {
		return false
	}
	w.fail(w.steps[0], w.steps[0].checks[0], err)
	w.steps = w.steps[1:]
	return true
}

// rest is the next check under this agent's calls.
func (w *walk) rest() restKey {
	return restKey{w.agent, w.steps[0].module, w.steps[0].checks[0]}
}

// split makes of the first step one for each of its checks.
func (w *walk) split() {
	first := w.steps[0]
	if len(first.checks) == 1 {
		return
	}
	single := make([]planned, 0, len(first.checks)+len(w.steps)-1)
	for _, c := range first.checks {
		single = append(single, planned{first.module, []int{c}})
	}
	w.steps = append(single, w.steps[1:]...)
}

// crashed notes that a worker ended under a frame.
func (w *walk) crashed(frame []planned, err error) {
	w.crashes++
	again := len(frame) > 1 || len(frame[0].checks) > 1
	if errors.Is(err, errDied) && !w.alone {
		again, w.alone = true, true
	}
	if again {
		w.careful = true
		return
	}
	frame[0].module.markSlow()
	w.set.engine.rests.note(w.rest(), time.Now())
	w.fail(frame[0], frame[0].checks[0], err)
	w.steps = w.steps[1:]
}

// weigh goes through the results of a frame; not nil: the call is decided.
func (w *walk) weigh(frame []planned, results []result) *Verdict {
	for i, r := range results {
		at := frame[i]
		a, err := r.read(at.checks)
		switch {
		case err != nil && len(at.checks) > 1:
			w.split() // which of them was it?
			return nil
		case err != nil:
			w.fail(at, at.checks[0], err)
		default:
			for _, f := range a.Failures {
				w.fail(at, f.Check, errors.New(line(f.Error, maxFailure)))
			}
			if v := w.decided(at, &a); v != nil {
				return v
			}
		}
		w.steps = w.steps[1:]
	}
	return nil
}

// read is the answer of a step, or why there is none.
func (r *result) read(asked []int) (answer, error) {
	if r.Error != "" {
		return answer{}, errors.New(line(r.Error, maxFailure))
	}
	if r.Nothing {
		return answer{Decision: saysNone}, nil
	}
	return readAnswer(r.Answer, asked)
}

// decided is the verdict that an answer gives; nil where it gives none.
func (w *walk) decided(at planned, a *answer) *Verdict {
	switch a.Decision {
	case saysBlock:
		c := at.module.checks[a.Check]
		return &Verdict{Decision: Block, Check: c, Reason: a.reason(c)}
	case saysRequest:
		c := at.module.checks[a.Check]
		return &Verdict{Decision: Request, Check: c, Prompt: a.shown(c, w.detail)}
	}
	return nil
}

// fail notes that a check could say nothing.
func (w *walk) fail(at planned, check int, err error) {
	c := at.module.checks[check]
	w.set.engine.noteFailure(c, err)
	if w.failed == nil {
		w.failed = failedCheck(c, err)
	}
}

// giveUp is the verdict where the checks that are left cannot be asked. A block
// may be among them, so that no earlier word but a decision stands.
func (w *walk) giveUp(err error) Verdict {
	at := w.steps[0]
	w.fail(at, at.checks[0], err)
	return *w.failed
}

func failedCheck(c Check, err error) *Verdict {
	return &Verdict{Decision: Request, Check: c, Failure: line(err.Error(), maxFailure),
		Prompt: protocol.Prompt{Name: c.Name, Description: c.Description}}
}
