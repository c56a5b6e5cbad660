package claudecode

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

// style is how a file is written, so that what we add looks as if its owner had
// written it.
type style struct{ newline, indent string }

func styleOf(text []byte) style {
	s := style{newline: "\n", indent: "  "}
	if bytes.Contains(text, []byte("\r\n")) {
		s.newline = "\r\n"
	}
	for line := range bytes.Lines(text) {
		body := bytes.TrimLeft(line, " \t")
		if len(body) < len(line) && len(bytes.TrimSpace(body)) > 0 {
			s.indent = string(line[:len(line)-len(body)])
			break
		}
	}
	return s
}

// A list (object or array) has a space of its own before the closing bracket.
// With strict JSON it holds no comment and no comma, so it can be cut anywhere.

// ensure returns the member of o called key, which is made as empty if it is not
// there. depth is the member's distance from the root.
func (s *Settings) ensure(o *hujson.Object, depth int, key string, empty hujson.ValueTrimmed) *hujson.Value {
	if v, _ := s.member(o, key); v != nil {
		return v
	}
	s.style.close(depth-1, &o.AfterExtra)
	o.Members = append(o.Members, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: s.style.line(depth), Value: hujson.String(key)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: empty},
	})
	return &o.Members[len(o.Members)-1].Value
}

// append adds an element, given as compact JSON, at the end of a.
func (s *Settings) append(a *hujson.Array, depth int, compact []byte) {
	text := jsontext.Value(compact)
	prefix := strings.Repeat(s.style.indent, depth)
	if err := text.Indent(jsontext.WithIndentPrefix(prefix), jsontext.WithIndent(s.style.indent)); err != nil {
		text = compact
	}
	v, err := hujson.Parse(bytes.ReplaceAll(text, []byte("\n"), []byte(s.style.newline)))
	if err != nil {
		panic("claudecode: our own entry is no JSON: " + err.Error())
	}
	s.style.close(depth-1, &a.AfterExtra)
	v.BeforeExtra = s.style.line(depth)
	a.Elements = append(a.Elements, v)
}

// line begins a line at depth.
func (s style) line(depth int) hujson.Extra {
	return hujson.Extra(s.newline + strings.Repeat(s.indent, depth))
}

// close puts a list's closing bracket on a line of its own, unless it has one.
func (s style) close(depth int, end *hujson.Extra) {
	if !bytes.ContainsRune(*end, '\n') {
		*end = s.line(depth)
	}
}

// dropMember takes a member out, and leaves what stands around it.
func dropMember(o *hujson.Object, key string) {
	i := slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(m) == key })
	if i < 0 {
		return
	}
	o.Members = slices.Delete(o.Members, i, i+1)
	switch n := len(o.Members); {
	case n == 0:
		o.AfterExtra = nil
	case i == n:
		// A space behind the last value would bring a comma.
		o.Members[n-1].Value.AfterExtra = nil
	}
}

// dropElement takes an element out, and leaves what stands around it.
func dropElement(a *hujson.Array, i int) {
	a.Elements = slices.Delete(a.Elements, i, i+1)
	switch n := len(a.Elements); {
	case n == 0:
		a.AfterExtra = nil
	case i == n:
		a.Elements[n-1].AfterExtra = nil
	}
}
