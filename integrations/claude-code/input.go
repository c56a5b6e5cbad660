// Package claudecode translates between Claude Code's hooks and Assent: what a
// PreToolUse hook reads on stdin becomes an ask, and a decision becomes what the
// hook prints. It talks to nobody. Start at ReadInput.
package claudecode

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/jsonwords"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Errors of ReadInput.
var (
	// ErrInput: not what Claude Code hands a hook.
	ErrInput = errors.New("unreadable hook input")
	// ErrEvent: an event before which no call can be stopped by asking.
	ErrEvent = errors.New("not a PreToolUse event")
)

// The events this package knows.
const (
	EventPreToolUse        = "PreToolUse"
	EventPermissionRequest = "PermissionRequest"
)

// Input is what Claude Code hands a PreToolUse hook. Only facts about the call
// are kept: its permission mode loosens nothing here.
type Input struct {
	Event     string         `json:"hook_event_name"`
	Session   string         `json:"session_id"`
	Cwd       string         `json:"cwd"`
	Tool      string         `json:"tool_name"`
	ToolInput jsontext.Value `json:"tool_input"`
	ToolUse   string         `json:"tool_use_id"`
	// Agent is the subagent that makes the call; "" on the main thread. Session
	// is then the one that started it.
	Agent string `json:"agent_id"`
}

// ReadInput reads a hook's stdin strictly: duplicate keys, invalid UTF-8, a
// wrong type or a missing fact are errors. An Input that comes with ErrEvent
// knows its event, so that Refuse can speak its dialect.
func ReadInput(data []byte) (Input, error) {
	if len(data) == 0 {
		return Input{}, fmt.Errorf("%w: stdin is empty", ErrInput)
	}
	var in Input
	if err := json.Unmarshal(data, &in); err != nil {
		return Input{}, fmt.Errorf("%w: %s", ErrInput, protocol.Safe(jsonwords.Of(err).Error(), 300, false))
	}
	if in.Event != EventPreToolUse {
		return Input{Event: in.Event}, fmt.Errorf("%w: %q", ErrEvent, protocol.Safe(in.Event, 80, false))
	}
	switch {
	case in.Session == "":
		return Input{}, missing("session_id")
	case in.Tool == "":
		return Input{}, missing("tool_name")
	case in.ToolInput.Kind() != '{':
		return Input{}, fmt.Errorf("%w: tool_input is missing or no object", ErrInput)
	case !filepath.IsAbs(in.Cwd):
		return Input{}, fmt.Errorf("%w: cwd is missing or not absolute", ErrInput)
	}
	return in, nil
}

func missing(field string) error { return fmt.Errorf("%w: %s is missing", ErrInput, field) }
