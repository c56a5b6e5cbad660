package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Span is a part of a text, in bytes from its start; End is behind it.
type Span struct{ Start, End int }

// Comments are the spans of text that a shell skips, each from its '#' to the
// end of the line. ok is false where nobody can tell: the text is not read, or
// holds a backslash before a line's end, over which shells and this parser
// differ. What is only said to be a comment may be a command.
func Comments(text string) (spans []Span, ok bool) {
	if unfit(text) != "" || strings.Contains(text, continuation) || strings.HasSuffix(text, `\`) {
		return nil, false
	}
	defer func() {
		if recover() != nil {
			spans, ok = nil, false
		}
	}()
	file, err := parse(text)
	if err != nil || !fits(file) {
		return nil, false
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, is := n.(*syntax.Comment); is {
			spans = append(spans, Span{int(c.Pos().Offset()), int(c.End().Offset())})
		}
		return true
	})
	return spans, true
}
