package protocol

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// edit changes a JSON text for a table row: each change is "path=raw JSON", and
// "path=" takes the field out. A path is names with dots between them.
func edit(tb testing.TB, text []byte, changes ...string) []byte {
	tb.Helper()
	for _, c := range changes {
		path, raw, ok := strings.Cut(c, "=")
		if !ok {
			tb.Fatalf("change %q has no '='", c)
		}
		out, err := editAt(text, strings.Split(path, "."), raw)
		if err != nil {
			tb.Fatalf("change %q: %v", c, err)
		}
		text = out
	}
	return text
}

func editAt(text []byte, path []string, raw string) ([]byte, error) {
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	if fields == nil {
		return nil, fmt.Errorf("%s is no object", text)
	}
	switch {
	case len(path) > 1:
		inner, err := editAt(fields[path[0]], path[1:], raw)
		if err != nil {
			return nil, err
		}
		fields[path[0]] = inner
	case raw == "":
		delete(fields, path[0])
	default:
		fields[path[0]] = jsontext.Value(raw)
	}
	return json.Marshal(fields, json.Deterministic(true))
}

// insert puts raw in as the first field, byte for byte: for what no JSON writer
// would write.
func insert(text []byte, raw string) []byte {
	return bytes.Replace(text, []byte("{"), []byte("{"+raw+","), 1)
}

func nested(open, inner, closed string, depth int) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(closed, depth)
}

// padded fills text up to n bytes with an unknown field.
func padded(text []byte, n int) []byte {
	const frame = `"pad":"",`
	return insert(text, `"pad":"`+strings.Repeat("x", n-len(text)-len(frame))+`"`)
}

// readKnownOnly reads text as the type of value and refuses unknown fields.
func readKnownOnly(value any, text string) error {
	into := reflect.New(reflect.TypeOf(value)).Interface()
	return json.Unmarshal([]byte(text), into, json.RejectUnknownMembers(true))
}
