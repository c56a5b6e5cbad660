package desk

import (
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// GrantLife is how long a grant holds of which nobody says how long: a working
// day. A session's end is told to nobody, so no grant is without one unasked.
const GrantLife = 8 * time.Hour

// ErrNoGrant: nothing of the ask can be granted, or nobody said what.
var ErrNoGrant = errors.New("no grant can be given")

// Grant is the grant that an approver gives with an answer to item. Without a
// surface it is that of the first entry that a grant can clear; without patterns
// the one that is suggested. A zero end is none.
func Grant(item pending.Item, scope protocol.Scope, surface string, patterns []string, end time.Time, uses int) (protocol.Grant, error) {
	if surface == "" {
		surface = grantable(item)
	}
	if surface == "" {
		return protocol.Grant{}, fmt.Errorf("%w: what is open in this call has to be answered each time", ErrNoGrant)
	}
	if len(patterns) == 0 {
		if len(item.Suggest) == 0 || surface != grantable(item) {
			return protocol.Grant{}, fmt.Errorf("%w: no pattern is suggested for this call: name one", ErrNoGrant)
		}
		patterns = item.Suggest
	}
	g := protocol.Grant{Scope: scope, Surface: surface, Patterns: patterns, Uses: uses}
	if !end.IsZero() {
		g.Expires = end.UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	g = grants.Anchor(g, item.Ask) // as it is stored, so that it is seen so
	v := protocol.TerminalVerdict{Verdict: protocol.FinalAllow, Grant: &g}
	return g, grants.Check(item.Pending, v, time.Now())
}

// Mute is the grant that turns the check off that asks for item, for its session:
// "don't ask again". ErrNoGrant where none asks that can be turned off.
func Mute(item pending.Item, end time.Time) (protocol.Grant, error) {
	switch {
	case item.Prompt.Check == "":
		return protocol.Grant{}, fmt.Errorf("%w: no permission check of this node asks for this call that could be turned off: answer this call alone", ErrNoGrant)
	case item.Ask.Session.ID == "":
		return protocol.Grant{}, fmt.Errorf("%w: the call names no session for the check to be turned off in: answer this call alone", ErrNoGrant)
	}
	g := protocol.Grant{Scope: protocol.ScopeSession, Surface: protocol.SurfaceModule, Patterns: []string{item.Prompt.Check}}
	if !end.IsZero() {
		g.Expires = end.UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	v := protocol.TerminalVerdict{Verdict: protocol.FinalAllow, Grant: &g}
	return g, grants.Check(item.Pending, v, time.Now())
}

// grantable is the surface of the first entry that a grant can clear.
func grantable(item pending.Item) string {
	e, _ := grants.Grantable(item.Pending)
	return e.Surface
}
