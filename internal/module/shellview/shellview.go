// Package shellview shows to a permission module what internal/shell reads in a
// command: the simple commands with the spans of their words. It holds no parser
// of its own, so that a module and the rules speak of the same commands.
package shellview

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/shell"
)

// Bounds of one view. A text can be made so that its readings are much larger
// than itself.
const (
	maxOptions = 64 << 10 // bytes
	maxTokens  = 16 << 10
)

// View is what a module's parseShellCommand resolves to. Offsets count UTF-16
// code units, as JavaScript does.
type View struct {
	Commands []Command `json:"commands"`
	// HasErrors: the text, or one that it hands to a shell, is opaque to the
	// reader or not known before it runs. There may be commands that are not listed.
	HasErrors bool `json:"hasErrors"`
}

// Command is one simple command, seen through its wrappers: of "sudo git push",
// the program is git.
type Command struct {
	Program     *Token `json:"program,omitzero"` // nil: nothing but wrappers
	ProgramName string `json:"programName,omitzero"`
	// KnownAs is the name by which rules know the program, where it is another one:
	// a file system that cares for no case runs git as GIT, too.
	KnownAs     string  `json:"knownAs,omitzero"`
	Args        []Token `json:"args"`
	Assignments []Token `json:"assignments"`
	Span        Span    `json:"span"`
}

// Span is a half-open range of the text.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Token is one word, without its quotes.
type Token struct {
	Text string `json:"text"`
	Span `json:",inline"`
}

// Parse reads a command. options is JSON, {"wrappers":[…]} or "" for the usual
// wrappers, and so is what it returns: a View. Only options that are not of that
// form are an error; of a text that cannot be read, HasErrors says so. Safe for
// concurrent use.
func Parse(command, options string) (string, error) {
	wrappers, err := readOptions(options)
	if err != nil {
		return "", err
	}
	v := Of(command, wrappers)
	out, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("shell view: %w", err)
	}
	return string(out), nil
}

func readOptions(options string) ([]Wrapper, error) {
	if options == "" {
		return Usual, nil
	}
	if len(options) > maxOptions {
		return nil, fmt.Errorf("parseShellCommand: options of %d bytes, at most %d", len(options), maxOptions)
	}
	var o struct {
		Wrappers *[]Wrapper `json:"wrappers"`
	}
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return nil, fmt.Errorf("parseShellCommand: options: %w", err)
	}
	if o.Wrappers == nil {
		return Usual, nil
	}
	return *o.Wrappers, nil
}

// Of is the view of a command.
func Of(command string, wrappers []Wrapper) View {
	read, whole := shell.Locate(command)
	b := builder{wrappers: wrappers, at: offsets(command), seen: map[string]bool{}}
	b.view = View{Commands: []Command{}, HasErrors: !whole}
	for i := range read.Units {
		if u := &read.Units[i]; len(u.Words) > 0 && u.Place != nil && !b.add(u) {
			b.view.HasErrors = true
			break
		}
	}
	return b.view
}

// builder puts a view together.
type builder struct {
	wrappers []Wrapper
	at       func(int) int
	view     View
	tokens   int
	// seen are the commands that are in the view: with their place, and without.
	seen map[string]bool
}

// add adds a unit, unless it is the command behind a wrapper that the view
// already shows, or another reading of it; false where the view is full.
func (b *builder) add(u *shell.Unit) bool {
	if b.tokens += len(u.Words) + len(u.Assigns); b.tokens > maxTokens {
		return false
	}
	words := make([]Token, len(u.Words))
	for i, text := range u.Words {
		words[i] = Token{text, b.span(u.Place.Words[i])}
	}
	c := Command{Args: []Token{}, Assignments: b.assignments(u), Span: b.span(u.Place.Span)}
	if i := effective(words, b.wrappers); i < len(words) {
		c.Program, c.ProgramName, c.Args = &words[i], path.Base(words[i].Text), words[i+1:]
		if known := shell.ProgramName(words[i].Text); known != c.ProgramName {
			c.KnownAs = known
		}
		words = words[i:]
	}
	text := fmt.Sprintf("%q", texts(words))
	place := fmt.Sprint(words[0].Start, " ", text)
	if b.seen[place] || !u.Place.Exact && b.seen[text] {
		return true
	}
	b.seen[place], b.seen[text] = true, true
	b.view.Commands = append(b.view.Commands, c)
	return true
}

func (b *builder) assignments(u *shell.Unit) []Token {
	out := make([]Token, 0, len(u.Assigns))
	for i, text := range u.Assigns {
		if i < len(u.Place.Assigns) {
			out = append(out, Token{text, b.span(u.Place.Assigns[i])})
		}
	}
	return out
}

func (b *builder) span(s shell.Span) Span { return Span{b.at(s.Start), b.at(s.End)} }

func texts(words []Token) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.Text
	}
	return out
}

// offsets turns offsets in bytes into those in UTF-16 code units.
func offsets(text string) func(int) int {
	first := strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
	if first < 0 {
		return func(i int) int { return i }
	}
	at, n := make([]int, len(text)+1), 0
	for i, r := range text {
		at[i] = n
		size := max(utf8.RuneLen(r), 1)
		for j := i + 1; j < i+size && j <= len(text); j++ {
			at[j] = n
		}
		if n++; r > 0xffff {
			n++
		}
	}
	at[len(text)] = n
	return func(i int) int { return at[i] }
}
