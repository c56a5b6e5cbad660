package judge

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	// selfTestFirst is how long after a failed self-test the next one is made; each
	// wait is twice the one before, up to selfTestLongest.
	selfTestFirst   = 10 * time.Second
	selfTestLongest = 10 * time.Minute
	// selfTestTokens leave room for a model that thinks before it calls.
	selfTestTokens = 400
	// SelfTestTool is the tool that a self-test has the model call.
	SelfTestTool = "ready"
)

// selfTest is the one question that a judge asks of its own accord: whether the
// key is taken, the model is there, and it calls a tool that it is forced to call.
func selfTest(model string) llm.Request {
	return llm.Request{
		Model: model, System: "This is a self-test of a service. Call the tool \"" + SelfTestTool + "\" once, with ready set to true.",
		User: "Are you ready?", MaxTokens: selfTestTokens,
		Tool: llm.Tool{
			Name: SelfTestTool, Description: "Says that you are ready.",
			Schema: jsontext.Value(`{"type":"object","properties":{"ready":{"type":"boolean","description":"true"}},"required":["ready"],"additionalProperties":false}`),
		},
	}
}

// keepTested tests the link's model until it answers once, or ctx ends. A model
// that does not answer is asked all the same when there is an ask: it may have
// come back, and each ask's record says why it was deferred.
func (l *served) keepTested(ctx context.Context, log *slog.Logger) {
	for wait := selfTestFirst; ; wait = min(2*wait, selfTestLongest) {
		if l.test(ctx, log) || ctx.Err() != nil {
			return
		}
		// Not all processes of a fleet at once.
		timer := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		case <-l.vitals.answeredOnce:
			timer.Stop()
			return
		}
	}
}

func (l *served) test(ctx context.Context, log *slog.Logger) (passed bool) {
	within, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	_, info, err := l.server.Ask(within, selfTest(l.model))
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		word := llm.Reason(err)
		log.Error("the model failed the self-test; asks are taken, and deferred as long as it fails", "model", info.ModelID, "reason", word, "error", protocol.Safe(err.Error(), maxStateText, false))
		l.vitals.tested(word + ": " + err.Error())
		return false
	default:
		log.Info("the model passed the self-test", "model", info.ModelID, "ms", info.Latency.Milliseconds())
		l.vitals.tested(StateOK)
		return true
	}
}
