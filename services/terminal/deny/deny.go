// Package deny is the terminal of a node where nobody is there to ask.
package deny

import (
	"context"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Terminal denies every ask at once. It does not say that the call was wrong,
// only that nobody was there to look at it.
type Terminal struct{}

// Kind is deny.
func (Terminal) Kind() protocol.TerminalKind { return protocol.TerminalDeny }

// End denies r as no_approver.
func (Terminal) End(_ context.Context, r protocol.TerminalRequest) (protocol.TerminalVerdict, error) {
	return protocol.TerminalVerdict{
		Ask: r.Ask.ID, Verdict: protocol.FinalDeny, Outcome: protocol.NoApprover,
		Reason: "Nobody is there to ask.",
	}, nil
}
