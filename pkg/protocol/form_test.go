package protocol

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// formRow is a change of form that every message must take the same way.
type formRow struct {
	name string
	make func(text []byte, limit int) []byte
}

func raw(field string) func([]byte, int) []byte {
	return func(text []byte, _ int) []byte { return insert(text, field) }
}

func replaced(old, with string) func([]byte, int) []byte {
	return func(text []byte, _ int) []byte { return []byte(strings.Replace(string(text), old, with, 1)) }
}

func whole(s string) func([]byte, int) []byte { return func([]byte, int) []byte { return []byte(s) } }

// formRefusals say what no message may be, by the sentinel that names it.
var formRefusals = map[error][]formRow{
	ErrTooLarge: {
		{"one byte over the limit", func(b []byte, limit int) []byte { return padded(b, limit+1) }},
		{"one byte over the limit by blanks at the end", func(b []byte, limit int) []byte {
			return append(b, strings.Repeat(" ", limit+1-len(b))...)
		}},
	},
	ErrVersion: {
		{"no version", replaced(`"v":1,`, ``)},
		{"version in another case", replaced(`"v":1,`, `"V":1,`)},
		{"a later version", replaced(`"v":1,`, `"v":2,`)},
		{"version zero", replaced(`"v":1,`, `"v":0,`)},
		{"a negative version", replaced(`"v":1,`, `"v":-1,`)},
		{"version as text", replaced(`"v":1,`, `"v":"1",`)},
		{"version as a fraction", replaced(`"v":1,`, `"v":1.0,`)},
		{"version that wraps around a byte", replaced(`"v":1,`, `"v":257,`)},
		{"version null", replaced(`"v":1,`, `"v":null,`)},
		{"null in place of the message", whole(`null`)},
		{"an empty object", whole(`{}`)},
	},
	ErrMalformed: {
		{"nothing", whole(``)},
		{"blanks alone", whole("  \n")},
		{"a list in place of the message", whole(`[]`)},
		{"a text in place of the message", whole(`"allow"`)},
		{"a number in place of the message", whole(`1`)},
		{"cut short", func(b []byte, _ int) []byte { return b[:len(b)-1] }},
		{"the version twice", raw(`"v":1`)},
		{"an unknown field twice", raw(`"zz":1,"zz":1`)},
		{"a field twice, once spelled with an escape", raw(`"zz":1,"\u007az":1`)},
		{"a field twice within an unknown object", raw(`"zz":{"a":1,"a":1}`)},
		{"another value after the message", func(b []byte, _ int) []byte { return append(b, b...) }},
		{"a bracket after the message", func(b []byte, _ int) []byte { return append(b, '}') }},
		{"a byte order mark before the message", func(b []byte, _ int) []byte { return append([]byte("\xef\xbb\xbf"), b...) }},
		{"invalid UTF-8 in a value", raw("\"zz\":\"\xff\"")},
		{"invalid UTF-8 in a name", raw("\"\xc3\x28\":1")},
		{"an overlong UTF-8 spelling", raw("\"zz\":\"\xc0\xaf\"")},
		{"half a surrogate pair, escaped", raw(`"zz":"\ud800"`)},
		{"a bare control character in a text", raw("\"zz\":\"a\nb\"")},
		{"10,000 lists deep", raw(`"zz":` + nested("[", "", "]", 10_000))},
		{"10,000 objects deep", raw(`"zz":` + nested(`{"a":`, "1", "}", 10_000))},
		{"a comment", raw(`/* c */ "zz":1`)},
		{"a trailing comma", replaced(`"v":1,`, `"v":1,,`)},
		{"a name without quotes", raw(`zz:1`)},
		{"single quotes", raw(`'zz':1`)},
		{"not a number", raw(`"zz":NaN`)},
		{"a number with a leading zero", raw(`"zz":01`)},
	},
}

// formAcceptances are the same temptations in their harmless form.
var formAcceptances = []formRow{
	{"as written", func(b []byte, _ int) []byte { return b }},
	{"at the limit", padded},
	{"at the limit by blanks at the end", func(b []byte, limit int) []byte { return append(b, strings.Repeat(" ", limit-len(b))...) }},
	{"the version spelled with an escape", replaced(`"v":1,`, `"\u0076":1,`)},
	{"the version with blanks around", replaced(`"v":1,`, `"v" : 1 ,`)},
	{"the version last", func(b []byte, _ int) []byte {
		s := strings.Replace(string(b), `"v":1,`, ``, 1)
		return []byte(s[:len(s)-1] + `,"v":1}`)
	}},
	{"an unknown V beside the version", raw(`"V":2`)},
	{"an unknown version word", raw(`"version":2`)},
	{"an unknown text", raw(`"zz":"x"`)},
	{"an unknown number", raw(`"zz":1`)},
	{"an unknown null", raw(`"zz":null`)},
	{"an unknown list", raw(`"zz":[1,2]`)},
	{"an unknown object", raw(`"zz":{"v":2}`)},
	{"an unknown field in two cases", raw(`"zz":1,"Zz":1`)},
	{"the same name at two depths", raw(`"zz":{"zz":{"zz":1}}`)},
	{"the same name in two objects of a list", raw(`"zz":[{"a":1},{"a":1}]`)},
	{"an unknown field with an empty name", raw(`"":1`)},
	{"a name that differs by an invisible character", raw("\"v\u200b\":2")},
	{"line breaks and tabs around", func(b []byte, _ int) []byte { return []byte("\r\n\t " + string(b) + " \r\n") }},
	{"UTF-8 of four bytes in a value", raw("\"zz\":\"\U0001F600\"")},
	{"UTF-8 of four bytes in a name", raw("\"\U0001F600\":1")},
	{"a replacement character", raw("\"zz\":\"\uFFFD\"")},
	{"a whole surrogate pair, escaped", raw(`"zz":"\ud83d\ude00"`)},
	{"an escaped control character in a text", raw(`"zz":"a\nb\u0000"`)},
	{"150 lists deep", raw(`"zz":` + nested("[", "", "]", 150))},
	{"150 objects deep", raw(`"zz":` + nested(`{"a":`, "1", "}", 150))},
	{"10,000 brackets in a text", raw(`"zz":"` + strings.Repeat("[", 10_000) + `"`)},
	{"10,000 brackets after an escaped quote in a text", raw(`"zz":"\"` + strings.Repeat("{", 10_000) + `"`)},
	{"10,000 lists side by side", raw(`"zz":[` + strings.Repeat("[],", 10_000) + `[]]`)},
	{"a comment within a text", raw(`"zz":"/* c */ // c"`)},
	{"a comma within a text", raw(`"zz":",,"`)},
	{"a number that no float holds exactly", raw(`"zz":9007199254740993`)},
	{"a number beyond every float", raw(`"zz":1e999`)},
	{"a number of 1,000 digits", raw(`"zz":` + strings.Repeat("9", 1000))},
	{"a negative zero", raw(`"zz":-0`)},
	{"a slash escaped", raw(`"zz":"a\/b"`)},
	{"a name with a dot", raw(`"zz.v":2`)},
	{"an unknown boolean", raw(`"zz":true`)},
	{"a text that looks like the message", raw(`"zz":"{\"v\":2}"`)},
}

func TestFormTablesAreBalanced(t *testing.T) {
	refusals := 0
	for _, rows := range formRefusals {
		refusals += len(rows)
	}
	if refusals != len(formAcceptances) {
		t.Errorf("%d refusals, %d acceptances: a reader that refuses everything must fail as loudly as one that takes everything", refusals, len(formAcceptances))
	}
}

func TestReadRefusesForm(t *testing.T) {
	for _, s := range samples() {
		for want, rows := range formRefusals {
			for _, row := range rows {
				t.Run(s.name+"/"+row.name, func(t *testing.T) {
					b, err := s.write()
					if err != nil {
						t.Fatal(err)
					}
					v, _, err := s.read(row.make(b, s.limit))
					refused(t, v, err, want)
				})
			}
		}
	}
}

func TestReadAcceptsForm(t *testing.T) {
	for _, s := range samples() {
		for _, row := range formAcceptances {
			t.Run(s.name+"/"+row.name, func(t *testing.T) {
				b, err := s.write()
				if err != nil {
					t.Fatal(err)
				}
				text := row.make(b, s.limit)
				if len(text) > s.limit {
					t.Fatalf("the row makes %d bytes, the limit is %d", len(text), s.limit)
				}
				v, _, err := s.read(text)
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				if d := cmp.Diff(s.value, v, alike); d != "" {
					t.Errorf("read as something else (-want +got):\n%s", d)
				}
			})
		}
	}
}

// refused holds a refusal to what the package promises: one sentinel, the zero
// message, and a text that can be sent back.
func refused(t *testing.T, v any, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want one that is %q", err, want)
	}
	if n := sentinelsIn(err); n != 1 {
		t.Errorf("error %v wraps %d sentinels, want one", err, n)
	}
	if !IsRefusal(err) {
		t.Errorf("IsRefusal(%v) = false", err)
	}
	if d := cmp.Diff(reflect.Zero(reflect.TypeOf(v)).Interface(), v, alike); d != "" {
		t.Errorf("a refused message was handed out:\n%s", d)
	}
	if _, err := Write(ErrorReply{Error: Fault{Code: CodeInvalid, Message: err.Error()}}); err != nil {
		t.Errorf("the refusal cannot be sent back: %v", err)
	}
	if strings.Contains(err.Error(), "protocol.") || len(err.Error()) > 600 {
		t.Errorf("the refusal is not for its sender: %q", err)
	}
}

func sentinelsIn(err error) int {
	n := 0
	for _, s := range []error{ErrTooLarge, ErrMalformed, ErrVersion, ErrEnum, ErrField, ErrMismatch, ErrToken, ErrAskID, ErrSubject} {
		if errors.Is(err, s) {
			n++
		}
	}
	return n
}
