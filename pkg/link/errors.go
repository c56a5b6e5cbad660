package link

import "errors"

// Sentinels of this package.
var (
	// ErrName: the link, node or version that was given cannot be served.
	ErrName = errors.New("bad link settings")
	// ErrInbox: the connection has no private inbox of a judge's credential, so
	// that the gate's replies would not reach it. Connect makes one that has.
	ErrInbox = errors.New("connection without a judge's private inbox")
	// ErrForbidden: the credential may not serve this link.
	ErrForbidden = errors.New("credential may not serve this link")
	// ErrClosed: the connection closed for good while the link was serving.
	ErrClosed = errors.New("connection closed")
	// ErrStuck: a link did not return although its context had ended.
	ErrStuck = errors.New("link ignores the end of its context")
	// ErrOver: a capability was used after the link had returned its verdict.
	ErrOver = errors.New("the ask is over: its capabilities are dead")
	// ErrFields: fields that do not encode to a JSON object within MaxFields.
	ErrFields = errors.New("bad log fields")
	// ErrReply: the gate's reply to a capability could not be read.
	ErrReply = errors.New("unreadable reply from the gate")
)
