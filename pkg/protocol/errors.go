package protocol

import "errors"

// Sentinels of the strict reading. Each error that a reader of this package
// returns wraps exactly one of them; its text may be shown to whoever sent the
// message.
var (
	// ErrTooLarge: the message is larger than the reader's limit.
	ErrTooLarge = errors.New("message too large")
	// ErrMalformed: not JSON, invalid UTF-8, a duplicate key, a wrong type.
	ErrMalformed = errors.New("malformed message")
	// ErrVersion: "v" is missing or not Version.
	ErrVersion = errors.New("unsupported message version")
	// ErrEnum: a value that is not one of the words the contract knows.
	ErrEnum = errors.New("unknown value")
	// ErrField: a required field is missing or out of bounds.
	ErrField = errors.New("bad field")
	// ErrMismatch: the body does not agree with the subject that carried it.
	ErrMismatch = errors.New("message does not match its subject")
	// ErrLoop: an ask came to a node twice, or over more nodes than a tree has.
	ErrLoop = errors.New("loop")
	// ErrToken: a name that may not stand in a subject.
	ErrToken = errors.New("bad token")
	// ErrAskID: an ask id that is not a canonical ULID.
	ErrAskID = errors.New("bad ask id")
	// ErrSubject: a subject that is none of the contract's.
	ErrSubject = errors.New("bad subject")
)
