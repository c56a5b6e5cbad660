package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// checkParent says whether the node above this one answers, as the terminals that
// relay there last found; nothing on a node that has none and needs none.
func (d *doctor) checkParent(ctx context.Context) {
	signs, err := d.parentSigns(ctx)
	if err != nil {
		d.fail("parent", "", "%v", err)
		return
	}
	if len(signs) == 0 && d.endsAtParent(ctx) {
		d.fail("parent", "start `assent up` or `assent terminal` with --parent, --parent-node and --parent-creds: until then every open ask is denied",
			"the policy's terminal is \"parent\", and no terminal of node %s has one", d.node)
	}
	names := map[string]bool{}
	for _, terminal := range slices.Sorted(maps.Keys(signs)) {
		s := signs[terminal]
		names[s.Parent] = true
		if s.Answers {
			d.ok("parent", "node %s answers terminal %s (version %s)", s.Parent, terminal, s.Release)
		} else {
			d.fail("parent", "until it does, what goes there is denied as unavailable: see that node's `assent doctor`, the address in --parent and the credentials in --parent-creds",
				"node %s does not answer terminal %s (version %s): %s", s.Parent, terminal, s.Release, s.Reason)
		}
	}
	if len(names) > 1 {
		d.warn("parent", "start all with the same --parent-node", "the terminals of node %s relay to different parents", d.node)
	}
}

// parentSigns are what terminals of the node say of its parent, by terminal.
func (d *doctor) parentSigns(ctx context.Context) (map[string]protocol.ParentSign, error) {
	js, err := jetstream.New(d.operator)
	if err != nil {
		return nil, fmt.Errorf("opening JetStream: %w", err)
	}
	kv, err := js.KeyValue(ctx, protocol.BucketPresence)
	if err != nil {
		return nil, fmt.Errorf("opening bucket %s: %w", protocol.BucketPresence, err)
	}
	keys, err := kv.ListKeysFiltered(ctx, protocol.PresenceParent+"*")
	if err != nil {
		return nil, fmt.Errorf("reading bucket %s: %w", protocol.BucketPresence, err)
	}
	defer keys.Stop() //nolint:errcheck // the connection closes next
	signs := map[string]protocol.ParentSign{}
	for key := range keys.Keys() {
		e, err := kv.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) || err == nil && time.Since(e.Created()) >= presenceLife {
			continue // it lapsed a moment ago
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", key, err)
		}
		s, err := protocol.Read[protocol.ParentSign](e.Value())
		if err != nil {
			return nil, fmt.Errorf("the sign of the parent under %s cannot be read: %w", key, err)
		}
		signs[strings.TrimPrefix(key, protocol.PresenceParent)] = s
	}
	return signs, ctx.Err()
}

// presenceLife is how long a key of ASSENT_PRESENCE counts.
const presenceLife = time.Minute

// endsAtParent says whether the policy sends every open ask to the parent.
func (d *doctor) endsAtParent(ctx context.Context) bool {
	book, err := d.readPolicy(ctx)
	return err == nil && book.Set().Base().Terminal().Kind == policy.TerminalParent
}
