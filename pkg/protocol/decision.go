package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// DeciderKind says what kind of thing decided.
type DeciderKind string

// What may decide.
const (
	DeciderRule     DeciderKind = "rule"
	DeciderModule   DeciderKind = "module"
	DeciderGrant    DeciderKind = "grant"
	DeciderYolo     DeciderKind = "yolo"
	DeciderLink     DeciderKind = "link"
	DeciderHuman    DeciderKind = "human"
	DeciderParent   DeciderKind = "parent"
	DeciderTerminal DeciderKind = "terminal"
	DeciderGate     DeciderKind = "gate"
)

// UnmarshalText reads a kind; unknown text is an error.
func (k *DeciderKind) UnmarshalText(b []byte) error {
	switch v := DeciderKind(b); v {
	case DeciderRule, DeciderModule, DeciderGrant, DeciderYolo, DeciderLink, DeciderHuman, DeciderParent, DeciderTerminal, DeciderGate:
		*k = v
		return nil
	default:
		return fmt.Errorf("%w: decided_by.kind %q", ErrEnum, clip(string(b), 40))
	}
}

func (d Decider) check() error {
	if d.Kind == "" {
		return fmt.Errorf("%w: decided_by.kind is missing", ErrField)
	}
	return new(DeciderKind).UnmarshalText([]byte(d.Kind))
}

// Decider is who decided.
type Decider struct {
	Kind DeciderKind `json:"kind"`
	Name string      `json:"name"`
	Node string      `json:"node"`
}

// PolicyRef says under which recorded authority a call was ruled.
type PolicyRef struct {
	Revision uint64 `json:"revision"`
	Digest   string `json:"digest"`
	Project  string `json:"project"`
	Modules  string `json:"modules"`
	Grants   string `json:"grants"`
}

// Requester is what the server states of the connection that asked. It comes
// from NATS, not from the agent.
type Requester struct {
	// User is the public key of the credential.
	User string `json:"user"`
	Host string `json:"host,omitempty"`
}

// Decision is the final word on an ask, and its record.
type Decision struct {
	V       Version     `json:"v"`
	Ask     string      `json:"ask"`
	Node    string      `json:"node"`
	Gate    string      `json:"gate"`
	Agent   string      `json:"agent"`
	Session Session     `json:"session"`
	Result  FinalChoice `json:"result"`
	Outcome Outcome     `json:"outcome"`
	Reason  string      `json:"reason"`
	// Note is an approver's word to the agent.
	Note  string `json:"note"`
	Abort bool   `json:"abort"`
	// EditedInput replaces the tool's input when an approver changed it.
	EditedInput jsontext.Value `json:"edited_input"`
	Tool        string         `json:"tool"`
	// Input is what the tool was called with, long strings cut: CallDigest is of
	// the whole. Null where even that is too long for a record.
	Input jsontext.Value `json:"input"`
	// Approver is the person who answered, also where a rule overruled the answer.
	Approver       string       `json:"approver"`
	Surface        string       `json:"surface"`
	Value          string       `json:"value"`
	MatchedPattern string       `json:"matched_pattern"`
	Origin         string       `json:"origin"`
	DecidedBy      Decider      `json:"decided_by"`
	Trail          []TrailEntry `json:"trail"`
	Asks           []Entry      `json:"asks"`
	Policy         PolicyRef    `json:"policy"`
	CallDigest     string       `json:"call_digest"`
	// Via is the child node that relayed the ask; "" for one of this node's agents.
	Via string `json:"via,omitempty"`
	// Hops is the whole way that the ask came; Via is its end.
	Hops      []string  `json:"hops,omitempty"`
	Requester Requester `json:"requester"`
	AskedAt   time.Time `json:"asked_at"`
	DecidedAt time.Time `json:"decided_at"`
	// Grant is what the approver granted with the answer, bound; nil for nothing.
	// The record is what makes a grant: what is stored elsewhere only counts it down.
	Grant *Grant `json:"grant,omitempty"`
}

func (d *Decision) version() Version { return d.V }
func (d *Decision) carries()         {}
func (d *Decision) tidy() {
	nilNull(&d.EditedInput)
	nilNull(&d.Input)
}
func (d *Decision) check() error {
	if d.Outcome.Allows() && d.Result != FinalAllow {
		return fmt.Errorf("%w: outcome %q does not go with %s", ErrField, d.Outcome, d.Result)
	}
	if d.Result == FinalAllow && knownDenial(d.Outcome) {
		return fmt.Errorf("%w: outcome %q does not go with allow", ErrField, d.Outcome)
	}
	if way := (&Ask{Hops: d.Hops}); len(d.Hops) > 0 && way.Via() != d.Via {
		return fmt.Errorf("%w: via %q, the ask came through %q", ErrMismatch, clip(d.Via, MaxToken), way.Via())
	}
	if err := d.granted(); err != nil {
		return err
	}
	return first(hops(d.Hops), optionalToken("via", d.Via), CheckAskID(d.Ask), CheckToken("node", d.Node), CheckToken("agent", d.Agent), verdictSet(d.Result.Valid()),
		d.Outcome.check(), d.DecidedBy.check(), trailCheck(d.Trail), optionalObject("edited_input", d.EditedInput),
		optionalObject("input", d.Input), optionalToken("approver", d.Approver))
}

// granted refuses a grant that is not of this very decision: only a person's
// allow gives one, to the agent that asked.
func (d *Decision) granted() error {
	g := d.Grant
	if g == nil {
		return nil
	}
	if d.Result != FinalAllow || d.Outcome != AllowedByHuman || g.Node != d.Node || g.Agent != d.Agent || g.Via != d.Via || !slices.Equal(g.Hops, d.Hops) || g.GrantedBy != d.Approver || g.Ask != d.Ask {
		return fmt.Errorf("%w: the grant does not go with the decision", ErrField)
	}
	return g.bound()
}

func knownDenial(o Outcome) bool {
	switch o {
	case DeniedByRule, DeniedByModule, DeniedByLink, DeniedByHuman, NoApprover, Expired, Cancelled, Frozen, RateLimited, Unavailable, Invalid:
		return true
	default:
		return false
	}
}

// Allowed says whether the call may run. Anything but a whole decision that
// allows is no.
func (d *Decision) Allowed() bool { return d != nil && d.Result == FinalAllow && d.check() == nil }

// ReadDecisionFor reads the decision on ask id for agent; a decision on another
// ask or for another agent is none.
func ReadDecisionFor(id, agent string, data []byte, opts ...ReadOption) (Decision, error) {
	d, err := Read[Decision](data, opts...)
	if err != nil {
		return Decision{}, err
	}
	if err := sameAsk(d.Ask, id); err != nil {
		return Decision{}, err
	}
	if d.Agent != agent {
		return Decision{}, fmt.Errorf("%w: the decision is for agent %q, not %q", ErrMismatch, clip(d.Agent, MaxToken), agent)
	}
	return d, nil
}

// ReviewRecord is one record of the review log.
type ReviewRecord struct {
	V     Version   `json:"v"`
	Event string    `json:"event"`
	Ask   string    `json:"ask"`
	Node  string    `json:"node"`
	At    time.Time `json:"at"`
	Gate  string    `json:"gate,omitempty"`
	// Link is the name of the link that wrote it, stamped by the gate; "" for
	// the gate's own.
	Link   string         `json:"link,omitempty"`
	Fields jsontext.Value `json:"fields,omitzero"`
}

func (r *ReviewRecord) version() Version { return r.V }
func (r *ReviewRecord) carries()         {}
func (r *ReviewRecord) tidy()            { nilNull(&r.Fields) }
func (r *ReviewRecord) check() error {
	return first(CheckEvent(r.Event), CheckAskID(r.Ask), CheckToken("node", r.Node), optionalToken("gate", r.Gate),
		optionalToken("link", r.Link), optionalObject("fields", r.Fields))
}

// The gate's own review events.
const (
	EventChainResolved     = "authorizer_chain_resolved"
	EventChainDelegated    = "authorizer_chain_delegated"
	EventChainUnregistered = "authorizer_chain_unregistered_link"
	EventRequestWaiting    = "permission_request.waiting"
	EventRequestApproved   = "permission_request.approved"
	EventRequestDenied     = "permission_request.denied"
	EventForwardCreated    = "forwarded_permission.request_created"
	EventForwardPrompted   = "forwarded_permission.prompted"
	EventForwardApproved   = "forwarded_permission.approved"
	EventForwardDenied     = "forwarded_permission.denied"
	EventGateError         = "gate_error"
	EventRateLimited       = "rate_limited"
)

// Live notices, not kept.
const (
	NoticeReady        = "ready"
	NoticePrompt       = "ui_prompt"
	NoticePromptClosed = "prompt_closed"
	// NoticeModules: a permission module that should be in force is not.
	NoticeModules = "modules"
)

// Notice is a live notice on an event subject: a nudge to look, never a fact to
// act on.
type Notice struct {
	V     Version   `json:"v"`
	Kind  string    `json:"kind"`
	Node  string    `json:"node"`
	At    time.Time `json:"at"`
	Ask   string    `json:"ask,omitempty"`
	Agent string    `json:"agent,omitempty"`
	// Via is the child node whose agent it is.
	Via     string  `json:"via,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
	// Text is what NoticeModules says.
	Text string `json:"text,omitempty"`
}

func (n *Notice) version() Version { return n.V }
func (n *Notice) check() error {
	return first(CheckToken("kind", n.Kind), CheckToken("node", n.Node), optionalAskID(n.Ask), optionalToken("agent", n.Agent),
		optionalToken("via", n.Via), optionalToken("outcome", string(n.Outcome)), bounded("text", n.Text, MaxReason))
}
