// Package policy reads the document that says what agents may do, and rules
// calls under it.
//
// Compile turns a document into a Snapshot; Snapshot.Rule answers a Call with a
// Ruling. Both are pure: no clock, disk, network or environment, so the same
// call under the same policy gets the same ruling on every gate.
package policy

import (
	"slices"
	"time"
)

// Origins that are not the name of a layer.
const (
	// OriginDefault: no rule matched, and what no rule settles asks.
	OriginDefault = "default"
	// OriginBuiltin: a rule of the engine itself, or a floor.
	OriginBuiltin = "builtin"
	// OriginYolo: an ask that yoloMode turned into an allow.
	OriginYolo = "yolo"
)

// TerminalKind is where a node's asks end.
type TerminalKind string

// The kinds of terminal.
const (
	TerminalAuto   TerminalKind = "auto"
	TerminalHuman  TerminalKind = "human"
	TerminalParent TerminalKind = "parent"
	TerminalDeny   TerminalKind = "deny"
)

// Defaults and bounds of the document's settings.
const (
	DefaultLinkTimeout   = 8 * time.Second
	MaxLinkTimeout       = 110 * time.Second
	DefaultMaxWait       = 8 * time.Hour
	MaxMaxWait           = 30 * 24 * time.Hour
	DefaultAsksPerSecond = 50
	DefaultPending       = 32
	maxLimit             = 100_000
	maxChain             = 16
)

// Terminal is the document's "terminal".
type Terminal struct {
	Kind    TerminalKind
	MaxWait time.Duration
}

// Limits bound one agent: how many asks a second, and how many waiting at once.
type Limits struct {
	AsksPerSecond int
	Pending       int
}

// Delegation is the envelope: the surfaces on which a link may allow. Both
// lists are patterns of surface names.
type Delegation struct {
	AllowedSurfaces  []string
	ExcludedSurfaces []string
}

// Snapshot is one policy, compiled. It is immutable and safe for concurrent
// use; everything it answers depends on its content and the question alone.
type Snapshot struct {
	digest   string
	revision uint64
	clamped  string

	settings
	rules ruleSet
	// tighter are this policy with one untrusted layer more each. A call is
	// ruled under all of them, and the strictest stands.
	tighter []*Snapshot
	// finalOnly: among tighter, only what it denies counts, and what it leaves to
	// a person alone.
	finalOnly bool
	// everywhere: among tighter, it holds what is said of every surface.
	everywhere bool
	// granting are the grants of one ruling; nil in a policy that is shared.
	granting *granting
	// tracing gathers what one explained ruling looks at; nil in every other.
	tracing *tracing
}

// settings are what a document sets besides its rules. Only the fleet layer
// sets more than secrets, and yolo to false.
type settings struct {
	chain  []string
	link   time.Duration
	term   Terminal
	limits Limits
	debug  bool
	// yolo is what the document says; nil where it says nothing.
	yolo *bool

	delegation *Delegation
	allowed    []wildcard
	excluded   []wildcard
	secrets    []string

	tooling
	// self is what is lifted of the built-in rules.
	self selfProtection

	modules Modules

	trustedProjects []trustedProject
	trustedNames    []trustedName
}

// Empty returns the policy of a node that has none: everything asks, the chain
// is empty, no link may allow.
func Empty() *Snapshot { return compose([]*Document{emptyDocument}) }

// Revision is the number that the store gave to this policy, 0 if none did.
func (s *Snapshot) Revision() uint64 { return s.revision }

// Digest is that of the document, or of the set that the policy was taken from.
func (s *Snapshot) Digest() string { return s.digest }

// WithRevision returns the same policy under another revision.
func (s *Snapshot) WithRevision(revision uint64) *Snapshot {
	c := *s
	c.revision = revision
	return &c
}

// Clamp returns this policy with every allow turned into an ask, for the time
// in which the policy that should be in force cannot be read: yoloMode is off,
// no link may allow, denies stay. reason is told to whoever is asked and must
// say what is broken.
func (s *Snapshot) Clamp(reason string) *Snapshot {
	c := *s
	if reason == "" {
		reason = "the policy in force cannot be read"
	}
	c.clamped = reason
	c.tighter = nil
	for _, t := range s.tighter {
		c.tighter = append(c.tighter, t.Clamp(reason))
	}
	return &c
}

// Clamped returns the reason given to Clamp, "" for a policy in full force.
func (s *Snapshot) Clamped() string { return s.clamped }

// Chain returns the names of the links in the order in which they are asked.
func (s *Snapshot) Chain() []string { return slices.Clone(s.chain) }

// LinkTimeout is how long the gate waits for one link.
func (s *Snapshot) LinkTimeout() time.Duration { return s.link }

// Terminal is where asks end and how long a person has.
func (s *Snapshot) Terminal() Terminal { return s.term }

// Limits are the bounds of one agent.
func (s *Snapshot) Limits() Limits { return s.limits }

// Yolo says whether asks of rules are allowed without asking. Never true of a
// clamped policy.
func (s *Snapshot) Yolo() bool { return s.yolo != nil && *s.yolo && s.clamped == "" }

// DebugLog says whether debug records of links are kept.
func (s *Snapshot) DebugLog() bool { return s.debug }

// Delegation returns the envelope; ok is false where the document has none,
// and then no link may allow anything.
func (s *Snapshot) Delegation() (d Delegation, ok bool) {
	if s.delegation == nil {
		return Delegation{}, false
	}
	return Delegation{
		AllowedSurfaces:  slices.Clone(s.delegation.AllowedSurfaces),
		ExcludedSurfaces: slices.Clone(s.delegation.ExcludedSurfaces),
	}, true
}
