package brief

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Data is v as one line of JSON for a fence. All that a reader could take for
// an end of the line, of a tag or of the text, or that it could not see, is
// escaped; what the JSON says stays the same. Errors wrap ErrUnreadable.
func Data(v any) (string, error) {
	data, err := json.Marshal(v, jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true), json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return visible(string(data)), nil
}

// visible escapes what takes no place on a screen or redraws it: overrides of
// direction, tag characters and the like can carry text that a model reads and
// nobody else sees. In JSON they can stand in strings only, so an escape there
// changes nothing.
func visible(data string) string {
	if !strings.ContainsFunc(data, hidden) {
		return data
	}
	var b strings.Builder
	for _, r := range data {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func hidden(r rune) bool {
	return r >= 0x7f && (!unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point))
}
