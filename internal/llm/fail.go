package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	// maxText bounds what is kept of a model's prose, in bytes; maxSaid what an
	// error repeats of a server's.
	maxText = 2048
	maxSaid = 300
)

// passing marks an error that may not come again, and what the server said to
// wait; 0 = nothing.
type passing struct {
	err   error
	after time.Duration
}

func (p *passing) Error() string { return p.err.Error() }
func (p *passing) Unwrap() error { return p.err }

// failure sorts an error of an SDK. Its own text is not passed on whole: a
// server may echo what it was sent.
func (c *caller) failure(ctx context.Context, x *exchange, err error) error {
	lost := new(url.Error)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ErrTimeout
	case ctx.Err() != nil:
		return ErrAborted
	case x.status >= 400:
		return c.status(x)
	case errors.Is(err, errReplyTooLarge):
		return fmt.Errorf("%w: %w", ErrMalformed, errReplyTooLarge)
	case x.status != 0: // an answer, but none of this API: it will not change
		return fmt.Errorf("%w: status %d: %s", ErrMalformed, x.status, c.quote(err.Error()))
	case errors.As(err, &lost):
		return &passing{err: fmt.Errorf("%w: %s", ErrUnreachable, c.quote(err.Error()))}
	default:
		return fmt.Errorf("%w: %s", ErrCall, c.quote(err.Error()))
	}
}

// status sorts what a server that does not answer says instead.
func (c *caller) status(x *exchange) error {
	kind, code, message := readFault(x.body)
	text := c.quote(strings.Join(strings.Fields(fmt.Sprintf("status %d %s %s: %s", x.status, kind, code, message)), " "))
	wrap := func(word error) error { return fmt.Errorf("%w: %s", word, text) }
	switch {
	case code == "model_not_found" || x.status == http.StatusNotFound:
		return wrap(ErrModel)
	case code == "content_filter" || code == "content_policy_violation" || code == "invalid_prompt":
		return wrap(ErrRefused)
	case x.status == http.StatusUnauthorized || x.status == http.StatusForbidden:
		return wrap(ErrAuth)
	case x.status == http.StatusTooManyRequests && code == "insufficient_quota":
		return wrap(ErrRateLimited) // an account without money has none in a second either
	case x.status == http.StatusTooManyRequests:
		return &passing{err: wrap(ErrRateLimited), after: retryAfter(x.header)}
	case x.status == http.StatusRequestTimeout || x.status == http.StatusConflict:
		return &passing{err: wrap(ErrRejected), after: retryAfter(x.header)}
	case x.status >= 500:
		return &passing{err: wrap(ErrServer), after: retryAfter(x.header)}
	default:
		return wrap(ErrRejected)
	}
}

// readFault reads what the three APIs and most that imitate them put into an
// error's body. All of it may be missing: the status alone decides then.
func readFault(body []byte) (kind, code, message string) {
	var f struct {
		Error   jsontext.Value `json:"error"`
		Message jsontext.Value `json:"message"`
	}
	if json.Unmarshal(body, &f) != nil {
		return "", "", ""
	}
	var in struct {
		Type    jsontext.Value `json:"type"`
		Code    jsontext.Value `json:"code"`
		Message jsontext.Value `json:"message"`
	}
	if f.Error.Kind() == '{' && json.Unmarshal(f.Error, &in) == nil {
		return text(in.Type), text(in.Code), text(in.Message)
	}
	return "", "", text(f.Error) + text(f.Message)
}

// text is the string that v is; "" for anything else.
func text(v jsontext.Value) string {
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// retryAfter is how long the server asks to wait; 0 if it does not say.
func retryAfter(h http.Header) time.Duration {
	const longest = 24 * 60 * 60
	if ms, err := strconv.Atoi(h.Get("Retry-After-Ms")); err == nil && ms > 0 {
		return time.Duration(min(ms, longest*1000)) * time.Millisecond
	}
	if s, err := strconv.Atoi(h.Get("Retry-After")); err == nil && s > 0 {
		return time.Duration(min(s, longest)) * time.Second
	}
	return 0
}

// quote makes what came from a server fit for an error: without the key, short,
// and unable to redraw the terminal that a log is read in.
func (c *caller) quote(s string) string { return protocol.Safe(c.redact(s), maxSaid, false) }

// redact cuts the key out of s.
func (c *caller) redact(s string) string {
	if c.key == "" {
		return s
	}
	return strings.ReplaceAll(s, c.key, "[key]")
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
