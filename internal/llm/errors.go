package llm

import (
	"context"
	"errors"
	"fmt"
)

// The ways of not answering. Each error of Ask wraps exactly one word of
// reasons; some also wrap the coarser one they belong to. No text of them ever
// holds the key.
var (
	// ErrAuth: no key, or the server does not take it.
	ErrAuth = errors.New("no key that the model server takes")
	// ErrModel: the server knows no such model.
	ErrModel = errors.New("model not found")
	// ErrTimeout: no answer before the deadline.
	ErrTimeout = errors.New("model did not answer in time")
	// ErrNoTime: too little time was left to begin. Wraps ErrTimeout.
	ErrNoTime = fmt.Errorf("%w: too little was left to ask", ErrTimeout)
	// ErrNoToolCall: an answer without exactly one call of the tool.
	ErrNoToolCall = errors.New("model did not call the tool")
	// ErrEmpty: an answer that holds nothing. Wraps ErrNoToolCall.
	ErrEmpty = fmt.Errorf("%w: the answer is empty", ErrNoToolCall)
	// ErrProse: words where a call was due. Wraps ErrNoToolCall.
	ErrProse = fmt.Errorf("%w: it answered in prose", ErrNoToolCall)
	// ErrWrongCall: another tool, several calls, or an input that is no object.
	// Wraps ErrNoToolCall.
	ErrWrongCall = fmt.Errorf("%w: it made a wrong call", ErrNoToolCall)
	// ErrCutOff: an answer that ended at its length limit.
	ErrCutOff = errors.New("model's answer was cut off")
	// ErrRefused: the model, or a filter before it, declined to answer.
	ErrRefused = errors.New("model refused to answer")
	// ErrHelper: a helper could not answer the model.
	ErrHelper = errors.New("a tool that the model called failed")
	// ErrBreakerOpen: the model failed too often just now and is left alone.
	ErrBreakerOpen = errors.New("model is left alone after its failures")
	// ErrOverBudget: the judge or the agent has used up its calls or its money.
	ErrOverBudget = errors.New("over budget")
	// ErrCall: everything else, and the coarse word for those below.
	ErrCall = errors.New("call to the model server failed")
	// ErrAborted: the caller no longer wants the answer. Wraps ErrCall.
	ErrAborted = fmt.Errorf("%w: given up by the caller", ErrCall)
	// ErrRateLimited: the server takes no more for now (429). Wraps ErrCall.
	ErrRateLimited = fmt.Errorf("%w: rate limited", ErrCall)
	// ErrRejected: the server does not take this request (another 4xx). Wraps ErrCall.
	ErrRejected = fmt.Errorf("%w: request rejected", ErrCall)
	// ErrServer: the server failed (5xx). Wraps ErrCall.
	ErrServer = fmt.Errorf("%w: server error", ErrCall)
	// ErrUnreachable: no connection, or one that broke. Wraps ErrCall.
	ErrUnreachable = fmt.Errorf("%w: not reached", ErrCall)
	// ErrMalformed: a reply that is no answer of this API. Wraps ErrCall.
	ErrMalformed = fmt.Errorf("%w: malformed reply", ErrCall)
)

// reasons are the words for records, the finer before the coarser.
var reasons = []struct {
	err  error
	word string
}{
	{ErrBreakerOpen, "breaker-open"},
	{ErrOverBudget, "over-budget"},
	{ErrHelper, "helper-failed"},
	{ErrNoTime, "no-time"},
	{ErrTimeout, "timeout"},
	{ErrAborted, "aborted"},
	{ErrAuth, "auth-failed"},
	{ErrModel, "model-unresolved"},
	{ErrEmpty, "empty"},
	{ErrProse, "prose"},
	{ErrWrongCall, "wrong-call"},
	{ErrNoToolCall, "wrong-call"},
	{ErrCutOff, "cut-off"},
	{ErrRefused, "refused"},
	{ErrRateLimited, "rate-limited"},
	{ErrRejected, "rejected"},
	{ErrServer, "server-error"},
	{ErrUnreachable, "unreachable"},
	{ErrMalformed, "malformed"},
	{context.DeadlineExceeded, "timeout"},
	{context.Canceled, "aborted"},
}

// Reason is the one word for an error of Ask, for records and counters: one of
// a closed set, so that it may be a label. "" for nil; "call-failed" for what has
// no word of its own.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.word
		}
	}
	return "call-failed"
}
