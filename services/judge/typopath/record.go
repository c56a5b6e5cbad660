package typopath

import (
	"context"
	"time"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// The events that this link writes.
const (
	// EventDecision is written once for each ask whose path matched a pattern,
	// at review level: a judge that defers everything must not look idle.
	EventDecision     = "model_judge.decision"
	eventShortCircuit = "model_judge.short_circuit"
	eventModelReply   = "model_judge.model_reply"
)

const maxRawReply = 4096

// decision are the fields of EventDecision.
type decision struct {
	RequestID      string `json:"requestId"`
	Path           string `json:"path"`
	MatchedPattern string `json:"matchedPattern"`
	// ModelCalled is false when the key or the model was not accepted.
	ModelCalled bool   `json:"modelCalled"`
	ModelID     string `json:"modelId"`
	// LatencyMS is null when the model was not called.
	LatencyMS  *float64 `json:"latencyMs"`
	API        string   `json:"api"`
	ToolChoice string   `json:"toolChoice"`
	Verdict    string   `json:"verdict"`
	// DeferReason is null on a deny.
	DeferReason *deferReason `json:"deferReason"`
}

func (j *Judge) record(ctx context.Context, r link.Request, hit match, f finding) {
	d := decision{
		RequestID: r.Ask.ID, Path: hit.path, MatchedPattern: hit.pattern,
		ModelCalled: f.reachedModel(), ModelID: f.info.ModelID, API: f.info.API, ToolChoice: f.info.ToolChoice,
		Verdict: f.verdict().Verdict.String(),
	}
	if f.reachedModel() {
		ms := float64(f.info.Latency) / float64(time.Millisecond)
		d.LatencyMS = &ms
	}
	if f.teaching == "" {
		d.DeferReason = &f.cause
	}
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	if err := r.Log.Review(ctx, EventDecision, d); err != nil {
		// The gate records the verdict and its trail all the same; only the
		// judge's own account of it is missing, and that is said here.
		j.log.Warn("a verdict could not be put on the ask's log", "ask", r.Ask.ID, "verdict", d.Verdict, "error", err)
	}
}

func (j *Judge) shortCircuit(ctx context.Context, r link.Request, path, miss string) protocol.Verdict {
	j.debug(ctx, r, eventShortCircuit, struct {
		RequestID string `json:"requestId"`
		Path      string `json:"path"`
		Reason    string `json:"reason"`
	}{r.Ask.ID, path, miss})
	if miss == missTooLong {
		j.log.Warn("a typo pattern took too long and was given up; make it simpler", "ask", r.Ask.ID)
		return link.Unable(miss, "a typo pattern took too long")
	}
	return link.Defer("no typing mistake in sight: " + miss)
}

// modelReply are the fields of what a model said, word for word up to a limit.
type modelReply struct {
	RequestID string `json:"requestId"`
	ModelID   string `json:"modelId"`
	RawReply  string `json:"rawReply"`
}

func reply(r link.Request, info llm.Info, call llm.ToolCall) modelReply {
	raw := info.Text
	if call.Input != nil {
		raw = string(call.Input)
	}
	return modelReply{RequestID: r.Ask.ID, ModelID: info.ModelID, RawReply: protocol.Safe(raw, maxRawReply, true)}
}

func (j *Judge) debug(ctx context.Context, r link.Request, event string, fields any) {
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	if err := r.Log.Debug(ctx, event, fields); err != nil {
		j.log.Debug("a debug record was not taken", "ask", r.Ask.ID, "event", event, "error", err)
	}
}
