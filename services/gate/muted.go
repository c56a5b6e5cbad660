package gate

import (
	"context"
	"sync"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/pkg/protocol"
)

// maxMuted is how many checks one call may find turned off.
const maxMuted = grants.PerAgent

// mutes finds the grant by which an approver turned a check off for the session of
// an ask. They are looked up when the first check asks, once for a ruling; as with
// every grant nothing is kept between rulings, and what the record does not prove
// is none.
func (g *Gate) mutes(ctx context.Context, ask protocol.Ask) func(check string) (grant string, ok bool) {
	held := sync.OnceValue(func() []grants.Stored { return g.applying(ctx, ask) })
	proof := proofs{g: g, of: map[string]bool{}}
	return func(check string) (string, bool) {
		for _, h := range held() {
			if grants.Mutes(h.Grant, ask.Project.ID, check) && proof.proven(ctx, ask, h) {
				return h.Ask, true
			}
		}
		return "", false
	}
}
