package policy

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/tailscale/hujson"
)

// Position is where something stands in a document. The zero value is nowhere.
type Position struct {
	// File is the name given to Read.
	File string
	// Line and Column count from 1, columns in characters.
	Line, Column int
}

// Document is one layer, read and free of errors. Immutable.
type Document struct {
	layer    Layer
	digest   string
	settings settings
	surfaces []surfaceRules
	// everywhere are rules on every surface, idle the places of allows there.
	everywhere []rule
	idle       []int
}

// Layer says whom the document speaks of.
func (d *Document) Layer() Layer { return d.layer }

// Digest is "sha256:" and the hash of the document without its comments,
// blanks, trailing commas and "$schema".
func (d *Document) Digest() string { return d.digest }

// Size is how many rules and secret paths the document holds: what it costs to
// keep, whoever wrote it.
func (d *Document) Size() int {
	n := len(d.settings.secrets) + len(d.everywhere)
	for _, s := range d.surfaces {
		n += len(s.rules)
	}
	return n
}

// MaxProjectSize bounds the rules and secret paths of a project's layer. Its file
// is the agent's to write, and every call under it is held against each of them.
const MaxProjectSize = 1000

// Read reads one layer's document. file stands for the document in errors and
// positions. A document with anything wrong in it is refused whole, with Errors.
func Read(layer Layer, file string, doc []byte) (*Document, error) {
	p := newProblems(file, doc)
	tree, ok := parse(p)
	if !ok {
		return nil, p.err()
	}
	out := &Document{layer: layer, settings: settings{
		link:   DefaultLinkTimeout,
		term:   Terminal{Kind: TerminalAuto, MaxWait: DefaultMaxWait},
		limits: Limits{AsksPerSecond: DefaultAsksPerSecond, Pending: DefaultPending}, modules: defaultModules,
	}}
	d := decoder{problems: p, layer: layer, s: &out.settings}
	d.document(tree)
	if err := p.err(); err != nil {
		return nil, err
	}
	out.surfaces, out.everywhere, out.idle = d.surfaces, d.everywhere, d.idle
	if n := out.Size(); layer.kind == kindProject && n > MaxProjectSize {
		p.addf(0, "%d rules and secret paths; a project's layer holds at most %d", n, MaxProjectSize)
		return nil, p.err()
	}
	sum := sha256.Sum256(canonical(nil, withoutSchema(tree)))
	out.digest = "sha256:" + hex.EncodeToString(sum[:])
	return out, nil
}

// Compile reads the fleet layer's document and returns the policy of a node
// that has no other.
func Compile(file string, doc []byte) (*Snapshot, error) {
	d, err := Read(Fleet(), file, doc)
	if err != nil {
		return nil, err
	}
	return composed(d), nil
}

// withoutSchema is the document without what only editors read: a policy that
// rules alike has the same digest.
func withoutSchema(tree hujson.Value) hujson.Value {
	obj, ok := tree.Value.(*hujson.Object)
	if !ok {
		return tree
	}
	kept := &hujson.Object{}
	for _, m := range obj.Members {
		if key, err := text(m.Name); err != nil || key != schemaKey {
			kept.Members = append(kept.Members, m)
		}
	}
	return hujson.Value{Value: kept}
}
