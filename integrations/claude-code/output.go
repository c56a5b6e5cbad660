package claudecode

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Claude Code's words for a verdict. "ask" and "defer" are never said: they
// hand the call to whoever is nearest. Nor is nothing said: it then runs.
const (
	wordAllow = "allow"
	wordDeny  = "deny"
)

// lastWord is the answer when no other can be written.
const lastWord = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Assent could not write its answer, so the call may not run."}}`

// maxReason bounds what the agent is told, in bytes.
const maxReason = 8 << 10

// answer is what a PreToolUse hook prints.
type answer struct {
	// Continue false ends Claude's turn, beside the verdict; left out, it goes on.
	Continue   *bool   `json:"continue,omitzero"`
	StopReason string  `json:"stopReason,omitzero"`
	Specific   verdict `json:"hookSpecificOutput"`
}

type verdict struct {
	Event        string         `json:"hookEventName"`
	Decision     string         `json:"permissionDecision"`
	Reason       string         `json:"permissionDecisionReason"`
	UpdatedInput jsontext.Value `json:"updatedInput,omitzero"`
}

// requestAnswer is what a PermissionRequest hook prints.
type requestAnswer struct {
	Specific struct {
		Event    string `json:"hookEventName"`
		Decision struct {
			Behavior string `json:"behavior"`
			Message  string `json:"message"`
		} `json:"decision"`
	} `json:"hookSpecificOutput"`
}

// Output is what the hook prints for the decision on this call: always allow or
// deny, in one line of JSON. Everything but a whole decision that allows is a
// deny.
func (in Input) Output(d protocol.Decision) []byte {
	said := d.Say()
	if !d.Allowed() {
		return write(denial(said, d.Abort))
	}
	updated, err := in.updated(d.EditedInput)
	if err != "" {
		return Refuse(err)
	}
	return write(answer{Specific: verdict{Event: EventPreToolUse, Decision: wordAllow, Reason: clean(said), UpdatedInput: updated}})
}

// updated is an approver's edit in the form of Claude's own tool. What was
// allowed is the edited call alone: an edit that cannot be carried over is not
// left out, it denies.
func (in Input) updated(edited jsontext.Value) (_ jsontext.Value, refusal string) {
	if len(edited) == 0 || edited.Kind() == 'n' {
		return nil, ""
	}
	call, ok := in.mcp()
	if !ok {
		return edited, ""
	}
	var to mcpCall
	if json.Unmarshal(edited, &to) != nil || to.Arguments.Kind() != '{' {
		return nil, "The approver's edit of this MCP call has no arguments, so the call may not run. Ask again and let the approver edit the arguments alone."
	}
	if to.Server != call.Server || to.Tool != call.Tool {
		return nil, "The approver's edit names another MCP tool than the one that was called, so the call may not run. Call that tool instead."
	}
	return to.Arguments, ""
}

// Refuse is a deny of a PreToolUse call, for when there is no decision. reason
// names the cause and the way out.
func Refuse(reason string) []byte { return write(denial(reason, false)) }

// Refuse is a deny in the dialect of the input's event. Before other events
// than PermissionRequest nothing can be stopped; they get the deny of
// PreToolUse, which Claude Code reports as misplaced.
func (in Input) Refuse(reason string) []byte {
	if in.Event != EventPermissionRequest {
		return Refuse(reason)
	}
	var out requestAnswer
	out.Specific.Event = EventPermissionRequest
	out.Specific.Decision.Behavior = wordDeny
	out.Specific.Decision.Message = clean(reason)
	return write(out)
}

func denial(reason string, abort bool) answer {
	out := answer{Specific: verdict{Event: EventPreToolUse, Decision: wordDeny, Reason: clean(reason)}}
	if abort {
		stop := false
		out.Continue, out.StopReason = &stop, out.Specific.Reason
	}
	return out
}

func clean(reason string) string {
	if s := protocol.Safe(reason, maxReason, true); s != "" {
		return s
	}
	return "Assent gave no reason."
}

// write encodes on one line; Claude Code takes the hook's whole stdout as one
// value.
func write(v any) []byte {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return []byte(lastWord + "\n")
	}
	return append(bytes.TrimSpace(b), '\n')
}
