package mutation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// root is the repository, as seen from this package.
const root = "../.."

// mutation is one way to break one invariant.
type mutation struct {
	invariant int
	// breaks says what is broken; docs/invariants.md has the same words.
	breaks string
	edits  []edit
	// pkg is the package whose test must notice, run the name of the test.
	pkg, run string
	// says is what the failing test must say: that it fails for this reason.
	says string
}

// edit replaces one text of one file, which must stand there exactly once.
type edit struct {
	file     string
	old, new string
}

// apply returns the changed files by their path in the repository. Edits of one
// file follow each other.
func (m mutation) apply() (map[string]string, error) {
	out := map[string]string{}
	for _, e := range m.edits {
		text, ok := out[e.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("%s: this text stands there %d times, not once; the mutation of invariant %d has to follow the code:\n%s", e.file, n, m.invariant, e.old)
		}
		if e.old == e.new {
			return nil, fmt.Errorf("%s: nothing is changed:\n%s", e.file, e.old)
		}
		out[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return out, nil
}
