package llm

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestStrictSchema(t *testing.T) {
	t.Parallel()
	const closed = `"additionalProperties":false`
	rows := []struct{ name, in, want string }{
		{"no properties", `{"type":"object","properties":{},"required":[],` + closed + `}`, `{"type":"object","properties":{},"required":[],` + closed + `}`},
		{"the order of properties stays", `{"type":"object","properties":{"reason":{"type":"string"},"answer":{"type":"string","enum":["z","a"]}},"required":["answer","reason"],` + closed + `}`,
			`{"type":"object","properties":{"reason":{"type":"string"},"answer":{"type":"string","enum":["z","a"]}},"required":["answer","reason"],` + closed + `}`},
		{"a bound becomes words", `{"type":"object","properties":{"r":{"type":"string","maxLength":9,"description":"why"}},"required":["r"],` + closed + `}`,
			`{"type":"object","properties":{"r":{"type":"string","description":"why (maxLength 9)"}},"required":["r"],` + closed + `}`},
		{"bounds of a list, and inside of it", `{"type":"object","properties":{"l":{"type":"array","maxItems":3,"items":{"type":"integer","minimum":0}}},"required":["l"],` + closed + `}`,
			`{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer","description":"(minimum 0)"},"description":"(maxItems 3)"}},"required":["l"],` + closed + `}`},
		{"a choice", `{"type":"object","properties":{"x":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["x"],` + closed + `}`,
			`{"type":"object","properties":{"x":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["x"],` + closed + `}`},

		{"no object", `{"type":"string"}`, ""},
		{"no type", `{"properties":{}}`, ""},
		{"no JSON", `{"type":`, ""},
		{"one name twice", `{"type":"object","type":"object","properties":{},"required":[],` + closed + `}`, ""},
		{"open", `{"type":"object","properties":{},"required":[]}`, ""},
		{"open inside", `{"type":"object","properties":{"x":{"type":"object","properties":{},"required":[]}},"required":["x"],` + closed + `}`, ""},
		{"an optional property", `{"type":"object","properties":{"x":{"type":"string"}},"required":[],` + closed + `}`, ""},
		{"a required one that has no schema", `{"type":"object","properties":{},"required":["x"],` + closed + `}`, ""},
		{"a reference", `{"type":"object","properties":{"x":{"$ref":"#/$defs/x"}},"required":["x"],` + closed + `}`, ""},
		{"a keyword that strict tools do not take", `{"type":"object","properties":{"x":{"type":"string","format":"uri"}},"required":["x"],` + closed + `}`, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := strictSchema(jsontext.Value(row.in))
			if row.want == "" {
				if !errors.Is(err, ErrCall) || CheckSchema(jsontext.Value(row.in)) == nil {
					t.Errorf("taken as %s, %v", object(got), err)
				}
				return
			}
			if err != nil || string(object(got)) != row.want {
				t.Errorf("%s, %v\nwant %s", object(got), err, row.want)
			}
		})
	}
}
