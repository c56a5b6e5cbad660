// Package journal writes what links put on an ask's log about their models: one
// model_judge.decision for each ask that was put to a model or would have been,
// model_judge.short_circuit for one that never got so far, and
// model_judge.model_reply with what the model said.
//
// A record that cannot be written changes no verdict: the gate records that and
// its trail all the same.
package journal

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// The events.
const (
	// EventDecision is kept always: a judge that defers everything must not look
	// idle.
	EventDecision = "model_judge.decision"
	// EventShortCircuit and EventModelReply are debug records.
	EventShortCircuit = "model_judge.short_circuit"
	EventModelReply   = "model_judge.model_reply"
)

const (
	// writeTime bounds each write to the log.
	writeTime = time.Second
	// maxRawReply bounds what is kept of a model's words, in bytes.
	maxRawReply = 4096
)

// Decision are the fields of EventDecision. Those up to DeferReason stand in
// every record but Path and MatchedPattern, which are for links on paths; the
// others only where there is something to say.
type Decision struct {
	RequestID      string `json:"requestId"`
	Path           string `json:"path,omitzero"`
	MatchedPattern string `json:"matchedPattern,omitzero"`
	// ModelCalled is false when no model was put the question, or the key or the
	// model's name was not accepted.
	ModelCalled bool   `json:"modelCalled"`
	ModelID     string `json:"modelId"`
	// LatencyMS is null when the model was not called.
	LatencyMS  *float64 `json:"latencyMs"`
	API        string   `json:"api"`
	ToolChoice string   `json:"toolChoice"`
	Verdict    string   `json:"verdict"`
	// DeferReason is null unless the verdict is defer.
	DeferReason *string `json:"deferReason"`
	// ModelReason is the one word for what kept the model from answering, of
	// llm.Reason; finer than DeferReason.
	ModelReason string `json:"modelReason,omitzero"`
	// Rounds are the model's turns.
	Rounds       int   `json:"rounds,omitzero"`
	InputTokens  int64 `json:"inputTokens,omitzero"`
	OutputTokens int64 `json:"outputTokens,omitzero"`
	// Commands is how many commands a decomposition came to.
	Commands int `json:"commands,omitzero"`
	// Cached: the verdict is a denial of an earlier ask with the same facts.
	Cached bool `json:"cached,omitzero"`
	// Breaker is the state of the model's circuit breaker where it kept the
	// question back.
	Breaker string `json:"breaker,omitzero"`
}

// Put fills in how the question was put: err is that of the provider's Ask.
func (d *Decision) Put(info llm.Info, err error) {
	d.ModelCalled = Called(info, err)
	d.ModelID, d.API, d.ToolChoice = info.ModelID, info.API, info.ToolChoice
	if d.ModelCalled {
		ms := float64(info.Latency) / float64(time.Millisecond)
		d.LatencyMS = &ms
	}
}

// Spent fills in what the question took and why there was no answer, for links
// whose records say so.
func (d *Decision) Spent(info llm.Info, err error) {
	d.Rounds, d.InputTokens, d.OutputTokens = info.Rounds, info.Usage.Input, info.Usage.Output
	d.ModelReason = llm.Reason(err)
	if errors.Is(err, llm.ErrBreakerOpen) {
		d.Breaker = "open"
	}
}

// Judged fills in what the link answered; why is the word for a defer.
func (d *Decision) Judged(v protocol.Verdict, why string) {
	d.Verdict = v.Verdict.String()
	if v.Verdict == protocol.ChoiceDefer {
		d.DeferReason = &why
	}
}

// Called says whether the model itself was put the question: not when nothing
// was sent, the server refused the key, or knows no such model.
func Called(info llm.Info, err error) bool {
	return info.Attempts > 0 && !errors.Is(err, llm.ErrAuth) && !errors.Is(err, llm.ErrModel)
}

// Journal writes the records. Use New. Safe for concurrent use.
type Journal struct{ log *slog.Logger }

// New returns a journal; what it cannot write is said on log.
func New(log *slog.Logger) *Journal { return &Journal{log: log} }

// Decision writes d on the log of r's ask.
func (j *Journal) Decision(ctx context.Context, r link.Request, d Decision) {
	d.RequestID = r.Ask.ID
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	if err := r.Log.Review(ctx, EventDecision, d); err != nil {
		j.log.Warn("a verdict could not be put on the ask's log", "ask", r.Ask.ID, "verdict", d.Verdict, "error", err)
	}
}

// ShortCircuit writes why an ask was not put to the model: reason is one word,
// path the path it is about, "" for a link that is not about paths.
func (j *Journal) ShortCircuit(ctx context.Context, r link.Request, path *string, reason string) {
	j.debug(ctx, r, EventShortCircuit, struct {
		RequestID string  `json:"requestId"`
		Path      *string `json:"path,omitzero"`
		Reason    string  `json:"reason"`
	}{r.Ask.ID, path, reason})
}

// ModelReply writes what the model said, word for word up to a limit.
func (j *Journal) ModelReply(ctx context.Context, r link.Request, info llm.Info, call llm.ToolCall) {
	raw := info.Text
	if call.Input != nil {
		raw = string(call.Input)
	}
	j.debug(ctx, r, EventModelReply, struct {
		RequestID string `json:"requestId"`
		ModelID   string `json:"modelId"`
		RawReply  string `json:"rawReply"`
	}{r.Ask.ID, info.ModelID, protocol.Safe(raw, maxRawReply, true)})
}

func (j *Journal) debug(ctx context.Context, r link.Request, event string, fields any) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	if err := r.Log.Debug(ctx, event, fields); err != nil {
		j.log.Debug("a debug record was not taken", "ask", r.Ask.ID, "event", event, "error", err)
	}
}
