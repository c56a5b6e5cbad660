package shellcommand

import (
	"context"
	"errors"
	"fmt"
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
	// bases are the directories in which the call may begin, relative to its own;
	// "" for that.
	bases []string
	known map[protocol.Query]protocol.Check
}

func newEngine(r link.Request) *engine {
	return &engine{query: r.Query, bases: bases(r.Ask), known: map[protocol.Query]protocol.Check{}}
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
//
// A piece is asked about in the call's own directory, with the way to its own in
// front: paths are inside or outside of the former, whatever text goes where.
func (e *engine) rule(ctx context.Context, pieces []piece) (ruling, error) {
	if e.bases == nil {
		return ruling{state: protocol.ActionAsk, about: "it", reason: "it is not known where it runs"}, nil
	}
	t := tally{e, ruling{state: protocol.ActionAllow}}
	for _, base := range e.bases {
		for _, p := range pieces {
			for _, dir := range p.dirs {
				if err := t.ask(ctx, p.text, protocol.Query{Surface: surfaceBash, Value: gone(base) + gone(dir) + p.text}); err != nil {
					return ruling{}, err
				}
			}
		}
	}
	if t.worst.state == protocol.ActionDeny && len(e.bases) == 1 {
		return t.worst, nil
	}
	together := tally{e, ruling{state: protocol.ActionAllow}}
	for _, base := range e.bases {
		if err := together.ask(ctx, "its commands together", protocol.Query{Surface: surfaceBash, Value: gone(base) + script(pieces)}); err != nil {
			return ruling{}, err
		}
	}
	if together.worst.state > t.worst.state {
		t.worst = together.worst
	}
	// One after the other they may go further than they do where they stand, and
	// they begin in one place only: that is no reason to deny.
	t.worst.state = min(t.worst.state, protocol.ActionAsk)
	return t.worst, nil
}

// gone is what goes to a directory in front of a command; "" for the call's own.
// One that looks like an option is gone to by another name.
func gone(dir string) string {
	switch rest, home := strings.CutPrefix(dir, "~/"); {
	case dir == "":
		return ""
	case dir == "~":
		return "cd ~ && "
	case home && rest != "":
		return "cd ~/" + quoted(rest) + " && "
	case strings.HasPrefix(dir, "-"):
		return "cd ./" + quoted(dir) + " && "
	}
	return "cd " + quoted(dir) + " && "
}

func ruled(about string, c protocol.Check) ruling {
	r := ruling{state: c.State, about: about, reason: c.Reason}
	if r.reason == "" {
		r.reason = fmt.Sprintf("the rule %q says %s", protocol.Safe(c.MatchedPattern, 120, false), c.State)
	}
	return r
}
