package module

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/grafana/sobek"
)

// Bounds of what jsonTexts remembers.
const (
	rememberedTexts = 8
	rememberedSize  = 16 << 10 // bytes of a text
)

var errOdd = errors.New("odd JSON")

// jsonTexts reads the JSON that the scripts of one worker parse. Ten modules are
// told of the same call, and a module's checks of the same command: what was read
// once is made into values of each reader's own, and not read again.
type jsonTexts struct {
	vm  *sobek.Runtime // makes leaves, which belong to no runtime
	dec *jsontext.Decoder
	// told is the call that the script which runs now is asked about: see tell.
	told   jsonText
	last   [rememberedTexts]jsonText
	oldest int
}

// jsonText is a text and what stands in it.
type jsonText struct {
	text string
	tree jsonNode
}

// jsonNode is a value that was read. What scripts get is made of it, and shares
// with it what no script can change.
type jsonNode struct {
	kind  jsontext.Kind // '{', '[', or any other for a leaf
	leaf  sobek.Value
	keys  []string // of an object, beside nodes; as they stand there, so perhaps twice
	nodes []jsonNode
}

func newJSONTexts() *jsonTexts {
	return &jsonTexts{vm: sobek.New(), dec: jsontext.NewDecoder(bytes.NewBufferString(""))}
}

// read is the tree of a text; an error says that the language's own parser is to
// have a look.
func (t *jsonTexts) read(text string) (jsonNode, error) {
	if text == t.told.text && text != "" {
		return t.told.tree, nil
	}
	for i := range t.last {
		if text == t.last[i].text && text != "" {
			return t.last[i].tree, nil
		}
	}
	tree, err := t.parse(text)
	if err == nil && len(text) <= rememberedSize {
		t.last[t.oldest] = jsonText{text, tree}
		t.oldest = (t.oldest + 1) % rememberedTexts
	}
	return tree, err
}

// parse reads a text that nobody has read lately.
func (t *jsonTexts) parse(text string) (jsonNode, error) {
	t.dec.Reset(bytes.NewBufferString(text), jsontext.AllowDuplicateNames(true))
	n, err := t.node()
	if err != nil {
		return jsonNode{}, err
	}
	if _, err := t.dec.ReadToken(); err != io.EOF {
		return jsonNode{}, errOdd
	}
	return n, nil
}

func (t *jsonTexts) node() (jsonNode, error) {
	tok, err := t.dec.ReadToken()
	if err != nil {
		return jsonNode{}, err
	}
	n := jsonNode{kind: tok.Kind()}
	switch n.kind {
	case '{':
		err = t.object(&n)
	case '[':
		err = t.array(&n)
	case '"':
		n.leaf = t.vm.ToValue(tok.String())
	case '0':
		var f float64
		if f, err = tok.Float(); err == nil && math.IsInf(f, 0) {
			err = errOdd
		}
		n.leaf = t.vm.ToValue(f)
	case 't', 'f':
		n.leaf = t.vm.ToValue(tok.Bool())
	default:
		n.leaf = sobek.Null()
	}
	return n, err
}

func (t *jsonTexts) object(n *jsonNode) error {
	for {
		tok, err := t.dec.ReadToken()
		if err != nil {
			return err
		}
		if tok.Kind() == '}' {
			return nil
		}
		n.keys = append(n.keys, tok.String()) // before the next token takes its place
		v, err := t.node()
		if err != nil {
			return err
		}
		n.nodes = append(n.nodes, v)
	}
}

func (t *jsonTexts) array(n *jsonNode) error {
	for t.dec.PeekKind() != ']' {
		v, err := t.node()
		if err != nil {
			return err
		}
		n.nodes = append(n.nodes, v)
	}
	_, err := t.dec.ReadToken()
	return err
}

// rootKey is what each module is told something else under.
const rootKey = "permissionRoot"

// hear reads the call that the modules of a worker are asked about next. A call
// that is odd is nobody's to know.
func (t *jsonTexts) hear(call string) {
	t.told = jsonText{}
	n, err := t.parse(call)
	if err != nil || n.kind != '{' {
		return
	}
	t.told.tree = jsonNode{kind: n.kind, keys: slices.Concat([]string{rootKey}, n.keys), nodes: slices.Concat([]jsonNode{{}}, n.nodes)}
}

// tell says that the call is now told to a module of this root, as this text.
func (t *jsonTexts) tell(text string, root jsonNode) {
	if len(t.told.tree.nodes) == 0 {
		return
	}
	t.told.text = text
	t.told.tree.nodes[0] = root // of which no script has a part: values are made of it
}
