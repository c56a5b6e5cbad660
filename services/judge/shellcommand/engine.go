package shellcommand

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

const surfaceBash = "bash"

// maxQuestions bounds what is asked of the gate about one ask: its capability
// allows so many in a burst, and the records take some.
const maxQuestions = 56

var (
	errTooMany = errors.New("too many questions about one ask")
	errNoState = errors.New("the gate's answer says nothing")
)

// engine asks the gate how its rules stand, each question once. For one ask and
// one goroutine.
type engine struct {
	query link.Query
	ask   protocol.Ask
	known map[protocol.Query]protocol.Check
}

func newEngine(r link.Request) *engine {
	return &engine{query: r.Query, ask: r.Ask, known: map[protocol.Query]protocol.Check{}}
}

func (e *engine) check(ctx context.Context, q protocol.Query) (protocol.Check, error) {
	if c, ok := e.known[q]; ok {
		return c, nil
	}
	if len(e.known) >= maxQuestions {
		return protocol.Check{}, errTooMany
	}
	c, err := e.query.Check(ctx, q)
	if err != nil {
		return protocol.Check{}, fmt.Errorf("asking the gate: %w", err)
	}
	if !c.State.Valid() {
		return protocol.Check{}, errNoState
	}
	e.known[q] = c
	return c, nil
}

// ruling is what the rules say of all commands together. Its zero value allows
// nothing.
type ruling struct {
	state protocol.Action
	// about is the command, or the surface and its value, that decided, and
	// reason what the rules say of it.
	about  string
	reason string
}

// tally is the strictest of what the gate answered so far.
type tally struct {
	*engine
	worst ruling
}

func (t *tally) ask(ctx context.Context, about string, q protocol.Query) error {
	c, err := t.check(ctx, q)
	if err != nil {
		return err
	}
	if c.State > t.worst.state { // allow, ask, deny: in the order of their strictness
		t.worst = ruled(about, c)
	}
	return nil
}

// rule asks the gate about each piece in each directory and about all of them as
// one text. A deny wins over everything; only what is allowed throughout is
// allowed.
func (e *engine) rule(ctx context.Context, pieces []piece) (ruling, error) {
	t := tally{e, ruling{state: protocol.ActionAllow}}
	for _, p := range pieces {
		for _, dir := range p.dirs {
			at, ok := e.place(dir)
			if !ok {
				return ruling{state: protocol.ActionAsk, about: p.text, reason: "it is not known where it runs"}, nil
			}
			if err := t.ask(ctx, p.text, protocol.Query{Surface: surfaceBash, Value: p.text, Cwd: at}); err != nil {
				return ruling{}, err
			}
		}
	}
	if err := t.ask(ctx, "its commands together", protocol.Query{Surface: surfaceBash, Value: script(pieces)}); err != nil {
		return ruling{}, err
	}
	return t.worst, nil
}

// open asks the gate how the rules stand now on entries that were open.
func (e *engine) open(ctx context.Context, entries []protocol.Entry) (ruling, error) {
	t := tally{e, ruling{state: protocol.ActionAllow}}
	for _, o := range entries {
		if err := t.ask(ctx, o.Surface+" "+o.Value, protocol.Query{Surface: o.Surface, Value: o.Value}); err != nil {
			return ruling{}, err
		}
	}
	return t.worst, nil
}

func ruled(about string, c protocol.Check) ruling {
	r := ruling{state: c.State, about: about, reason: c.Reason}
	if r.reason == "" {
		r.reason = fmt.Sprintf("the rule %q says %s", protocol.Safe(c.MatchedPattern, 120, false), c.State)
	}
	return r
}

// place is the absolute directory of one that a text speaks of; "" for the
// call's own.
func (e *engine) place(dir string) (at string, ok bool) {
	switch {
	case dir == "":
		return "", true
	case dir == "~" || strings.HasPrefix(dir, "~/"):
		return path.Join(e.ask.Home, strings.TrimPrefix(dir[1:], "/")), strings.HasPrefix(e.ask.Home, "/")
	case strings.HasPrefix(dir, "/"):
		return path.Clean(dir), true
	default:
		return path.Join(e.ask.Cwd, dir), strings.HasPrefix(e.ask.Cwd, "/")
	}
}
