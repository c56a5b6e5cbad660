package llm

import "errors"

// The ways of not answering. Each error of Ask wraps exactly one of them; its
// text never holds the key.
var (
	// ErrAuth: no key, or the server does not take it.
	ErrAuth = errors.New("model server refused the credentials")
	// ErrModel: the server knows no such model.
	ErrModel = errors.New("model not found")
	// ErrTimeout: no answer before the deadline.
	ErrTimeout = errors.New("model did not answer in time")
	// ErrNoToolCall: an answer without exactly one call of the tool.
	ErrNoToolCall = errors.New("model did not call the tool")
	// ErrCutOff: an answer that ended at its length limit.
	ErrCutOff = errors.New("model's answer was cut off")
	// ErrRefused: the model declined to answer.
	ErrRefused = errors.New("model refused to answer")
	// ErrCall: everything else: no connection, a server error, junk.
	ErrCall = errors.New("call to the model server failed")
)
