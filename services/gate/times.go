package gate

import (
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

// times are the gate's own clocks. The zero value is not usable.
type times struct {
	// patience is how long one request is kept waiting before it is answered
	// with Progress. The contract's bound is 5 s; the rest is for a last look
	// into the record and the way back.
	patience time.Duration
	// first is patience for the request that opens an ask: its agent hears soon
	// that the ask is on disk, and so asks on when this gate dies; and a person
	// sees at once what the call waits for.
	first time.Duration
	// relay is patience for an ask that a child node relays, late when it is
	// answered whatever is under way: the child takes a parent that is silent for
	// 2 s for dead, and tries twice within them.
	relay, late time.Duration
	// brief is how long an open ask may be in this gate's memory alone: one that a
	// link decides within it is never written anywhere but into the record. No
	// longer than an adapter would notice that a gate died over its ask.
	brief time.Duration
	// lease is how long this gate may stay silent before another one takes over
	// what it carries.
	lease time.Duration
	// sweep is how often a gate looks for asks that are due: deadlines and leases
	// lapse without anybody writing a word.
	sweep time.Duration
	// terminal is how long a terminal is tried before the ask is denied: one that
	// restarts costs nobody an ask.
	terminal time.Duration
	// parent is how long the parent node may give no good answer before the ask is
	// denied as unavailable.
	parent time.Duration
	// look is how often a gate makes sure that it hears what happens in a bucket
	// that it watches, and that it is still the bucket with which it began.
	look time.Duration
}

const patience = 4 * time.Second

var standardTimes = times{
	patience: patience, first: 750 * time.Millisecond, relay: 600 * time.Millisecond, late: 900 * time.Millisecond, brief: 100 * time.Millisecond, lease: protocol.LeaseTime,
	sweep: time.Second, terminal: 20 * time.Second, parent: 2 * time.Second, look: time.Second,
}
