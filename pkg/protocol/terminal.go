package protocol

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// TrailEntry is what one link did with an ask.
type TrailEntry struct {
	Link    string `json:"link"`
	Verdict Choice `json:"verdict"`
	Reason  string `json:"reason,omitempty"`
	Failure string `json:"failure"`
	// Capped: the link allowed, and the envelope made a defer of it.
	Capped bool `json:"capped"`
	// MS is how long the gate waited, in milliseconds.
	MS float64 `json:"ms"`
	// Node is the node whose chain it was asked in, where that is not the node of
	// the record. Link is then "" for what the node as a whole said.
	Node string `json:"node,omitempty"`
}

func trailCheck(trail []TrailEntry) error {
	for _, t := range trail {
		link := name("trail.link", t.Link)
		if t.Link == "" && t.Node != "" {
			link = nil
		}
		if err := first(link, optionalToken("trail.node", t.Node), verdictSet(t.Verdict.Valid())); err != nil {
			return err
		}
	}
	return nil
}

// TerminalRequest puts an ask that no link settled to the terminal.
type TerminalRequest struct {
	V        Version      `json:"v"`
	Kind     TerminalKind `json:"kind"`
	Ask      Ask          `json:"ask"`
	Asks     []Entry      `json:"asks"`
	Units    []Unit       `json:"units"`
	Trail    []TrailEntry `json:"trail"`
	Suggest  []string     `json:"suggest"`
	Deadline time.Time    `json:"deadline"`
	Prompt   Prompt       `json:"prompt"`
	// Withdraw: the ask has ended otherwise. A terminal that has put it to somebody
	// else takes it back there; no verdict is wanted.
	Withdraw bool `json:"withdraw,omitzero"`
}

func (r *TerminalRequest) version() Version { return everyVersion(r.V, r.Ask.V) }
func (r *TerminalRequest) carries()         {}
func (r *TerminalRequest) check() error {
	if r.Kind == "" {
		return fmt.Errorf("%w: kind is missing", ErrField)
	}
	return first(r.Kind.check(), r.Ask.check(), entriesCheck(r.Asks, r.Units), trailCheck(r.Trail), deadline(r.Deadline))
}

// TerminalVerdict is how a terminal ends an ask: allow or deny. Its zero value
// is no verdict, and it has no word for defer.
type TerminalVerdict struct {
	V       Version     `json:"v"`
	Ask     string      `json:"ask"`
	Verdict FinalChoice `json:"verdict"`
	Outcome Outcome     `json:"outcome"`
	Reason  string      `json:"reason"`
	// Note is the approver's word to the agent.
	Note        string         `json:"note"`
	Abort       bool           `json:"abort"`
	EditedInput jsontext.Value `json:"edited_input"`
	Grant       *Grant         `json:"grant"`
	Approver    string         `json:"approver"`
	// At is when it was stored.
	At time.Time `json:"at,omitzero"`
	// Parent is who decided at the parent node; nil from every other terminal.
	Parent *ParentWord `json:"parent,omitempty"`
}

func (v *TerminalVerdict) version() Version { return v.V }
func (v *TerminalVerdict) carries()         {}
func (v *TerminalVerdict) tidy()            { nilNull(&v.EditedInput) }
func (v *TerminalVerdict) check() error {
	if v.Outcome == "" || v.Outcome.Allows() != (v.Verdict == FinalAllow) {
		return fmt.Errorf("%w: outcome %q does not go with %s", ErrField, clip(string(v.Outcome), 40), v.Verdict)
	}
	return first(CheckAskID(v.Ask), verdictSet(v.Verdict.Valid()), v.Outcome.check(), extrasCheck(v.Verdict, v.Abort, v.EditedInput, v.Grant),
		bounded("reason", v.Reason, MaxReason), bounded("note", v.Note, MaxReason), optionalToken("approver", v.Approver), v.Parent.check())
}

// extrasCheck refuses what does not go with the choice: whoever denies while
// granting, or allows while stopping the agent, has not said what they want.
func extrasCheck(c FinalChoice, abort bool, edited jsontext.Value, g *Grant) error {
	if c == FinalDeny && (g != nil || len(edited) > 0 && edited.Kind() != 'n') {
		return fmt.Errorf("%w: a deny carries neither a grant nor an edited input", ErrField)
	}
	if c == FinalAllow && abort {
		return fmt.Errorf("%w: an allow cannot abort", ErrField)
	}
	return first(optionalObject("edited_input", edited), grantCheck(g))
}

// ReadTerminalVerdictFor reads a terminal's answer to the ask id.
func ReadTerminalVerdictFor(id string, data []byte, opts ...ReadOption) (TerminalVerdict, error) {
	v, err := Read[TerminalVerdict](data, opts...)
	if err != nil {
		return TerminalVerdict{}, err
	}
	if err := sameAsk(v.Ask, id); err != nil {
		return TerminalVerdict{}, err
	}
	return v, nil
}

// Answer is an approver's word on a pending ask.
type Answer struct {
	V           Version        `json:"v"`
	Ask         string         `json:"ask"`
	Verdict     FinalChoice    `json:"verdict"`
	Approver    string         `json:"approver"`
	Reason      string         `json:"reason"`
	Note        string         `json:"note"`
	Abort       bool           `json:"abort"`
	EditedInput jsontext.Value `json:"edited_input"`
	Grant       *Grant         `json:"grant"`
}

func (a *Answer) version() Version { return a.V }
func (a *Answer) tidy()            { nilNull(&a.EditedInput) }
func (a *Answer) check() error {
	return first(CheckAskID(a.Ask), verdictSet(a.Verdict.Valid()), CheckToken("approver", a.Approver),
		extrasCheck(a.Verdict, a.Abort, a.EditedInput, a.Grant), a.Grant.unbound(),
		bounded("reason", a.Reason, MaxReason), bounded("note", a.Note, MaxReason))
}

// ReadAnswerFor reads an answer that came on approver's subject for ask id.
func ReadAnswerFor(approver, id string, data []byte, opts ...ReadOption) (Answer, error) {
	a, err := Read[Answer](data, opts...)
	if err != nil {
		return Answer{}, err
	}
	if a.Approver != approver {
		return Answer{}, fmt.Errorf("%w: the answer says approver %q, the credential is %q's", ErrMismatch, a.Approver, approver)
	}
	if err := sameAsk(a.Ask, id); err != nil {
		return Answer{}, err
	}
	return a, nil
}

// AnswerReceipt tells an approver whether the answer stands: accepted means
// stored; otherwise it says who was first, or what was wrong.
type AnswerReceipt struct {
	V          Version     `json:"v"`
	Ask        string      `json:"ask"`
	Accepted   bool        `json:"accepted"`
	AnsweredBy string      `json:"answered_by"`
	Verdict    FinalChoice `json:"verdict,omitzero"`
	At         time.Time   `json:"at,omitzero"`
	Error      string      `json:"error"`
}

func (r *AnswerReceipt) version() Version { return r.V }
func (r *AnswerReceipt) check() error {
	if r.Accepted && r.Error != "" {
		return fmt.Errorf("%w: an accepted answer has no error", ErrField)
	}
	return first(CheckAskID(r.Ask), optionalToken("answered_by", r.AnsweredBy))
}
