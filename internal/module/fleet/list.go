// Package fleet keeps the permission modules of a whole node: signed by its
// operators, versioned, and in force at every gate as soon as they are stored.
// A gate starts at Watch, an operator at Open.
package fleet

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Bounds of what is stored.
const (
	// maxModules is how many modules a list holds, switched off ones among them.
	maxModules = module.MaxSources
	// maxSealed is the largest signed list, in bytes.
	maxSealed = 256 << 10
)

// Errors of this package.
var (
	// ErrList: a list that cannot be: a name twice, a version that is none.
	ErrList = errors.New("no list of modules")
	// ErrSeal: the list is not an operator's word.
	ErrSeal = errors.New("not signed by an operator of this node")
	// ErrOld: the list was in force before, and another one since.
	ErrOld = errors.New("an older list stands where a newer one was signed")
	// ErrRemoved: the list was taken away, and no operator signed that.
	ErrRemoved = errors.New("the list was taken away without an operator's signature")
	// ErrAltered: what is stored under a version is other code.
	ErrAltered = errors.New("the stored code is not what its version says")
	// ErrNoBundle: nothing is stored under a version.
	ErrNoBundle = errors.New("no code is stored under that version")
	// ErrOvertaken: somebody else has changed the list meanwhile.
	ErrOvertaken = errors.New("somebody else has changed the list of modules meanwhile")
	// ErrUnknown: the list names no such module.
	ErrUnknown = errors.New("no such module is in the list")
	// ErrWatch: the watch ended by itself.
	ErrWatch = errors.New("the watch of the list of modules ended")
)

// Entry is one module of the list.
type Entry struct {
	Name string `json:"name"`
	// Version is "sha256:" and the digest of the bundle, under which the bundle is
	// stored.
	Version string `json:"version"`
	Size    int    `json:"size"`
	// Enabled: it runs.
	Enabled bool `json:"enabled"`
	// PushedBy is the credential of the operator that pushed this version.
	PushedBy string    `json:"pushed_by"`
	PushedAt time.Time `json:"pushed_at"`
}

// List is the list of a node's modules as an operator signed it, in the order of
// their names, which is the order in which they are asked.
type List struct {
	V int `json:"v"`
	// Serial is greater in each list than in the one before: milliseconds since 1970,
	// or one more than that of the list before.
	Serial  uint64  `json:"serial"`
	Modules []Entry `json:"modules"`
}

const listVersion = 1

// Find returns the module of that name.
func (l List) Find(name string) (Entry, bool) {
	i, ok := l.index(name)
	if !ok {
		return Entry{}, false
	}
	return l.Modules[i], true
}

func (l List) index(name string) (int, bool) {
	return slices.BinarySearchFunc(l.Modules, name, func(e Entry, name string) int { return strings.Compare(e.Name, name) })
}

// with is l with e in the place of what had its name.
func (l List) with(e Entry) List {
	l.Modules = slices.Clone(l.Modules)
	i, ok := l.index(e.Name)
	if ok {
		l.Modules[i] = e
	} else {
		l.Modules = slices.Insert(l.Modules, i, e)
	}
	return l
}

// without is l without the module of that name.
func (l List) without(name string) List {
	l.Modules = slices.DeleteFunc(slices.Clone(l.Modules), func(e Entry) bool { return e.Name == name })
	return l
}

func (l List) check() error {
	switch {
	case l.V != listVersion:
		return fmt.Errorf("%w: it has version %d and this program knows %d", ErrList, l.V, listVersion)
	case l.Serial == 0:
		return fmt.Errorf("%w: it has no serial number", ErrList)
	case len(l.Modules) > maxModules:
		return fmt.Errorf("%w: %d modules, at most %d", ErrList, len(l.Modules), maxModules)
	}
	for i, e := range l.Modules {
		if err := e.check(); err != nil {
			return err
		}
		if i > 0 && l.Modules[i-1].Name >= e.Name {
			return fmt.Errorf("%w: %s stands twice or out of order", ErrList, e.Name)
		}
	}
	return nil
}

const versionPrefix = "sha256:"

func (e Entry) check() error {
	digits, ok := strings.CutPrefix(e.Version, versionPrefix)
	switch {
	case !module.ValidName(e.Name):
		return fmt.Errorf("%w: name %q: want a letter or digit, then up to 63 of A-Z a-z 0-9 . _ -", ErrList, protocol.Safe(e.Name, 80, false))
	case !ok || len(digits) != 2*sha256.Size || strings.Trim(digits, "0123456789abcdef") != "":
		return fmt.Errorf("%w: %s has version %q", ErrList, e.Name, protocol.Safe(e.Version, 80, false))
	case e.Size <= 0 || e.Size > module.MaxCode:
		return fmt.Errorf("%w: %s has %d bytes, want 1 to %d", ErrList, e.Name, e.Size, module.MaxCode)
	case !protocol.ValidToken(e.PushedBy) || e.PushedAt.IsZero():
		return fmt.Errorf("%w: who pushed %s, and when, is missing", ErrList, e.Name)
	}
	return nil
}
