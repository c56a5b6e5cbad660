package module

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The frames of calls, of which there are thousands a second, are not JSON. Each
// begins with a letter that no JSON begins with. Nothing in them is said by a zero
// or by being left out: what is cut short, garbled or empty is an error, and never
// that a check had nothing against a call.
const (
	askMark    = 'A'
	answerMark = 'R'
)

// How a step ended.
const (
	endNothing = 'n' // its checks were asked and say nothing
	endAnswer  = 'a'
	endError   = 'e'
)

// asking is a frame from the engine to a worker: ask these checks about a call.
type asking struct {
	// Serial is of this call in this worker, from 1 on; its answers bear it too.
	Serial uint64
	// Ask is the id of the ask: all that a module knows of time and chance.
	Ask   string
	Steps []step
	// Input is what modules are told of the call, but for their root: JSON.
	Input []byte
}

// step asks some checks of one module, in order.
type step struct {
	Module uint64
	Checks []int
}

// answers is a frame from a worker to the engine.
type answers struct {
	Serial uint64
	// Results are those of the first steps; the worker stops after one that does
	// not simply pass.
	Results []result
}

// result is what a step of this module came to: nothing, where its script was asked
// and that is how its answer reads; else the script's answer, or why there is none.
// The zero result is no answer.
type result struct {
	Module  uint64
	Nothing bool
	Answer  string
	Error   string
}

func (a *asking) append(b []byte) []byte {
	b = append(b, askMark)
	b = binary.AppendUvarint(b, a.Serial)
	b = appendText(b, a.Ask)
	b = binary.AppendUvarint(b, uint64(len(a.Steps)))
	for _, s := range a.Steps {
		b = binary.AppendUvarint(b, s.Module)
		b = binary.AppendUvarint(b, uint64(len(s.Checks)))
		for _, c := range s.Checks {
			b = binary.AppendUvarint(b, uint64(c))
		}
	}
	return append(b, a.Input...)
}

// readAsking reads the body of a frame. Its Input is a part of that.
func readAsking(body []byte) (asking, error) {
	c := cursor{rest: body}
	c.mark(askMark)
	a := asking{Serial: c.number(math.MaxUint64), Ask: c.text()}
	a.Steps = make([]step, c.number(maxFrameOf))
	for i := range a.Steps {
		s := step{Module: c.number(math.MaxUint64), Checks: make([]int, c.number(maxStep))}
		for n := range s.Checks {
			s.Checks[n] = int(c.number(MaxChecks))
		}
		a.Steps[i] = s
	}
	if c.err != nil {
		return asking{}, c.err
	}
	a.Input = c.rest
	return a, nil
}

func (a *answers) append(b []byte) []byte {
	b = append(b, answerMark)
	b = binary.AppendUvarint(b, a.Serial)
	b = binary.AppendUvarint(b, uint64(len(a.Results)))
	for _, r := range a.Results {
		b = binary.AppendUvarint(b, r.Module)
		switch {
		case r.Error != "":
			b = appendText(append(b, endError), r.Error)
		case r.Nothing:
			b = append(b, endNothing)
		default:
			b = appendText(append(b, endAnswer), r.Answer)
		}
	}
	return b
}

// readAnswers reads the body of a frame.
func readAnswers(body []byte) (answers, error) {
	c := cursor{rest: body}
	c.mark(answerMark)
	a := answers{Serial: c.number(math.MaxUint64), Results: make([]result, c.number(maxFrameOf))}
	for i := range a.Results {
		r := result{Module: c.number(math.MaxUint64)}
		switch end := c.byte(); end {
		case endNothing:
			r.Nothing = true
		case endAnswer:
			r.Answer = c.text()
		case endError:
			r.Error = c.text()
		default:
			c.fail("a step that ended as %#x", end)
		}
		a.Results[i] = r
	}
	if len(c.rest) > 0 {
		c.fail("%d bytes behind the answers", len(c.rest))
	}
	if c.err != nil {
		return answers{}, c.err
	}
	return a, nil
}

// fit refuses answers that are not to what was asked.
func (a *answers) fit(to *asking) error {
	if a.Serial != to.Serial {
		return fmt.Errorf("%w: answers of call %d to call %d", errFrame, a.Serial, to.Serial)
	}
	if n := len(a.Results); n == 0 || n > len(to.Steps) {
		return fmt.Errorf("%w: %d results for %d steps", errFrame, n, len(to.Steps))
	}
	for i, r := range a.Results {
		if r.Module != to.Steps[i].Module {
			return fmt.Errorf("%w: a result of module %d, asked was %d", errFrame, r.Module, to.Steps[i].Module)
		}
	}
	return nil
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// cursor goes through the body of a frame. After the first error it gives zeros.
type cursor struct {
	rest []byte
	err  error
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: "+format, append([]any{errFrame}, args...)...)
	}
	c.rest = nil
}

func (c *cursor) byte() byte {
	if len(c.rest) == 0 {
		c.fail("it ends too early")
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

func (c *cursor) mark(want byte) {
	if got := c.byte(); got != want {
		c.fail("it begins with %#x, not %#x", got, want)
	}
}

// number is the next one, which is no larger than limit.
func (c *cursor) number(limit uint64) uint64 {
	n, size := binary.Uvarint(c.rest)
	switch {
	case size <= 0:
		c.fail("it has no number where one is due")
	case n > limit:
		c.fail("it says %d, the limit is %d", n, limit)
	default:
		c.rest = c.rest[size:]
		return n
	}
	return 0
}

func (c *cursor) text() string {
	n := c.number(maxFrame)
	if n > uint64(len(c.rest)) {
		c.fail("a text of %d bytes where there are %d", n, len(c.rest))
		return ""
	}
	text := string(c.rest[:n])
	c.rest = c.rest[n:]
	return text
}
