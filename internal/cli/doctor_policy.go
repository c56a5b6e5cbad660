package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/policy"
)

// checkPolicy looks at the stored layers: what is in force at every gate.
func (d *doctor) checkPolicy(ctx context.Context) {
	book, err := d.readPolicy(ctx)
	if err != nil {
		d.fail("policy", "run `assent node prepare`", "%v", err)
		return
	}
	stored := book.Layers()
	base := book.Set().Base()
	switch broken := book.Broken(); {
	case len(broken) > 0:
		d.fail("policy", "mend it and push it again, or take it away (`assent policy remove LAYER`): until then every allow is clamped to ask", "%s", brokenLayers(broken))
	case len(stored) == 0:
		d.warn("policy", "assent policy push FILE", "no policy is stored: everything asks")
	case !stored[0].Layer.IsFleet():
		d.warn("policy", "assent policy push FILE", "no fleet layer is stored: everything asks; there is %s", layerNames(stored))
	case base.Yolo():
		d.warn("policy", "take yoloMode out unless that is what you want", "revision %d has yoloMode on: what the rules would ask is allowed", book.Revision())
	default:
		d.ok("policy", "revision %d, layers %s, terminal %s", book.Revision(), layerNames(stored), base.Terminal().Kind)
	}
}

// checkFreezes says what is frozen: whoever wonders why nothing is allowed finds
// it here.
func (d *doctor) checkFreezes(ctx context.Context) {
	book, err := d.readPolicy(ctx)
	if err != nil {
		return // the policy's own check has said it
	}
	for i, f := range book.Freezes().Standing() {
		check := "freeze"
		if i > 0 {
			check = fmt.Sprintf("freeze-%d", i+1)
		}
		remedy := "assent thaw --" + thawFlag(f.Frozen) + ", when it has done its work"
		if f.Err != nil {
			d.fail(check, remedy, "FROZEN: %s", f.Line())
			continue
		}
		d.warn(check, remedy, "FROZEN: %s", f.Line())
	}
}

// thawFlag is the flag by which thaw names whom a freeze stops.
func thawFlag(f layers.Frozen) string {
	switch kind, name := f.Fields(); kind {
	case "agent":
		return "agent " + name
	case "session":
		return "session " + shellWord(name)
	case "all":
		return "all"
	default:
		return "key " + shellWord(name)
	}
}

// shellWord is text as one word of a shell.
func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// readPolicy puts together what a gate would.
func (d *doctor) readPolicy(ctx context.Context) (*layers.Book, error) {
	js, err := jetstream.New(d.operator)
	if err != nil {
		return nil, err
	}
	store, err := layers.Open(ctx, js)
	if err != nil {
		return nil, err
	}
	entries, err := store.Everything(ctx)
	if err != nil {
		return nil, err
	}
	book := layers.NewBook()
	for _, e := range entries {
		if err := book.Take(e, func(e layers.Entry) (*policy.Document, error) { return store.LastGood(ctx, e) }); err != nil {
			return nil, err
		}
	}
	return book, nil
}

func brokenLayers(broken []layers.Entry) string {
	texts := make([]string, len(broken))
	for i, e := range broken {
		texts[i] = "the stored layer " + e.Name() + " is broken: " + e.Err.Error()
	}
	return strings.Join(texts, "; ")
}

// layerNames are the names of layers, the first ones of many.
func layerNames(of []layers.Entry) string {
	const shown = 8
	var names []string
	for i, e := range of {
		if i == shown {
			names = append(names, fmt.Sprintf("and %d more", len(of)-shown))
			break
		}
		names = append(names, e.Name())
	}
	return strings.Join(names, ", ")
}
