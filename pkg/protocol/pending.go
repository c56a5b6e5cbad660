package protocol

import (
	"fmt"
	"strings"
	"time"
)

// LeaseTime is how long an owner may stay silent before another gate takes the
// ask over.
const LeaseTime = 10 * time.Second

// Pending is an open ask as it stands in the bucket ASSENT_PENDING, under its
// id: the only place that knows how far it has come. It is changed by
// compare-and-set alone.
type Pending struct {
	V         Version   `json:"v"`
	Ask       Ask       `json:"ask"`
	Digest    string    `json:"digest"`
	Node      string    `json:"node"`
	Requester Requester `json:"requester"`
	// Via is the child node that relayed the ask; "" for one of this node's agents.
	Via     string    `json:"via,omitempty"`
	Asks    []Entry   `json:"asks"`
	Units   []Unit    `json:"units,omitempty"`
	Suggest []string  `json:"suggest,omitempty"`
	Prompt  Prompt    `json:"prompt"`
	Policy  PolicyRef `json:"policy"`

	// Role is the terminal that ends this ask, fixed before its first link.
	Role TerminalKind `json:"role"`
	// Chain are the links to ask, in order, fixed with the role.
	Chain []string     `json:"chain,omitempty"`
	Trail []TrailEntry `json:"trail,omitempty"`
	// Stage is "link:NAME", "terminal:KIND" or "settling", for Progress.
	Stage    string    `json:"stage"`
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline"`

	// Owner is the gate that carries the ask on; "" while it only waits for a
	// person. Lease is when the owner's claim lapses.
	Owner string    `json:"owner"`
	Lease time.Time `json:"lease,omitzero"`
	// Taken is when a terminal took the prompt, so that no person is asked twice.
	Taken time.Time `json:"taken,omitzero"`

	// Verdict is the terminal's, stored once; the first one stands.
	Verdict *TerminalVerdict `json:"verdict,omitempty"`
	// Withdrawn is the agent's cancel, stored once.
	Withdrawn *Cancel `json:"withdrawn,omitempty"`
}

func (p *Pending) carries() {}

func (p *Pending) tidy() {
	if p.Verdict != nil {
		p.Verdict.tidy()
	}
}

func (p *Pending) version() Version {
	v := everyVersion(p.V, p.Ask.V)
	if p.Verdict != nil {
		v = everyVersion(v, p.Verdict.V)
	}
	if p.Withdrawn != nil {
		v = everyVersion(v, p.Withdrawn.V)
	}
	return v
}

func (p *Pending) check() error {
	if p.Role == "" || p.Stage == "" || p.Digest == "" {
		return fmt.Errorf("%w: role, stage or digest is missing", ErrField)
	}
	if p.Via != p.Ask.Via() {
		return fmt.Errorf("%w: via %q, the ask came through %q", ErrMismatch, clip(p.Via, MaxToken), p.Ask.Via())
	}
	for _, l := range p.Chain {
		if err := CheckToken("chain", l); err != nil {
			return err
		}
	}
	return first(p.Ask.check(), p.Role.check(), CheckToken("node", p.Node), deadline(p.Deadline), optionalToken("owner", p.Owner), optionalToken("via", p.Via),
		entriesCheck(p.Asks, p.Units), trailCheck(p.Trail), p.endCheck())
}

// endCheck refuses an end that belongs to another ask.
func (p *Pending) endCheck() error {
	if p.Verdict != nil {
		if err := first(p.Verdict.check(), sameAsk(p.Verdict.Ask, p.Ask.ID)); err != nil {
			return err
		}
	}
	if p.Withdrawn != nil {
		return first(p.Withdrawn.check(), sameAsk(p.Withdrawn.Ask, p.Ask.ID))
	}
	return nil
}

// stageTerminal begins the stage of an ask whose links have all been asked.
const stageTerminal = "terminal:"

// StageSettling is the stage of an ask of which the end is certain and not yet on
// the record: no answer to it is taken any more.
const StageSettling = "settling"

// AtTerminal says whether every link of the chain has been asked, so that the
// terminal's word is the next.
func (p *Pending) AtTerminal() bool { return strings.HasPrefix(p.Stage, stageTerminal) }

// Ownerless says whether no gate carries the ask on at this moment.
func (p *Pending) Ownerless(now time.Time) bool { return p.Owner == "" || !now.Before(p.Lease) }

// Progress is what an asker is told meanwhile.
func (p *Pending) Progress() Progress {
	return Progress{Ask: p.Ask.ID, Status: StatusPending, Stage: p.Stage, Since: p.Since}
}
