// Package link is what a judge's author imports: write one function, hand it to
// Serve, and gates that name it in their chain ask it.
//
// A link is asked about calls that the recorded authority leaves open. It
// answers allow, deny with a reason, or defer; whatever else happens to it (an
// error, a panic, a lapsed deadline, too much work) is answered as a defer that
// says why, so that no answer is never a yes. What a link may allow at all is
// the operator's envelope, and the gate's to enforce: a link cannot widen it.
//
// Start at Link and Serve. Of Assent the package imports pkg/protocol alone.
package link

import (
	"context"
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Link judges one call. It is called from several goroutines at once, up to the
// bound set by Concurrency.
//
// ctx ends at the request's deadline; an answer after it counts as a defer. An
// error is answered as a defer with the failure "error" and the error's text,
// cut short, as its reason: put no secret into it. The zero Verdict is no
// verdict and is answered as a defer as well; make one with Allow, Deny, Defer
// or Unable.
type Link func(ctx context.Context, r Request) (protocol.Verdict, error)

// Request is everything that a link is handed: the ask and two capabilities,
// all bound to this one ask and dead when the link has returned.
type Request struct {
	// Ask is the call, with the facts its adapter fixed. They come from the
	// agent's host: they are the accused, not a witness.
	Ask protocol.Ask
	// Asks are all the entries that the rules left open. A verdict decides the
	// call, so it speaks about every one of them.
	Asks []protocol.Entry
	// Units are the pieces that the shell reading found in a command.
	Units []protocol.Unit
	// PolicyRevision is the revision of the policy that left the call open; 0
	// where the gate does not say. A judge that remembers anything of an ask
	// remembers it for this revision alone, and nothing where it is 0.
	PolicyRevision uint64
	// Deadline is the gate's, on the clock of its host; ctx carries it too.
	Deadline time.Time
	// Query asks the gate how the rules stand.
	Query Query
	// Log writes to the ask's review log.
	Log Log
}

// Query is the query capability of one ask.
type Query interface {
	// Check asks the gate that holds the ask how its rules stand on a value or
	// a tool. Nothing is granted by it. A refusal by the gate is a
	// *protocol.Fault; after the link has returned it is ErrOver.
	Check(ctx context.Context, q protocol.Query) (protocol.Check, error)
}

// Log is the log capability of one ask. fields must encode to a JSON object of
// at most MaxFields bytes; nil writes none. The gate stamps each record with
// the ask's id and the link's name, and refuses the names of its own events.
// Errors are as for Query.
type Log interface {
	// Review writes a record that is always kept.
	Review(ctx context.Context, event string, fields any) error
	// Debug writes a record that is kept only where the policy says so.
	Debug(ctx context.Context, event string, fields any) error
}

// Allow says that the call may run, as far as this link's envelope reaches.
func Allow(reason string) protocol.Verdict {
	return protocol.Verdict{Verdict: protocol.ChoiceAllow, Reason: reason}
}

// Deny refuses the call. reason is what the agent is told, so it should teach:
// what is wrong, and what to do instead. A deny without one is no verdict.
func Deny(reason string) protocol.Verdict {
	return protocol.Verdict{Verdict: protocol.ChoiceDeny, Reason: reason}
}

// Defer leaves the call to the next link and at last to the terminal.
func Defer(reason string) protocol.Verdict {
	return protocol.Verdict{Verdict: protocol.ChoiceDefer, Reason: reason}
}

// Unable defers because the link could not judge. failure is its own word for
// it, a subject token such as "breaker_open"; it stands in the ask's trail.
func Unable(failure, reason string) protocol.Verdict {
	return protocol.Verdict{Verdict: protocol.ChoiceDefer, Reason: reason, Failure: failure}
}
