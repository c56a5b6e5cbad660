package module

import (
	"errors"
	"fmt"

	"github.com/grafana/sobek"
)

// jsonParser is JSON.parse for a script. Every call begins with one, and the
// language's own takes most of the time that a check does. What it finds odd it
// leaves to that, so that there is one behaviour: see FuzzParseJSON.
type jsonParser struct {
	vm    *sobek.Runtime
	own   func(sobek.FunctionCall) sobek.Value
	texts *jsonTexts
	proto *sobek.Object // of objects
}

// fastParse puts a jsonParser in the place of a runtime's JSON.parse.
func fastParse(vm *sobek.Runtime, texts *jsonTexts) error {
	o, ok := vm.Get("JSON").(*sobek.Object)
	if !ok {
		return errors.New("the runtime has no JSON")
	}
	// As it is, and not as what Go calls of a runtime: that would end in the runtime's
	// doing what waits, in the middle of the script that parses.
	own, ok := o.Get("parse").Export().(func(sobek.FunctionCall) sobek.Value)
	if !ok {
		return errors.New("the runtime has no JSON.parse")
	}
	p := &jsonParser{vm: vm, own: own, texts: texts, proto: vm.NewObject().Prototype()}
	f := vm.ToValue(p.parse).(*sobek.Object)
	for name, value := range map[string]any{"name": "parse", "length": 2} {
		if err := f.DefineDataProperty(name, vm.ToValue(value), sobek.FLAG_FALSE, sobek.FLAG_TRUE, sobek.FLAG_FALSE); err != nil {
			return fmt.Errorf("naming JSON.parse: %w", err)
		}
	}
	return o.DefineDataProperty("parse", f, sobek.FLAG_TRUE, sobek.FLAG_TRUE, sobek.FLAG_FALSE)
}

func (p *jsonParser) parse(call sobek.FunctionCall) sobek.Value {
	if text, ok := call.Argument(0).(sobek.String); ok && len(call.Arguments) == 1 {
		if tree, err := p.texts.read(text.String()); err == nil {
			if v, err := p.value(&tree); err == nil {
				return v
			}
		}
	}
	return p.own(call)
}

// value makes a value of its own of a tree, which others are made of too.
func (p *jsonParser) value(n *jsonNode) (sobek.Value, error) {
	switch n.kind {
	case '{':
		return p.object(n)
	case '[':
		return p.array(n)
	default:
		return n.leaf, nil
	}
}

// object has its properties before it inherits anything: "__proto__" in an agent's
// input is a key like others, and no setter of a module's is in the way.
func (p *jsonParser) object(n *jsonNode) (sobek.Value, error) {
	o := p.vm.CreateObject(nil)
	for i := range n.nodes {
		v, err := p.value(&n.nodes[i])
		if err != nil {
			return nil, err
		}
		if err := o.Set(n.keys[i], v); err != nil {
			return nil, err
		}
	}
	return o, o.SetPrototype(p.proto)
}

func (p *jsonParser) array(n *jsonNode) (sobek.Value, error) {
	list := make([]any, len(n.nodes))
	for i := range n.nodes {
		v, err := p.value(&n.nodes[i])
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return p.vm.NewArray(list...), nil
}
