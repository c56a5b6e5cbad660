package protocol

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
)

// MaxToken is the longest a subject token may be, in bytes.
const MaxToken = 64

// OtherToken stands in a subject for a name that is no token; the body then
// holds the true name.
const OtherToken = "other"

// ValidToken says whether s may stand as one token of a subject:
// [A-Za-z0-9_-]{1,64}. Everything else is refused before it reaches a subject:
// a dot, a space or a wildcard in a name would address somebody else.
func ValidToken(s string) bool {
	if len(s) == 0 || len(s) > MaxToken {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !tokenByte(s[i]) {
			return false
		}
	}
	return true
}

func tokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// CheckToken returns an error that names what and shows the value when s is no
// token. what is the caller's word for it, as "agent" or "link".
func CheckToken(what, s string) error {
	if ValidToken(s) {
		return nil
	}
	return fmt.Errorf("%w: %s %q: want 1 to %d letters, digits, '_' or '-'", ErrToken, what, clip(s, 80), MaxToken)
}

// TokenOr returns s if it is a token, else OtherToken.
func TokenOr(s string) string {
	if ValidToken(s) {
		return s
	}
	return OtherToken
}

// NewAskID returns a new ask id: a ULID of this moment, safe for concurrent use.
func NewAskID() string { return ulid.Make().String() }

// CheckAskID accepts a ULID in its canonical upper-case spelling only: two
// spellings of one id would be two subjects, and so two decisions.
func CheckAskID(id string) error {
	u, err := ulid.ParseStrict(id)
	if err != nil || u.String() != id {
		return fmt.Errorf("%w: ask id %q: want a ULID of 26 characters, upper case", ErrAskID, clip(id, 80))
	}
	return nil
}

// AskTime returns the moment that an ask id carries, to the millisecond. The
// zero time for an id that CheckAskID refuses.
func AskTime(id string) time.Time {
	if CheckAskID(id) != nil {
		return time.Time{}
	}
	return ulid.Time(ulid.MustParse(id).Time()).UTC()
}

// clip shortens s to n bytes for an error text, so that a hostile value cannot
// flood a log. It cuts at a character's border: a refusal that is no valid
// UTF-8 could not be written as a reply, and its sender would hear nothing.
func clip(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
