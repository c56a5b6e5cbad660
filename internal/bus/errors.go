package bus

import "errors"

// Sentinels of this package. An error that wraps one names in its text the
// cause and what to do about it.
var (
	// ErrNoServer: nothing answers at the address.
	ErrNoServer = errors.New("no NATS server answers")
	// ErrRefused: the server does not accept the credentials.
	ErrRefused = errors.New("the server refused the credentials")
	// ErrCreds: the credentials file cannot be used.
	ErrCreds = errors.New("unusable credentials")
	// ErrNotAllowed: the credentials do not allow a subject.
	ErrNotAllowed = errors.New("the credentials do not allow it")
	// ErrDrain: something was still at work when the time to drain was over.
	ErrDrain = errors.New("not drained in time")
	// ErrIdentity: a request does not state who sent it.
	ErrIdentity = errors.New("the request states no identity")
	// ErrRead: a stream or bucket could not be read to the end.
	ErrRead = errors.New("not read to the end")
)
