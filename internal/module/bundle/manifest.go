package bundle

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// manifest is what a package.json says that is of any use here.
type manifest struct {
	Main    text       `json:"main"`
	Module  text       `json:"module"`
	Exports *exportsOf `json:"exports"`
	Assent  *named     `json:"assent"`
	Pi      *named     `json:"pi"`
}

type named struct {
	Permissions *[]string `json:"permissions"`
}

// permissions are the modules that a folder names; named is false if it says
// nothing of any.
func (m *manifest) permissions() (entries []string, named bool) {
	switch {
	case m.Assent != nil && m.Assent.Permissions != nil:
		return *m.Assent.Permissions, true
	case m.Pi != nil && m.Pi.Permissions != nil:
		return *m.Pi.Permissions, true
	}
	return nil, false
}

// mains are the files that a package may begin with.
func (m *manifest) mains(required bool) (out []string) {
	mains := []text{m.Module, m.Main}
	if required {
		mains = mains[1:]
	}
	for _, main := range mains {
		if main != "" {
			out = append(out, string(main))
		}
	}
	return out
}

// text is a string, or whatever else people write in its place.
type text string

// UnmarshalJSONFrom reads a string and skips everything else.
func (t *text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '"' {
		return dec.SkipValue()
	}
	var s string
	err := json.UnmarshalDecode(dec, &s)
	*t = text(s)
	return err
}

// exportsOf is a package's exports: a file, conditions in their order, or paths.
type exportsOf struct {
	file       string
	conditions []condition
	paths      map[string]*exportsOf
}

type condition struct {
	name  string // "" for one of a list of alternatives
	value *exportsOf
}

// UnmarshalJSONFrom reads any of the forms. What is none of them exports nothing.
func (e *exportsOf) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '"':
		return json.UnmarshalDecode(dec, &e.file)
	case '[':
		return e.list(dec)
	case '{':
		return e.object(dec)
	}
	return dec.SkipValue()
}

func (e *exportsOf) list(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		var one exportsOf
		if err := json.UnmarshalDecode(dec, &one); err != nil {
			return err
		}
		e.conditions = append(e.conditions, condition{value: &one})
	}
	_, err := dec.ReadToken()
	return err
}

func (e *exportsOf) object(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		var key string
		var one exportsOf
		if err := json.UnmarshalDecode(dec, &key); err != nil {
			return err
		}
		if err := json.UnmarshalDecode(dec, &one); err != nil {
			return err
		}
		if !strings.HasPrefix(key, ".") {
			e.conditions = append(e.conditions, condition{key, &one})
			continue
		}
		if e.paths == nil {
			e.paths = map[string]*exportsOf{}
		}
		e.paths[key] = &one
	}
	_, err := dec.ReadToken()
	return err
}

func readManifest(text string) (*manifest, error) {
	var m manifest
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), &m); err != nil {
		return nil, fmt.Errorf("it cannot be read: %s", oneLine(err.Error()))
	}
	return &m, nil
}
