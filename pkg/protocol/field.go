package protocol

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of text in messages, in bytes.
const (
	MaxName   = 256
	MaxPath   = 4096
	MaxReason = 4096
	MaxIntent = 16 << 10
	MaxPaths  = 1024

	// MaxMCPServers bounds the names of servers in one ask.
	MaxMCPServers = 128
)

// bounded refuses a text that is longer than limit. Line breaks are for the
// reader that shows it: see Safe.
func bounded(what, s string, limit int) error {
	if len(s) > limit {
		return fmt.Errorf("%w: %s has %d bytes, the limit is %d", ErrField, what, len(s), limit)
	}
	return nil
}

// name refuses an empty or over-long name and one with control characters: a
// name is shown to people and stands in logs.
func name(what, s string) error {
	if s == "" {
		return fmt.Errorf("%w: %s is missing", ErrField, what)
	}
	return optionalName(what, s)
}

func optionalName(what, s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.In(r, invisible...) }) {
		return fmt.Errorf("%w: %s holds a control or invisible character", ErrField, what)
	}
	return bounded(what, s, MaxName)
}

// path refuses NUL, which ends a path early for the system but not for a rule.
func path(what, s string) error {
	if strings.ContainsRune(s, 0) {
		return fmt.Errorf("%w: %s holds a NUL", ErrField, what)
	}
	return bounded(what, s, MaxPath)
}

func object(what string, v jsontext.Value) error {
	if v.Kind() != '{' {
		return fmt.Errorf("%w: %s is missing or no JSON object", ErrField, what)
	}
	return nil
}

// nilNull makes of an explicit null what an absent value is, so that "no edited
// input" has one form only and nobody takes the four letters for an input.
func nilNull(v *jsontext.Value) {
	if v.Kind() == 'n' {
		*v = nil
	}
}

func optionalObject(what string, v jsontext.Value) error {
	if len(v) == 0 || v.Kind() == 'n' {
		return nil
	}
	return object(what, v)
}

func optionalToken(what, s string) error {
	if s == "" {
		return nil
	}
	return CheckToken(what, s)
}

func optionalAskID(id string) error {
	if id == "" {
		return nil
	}
	return CheckAskID(id)
}

func verdictSet(valid bool) error {
	if !valid {
		return fmt.Errorf("%w: verdict is missing", ErrField)
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Safe makes text from elsewhere fit to be shown to a person or an agent:
// control characters, bidirectional overrides and other invisible characters
// become '·' (a line break becomes a space unless lines is true). What is longer
// than limit bytes is cut at a character's border and ends with "…"; the result
// is never longer than limit, so it fits a field of that bound. What a judge or a
// rule wrote stays readable, but can neither redraw a terminal nor hide text.
func Safe(s string, limit int, lines bool) string {
	const more = "…"
	var b []byte
	cut := 0 // where more still fits
	for _, r := range s {
		b = utf8.AppendRune(b, shown(r, lines))
		if len(b) > limit {
			if limit < len(more) {
				return ""
			}
			return string(b[:cut]) + more
		}
		if len(b)+len(more) <= limit {
			cut = len(b)
		}
	}
	return string(b)
}

func shown(r rune, lines bool) rune {
	switch {
	case r == '\n' && lines:
		return r
	case r == '\n' || r == '\r' || r == '\t':
		return ' '
	case r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, invisible...):
		return '·'
	default:
		return r
	}
}

// invisible is what takes no place on a screen: format characters, line and
// paragraph separators, variation selectors (a run of which can carry a hidden
// message) and the fillers that are letters only by name.
var invisible = []*unicode.RangeTable{
	unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point,
}

// IsRefusal says whether err is a refusal of the strict reading, which may be
// shown to the sender, rather than a failure of our own.
func IsRefusal(err error) bool {
	for _, known := range []error{ErrTooLarge, ErrMalformed, ErrVersion, ErrEnum, ErrField, ErrMismatch, ErrToken, ErrAskID, ErrSubject} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
