// Package terminal is the end of the chain. A terminal allows or denies; it has
// no way to defer.
package terminal

import (
	"context"
	"errors"

	"github.com/assent-dev/assent/pkg/protocol"
)

// ErrTaken is what a terminal returns when somebody else decides: a person, whose
// verdict comes through the pending entry, or the parent node, which is asked
// again.
var ErrTaken = errors.New("ask is put to somebody else")

// Terminal ends asks of one kind. End returns a verdict, or ErrTaken. Any other
// error is no verdict, and the gate denies when it stays so; a *protocol.Fault
// reaches the gate as it is. Both are safe for concurrent use, and the same
// request may come twice.
type Terminal interface {
	Kind() protocol.TerminalKind
	End(context.Context, protocol.TerminalRequest) (protocol.TerminalVerdict, error)
}

// Withdrawer is a terminal that has put asks elsewhere and takes them back there
// when they have ended otherwise. The same request may come twice.
type Withdrawer interface {
	Terminal
	Withdraw(context.Context, protocol.TerminalRequest) (protocol.CancelReceipt, error)
}
