package module

import (
	"time"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Call is one tool call that the checks are asked about.
type Call struct {
	Ask protocol.Ask
	// Off says which checks are turned off for the session of the ask; nil: none.
	Off func(Check) bool
	// Time is what a check may take of a processor, as Config.CallTime; 0: that.
	Time time.Duration
	// Fields are what the call is about by the policy in force, which may declare
	// tools of its own; nil: by what is known of tools without one.
	Fields *policy.ToolFields
}

func (c *Call) fields() policy.ToolFields {
	if c.Fields != nil {
		return *c.Fields
	}
	return policy.FieldsOf(c.Ask.Tool.Name, c.Ask.Tool.Input)
}

// Decision is what the checks say of a call. There is no allow: a module only
// tightens what rules say.
type Decision uint8

// The decisions. The zero value is no answer; whoever gets it treats the call
// as one whose checks failed.
const (
	None    Decision = iota
	Pass             // no check objects
	Request          // only a person may allow it
	Block            // denied
)

func (d Decision) String() string {
	switch d {
	case Pass:
		return "pass"
	case Request:
		return "request"
	case Block:
		return "block"
	default:
		return "none"
	}
}

// Verdict is what the checks of a Set say of one call.
type Verdict struct {
	Decision Decision
	// Check is the one that blocks, requests or failed; zero for Pass.
	Check Check
	// Reason is a block's, for the agent.
	Reason string
	// Prompt is a request's: how the ask is put to a person.
	Prompt protocol.Prompt
	// Failure says why a check could say nothing; the decision is Request then.
	Failure string
	// Took is the wall time that the walk over the checks took.
	Took time.Duration
}
