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
	there, err := d.presence(ctx)
	if err != nil {
		remedy := ""
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			remedy = "run `assent node prepare`"
		}
		d.fail("parent", remedy, "%v", err)
		return
	}
	signs, end := there.parents, d.openAsksEnd(ctx)
	d.checkEnd(end, there)
	if len(signs) == 0 && end == policy.TerminalParent {
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
			d.fail("parent", "until it does, what goes there is denied as unavailable: see that node's `assent doctor`, the address in --parent, the name in --parent-node and the credentials in --parent-creds",
				"node %s does not answer terminal %s (version %s): %s", s.Parent, terminal, s.Release, s.Reason)
		}
	}
	if len(names) > 1 {
		d.warn("parent", "start all with the same --parent-node", "the terminals of node %s relay to different parents", d.node)
	}
}

// checkEnd says where open asks end, where that may surprise: passed by the
// parent, or denied because nobody is there.
func (d *doctor) checkEnd(end policy.TerminalKind, there present) {
	switch {
	case end == policy.TerminalHuman && len(there.parents) > 0:
		d.warn("open-asks", `say "terminal": {"kind": "auto"} or {"kind": "parent"} in the policy, unless that is what you want`,
			"the policy's terminal is human: open asks wait for a person of node %s, and none goes to its parent", d.node)
	case end == policy.TerminalAuto && len(there.parents) == 0 && there.approvers == 0:
		d.warn("open-asks", `say "terminal": {"kind": "human"} in the policy, and they wait; or sit at an "assent up" on a terminal`,
			"the policy's terminal is auto, no approver is present and there is no parent: an open ask of a session at which nobody sits is denied as %s", protocol.NoApprover)
	}
}

// present is who is there to decide open asks.
type present struct {
	// approvers counts those who are present.
	approvers int
	// parents are what terminals of the node say of its parent, by terminal.
	parents map[string]protocol.ParentSign
}

// presence reads who is there.
func (d *doctor) presence(ctx context.Context) (present, error) {
	there := present{parents: map[string]protocol.ParentSign{}}
	js, err := jetstream.New(d.operator)
	if err != nil {
		return there, fmt.Errorf("opening JetStream: %w", err)
	}
	kv, err := js.KeyValue(ctx, protocol.BucketPresence)
	if err != nil {
		return there, fmt.Errorf("opening bucket %s: %w", protocol.BucketPresence, err)
	}
	keys, err := kv.ListKeys(ctx)
	if err != nil {
		return there, fmt.Errorf("reading bucket %s: %w", protocol.BucketPresence, err)
	}
	defer keys.Stop() //nolint:errcheck // the connection closes next
	for key := range keys.Keys() {
		e, err := kv.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) || err == nil && time.Since(e.Created()) >= presenceLife {
			continue // it lapsed a moment ago
		}
		if err != nil {
			return there, fmt.Errorf("reading %s: %w", key, err)
		}
		terminal, relays := strings.CutPrefix(key, protocol.PresenceParent)
		if !relays {
			there.approvers++
			continue
		}
		s, err := protocol.Read[protocol.ParentSign](e.Value())
		if err != nil {
			return there, fmt.Errorf("the sign of the parent under %s cannot be read: %w", key, err)
		}
		there.parents[terminal] = s
	}
	return there, ctx.Err()
}

// presenceLife is how long a key of ASSENT_PRESENCE counts.
const presenceLife = time.Minute

// openAsksEnd is the terminal that the policy names; "" where it cannot be read.
func (d *doctor) openAsksEnd(ctx context.Context) policy.TerminalKind {
	book, err := d.readPolicy(ctx)
	if err != nil {
		return ""
	}
	return book.Set().Base().Terminal().Kind
}
