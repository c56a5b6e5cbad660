// Package terminal is the end of the chain. A terminal allows or denies; it has
// no way to defer.
package terminal

import (
	"context"
	"errors"

	"github.com/assent-dev/assent/pkg/protocol"
)

// ErrTaken is what a terminal returns when it has put the ask to a person: the
// verdict comes through the pending entry.
var ErrTaken = errors.New("ask is put to a person")

// Terminal ends asks of one kind. End returns a verdict, or ErrTaken. Any other
// error is no verdict, and the gate denies when it stays so. Both are safe for
// concurrent use, and the same request may come twice.
type Terminal interface {
	Kind() protocol.TerminalKind
	End(context.Context, protocol.TerminalRequest) (protocol.TerminalVerdict, error)
}
