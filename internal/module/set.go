package module

import (
	"context"
	"slices"
)

// Set is the checks of some modules in order. It is immutable, safe for
// concurrent use and cheap to keep; a nil Set has no checks.
type Set struct {
	checks []Check
	digest string
}

// Checks are all checks in the order in which they are asked.
func (s *Set) Checks() []Check {
	if s == nil {
		return nil
	}
	return slices.Clone(s.checks)
}

// Digest identifies names, levels and versions of the modules in order; "" for
// a set without modules.
func (s *Set) Digest() string {
	if s == nil {
		return ""
	}
	return s.digest
}

// Check asks the checks that are about call, in order; see Verdict.
func (s *Set) Check(ctx context.Context, call Call) Verdict {
	if s == nil || len(s.checks) == 0 {
		return Verdict{Decision: Pass}
	}
	return Verdict{Decision: Request, Check: s.checks[0], Failure: ErrClosed.Error()}
}
