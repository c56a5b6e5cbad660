package client

import "errors"

// Sentinels. None of them is a decision: whoever gets an error refuses the call.
var (
	// ErrUnavailable: no gate showed a sign of life. The cause is wrapped too.
	ErrUnavailable = errors.New("no gate answers")
	// ErrReply: what came back is no answer to this ask.
	ErrReply = errors.New("bad reply from the gate")
	// ErrAsk: the ask could not be sent as it stands.
	ErrAsk = errors.New("bad ask")
	// ErrEnded: the caller's context ended before there was a decision. The
	// context's error is wrapped too. The ask may still be pending: Cancel
	// withdraws it.
	ErrEnded = errors.New("no decision in time")
)
