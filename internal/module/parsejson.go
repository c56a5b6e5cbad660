package module

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/grafana/sobek"
)

// jsonParser is JSON.parse for a script. Every call begins with one, and the
// language's own takes most of the time that a check does. What it finds odd it
// leaves to that, so that there is one behaviour: see FuzzParseJSON.
type jsonParser struct {
	vm  *sobek.Runtime
	own sobek.Callable
	dec *jsontext.Decoder
	// inherited are the names that every object inherits something under; nil
	// while a script may still change which.
	inherited map[string]bool
}

var errOdd = errors.New("odd JSON")

// fastParse puts a jsonParser in the place of a runtime's JSON.parse.
func fastParse(vm *sobek.Runtime) (*jsonParser, error) {
	o, ok := vm.Get("JSON").(*sobek.Object)
	if !ok {
		return nil, errors.New("the runtime has no JSON")
	}
	own, ok := sobek.AssertFunction(o.Get("parse"))
	if !ok {
		return nil, errors.New("the runtime has no JSON.parse")
	}
	p := &jsonParser{vm: vm, own: own, dec: jsontext.NewDecoder(bytes.NewBufferString(""))}
	f := vm.ToValue(p.parse).(*sobek.Object)
	for name, value := range map[string]any{"name": "parse", "length": 2} {
		if err := f.DefineDataProperty(name, vm.ToValue(value), sobek.FLAG_FALSE, sobek.FLAG_TRUE, sobek.FLAG_FALSE); err != nil {
			return nil, fmt.Errorf("naming JSON.parse: %w", err)
		}
	}
	return p, o.DefineDataProperty("parse", f, sobek.FLAG_TRUE, sobek.FLAG_TRUE, sobek.FLAG_FALSE)
}

func (p *jsonParser) parse(call sobek.FunctionCall) sobek.Value {
	if text, ok := call.Argument(0).(sobek.String); ok && len(call.Arguments) == 1 {
		if v, err := p.text(text.String()); err == nil {
			return v
		}
	}
	v, err := p.own(call.This, call.Arguments...)
	if err != nil {
		panic(err)
	}
	return v
}

func (p *jsonParser) text(text string) (sobek.Value, error) {
	p.dec.Reset(bytes.NewBufferString(text), jsontext.AllowDuplicateNames(true))
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.ReadToken(); err != io.EOF {
		return nil, errOdd
	}
	return v, nil
}

func (p *jsonParser) value() (sobek.Value, error) {
	tok, err := p.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		return p.vm.ToValue(tok.String()), nil
	case '0':
		f, err := tok.Float()
		if err != nil || math.IsInf(f, 0) {
			return nil, errOdd
		}
		return p.vm.ToValue(f), nil
	case 't', 'f':
		return p.vm.ToValue(tok.Bool()), nil
	default:
		return sobek.Null(), nil
	}
}

func (p *jsonParser) object() (sobek.Value, error) {
	o := p.vm.NewObject()
	for {
		tok, err := p.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		if tok.Kind() == '}' {
			return o, nil
		}
		key := tok.String() // before the next token takes its place
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		if err := p.put(o, key, v); err != nil {
			return nil, err
		}
	}
}

// put gives an object a property. A key that the object inherits something under
// is defined, not assigned: "__proto__" in an agent's input is a key like others.
func (p *jsonParser) put(o *sobek.Object, key string, v sobek.Value) error {
	if p.inherited == nil || p.inherited[key] {
		return o.DefineDataProperty(key, v, sobek.FLAG_TRUE, sobek.FLAG_TRUE, sobek.FLAG_TRUE)
	}
	return o.Set(key, v)
}

// sealed says that what objects inherit changes no more.
func (p *jsonParser) sealed() {
	p.inherited = map[string]bool{}
	for _, name := range p.vm.NewObject().Prototype().GetOwnPropertyNames() {
		p.inherited[name] = true
	}
}

func (p *jsonParser) array() (sobek.Value, error) {
	var list []any
	for p.dec.PeekKind() != ']' {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, err
	}
	return p.vm.NewArray(list...), nil
}
