package protocol

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Shorten is v with each string longer than text bytes cut by Safe, so that a
// record or a screen shows every field of a call without all that is in it. The
// order of keys and the spelling of numbers stay. Nil where v is no JSON, or
// where even that is longer than whole bytes.
func Shorten(v jsontext.Value, text, whole int) jsontext.Value {
	if len(v) <= min(text, whole) {
		return v.Clone()
	}
	var out bytes.Buffer
	dec, enc := jsontext.NewDecoder(bytes.NewReader(v)), jsontext.NewEncoder(&out)
	for {
		tok, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && tok.Kind() == '"' && len(tok.String()) > text {
			tok = jsontext.String(Safe(tok.String(), text, true))
		}
		if err == nil {
			err = enc.WriteToken(tok)
		}
		if err != nil || out.Len() > whole {
			return nil
		}
	}
	return jsontext.Value(bytes.TrimSpace(out.Bytes()))
}
