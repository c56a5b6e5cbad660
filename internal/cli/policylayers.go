package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/internal/policy"
)

// layerFlags name the documents that calls are ruled under, offline.
type layerFlags struct {
	policy  string
	layers  []string
	trusted bool
}

func (f *layerFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.policy, "policy", "", "policy file of the fleet layer")
	set.StringArrayVar(&f.layers, "layer", nil, "a further layer, as project/shop=FILE, agent/NAME=FILE or project-agent/shop/NAME=FILE (repeatable)")
	set.BoolVar(&f.trusted, "trusted", false, "the further layers may loosen, as where the fleet layer trusts them; else they only tighten")
}

// layeredDocs are documents in the order of layers, and whether those behind
// the fleet's may loosen.
type layeredDocs struct {
	docs    []*policy.Document
	trusted bool
}

// read reads the documents that the flags name.
func (f *layerFlags) read(env *Env) (layeredDocs, error) {
	out := layeredDocs{trusted: f.trusted}
	if f.policy != "" {
		if err := out.add(env, policy.Fleet(), f.policy); err != nil {
			return layeredDocs{}, err
		}
	}
	for _, spec := range f.layers {
		name, path, ok := strings.Cut(spec, "=")
		layer, err := policy.ParseNewLayer(name)
		if ok && err != nil && strings.Contains(name, "/") {
			return layeredDocs{}, usagef("--layer %q: %w", spec, err)
		}
		if !ok || err != nil || layer.IsFleet() {
			return layeredDocs{}, usagef("--layer %q: expected a layer and its file, as project/shop=FILE, agent/NAME=FILE or project-agent/shop/NAME=FILE", spec)
		}
		if err := out.add(env, layer, path); err != nil {
			return layeredDocs{}, err
		}
	}
	return out, nil
}

// add reads one more layer. A document that no gate would take is exit 3.
func (d *layeredDocs) add(env *Env, layer policy.Layer, path string) error {
	name, text, err := policyFile(env, path)
	if err != nil {
		return err
	}
	doc, err := policy.Read(layer, name, text)
	if err != nil {
		return badPolicy(err)
	}
	d.docs = append(d.docs, doc)
	slices.SortStableFunc(d.docs, func(a, b *policy.Document) int { return cmp.Compare(rank(a), rank(b)) })
	return nil
}

// rank is where a layer stands among the others.
func rank(d *policy.Document) int {
	kind, _, _ := strings.Cut(d.Layer().String(), "/")
	return slices.Index([]string{policy.LayerFleet, "project", "agent", "project-agent"}, kind)
}

// snapshot is the policy for an agent that wears a name, "" for none.
func (d layeredDocs) snapshot(agentName string) *policy.Snapshot {
	var docs []*policy.Document
	for _, doc := range d.docs {
		name := doc.Layer().String()
		if !strings.Contains(strings.SplitN(name, "/", 2)[0], "agent") || agentName != "" && strings.HasSuffix(name, "/"+agentName) {
			docs = append(docs, doc)
		}
	}
	return policy.Layered(d.trusted, docs...)
}
