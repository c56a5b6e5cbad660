package llm

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// member is one of an object's, in the order in which it was written: a model
// fills a schema in from the top, so that a reason before a verdict is another
// question than one after it.
type member struct {
	name  string
	value jsontext.Value
}

// bounds are the keywords that strict tools do not take. A model is told of
// them in words, and whoever reads the answer checks them.
var bounds = []string{"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern"}

// CheckSchema says whether a schema fits the strict tools of every API here:
// objects only of named, required properties, and the keywords type, properties,
// required, additionalProperties, items, anyOf, enum, const, description and
// the usual bounds.
func CheckSchema(schema jsontext.Value) error {
	_, err := strictSchema(schema)
	return err
}

// strictSchema is the members of an object's schema as strict tools take it.
func strictSchema(schema jsontext.Value) ([]member, error) {
	out, err := strictMembers(schema)
	if err == nil && !slices.ContainsFunc(out, func(m member) bool { return m.name == "type" && string(m.value) == `"object"` }) {
		err = fmt.Errorf("want an object")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: schema: %w", ErrCall, err)
	}
	return out, nil
}

func strictMembers(schema jsontext.Value) ([]member, error) {
	in, err := members(schema)
	if err != nil {
		return nil, err
	}
	var out []member
	var said []string
	for _, m := range in {
		switch m.name {
		case "type", "required", "additionalProperties", "enum", "const", "description":
		case "properties":
			m.value, err = strictProperties(m.value)
		case "items":
			m.value, err = strictValue(m.value)
		case "anyOf":
			m.value, err = strictList(m.value)
		default:
			if !slices.Contains(bounds, m.name) {
				return nil, fmt.Errorf("%q is not for strict tools", m.name)
			}
			said = append(said, m.name+" "+string(m.value))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		out = append(out, m)
	}
	if err := checkClosed(out); err != nil {
		return nil, err
	}
	return describe(out, said), nil
}

// checkClosed: an object that may hold more than it names is none of a strict
// tool, and a property that may be left out is one that a reader forgets to miss.
func checkClosed(schema []member) error {
	var names, required []string
	object, closed := false, false
	for _, m := range schema {
		switch m.name {
		case "type":
			object = string(m.value) == `"object"`
		case "additionalProperties":
			closed = string(m.value) == "false"
		case "required":
			if err := json.Unmarshal(m.value, &required); err != nil {
				return fmt.Errorf("required: %w", err)
			}
		case "properties":
			properties, err := members(m.value)
			if err != nil {
				return err
			}
			for _, p := range properties {
				names = append(names, p.name)
			}
		}
	}
	if !object {
		return nil
	}
	for _, name := range names {
		if !slices.Contains(required, name) {
			return fmt.Errorf("property %q is not required", name)
		}
	}
	if !closed || len(required) != len(names) {
		return fmt.Errorf(`an object needs "additionalProperties": false and requires only what it names`)
	}
	return nil
}

func describe(schema []member, said []string) []member {
	if len(said) == 0 {
		return schema
	}
	words := "(" + strings.Join(said, ", ") + ")"
	for i, m := range schema {
		if m.name == "description" {
			quoted, _ := jsontext.AppendQuote(nil, text(m.value)+" "+words)
			schema[i].value = quoted
			return schema
		}
	}
	quoted, _ := jsontext.AppendQuote(nil, words)
	return append(schema, member{"description", quoted})
}

func strictValue(schema jsontext.Value) (jsontext.Value, error) {
	m, err := strictMembers(schema)
	if err != nil {
		return nil, err
	}
	return object(m), nil
}

func strictProperties(v jsontext.Value) (jsontext.Value, error) {
	properties, err := members(v)
	if err != nil {
		return nil, err
	}
	for i, p := range properties {
		if properties[i].value, err = strictValue(p.value); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return object(properties), nil
}

func strictList(v jsontext.Value) (jsontext.Value, error) {
	var list []jsontext.Value
	if err := json.Unmarshal(v, &list); err != nil {
		return nil, err
	}
	for i := range list {
		var err error
		if list[i], err = strictValue(list[i]); err != nil {
			return nil, err
		}
	}
	return json.Marshal(list)
}

// members takes an object apart.
func members(v jsontext.Value) ([]member, error) {
	if v.Kind() != '{' || !v.IsValid() {
		return nil, fmt.Errorf("want an object, got %s", clip(string(v), 40))
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	var out []member
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: name.String()}
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		m.value = value.Clone()
		out = append(out, m)
	}
	return out, nil
}

func object(in []member) jsontext.Value {
	out := []byte{'{'}
	for i, m := range in {
		if i > 0 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, m.name) // a name that was read is valid UTF-8
		out = append(append(out, ':'), m.value...)
	}
	return append(out, '}')
}
