// Package linking puts a link in the terminal's place, and must not compile: a
// link's verdict can be defer.
package linking

import "github.com/assent-dev/assent/pkg/protocol"

// Terminal is the end of a chain.
type Terminal interface {
	Decide(r protocol.TerminalRequest) protocol.TerminalVerdict
}

type link struct{}

func (link) Decide(r protocol.TerminalRequest) protocol.Verdict {
	return protocol.Verdict{Ask: r.Ask.ID, Verdict: protocol.ChoiceDefer}
}

// End is in the terminal's place.
var End Terminal = link{}
