package protocol

import "fmt"

// Code says why a message was not answered in its own form.
type Code string

// The codes of an error reply.
const (
	CodeInvalid     Code = "invalid"
	CodeTooLarge    Code = "too_large"
	CodeForbidden   Code = "forbidden"
	CodeConflict    Code = "conflict"
	CodeExpired     Code = "expired"
	CodeNeedProject Code = "need_project"
	CodeUnavailable Code = "unavailable"
)

// Headers of an error reply, as the micro services of NATS write them.
const (
	HeaderErrorCode = "Nats-Service-Error-Code"
	HeaderError     = "Nats-Service-Error"
)

// UnmarshalText reads a code; unknown text is an error.
func (c *Code) UnmarshalText(b []byte) error {
	switch v := Code(b); v {
	case CodeInvalid, CodeTooLarge, CodeForbidden, CodeConflict, CodeExpired, CodeNeedProject, CodeUnavailable:
		*c = v
		return nil
	default:
		return fmt.Errorf("%w: error code %q", ErrEnum, clip(string(b), 40))
	}
}

// Fault is why a message was refused, and the way out. Nothing in it grants
// anything. It is an error.
type Fault struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}

func (f *Fault) Error() string {
	if f.Remedy == "" {
		return string(f.Code) + ": " + f.Message
	}
	return string(f.Code) + ": " + f.Message + " (" + f.Remedy + ")"
}

// ErrorReply answers a message that cannot be answered in its own form. Ask is
// "" when the id could not be read.
type ErrorReply struct {
	V     Version `json:"v"`
	Ask   string  `json:"ask"`
	Error Fault   `json:"error"`
}

func (e *ErrorReply) version() Version { return e.V }
func (e *ErrorReply) check() error {
	if e.Error.Code == "" {
		return fmt.Errorf("%w: error.code is missing", ErrField)
	}
	return first(optionalAskID(e.Ask), new(Code).UnmarshalText([]byte(e.Error.Code)))
}
