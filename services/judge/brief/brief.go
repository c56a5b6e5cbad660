// Package brief writes down what a model may see of an ask: its facts as one
// line of JSON data inside a fence that the data cannot close.
//
// Whatever a call says comes from the agent that is being judged, so nothing of
// it may reach a model as anything but data: not as instructions, not as a
// second message, not as the end of the fence. What the agent says for itself,
// the content of files and the output of tools are not shown at all, and text in
// the shape of a secret is masked. A value is shown whole or not at all.
//
// Start at New. facts.go says what is shown, input.go what of a tool's input,
// secret.go what is masked.
package brief

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/pkg/link"
)

// DefaultLimit bounds the facts of one ask, in bytes of JSON.
const DefaultLimit = 32 << 10

var (
	// ErrTooLarge: the facts are longer than the limit. They are never cut: what
	// was cut off might be what matters.
	ErrTooLarge = errors.New("facts of the ask are too large for a model")
	// ErrUnreadable: what would have to be judged cannot be found in the call.
	ErrUnreadable = errors.New("facts of the ask cannot be read")
)

// Brief is what a model sees of one ask. Use New. It is immutable.
type Brief struct {
	// Data is the facts, one line of JSON: no control, invisible or
	// bidirectional character stands in it but as an escape.
	Data string
	// Masked names the facts, in the order of the JSON, in which something was
	// masked: a judge that must know a text whole has to defer where it is named.
	Masked []string
}

// New writes the brief of r, at most limit bytes of facts; a limit below 1 is
// DefaultLimit. Its errors wrap ErrTooLarge or ErrUnreadable, and then the link
// defers.
func New(r link.Request, limit int) (Brief, error) {
	if limit < 1 {
		limit = DefaultLimit
	}
	in, err := readInput(r.Ask.Tool)
	if err != nil {
		return Brief{}, err
	}
	// Before anything is looked at: the work is bounded by the limit too.
	if size := rawSize(r, in); size > limit {
		return Brief{}, fmt.Errorf("%w: %d bytes at least, the limit is %d", ErrTooLarge, size, limit)
	}
	m := newMasker()
	f, err := gather(r, in, m)
	if err != nil {
		return Brief{}, err
	}
	data, err := Data(f)
	if err != nil {
		return Brief{}, err
	}
	if len(data) > limit {
		return Brief{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(data), limit)
	}
	return Brief{Data: data, Masked: m.where}, nil
}

// Whole says that what the call would run is shown word for word.
func (b Brief) Whole() bool {
	return !slices.ContainsFunc(b.Masked, func(name string) bool {
		return slices.Contains([]string{factCommand, factArgv, factOpen, factUnits}, name)
	})
}

// User is the text of the user message: the facts in their fence. mark is made
// anew for each question; see NewMark.
func (b Brief) User(mark string) string { return Fence(b.Data, mark) }

// Mark makes the random part of a fence. NewMark is the one for earnest; a
// replay hands in its own.
type Mark func() string

// NewMark returns 128 random bits in hexadecimal.
func NewMark() string {
	mark := make([]byte, 16)
	_, _ = rand.Read(mark) // never fails: see crypto/rand
	return hex.EncodeToString(mark)
}

// Fence puts data between two lines that data cannot hold, since the mark was
// not known when data was written. The data must be one line: see Data.
func Fence(data, mark string) string {
	line := "facts-" + mark
	return line + "\n" + data + "\n" + line
}
