package policy

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/tailscale/hujson"
)

// Compile reads one layer's document. name is the layer ("fleet"), which
// becomes the origin of its rules, and stands for the file in errors; use
// CompileFile where the two differ. A document with anything wrong in it is
// refused whole, with Errors.
func Compile(name string, doc []byte) (*Snapshot, error) { return CompileFile(name, name, doc) }

// CompileFile is Compile with the name of the file for the errors.
func CompileFile(layer, file string, doc []byte) (*Snapshot, error) {
	p := newProblems(file, doc)
	tree, ok := parse(p)
	if !ok {
		return nil, p.err()
	}
	s := &Snapshot{
		layer:  layer,
		link:   DefaultLinkTimeout,
		term:   Terminal{Kind: TerminalAuto, MaxWait: DefaultMaxWait},
		limits: Limits{AsksPerSecond: DefaultAsksPerSecond, Pending: DefaultPending},
	}
	s.rules.origin = layer
	d := decoder{problems: p, s: s}
	d.document(tree)
	if err := p.err(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(canonical(nil, withoutSchema(tree)))
	s.digest = "sha256:" + hex.EncodeToString(sum[:])
	s.rules.seal()
	return s, nil
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
