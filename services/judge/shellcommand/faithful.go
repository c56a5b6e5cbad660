package shellcommand

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// errUnfaithful: a claim that does not account for a text. The text says why.
var errUnfaithful = errors.New("the decomposition does not account for the whole text")

// faithful holds a model's claim of what commands a text runs against the text
// itself. It believes nothing: the claim stands only if this package comes to
// the very same commands, in the same order, with nothing between them but what
// is known to stand between commands. So a model that lies, that was talked into
// lying, or that overlooks a command can at worst cost an allow.
//
// Errors wrap errUnfaithful. Pure; safe for concurrent use.
func faithful(text string, claims []string) ([]piece, error) {
	if len(claims) == 0 {
		return nil, fmt.Errorf("%w: it names no command", errUnfaithful)
	}
	pieces, err := cut(text, wide)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnfaithful, err)
	}
	if !slices.EqualFunc(pieces, claims, func(p piece, claim string) bool { return p.text == strings.TrimSpace(claim) }) {
		return nil, fmt.Errorf("%w: its commands are not those that stand there", errUnfaithful)
	}
	return pieces, nil
}
