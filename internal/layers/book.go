package layers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/policy"
)

// Book is the layers of a node as far as they were taken in: the same entries
// make the same policy, whoever takes them. Not safe for concurrent use.
type Book struct {
	newest   map[string]Entry
	inForce  map[string]*policy.Document
	revision uint64
	freezes  Freezes
}

// NewBook returns a book without layers.
func NewBook() *Book {
	return &Book{newest: map[string]Entry{}, inForce: map[string]*policy.Document{}}
}

// Take takes in one entry. Of a broken one the document stays in force that
// lastGood finds, for what it denies. An error is lastGood's: those denies are
// not known, and the book must not be used.
func (b *Book) Take(e Entry, lastGood func(Entry) (*policy.Document, error)) error {
	if e.Freeze != nil {
		b.freezes = b.freezes.With(*e.Freeze)
		return nil
	}
	if e.Modules {
		return nil
	}
	doc := e.Document
	if e.Broken() {
		var err error
		if doc, err = lastGood(e); err != nil {
			return err
		}
	}
	b.newest[e.Key] = e
	b.revision = max(b.revision, e.Revision)
	if doc == nil {
		delete(b.inForce, e.Key)
	} else {
		b.inForce[e.Key] = doc
	}
	return nil
}

// Freezes are those of the entries that were taken in.
func (b *Book) Freezes() Freezes { return b.freezes }

// Revision is the newest of any layer's key, removals among them.
func (b *Book) Revision() uint64 { return b.revision }

// Layers is what is stored, in the order of layers.
func (b *Book) Layers() []Entry {
	out := slices.DeleteFunc(slices.Collect(maps.Values(b.newest)), func(e Entry) bool { return e.Removed })
	slices.SortFunc(out, compareLayers)
	return out
}

// Broken is what is stored and does not read, in the order of layers.
func (b *Book) Broken() []Entry {
	return slices.DeleteFunc(b.Layers(), func(e Entry) bool { return !e.Broken() })
}

// Set is the policy that is in force: clamped while anything is broken. Nobody
// can tell what a document that does not read would tighten.
func (b *Book) Set() *policy.Set {
	set, err := policy.NewSet(b.revision, slices.Collect(maps.Values(b.inForce))...)
	if err != nil {
		// No two keys are one layer; were they, nobody knew which one counts.
		set, _ = policy.NewSet(b.revision)
		return set.Clamp("The stored policy cannot be put together: " + err.Error())
	}
	if broken := b.Broken(); len(broken) > 0 {
		return set.Clamp(brokenText(broken))
	}
	return set
}

func brokenText(broken []Entry) string {
	names := make([]string, len(broken))
	for i, e := range broken {
		names[i] = e.Name()
	}
	const shown = 3
	more := ""
	if len(names) > shown {
		names, more = names[:shown], fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return "The stored policy is broken (" + strings.Join(names, ", ") + more + ") and waits to be mended."
}
