package brief

import (
	"strings"
	"unicode"

	"github.com/assent-dev/assent/pkg/protocol"
)

// MaxReason bounds what a model may tell an agent, in bytes.
const MaxReason = 800

// Reason makes a model's reason fit to be read by an agent and a person: control
// and invisible characters become '·', line breaks blanks, and what is longer
// than MaxReason is cut. ok is false for one that says nothing: a deny that
// teaches nobody is none.
func Reason(s string) (reason string, ok bool) {
	reason = strings.TrimSpace(protocol.Safe(s, MaxReason, false))
	return reason, strings.ContainsFunc(reason, unicode.IsLetter)
}
