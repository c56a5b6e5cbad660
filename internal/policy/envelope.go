package policy

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// LinkMayAllow says whether a link's allow of a call lies within the envelope:
// every open entry on an allowed and not excluded surface, none that only a
// person answers, no secret-shaped path anywhere in the call. why names what
// does not fit, for the record. Without open entries, and without a
// modelDelegation, the answer is no. The gate adds what a module requested as
// an entry with HumanOnly.
func (s *Snapshot) LinkMayAllow(open []Entry, c Call) (ok bool, why string) {
	switch {
	case s.clamped != "":
		return false, "the policy is clamped: " + s.clamped
	case s.delegation == nil:
		return false, "the policy has no modelDelegation"
	case len(open) == 0:
		return false, "nothing is open"
	}
	for _, e := range open {
		if e.HumanOnly {
			return false, fmt.Sprintf("only a person may allow what %s %q asks", e.Surface, e.MatchedPattern)
		}
		if !s.delegated(e.Surface) {
			return false, fmt.Sprintf("surface %s is not delegated", e.Surface)
		}
	}
	secret, looked := s.secretOf(open, c)
	if !looked {
		return false, "the call's input cannot be looked through for secrets"
	}
	if secret != "" {
		return false, fmt.Sprintf("the call touches %q, which looks like a secret", clip(secret))
	}
	return true, ""
}

// delegated says whether links may allow on a surface. A crosscutting surface
// is excluded as soon as one of its directions is.
func (s *Snapshot) delegated(surface string) bool {
	forms := []string{surface}
	if crosscutting(surface) != "" {
		forms = append(forms, surface+suffixRead, surface+suffixWrite)
	}
	for _, w := range s.excluded {
		for _, f := range forms {
			if w.match(f) {
				return false
			}
		}
	}
	for _, w := range s.allowed {
		if w.match(surface) {
			return true
		}
	}
	return false
}

// secretOf returns what in a call looks like the path of a secret, "" if
// nothing does; looked is false where not all of it could be looked at. It looks at every text of the input, the paths the adapter
// fixed, the entries, and the words of shell commands without their quotes.
func (s *Snapshot) secretOf(open []Entry, c Call) (secret string, looked bool) {
	var texts []string
	for _, e := range open {
		if e.Value != "*" { // stands for a tool that has no value
			texts = append(texts, e.Value)
		}
	}
	for _, p := range c.Paths {
		texts = append(texts, p.Raw, p.Resolved)
	}
	args, known := arguments(c.Input)
	if !known || !textsUnder(args, true, func(string) bool { return true }, 0, &texts) {
		return "", false
	}
	if command := s.commandOf(c.Tool, args); command != "" {
		texts = append(texts, shellTexts(shell.Read(command))...)
	}
	extra := compileAll(lowered(s.secrets)...)
	for _, t := range texts {
		if found := secretIn(t, extra); found != "" {
			return found, true
		}
	}
	return "", true
}

// shellTexts are all words of a command, unquoted.
func shellTexts(cmd shell.Command) []string {
	out := append([]string(nil), cmd.Loose...)
	for _, u := range cmd.Units {
		out = append(out, u.Words...)
		out = append(out, u.Assigns...)
		for _, r := range u.Redirects {
			out = append(out, r.Target)
		}
	}
	return out
}

func lowered(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = strings.ToLower(t)
	}
	return out
}
