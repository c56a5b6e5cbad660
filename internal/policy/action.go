package policy

import "fmt"

// Action is what a rule says about a call. The values are ordered by
// strictness and the zero value is the strictest: an Action that nobody set
// refuses, and the smaller of two actions is the one that wins.
type Action uint8

// The actions. None is no answer; whoever meets it must treat it as Deny.
const (
	None Action = iota
	Deny
	Ask
	Allow
)

// String returns the word of the contract: "deny", "ask" or "allow", and
// "none" for the zero value and anything unknown.
func (a Action) String() string {
	switch a {
	case Deny:
		return "deny"
	case Ask:
		return "ask"
	case Allow:
		return "allow"
	}
	return "none"
}

// MarshalText writes the word of the contract. None is an error, so that an
// action nobody set never reaches the wire.
func (a Action) MarshalText() ([]byte, error) {
	if a < Deny || a > Allow {
		return nil, fmt.Errorf("policy: action %d has no word", a)
	}
	return []byte(a.String()), nil
}

// ParseAction reads a word of the contract; ok is false for every other text.
func ParseAction(s string) (a Action, ok bool) {
	switch s {
	case "deny":
		return Deny, true
	case "ask":
		return Ask, true
	case "allow":
		return Allow, true
	}
	return None, false
}

// stricter returns the more restrictive of a and b.
func stricter(a, b Action) Action { return min(a, b) }
