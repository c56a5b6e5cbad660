package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Standing is the list that is in force, and how it stands in the bucket.
type Standing struct {
	List List
	// SignedBy is the operator that signed it.
	SignedBy string
	// Revision is the bucket's newest of the key, whether that is the list in
	// force or not; 0 where there never was any.
	Revision uint64
	// Err is why the newest is not what is in force: ErrSeal, ErrList, ErrOld or
	// ErrRemoved.
	Err error
}

// standing is what the bucket's history of the key comes to: the newest list that
// verifies and has a higher serial number than every one before it. floor is what
// a reader has seen verify before: whoever cuts the history short takes nothing
// back at who is running.
func standing(history []jetstream.KeyValueEntry, trust Trust, floor Standing) Standing {
	out := Standing{List: floor.List, SignedBy: floor.SignedBy}
	for _, kv := range history {
		out.Revision, out.Err = kv.Revision(), nil
		if kv.Operation() != jetstream.KeyValuePut {
			out.Err = ErrRemoved
			continue
		}
		l, by, err := trust.open(kv.Value())
		switch {
		case err != nil:
			out.Err = err
		case l.Serial < out.List.Serial:
			// Every operator's word, but an old one: who can write the bucket could
			// bring a module back that was mended, or take one away, by repeating it.
			out.Err = fmt.Errorf("%w: serial %d after %d", ErrOld, l.Serial, out.List.Serial)
		default:
			out.List, out.SignedBy = l, by
		}
	}
	if len(history) == 0 && floor.List.Serial > 0 {
		out.Err = ErrRemoved
	}
	return out
}

// read is what stands now.
func read(ctx context.Context, kv jetstream.KeyValue, trust Trust, floor Standing) (Standing, error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	history, err := kv.History(ctx, protocol.KeyModules)
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return Standing{}, fmt.Errorf("reading the list of modules: %w", err)
	}
	return standing(history, trust, floor), nil
}
