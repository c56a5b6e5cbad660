package gate

import (
	"context"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/pkg/protocol"
)

// maxMuted is how many checks one call may find turned off.
const maxMuted = grants.PerAgent

// muted returns the grant by which an approver turned a check off for the session
// of an ask. As with every grant nothing is kept between calls, and what the
// record does not prove is none.
func (g *Gate) muted(ctx context.Context, ask protocol.Ask, check string) (grant string, ok bool) {
	proof := proofs{g: g, of: map[string]bool{}}
	for _, h := range g.applying(ctx, ask) {
		if grants.Mutes(h.Grant, ask.Project.ID, check) && proof.proven(ctx, ask, h) {
			return h.Ask, true
		}
	}
	return "", false
}
