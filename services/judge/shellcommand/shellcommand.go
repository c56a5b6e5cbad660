package shellcommand

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge/brief"
	"github.com/assent-dev/assent/services/judge/denials"
	"github.com/assent-dev/assent/services/judge/journal"
)

// Kind is the word for this link in the judges' file.
const Kind = "shellcommand"

const (
	// DefaultRounds bounds the model's turns where the file says nothing.
	DefaultRounds = 4
	// answerTime is kept back from the ask's deadline for the questions to the
	// gate after the model's, for the record and for the verdict.
	answerTime = 750 * time.Millisecond
)

// Settings are what the judges' file says of this link. Model and Timeout are
// required.
type Settings struct {
	Model string
	// Instructions stand in front of the shipped prompt; "" is DefaultInstructions.
	Instructions string
	// Timeout bounds the question to the model, its rounds and retries included.
	Timeout time.Duration
	// Rounds bounds the model's turns; below 1 is DefaultRounds.
	Rounds int
	// Limit bounds the facts that a model is shown, in bytes; below 1 is
	// brief.DefaultLimit. What is longer is deferred, never cut.
	Limit int
	// Mark makes the fence of each question; nil is brief.NewMark.
	Mark brief.Mark
	// Denials remembers what was denied after a model was asked; nil remembers
	// nothing. It is this link's alone.
	Denials *denials.Cache
}

// Judge is the link. Use New. Its method Judge is a link.Link.
type Judge struct {
	set     Settings
	model   llm.Provider
	log     *slog.Logger
	journal *journal.Journal
}

// New returns the link. A provider that cannot work is an llm.Unavailable: what
// needs no model is then ruled all the same, and everything else deferred.
func New(set Settings, model llm.Provider, log *slog.Logger) *Judge {
	if set.Instructions == "" {
		set.Instructions = DefaultInstructions
	}
	if set.Rounds < 1 {
		set.Rounds = DefaultRounds
	}
	if set.Mark == nil {
		set.Mark = brief.NewMark
	}
	return &Judge{set: set, model: model, log: log, journal: journal.New(log)}
}

// Judge takes the text apart, and asks the gate about each command in it. What
// this package can take apart by itself costs no model. Whatever is not known
// to be allowed command by command is denied by the rules' own word or deferred.
func (j *Judge) Judge(ctx context.Context, r link.Request) (protocol.Verdict, error) {
	if !speaksOfShell(r.Asks) {
		return link.Defer("not about an opaque shell command"), nil // no record: not this link's business
	}
	text, miss := command(r)
	if miss != "" {
		j.journal.ShortCircuit(ctx, r, nil, miss)
		return link.Defer("the command is not looked into: " + miss), nil
	}
	c := &judgement{Judge: j, r: r, text: text, engine: newEngine(r)}
	f := c.find(ctx)
	c.d.Judged(f.verdict(), f.cause)
	j.journal.Decision(ctx, r, c.d)
	return f.verdict(), nil
}

// judgement is one ask being judged.
type judgement struct {
	*Judge
	r      link.Request
	text   string
	engine *engine
	d      journal.Decision
}

// Words of the record for a defer of this link's own choosing.
const (
	causeOpen       = "not-all-allowed"
	causeUnfaithful = "unfaithful"
	causeIncomplete = "incomplete"
	causeCarrier    = "carrier-named"
	causeMasked     = "masked"
	causeTooLarge   = "too-large"
	causeUnreadable = "unreadable"
	causeQuery      = "query-failed"
	causeMalformed  = "malformed-decomposition"
)

// finding is what a judgement came to. Its zero value defers. Only allowed and
// denied make one that does not, and both rest on what the gate answered.
type finding struct {
	state  protocol.Action
	reason string
	// cause is the record's word for a defer; failure that of the trail, "" where
	// the link chose to defer.
	cause, failure string
}

func (f finding) verdict() protocol.Verdict {
	switch {
	case f.state == protocol.ActionAllow:
		return link.Allow(f.reason)
	case f.state == protocol.ActionDeny:
		return link.Deny(f.reason)
	case f.failure != "":
		return link.Unable(f.failure, f.reason)
	default:
		return link.Defer(f.reason)
	}
}

func deferred(cause, format string, args ...any) finding {
	return finding{cause: cause, reason: protocol.Safe(fmt.Sprintf(format, args...), maxDetail, false)}
}

// failed is a defer that was none of this link's choosing.
func failed(cause string, err error) finding {
	f := deferred(cause, "%s", err)
	f.failure = cause
	return f
}

// find rules what can be ruled without a model, then asks it.
func (c *judgement) find(ctx context.Context) finding {
	// What is open beside the text stays open whatever the text holds. The gate is
	// not asked again: a value alone says neither which directory it is meant from
	// nor what a pattern in it stands for, and so may be allowed where the path is
	// not.
	if rest := others(c.r.Asks); len(rest) > 0 {
		return deferred(causeOpen, "%s %s is open as well", rest[0].Surface, rest[0].Value)
	}
	if pieces, err := cut(c.text, narrow); err == nil {
		return c.rule(ctx, pieces)
	}
	key := denials.KeyOf(c.r, Kind, c.set.Model, c.set.Instructions)
	if reason, ok := c.set.Denials.Lookup(key); ok {
		c.d.Cached = true
		return finding{state: protocol.ActionDeny, reason: reason}
	}
	f := c.ask(ctx)
	if f.state == protocol.ActionDeny {
		c.set.Denials.Deny(key, f.reason)
	}
	return f
}

// rule asks the gate about all pieces of the text.
func (c *judgement) rule(ctx context.Context, pieces []piece) finding {
	c.d.Commands = len(pieces)
	if carrierNamed(c.r.Asks, pieces) {
		return deferred(causeCarrier, "a rule asks about what carries the commands")
	}
	got, err := c.engine.rule(ctx, pieces)
	if err != nil {
		return failed(causeQuery, err)
	}
	if got.state == protocol.ActionAllow {
		return finding{state: protocol.ActionAllow, reason: allowed(len(pieces))}
	}
	return c.weigh(got)
}

func allowed(commands int) string {
	if commands == 1 {
		return "the rules allow the one command in it"
	}
	return fmt.Sprintf("the rules allow each of the %d commands in it", commands)
}

// weigh makes a finding of what is not allowed.
func (c *judgement) weigh(got ruling) finding {
	if got.state == protocol.ActionDeny {
		return finding{state: protocol.ActionDeny, reason: protocol.Safe(fmt.Sprintf("%s: %s", got.about, got.reason), maxTeaching, false)}
	}
	return deferred(causeOpen, "the rules do not allow %s: %s", got.about, got.reason)
}
