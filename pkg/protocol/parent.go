package protocol

import (
	"fmt"
	"time"
)

// MaxTrail is how many entries of a trail are carried from a parent node to its
// child. A chain has a few links and a path at most MaxHops nodes.
const MaxTrail = 256

// ParentWord says who decided at the parent node, or above it, on an ask that
// was relayed there.
type ParentWord struct {
	// Node is the parent that answered.
	Node string `json:"node"`
	// DecidedBy is as the parent's own decision has it: its node may lie above.
	DecidedBy Decider `json:"decided_by"`
	// Trail is the parent's, each entry with the node of its chain.
	Trail []TrailEntry `json:"trail"`
}

func (w *ParentWord) check() error {
	if w == nil {
		return nil
	}
	if len(w.Trail) > MaxTrail {
		return fmt.Errorf("%w: parent.trail has %d entries, the limit is %d", ErrField, len(w.Trail), MaxTrail)
	}
	return first(CheckToken("parent.node", w.Node), w.DecidedBy.check(), optionalName("parent.decided_by.name", w.DecidedBy.Name),
		CheckToken("parent.decided_by.node", w.DecidedBy.Node), trailCheck(w.Trail))
}

// PresenceParent begins the keys in ASSENT_PRESENCE under which terminals that
// relay to a parent node say so: "parent.<terminal>". An approver's key is one
// token, so that none of them can say it.
const PresenceParent = "parent."

// ParentSign is a terminal's word that this node has a parent, kept in
// ASSENT_PRESENCE: the gates send asks there while it is fresh.
type ParentSign struct {
	V Version `json:"v"`
	// Parent is the parent node's name.
	Parent string `json:"parent"`
	// Answers: a gate of the parent has answered a question a moment ago.
	Answers bool `json:"answers"`
	// Reason is why it does not.
	Reason string `json:"reason,omitempty"`
	// Release is the terminal's version.
	Release string    `json:"release,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

func (s *ParentSign) version() Version { return s.V }
func (s *ParentSign) check() error {
	return first(CheckToken("parent", s.Parent), bounded("reason", s.Reason, MaxReason), optionalName("release", s.Release))
}
