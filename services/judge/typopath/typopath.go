// Package typopath is the link that catches mistyped paths: an agent that asks
// to leave its project by a path with a doubled or misplaced segment is told
// which segment is wrong and where the right place is, instead of a person.
//
// It denies or defers. It can never allow: see finding.
package typopath

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge/brief"
	"github.com/assent-dev/assent/services/judge/denials"
	"github.com/assent-dev/assent/services/judge/journal"
)

// Kind is the word for this link in the judges' file.
const Kind = "typopath"

const (
	// answerTime is kept back from the ask's deadline for the record and the
	// verdict: a model that answers in the last moment must not cost both.
	answerTime = 250 * time.Millisecond
)

// Settings are what the judges' file says of this link. All are required but
// Patterns: without one it defers every ask.
type Settings struct {
	Model        string
	Instructions string
	Patterns     Patterns
	// Timeout bounds the question to the model, retries included.
	Timeout time.Duration
	// Denials remembers what was denied; nil remembers nothing. It is this link's
	// alone.
	Denials *denials.Cache
	// Mark makes the fence's mark; nil is brief.NewMark.
	Mark brief.Mark
}

func (s Settings) mark() string {
	if s.Mark == nil {
		return brief.NewMark()
	}
	return s.Mark()
}

// Judge is the link. Use New. Its method Judge is a link.Link.
type Judge struct {
	set   Settings
	model llm.Provider
	log   *slog.Logger
	out   *journal.Journal
	// config is what a denial hangs on besides the ask.
	config []string
	// denied is how the model was asked that denied last, for the records of
	// denials that are remembered.
	denied atomic.Pointer[llm.Info]
}

// New returns the link. A provider that cannot work is an llm.Unavailable: the
// link then defers, and each record says why.
func New(set Settings, model llm.Provider, log *slog.Logger) *Judge {
	config := append([]string{Kind, set.Model, set.Instructions, rules, toolSchema}, set.Patterns.texts()...)
	j := &Judge{set: set, model: model, log: log, out: journal.New(log), config: config}
	j.denied.Store(&llm.Info{})
	return j
}

// Judge walks the checks from the cheapest to the dearest; the first miss
// defers. Only a model that was asked and confirmed denies.
func (j *Judge) Judge(ctx context.Context, r link.Request) (protocol.Verdict, error) {
	if !leavesProject(r.Asks) {
		return link.Defer("not about an external directory"), nil // no record: not this link's business
	}
	paths := candidates(r)
	if len(paths) == 0 {
		return j.shortCircuit(ctx, r, "", missNoPath), nil
	}
	hit, miss := j.set.Patterns.find(ctx, paths)
	if miss != "" {
		return j.shortCircuit(ctx, r, paths[0], miss), nil
	}
	f := j.remembered(ctx, r, hit)
	j.record(ctx, r, hit, f)
	return f.verdict(), nil
}

// remembered puts the matched path to the model, unless it has denied the very
// same before.
func (j *Judge) remembered(ctx context.Context, r link.Request, hit match) finding {
	key := denials.KeyOf(r, j.config...)
	if teaching, ok := j.set.Denials.Lookup(key); ok {
		return finding{info: *j.denied.Load(), teaching: teaching, cached: true}
	}
	f := j.review(ctx, r, hit)
	if f.teaching != "" {
		j.denied.Store(&llm.Info{ModelID: f.info.ModelID, API: f.info.API, ToolChoice: f.info.ToolChoice})
		j.set.Denials.Deny(key, f.teaching)
	}
	return f
}

// review puts the matched path to the model.
func (j *Judge) review(ctx context.Context, r link.Request, hit match) finding {
	within, cancel := context.WithDeadline(ctx, j.modelDeadline(r))
	defer cancel()
	q, err := question(j.set, r, hit)
	if err != nil {
		return unsettled(llm.Info{}, err)
	}
	call, info, err := j.model.Ask(within, q)
	j.out.ModelReply(ctx, r, info, call)
	if err != nil {
		j.log.Warn("the model gave no verdict; the ask goes on to the next judge", "ask", r.Ask.ID, "model", info.ModelID, "error", err)
		return unsettled(info, err)
	}
	return readOpinion(info, call)
}

func (j *Judge) modelDeadline(r link.Request) time.Time {
	own := time.Now().Add(j.set.Timeout)
	if gate := r.Deadline.Add(-answerTime); gate.Before(own) {
		return gate
	}
	return own
}

// finding is what a review came to. It has no word for allow, and verdict is
// the only place where this package makes a verdict after a review: a reply
// that a hostile path has talked the model into can at worst refuse the call.
type finding struct {
	info llm.Info
	// teaching is what the agent is told when the model confirmed the typo.
	teaching string
	// cause says why not, when teaching is "".
	cause deferReason
	// failure is the defer's failure; "" when the model was merely unsure.
	failure string
	detail  string
	// err is what kept the model from answering.
	err error
	// cached: the model said so of the same facts before.
	cached bool
}

func (f finding) verdict() protocol.Verdict {
	switch {
	case f.teaching != "":
		return link.Deny(f.teaching)
	case f.failure != "":
		return link.Unable(f.failure, f.detail)
	default:
		return link.Defer(f.detail)
	}
}

// deferReason is the word of the record for a defer after a pattern matched.
type deferReason string

const (
	reasonModelUnresolved deferReason = "model-unresolved"
	reasonAuthFailed      deferReason = "auth-failed"
	reasonNoToolCall      deferReason = "no-tool-call"
	reasonNonDeny         deferReason = "non-deny-verdict"
	reasonTimeout         deferReason = "timeout"
	reasonCallFailed      deferReason = "call-failed"
)

// unsettled sorts an error of the model's provider. Whatever is not known is a
// failed call.
func unsettled(info llm.Info, err error) finding {
	cause := reasonCallFailed
	for _, known := range []struct {
		err    error
		reason deferReason
	}{
		{llm.ErrAuth, reasonAuthFailed},
		{llm.ErrModel, reasonModelUnresolved},
		{llm.ErrTimeout, reasonTimeout},
		{llm.ErrNoToolCall, reasonNoToolCall},
		{llm.ErrCutOff, reasonNoToolCall},
		{llm.ErrRefused, reasonNoToolCall},
	} {
		if errors.Is(err, known.err) {
			cause = known.reason
		}
	}
	return finding{info: info, err: err, cause: cause, failure: string(cause), detail: protocol.Safe(err.Error(), maxDetail, false)}
}
