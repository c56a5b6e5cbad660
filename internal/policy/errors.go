package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/jsonwords"
)

// ErrPolicy is wrapped by every error about the content of a document.
var ErrPolicy = errors.New("policy does not read")

// ErrLayer is wrapped by every error about the name of a layer.
var ErrLayer = errors.New("no layer has this name")

// maxErrors bounds what is reported of one document.
const maxErrors = 50

// Error is one thing wrong with a document.
type Error struct {
	// File is the name given to Compile.
	File string
	// Line and Column count from 1, columns in characters.
	Line, Column int
	// Message says what is wrong and what was expected.
	Message string
}

// Error returns "file:line:column: message".
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Errors is everything found wrong with a document, in its order. It wraps
// ErrPolicy.
type Errors []*Error

// Error returns one line an error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes errors.Is(err, ErrPolicy) hold.
func (e Errors) Unwrap() error { return ErrPolicy }

// problems gathers the errors of one document.
type problems struct {
	file string
	doc  []byte
	// starts are the offsets at which lines start.
	starts []int
	list   Errors
	more   int
}

func newProblems(file string, doc []byte) *problems {
	p := &problems{file: file, doc: doc, starts: []int{0}}
	for i, c := range doc {
		if c == '\n' {
			p.starts = append(p.starts, i+1)
		}
	}
	return p
}

// position turns a byte offset of the document into line and column.
func (p *problems) position(offset int) (line, column int) {
	offset = min(max(offset, 0), len(p.doc))
	line, found := slices.BinarySearch(p.starts, offset)
	if found {
		line++
	}
	return line, 1 + utf8.RuneCount(p.doc[p.starts[line-1]:offset])
}

// addf notes one error at a byte offset of the document.
func (p *problems) addf(offset int, format string, args ...any) {
	if len(p.list) >= maxErrors {
		p.more++
		return
	}
	line, column := p.position(offset)
	p.list = append(p.list, &Error{p.file, line, column, fmt.Sprintf(format, args...)})
}

// err returns what was found, in the order of the document; nil if nothing.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	if p.more > 0 {
		last := p.list[len(p.list)-1]
		p.list = append(p.list, &Error{p.file, last.Line, last.Column, fmt.Sprintf("and %d more", p.more)})
	}
	return p.list
}

// didYouMean is the tail of a message about an unknown word: the one that was
// meant, or all there are.
func didYouMean(written string, known []string) string {
	if tail := jsonwords.DidYouMean(written, known); tail != "" {
		return tail
	}
	return "; expected one of " + strings.Join(known, ", ")
}
