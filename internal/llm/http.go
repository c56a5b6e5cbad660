package llm

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// maxReply bounds a model server's reply, in bytes: it is read whole.
const maxReply = 1 << 20

var errReplyTooLarge = errors.New("the reply is larger than 1 MiB")

// newHTTPClient returns a client that follows no redirect, which would carry
// the key to a host that the operator did not name, and reads no endless reply.
func newHTTPClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	return &http.Client{
		Transport:     boundedTransport{t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type boundedTransport struct{ next *http.Transport }

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	res.Body = &boundedBody{ReadCloser: res.Body, left: maxReply}
	return res, nil
}

// CloseIdleConnections lets http.Client close the transport's.
func (t boundedTransport) CloseIdleConnections() { t.next.CloseIdleConnections() }

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errReplyTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// jsonRaw hands a JSON value to the SDK, which encodes with encoding/json.
func jsonRaw(v []byte) json.RawMessage { return json.RawMessage(v) }
