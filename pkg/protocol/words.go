package protocol

import (
	"fmt"
	"strings"
)

// Choice is what a link answers. Its zero value is no verdict.
type Choice uint8

// What a link may answer.
const (
	_ Choice = iota
	ChoiceAllow
	ChoiceDeny
	ChoiceDefer
)

// FinalChoice is what ends an ask: a terminal's verdict, an approver's answer,
// a decision's result. It has no word for defer, so a terminal that could defer
// does not compile. Its zero value is no verdict.
type FinalChoice uint8

// What a terminal may answer.
const (
	_ FinalChoice = iota
	FinalAllow
	FinalDeny
)

// Action is what a rule says, and the state a query reports. Its zero value is
// no action; who meets it refuses.
type Action uint8

// What a rule may say. A greater action is stricter.
const (
	_ Action = iota
	ActionAllow
	ActionAsk
	ActionDeny
)

var (
	choiceWords = []string{"", "allow", "deny", "defer"}
	finalWords  = []string{"", "allow", "deny"}
	actionWords = []string{"", "allow", "ask", "deny"}
)

func (c Choice) String() string      { return word(choiceWords, c) }
func (c FinalChoice) String() string { return word(finalWords, c) }
func (a Action) String() string      { return word(actionWords, a) }

// Valid says whether c is a verdict at all.
func (c Choice) Valid() bool { return c >= ChoiceAllow && c <= ChoiceDefer }

// Valid says whether c is a verdict at all.
func (c FinalChoice) Valid() bool { return c == FinalAllow || c == FinalDeny }

// Valid says whether a is an action at all.
func (a Action) Valid() bool { return a >= ActionAllow && a <= ActionDeny }

// MarshalText writes the word; no verdict cannot be written.
func (c Choice) MarshalText() ([]byte, error) { return writeWord(choiceWords, "verdict", c) }

// MarshalText writes the word; no verdict cannot be written.
func (c FinalChoice) MarshalText() ([]byte, error) { return writeWord(finalWords, "verdict", c) }

// MarshalText writes the word; no action cannot be written.
func (a Action) MarshalText() ([]byte, error) { return writeWord(actionWords, "action", a) }

// UnmarshalText reads allow, deny or defer and nothing else.
func (c *Choice) UnmarshalText(b []byte) error { return readWord(choiceWords, "verdict", b, c) }

// UnmarshalText reads allow or deny and nothing else: a terminal that says
// defer has sent no verdict.
func (c *FinalChoice) UnmarshalText(b []byte) error { return readWord(finalWords, "verdict", b, c) }

// UnmarshalText reads allow, ask or deny and nothing else.
func (a *Action) UnmarshalText(b []byte) error { return readWord(actionWords, "action", b, a) }

func word[T ~uint8](words []string, v T) string {
	if v == 0 || int(v) >= len(words) {
		return "none"
	}
	return words[v]
}

func writeWord[T ~uint8](words []string, what string, v T) ([]byte, error) {
	if v == 0 || int(v) >= len(words) {
		return nil, fmt.Errorf("%w: no %s", ErrEnum, what)
	}
	return []byte(words[v]), nil
}

func readWord[T ~uint8](words []string, what string, b []byte, v *T) error {
	for i, w := range words[1:] {
		if w == string(b) {
			*v = T(i + 1)
			return nil
		}
	}
	*v = 0
	return fmt.Errorf("%w: %s %q, want one of %s", ErrEnum, what, clip(string(b), 40), strings.Join(words[1:], ", "))
}

// Outcome says how a decision came about. A reader that meets an unknown one
// takes it by the decision's result.
type Outcome string

// The outcomes.
const (
	AllowedByRule  Outcome = "allowed_by_rule"
	AllowedByGrant Outcome = "allowed_by_grant"
	AllowedByYolo  Outcome = "allowed_by_yolo"
	AllowedByLink  Outcome = "allowed_by_link"
	AllowedByHuman Outcome = "allowed_by_human"
	DeniedByRule   Outcome = "denied_by_rule"
	DeniedByModule Outcome = "denied_by_module"
	DeniedByLink   Outcome = "denied_by_link"
	DeniedByHuman  Outcome = "denied_by_human"
	NoApprover     Outcome = "no_approver"
	Expired        Outcome = "expired"
	Cancelled      Outcome = "cancelled"
	Frozen         Outcome = "frozen"
	RateLimited    Outcome = "rate_limited"
	Unavailable    Outcome = "unavailable"
	Invalid        Outcome = "invalid"
)

// Allows says whether o belongs to an allow. Every outcome that is not known to
// allow does not.
func (o Outcome) Allows() bool {
	switch o {
	case AllowedByRule, AllowedByGrant, AllowedByYolo, AllowedByLink, AllowedByHuman:
		return true
	default:
		return false
	}
}

// check refuses an outcome that is missing or no word at all; one that is only
// unknown stands.
func (o Outcome) check() error {
	if o == "" {
		return fmt.Errorf("%w: outcome is missing", ErrField)
	}
	return CheckToken("outcome", string(o))
}

// Failures of a link, as a trail names them. A judge's own word may stand in
// their place (breaker_open, over_budget, …).
const (
	FailureUnregistered = "unregistered"
	FailureTimeout      = "timeout"
	FailureError        = "error"
	FailureMalformed    = "malformed"
	FailureExpired      = "expired"
	// FailureBusy is a worker's word that it judges as many asks as it may: no
	// verdict, as long as another worker may take the ask.
	FailureBusy = "busy"
)

// TerminalKind is who ends an ask.
type TerminalKind string

// The kinds of terminal.
const (
	TerminalHuman  TerminalKind = "human"
	TerminalParent TerminalKind = "parent"
	TerminalDeny   TerminalKind = "deny"
)

// ParseTerminalKind reads a kind; unknown text is an error, never a kind.
func ParseTerminalKind(s string) (TerminalKind, error) {
	switch k := TerminalKind(s); k {
	case TerminalHuman, TerminalParent, TerminalDeny:
		return k, nil
	default:
		return "", fmt.Errorf("%w: terminal kind %q, want human, parent or deny", ErrEnum, clip(s, 40))
	}
}

func (k TerminalKind) check() error {
	_, err := ParseTerminalKind(string(k))
	return err
}

// UnmarshalText reads a kind; unknown text is an error.
func (k *TerminalKind) UnmarshalText(b []byte) (err error) {
	*k, err = ParseTerminalKind(string(b))
	return err
}
