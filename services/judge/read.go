package judge

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/assent-dev/assent/internal/jsonwords"
	"github.com/assent-dev/assent/pkg/protocol"
)

// MaxFile bounds the judges' file, in bytes.
const MaxFile = 256 << 10

// ErrConfig: the judges' file is not one. Nothing of it is used.
var ErrConfig = errors.New("invalid judges' file")

// Read reads a judges' file: JSON with comments and trailing commas. Unknown
// and repeated keys, null, wrong types and values out of bounds are errors that
// wrap ErrConfig and begin with line and column.
func Read(data []byte) (File, error) {
	if len(data) > MaxFile {
		return File{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrConfig, len(data), MaxFile)
	}
	// The parser keeps slices of what it parses and Standardize writes to them.
	doc, err := hujson.Parse(bytes.Clone(data))
	if err != nil {
		return File{}, fmt.Errorf("%w: %s", ErrConfig, strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if v := findNull(&doc); v != nil {
		return File{}, at(data, v.StartOffset, "null is no value here: leave the key out")
	}
	doc.Standardize() // blanks only: offsets stay those of data
	var f File
	if err := json.Unmarshal(doc.Pack(), &f, json.RejectUnknownMembers(true)); err != nil {
		return File{}, decodeError(data, err)
	}
	if err := check(data, &doc, f); err != nil {
		return File{}, err
	}
	return f, nil
}

func findNull(doc *hujson.Value) *hujson.Value {
	for v := range doc.All() {
		if lit, ok := v.Value.(hujson.Literal); ok && lit.Kind() == 'n' {
			return v
		}
	}
	return nil
}

func check(data []byte, doc *hujson.Value, f File) error {
	if len(f.Links) == 0 {
		return at(data, doc.StartOffset, `"links" is required and names at least one link`)
	}
	for _, name := range f.Names() {
		place := jsontext.Pointer("").AppendToken("links").AppendToken(name)
		if err := protocol.CheckToken("link", name); err != nil {
			return at(data, offset(doc, place), err.Error())
		}
		if key, err := f.Links[name].check(); err != nil {
			return &configError{place: position(data, offset(doc, place.AppendToken(key), place)), text: fmt.Sprintf("link %s: %s", name, key), cause: err}
		}
	}
	return nil
}

// offset is where the first of places that is in the document begins.
func offset(doc *hujson.Value, places ...jsontext.Pointer) int {
	for _, p := range places {
		if v := doc.Find(string(p)); v != nil {
			return v.StartOffset
		}
	}
	return 0
}

func decodeError(data []byte, err error) error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic) && errors.Is(err, json.ErrUnknownName) && keyWord.MatchString(semantic.JSONPointer.LastToken()):
		return at(data, int(semantic.ByteOffset), jsonwords.Of(err).Error()+"; a key never stands in this file: name its variable in apiKeyEnv, or its own file in apiKeyFile")
	case errors.As(err, &semantic), errors.As(err, &syntactic):
		return at(data, jsonwords.Offset(data, err), jsonwords.Of(err).Error())
	default:
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
}

// keyWord is what people call the key that they put into the file.
var keyWord = regexp.MustCompile(`(?i)^(api)?[-_]?(key|token|secret)$`)

// configError is a complaint with its place; the cause's sentinel stays visible.
type configError struct {
	place string
	text  string
	cause error
}

func (e *configError) Error() string {
	s := e.place + ": " + e.text
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

func (e *configError) Unwrap() []error { return []error{ErrConfig, e.cause} }

func at(data []byte, off int, text string) error {
	return &configError{place: position(data, off), text: text}
}

// position says line and column of off, counted from 1, in bytes.
func position(data []byte, off int) string {
	off = min(max(off, 0), len(data))
	line := 1 + bytes.Count(data[:off], []byte("\n"))
	column := off - bytes.LastIndexByte(data[:off], '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}
