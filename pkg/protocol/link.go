package protocol

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Entry is one thing a rule had to say about a call; Asks of a request lists
// those that the rules left open.
type Entry struct {
	Surface        string `json:"surface"`
	Value          string `json:"value"`
	MatchedPattern string `json:"matched_pattern"`
	Origin         string `json:"origin"`
	// Unit is the index into units of the shell unit it is about; 0 elsewhere.
	Unit int `json:"unit"`
	// HumanOnly: no link, grant or yolo answers it, only a person.
	HumanOnly bool `json:"human_only,omitzero"`
	// Floor: it is open since the call is not proven harmless, whatever the rules
	// say; no grant answers it.
	Floor bool `json:"floor,omitzero"`
}

// Unit is one piece that the shell reading found in a command.
type Unit struct {
	Text     string `json:"text"`
	Decision Action `json:"decision,omitzero"`
	Pattern  string `json:"pattern"`
	Note     string `json:"note"`
}

// LinkRequest is what a gate hands a link: the ask and two capabilities, all
// bound to this one ask and dead after its deadline or the verdict.
type LinkRequest struct {
	V        Version   `json:"v"`
	Link     string    `json:"link"`
	Ask      Ask       `json:"ask"`
	Asks     []Entry   `json:"asks"`
	Units    []Unit    `json:"units"`
	Deadline time.Time `json:"deadline"`
	Query    string    `json:"query"`
	Log      string    `json:"log"`
	// PolicyRevision is the revision of the policy that left the call open; 0 where
	// none is known. What a judge remembers holds for that one alone.
	PolicyRevision uint64 `json:"policy_revision,omitzero"`
}

func (r *LinkRequest) version() Version { return everyVersion(r.V, r.Ask.V) }
func (r *LinkRequest) carries()         {}
func (r *LinkRequest) check() error {
	if len(r.Asks) == 0 {
		return fmt.Errorf("%w: asks is empty: nothing is open", ErrField)
	}
	return first(CheckToken("link", r.Link), r.Ask.check(), entriesCheck(r.Asks, r.Units), deadline(r.Deadline),
		capabilitySubject("query", KindQuery, r.Query), capabilitySubject("log", KindLog, r.Log))
}

// entriesCheck refuses an entry whose unit does not exist: a judge that follows
// the index would crash on it.
func entriesCheck(asks []Entry, units []Unit) error {
	for _, e := range asks {
		if e.Unit < 0 || e.Unit > 0 && e.Unit >= len(units) {
			return fmt.Errorf("%w: asks.unit is %d, there are %d units", ErrField, e.Unit, len(units))
		}
	}
	return nil
}

func deadline(t time.Time) error {
	if t.IsZero() {
		return fmt.Errorf("%w: deadline is missing", ErrField)
	}
	return nil
}

func capabilitySubject(what string, k Kind, subject string) error {
	s, err := ParseSubject(subject)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if s.Kind != k {
		return fmt.Errorf("%w: %s is a %s subject", ErrMismatch, what, s.Kind)
	}
	return nil
}

// Verdict is what a link answers. Its zero value is no verdict.
type Verdict struct {
	V       Version `json:"v"`
	Ask     string  `json:"ask"`
	Verdict Choice  `json:"verdict"`
	Reason  string  `json:"reason"`
	// Failure is the judge's own word for a defer that was none of its choosing.
	Failure string `json:"failure"`
}

func (v *Verdict) version() Version { return v.V }
func (v *Verdict) check() error {
	if v.Verdict == ChoiceDeny && v.Reason == "" {
		return fmt.Errorf("%w: a deny without a reason teaches nobody", ErrField)
	}
	if v.Failure != "" && v.Verdict != ChoiceDefer {
		return fmt.Errorf("%w: only a defer carries a failure", ErrField)
	}
	return first(CheckAskID(v.Ask), verdictSet(v.Verdict.Valid()), optionalToken("failure", v.Failure), bounded("reason", v.Reason, MaxReason))
}

// ReadVerdictFor reads a link's answer to the ask id; a verdict for another ask
// is none.
func ReadVerdictFor(id string, data []byte, opts ...ReadOption) (Verdict, error) {
	v, err := Read[Verdict](data, opts...)
	if err != nil {
		return Verdict{}, err
	}
	if err := sameAsk(v.Ask, id); err != nil {
		return Verdict{}, err
	}
	return v, nil
}

func sameAsk(got, want string) error {
	if got != want {
		return fmt.Errorf("%w: the reply is for ask %q, not %q", ErrMismatch, clip(got, 40), want)
	}
	return nil
}

// Query asks the gate that holds an ask how the rules stand on a value: either
// Surface and Value, or Tool alone for the tool-level state.
type Query struct {
	V         Version `json:"v"`
	Surface   string  `json:"surface,omitempty"`
	Value     string  `json:"value,omitempty"`
	Cwd       string  `json:"cwd,omitempty"`
	AgentName string  `json:"agent_name,omitempty"`
	Tool      string  `json:"tool,omitempty"`
}

func (q *Query) version() Version { return q.V }
func (q *Query) check() error {
	if (q.Surface == "") == (q.Tool == "") {
		return fmt.Errorf(`%w: a query names either "surface" (with "value") or "tool"`, ErrField)
	}
	if q.Tool != "" && q.Value != "" {
		return fmt.Errorf(`%w: a query on a tool carries no value: its answer would not be about that value`, ErrField)
	}
	return first(optionalName("surface", q.Surface), optionalName("tool", q.Tool),
		bounded("value", q.Value, DefaultMaxBytes), path("cwd", q.Cwd), optionalName("agent_name", q.AgentName))
}

// Check is the gate's answer to a Query: how the rules stand, nothing granted.
type Check struct {
	V              Version `json:"v"`
	State          Action  `json:"state"`
	MatchedPattern string  `json:"matched_pattern"`
	Origin         string  `json:"origin"`
	Reason         string  `json:"reason"`
}

func (c *Check) version() Version { return c.V }
func (c *Check) check() error {
	if !c.State.Valid() {
		return fmt.Errorf("%w: state is missing", ErrField)
	}
	return bounded("reason", c.Reason, MaxReason)
}

// Log levels.
const (
	LevelReview = "review"
	LevelDebug  = "debug"
)

// EventAccepted is a worker's first act on a link request: a log record that
// says it is alive and at work.
const EventAccepted = "accepted"

// LogRecord is what a link writes through its log capability; the gate stamps
// it with the ask id and the link's name.
type LogRecord struct {
	V      Version        `json:"v"`
	Level  string         `json:"level"`
	Event  string         `json:"event"`
	Fields jsontext.Value `json:"fields,omitzero"`
}

func (r *LogRecord) version() Version { return r.V }
func (r *LogRecord) tidy()            { nilNull(&r.Fields) }
func (r *LogRecord) check() error {
	if r.Level != LevelReview && r.Level != LevelDebug {
		return fmt.Errorf("%w: level %q, want %q or %q", ErrEnum, clip(r.Level, 40), LevelReview, LevelDebug)
	}
	return first(CheckEvent(r.Event), optionalObject("fields", r.Fields))
}

// LogReceipt says that a log record was taken; Kept is false for a debug record
// that the policy does not keep.
type LogReceipt struct {
	V    Version `json:"v"`
	Ask  string  `json:"ask"`
	Kept bool    `json:"kept"`
}

func (r *LogReceipt) version() Version { return r.V }
func (r *LogReceipt) check() error     { return CheckAskID(r.Ask) }
