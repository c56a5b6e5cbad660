package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
)

const (
	// maxReply bounds a model server's reply, in bytes: it is read whole.
	maxReply = 1 << 20
	// maxIdle bounds the connections that are kept for the next question.
	maxIdle = 32
)

var errReplyTooLarge = errors.New("the reply is larger than 1 MiB")

// CheckBaseURL accepts an http or https URL with a host and nothing that hides
// a second meaning: no user, query or fragment.
func CheckBaseURL(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		// url.Error quotes what it could not parse, which may hold a password.
		return errors.New("base URL: not a URL: want http://HOST or https://HOST, as http://127.0.0.1:11434/v1")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("base URL %q: want http://HOST or https://HOST, without user, query or fragment", u.Redacted())
	}
	return nil
}

// newHTTPClient returns a client that follows no redirect, which would carry
// the key to a host that the operator did not name, and reads no endless reply.
func newHTTPClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = maxIdle
	return &http.Client{
		Transport:     wholeReplies{t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// exchange is what became of one request, for failure: the SDKs' errors tell a
// lost connection from a broken reply in three different ways, or not at all.
type exchange struct {
	sent   bool // there was a connection, so that the server may have worked
	status int  // 0: no reply
	header http.Header
	body   []byte
}

type exchangeKey struct{}

func withExchange(ctx context.Context) (context.Context, *exchange) {
	x := new(exchange)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { x.sent = true }})
	return context.WithValue(ctx, exchangeKey{}, x), x
}

// used is what a call has to be taken to have used: what the server counted;
// nothing if it never came to work; and if nobody knows, the most it can be.
func (x *exchange) used(told, most Usage) Usage {
	if told != (Usage{}) {
		return told
	}
	if !x.sent || x.status >= 400 {
		return Usage{}
	}
	return most
}

// garbled says whether there was a reply that is not JSON from its first byte to its
// last. An SDK may find an answer in it all the same: what is broken behind that it
// does not read.
func (x *exchange) garbled() bool { return x.status != 0 && !json.Valid(x.body) }

// wholeReplies reads every reply to its end before it hands it on: a connection
// that breaks in the middle is then an error of the transport, not of the JSON.
type wholeReplies struct{ next *http.Transport }

// RoundTrip implements http.RoundTripper.
func (t wholeReplies) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxReply+1))
	if closed := res.Body.Close(); err == nil {
		err = closed
	}
	if err == nil && len(body) > maxReply {
		err = errReplyTooLarge
	}
	if err != nil {
		return nil, err
	}
	if x, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		x.status, x.header, x.body = res.StatusCode, res.Header, body
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// CloseIdleConnections lets http.Client close the transport's.
func (t wholeReplies) CloseIdleConnections() { t.next.CloseIdleConnections() }

// jsonRaw hands a JSON value to an SDK, which encodes with encoding/json.
func jsonRaw(v []byte) json.RawMessage { return json.RawMessage(v) }
