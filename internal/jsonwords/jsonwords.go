// Package jsonwords says what keeps a JSON text from being read in the words of
// whoever wrote it. The readers' own errors name types of this program.
package jsonwords

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Error is a reader's error in the words of the text's author. It wraps the
// reader's own, and so its sentinels.
type Error struct {
	text  string
	cause error
}

// Error returns the sentence alone, without a place.
func (e *Error) Error() string { return e.text }

// Unwrap returns the reader's own error.
func (e *Error) Unwrap() error { return e.cause }

// Of puts an error of package json, jsontext or hujson into words; any other is
// returned as it is.
func Of(err error) error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntactic):
		return &Error{broken(syntactic), err}
	case errors.As(err, &semantic):
		return &Error{misplaced(semantic), err}
	case err != nil && strings.HasPrefix(err.Error(), "hujson: "):
		return &Error{syntax(hujsonPlace.ReplaceAllString(err.Error(), "")), err}
	}
	return err
}

var hujsonPlace = regexp.MustCompile(`^hujson: (line \d+, column \d+: )?`)

// Offset is the byte of text at which the reader gave up, 0 where it does not
// say.
func Offset(text []byte, err error) int {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	at := 0
	switch {
	case errors.As(err, &syntactic):
		at = int(syntactic.ByteOffset)
	case errors.As(err, &semantic):
		at = int(semantic.ByteOffset)
	case err != nil:
		at = hujsonOffset(text, err.Error())
	}
	return min(max(at, 0), len(text))
}

// hujsonOffset finds the byte that a hujson error speaks of: it states line and
// column in its text only, columns in bytes.
func hujsonOffset(text []byte, said string) int {
	var line, column int
	if _, err := fmt.Sscanf(said, "hujson: line %d, column %d:", &line, &column); err != nil {
		return 0
	}
	at := 0
	for ; line > 1 && at < len(text); line-- {
		at += strings.IndexByte(string(text[at:])+"\n", '\n') + 1
	}
	return at + column - 1
}

// broken is a text that is no JSON.
func broken(e *jsontext.SyntacticError) string {
	said := strings.TrimPrefix(e.Error(), "jsontext: ")
	if errors.Is(e, jsontext.ErrDuplicateName) {
		return fmt.Sprintf("the key %q stands twice", e.JSONPointer.LastToken())
	}
	if e.Err != nil {
		said = e.Err.Error()
	}
	return syntax(said)
}

func syntax(said string) string {
	if strings.Contains(said, "unexpected EOF") {
		return "it ends too early; expected a closing '}', ']' or '\"'"
	}
	if strings.Contains(said, "invalid UTF-8") {
		return "this is not UTF-8"
	}
	return said
}

// misplaced is a value that does not belong where it stands.
func misplaced(e *json.SemanticError) string {
	if errors.Is(e, json.ErrUnknownName) {
		where := ""
		if parent := dotted(e.JSONPointer.Parent()); parent != "" {
			where = " in " + parent
		}
		name := e.JSONPointer.LastToken()
		return fmt.Sprintf("unknown key %q%s%s", clip(name), where, meant(name, e.GoType))
	}
	what := dotted(e.JSONPointer)
	if what == "" {
		what = "this"
	}
	switch {
	case e.JSONKind == 0 && e.Err != nil:
		return what + ": " + e.Err.Error()
	case e.JSONKind == 0:
		return what + " does not belong here"
	}
	out := what + " is " + Kind(e.JSONKind)
	if want := wanted(e.GoType); want != "" && want != Kind(e.JSONKind) {
		out += "; expected " + want
	} else if e.Err != nil {
		out += " that is out of range or not what is expected here"
	}
	return out
}

// meant is the end of a sentence on an unknown key: the known one that is near.
func meant(name string, t reflect.Type) string {
	if t == nil || t.Kind() != reflect.Struct || len(name) > maxShown {
		return ""
	}
	var known []string
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "" && key != "-" {
			known = append(known, key)
		}
	}
	return DidYouMean(name, known)
}

// DidYouMean is the end of a sentence on an unknown word: the known one that is
// near, or nothing.
func DidYouMean(written string, known []string) string {
	if n := Nearest(written, known); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}

// Nearest is the known word that written was probably meant to be, "" if none is
// near.
func Nearest(written string, known []string) string {
	best, at := "", 3
	for _, k := range known {
		if d := distance(strings.ToLower(written), strings.ToLower(k), at); d < at && d < len(k) {
			best, at = k, d
		}
	}
	return best
}

// distance is the number of letters to change, put in or take out to make b of a;
// limit, without counting, where their lengths alone differ by as much.
func distance(a, b string, limit int) int {
	if len(a) > len(b)+limit || len(b) > len(a)+limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// dotted is a place in a document as people write it: "cases.0.call", without a
// slash in front.
func dotted(p jsontext.Pointer) string {
	var parts []string
	for token := range p.Tokens() {
		parts = append(parts, token)
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%q", clip(strings.Join(parts, ".")))
}

// Kind is what people call a value of that kind.
func Kind(k jsontext.Kind) string {
	switch k {
	case '{', '}':
		return "an object"
	case '[', ']':
		return "a list"
	case '"':
		return "a text"
	case '0':
		return "a number"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "nothing"
}

// wanted is the kind of JSON value that a type of this program is read from, ""
// where that is not one.
func wanted(t reflect.Type) string {
	if t == nil {
		return ""
	}
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return "a number"
	}
	return ""
}

// maxShown bounds what of a text's own words is repeated, in bytes.
const maxShown = 120

func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}
