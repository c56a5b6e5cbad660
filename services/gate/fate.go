package gate

import (
	"context"
	"fmt"
	"sync"

	"github.com/assent-dev/assent/pkg/protocol"
)

// fate is what the request that opens an ask waits for: its decision, or that it
// is stored (no decision and no error), or that it could not be.
type fate struct {
	known chan struct{}
	once  *sync.Once
	reply reply
	err   error
}

func newFate() fate { return fate{known: make(chan struct{}), once: new(sync.Once)} }

// is says what became of the ask; the first word counts.
func (f *fate) is(r reply, err error) {
	f.once.Do(func() {
		f.reply, f.err = r, err
		close(f.known)
	})
}

// wait returns it; errUnrecorded when ctx ends before.
func (f *fate) wait(ctx context.Context) (reply, error) {
	select {
	case <-f.known:
		return f.reply, f.err
	case <-ctx.Done():
		return reply{}, fmt.Errorf("opening ask: %w: %w", errUnrecorded, context.Cause(ctx))
	}
}

// leftBy tells whoever opened the ask what ended its walk, where nothing has been
// said of it. That it could not be stored comes first: the rest may follow from it,
// as where another gate that has decided the ask takes its entry away.
func (h *held) leftBy(err error) {
	if err != nil {
		if unstored := h.store(); unstored != nil {
			err = unstored
		}
	}
	h.fate.is(reply{}, unlessJoined(err))
}

// decided tells whoever opened the ask how it was decided; text is the record's
// where it was written just now.
func (h *held) decided(d protocol.Decision, text []byte) {
	p := h.item().Pending
	if d.CallDigest != p.Digest || d.Agent != p.Ask.Agent {
		h.fate.is(reply{}, errConflict)
		return
	}
	h.fate.is(reply{decision: &d, recorded: text}, nil)
}
