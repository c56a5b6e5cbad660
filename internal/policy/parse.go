package policy

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/assent-dev/assent/internal/jsonwords"
)

// Limits of a document, checked before the recursive parser sees it.
const (
	// MaxDocument is the largest document read, in bytes.
	MaxDocument = 512 << 10
	// maxDocumentNesting is more than any valid document needs.
	maxDocumentNesting = 16
)

// parse reads doc as JSON with comments and trailing commas. It reports into p
// and returns false where there is no tree to go on with.
func parse(p *problems) (hujson.Value, bool) {
	doc := p.doc
	switch {
	case len(doc) > MaxDocument:
		p.addf(0, "the document has %d bytes; expected at most %d", len(doc), MaxDocument)
	case bytes.HasPrefix(doc, []byte("\ufeff")):
		p.addf(0, "the document starts with a byte order mark; save it as UTF-8 without one")
	case !utf8.Valid(doc):
		p.addf(invalidAt(doc), "this is not UTF-8; save the document as UTF-8")
	case blank(doc):
		p.addf(0, "the file is empty; write at least {}")
	default:
		if at := tooNested(doc); at >= 0 {
			p.addf(at, "nested deeper than %d levels; no key of a policy needs that", maxDocumentNesting)
			return hujson.Value{}, false
		}
		v, err := hujson.Parse(doc)
		if err == nil {
			return v, true
		}
		p.addf(syntaxAt(doc, err), "%s", syntaxMessage(err))
	}
	return hujson.Value{}, false
}

// blank says whether a document holds nothing but blanks and comments.
func blank(doc []byte) bool {
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case ' ', '\t', '\r', '\n':
			continue
		case '/':
			if end := afterComment(doc, i); end > i && end < len(doc) {
				i = end
				continue
			}
			// A line comment may end with the document; an open one may not.
			return bytes.HasPrefix(doc[i:], []byte("//"))
		}
		return false
	}
	return true
}

func invalidAt(doc []byte) int {
	for i := 0; i < len(doc); {
		r, size := utf8.DecodeRune(doc[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(doc)
}

// tooNested returns the offset of the first bracket that opens a level too
// many, -1 if there is none. It reads strings and comments as the parser does.
func tooNested(doc []byte) int {
	depth := 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '{', '[':
			if depth++; depth > maxDocumentNesting {
				return i
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(doc) && doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
		case '/':
			i = afterComment(doc, i)
		}
	}
	return -1
}

// afterComment returns the offset of the last byte of the comment at i, i
// itself if there is no comment.
func afterComment(doc []byte, i int) int {
	for start, end := range map[string]string{"//": "\n", "/*": "*/"} {
		if !bytes.HasPrefix(doc[i:], []byte(start)) {
			continue
		}
		n := bytes.Index(doc[i+2:], []byte(end))
		if n < 0 {
			return len(doc)
		}
		return i + 2 + n + len(end) - 1
	}
	return i
}

// syntaxAt finds the offset that a parser's error speaks of; the parser states
// it in its text only, columns in bytes.
func syntaxAt(doc []byte, err error) int {
	var line, column int
	if _, scan := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scan != nil {
		return 0
	}
	offset := 0
	for ; line > 1; line-- {
		offset += bytes.IndexByte(doc[offset:], '\n') + 1
	}
	return offset + column - 1
}

// syntaxMessage is a parser's error in the words of who writes policies.
func syntaxMessage(err error) string {
	text := err.Error()
	if inner := errors.Unwrap(err); inner != nil {
		text = inner.Error()
	}
	switch {
	case strings.Contains(text, "unexpected EOF"):
		return "the document ends too early; expected a closing '}', ']', '\"' or '*/'"
	case strings.Contains(text, "invalid literal"):
		return text + "; expected a value, and texts and keys in double quotes"
	case strings.Contains(text, "at start of"):
		return text + "; expected a key or value, texts in double quotes"
	case strings.Contains(text, "after object name"):
		return text + "; expected ':'"
	case strings.Contains(text, "after array value"), strings.Contains(text, "after object value"):
		return text
	}
	return text + "; expected one JSON object with comments"
}

// text unquotes a string literal. It is stricter than the parser: half of a
// surrogate pair is no character.
func text(v hujson.Value) (string, error) {
	lit, ok := v.Value.(hujson.Literal)
	if !ok || lit.Kind() != '"' {
		return "", errors.New("no text")
	}
	b, err := jsontext.AppendUnquote(nil, []byte(lit))
	return string(b), err
}

// kindOf names the type of a value for messages.
func kindOf(v hujson.Value) string { return jsonwords.Kind(jsontext.Kind(v.Value.Kind())) }

// canonical appends v without comments, blanks and trailing commas, texts in
// one spelling, keys in the order of the document.
func canonical(b []byte, v hujson.Value) []byte {
	switch t := v.Value.(type) {
	case *hujson.Object:
		b = append(b, '{')
		for i, m := range t.Members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(canonical(b, m.Name), ':')
			b = canonical(b, m.Value)
		}
		return append(b, '}')
	case *hujson.Array:
		b = append(b, '[')
		for i, e := range t.Elements {
			if i > 0 {
				b = append(b, ',')
			}
			b = canonical(b, e)
		}
		return append(b, ']')
	case hujson.Literal:
		if s, err := text(v); err == nil {
			if q, err := jsontext.AppendQuote(b, s); err == nil {
				return q
			}
		}
		return append(b, t...)
	}
	return b
}
