package llm

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-test-0123456789"

// apis are the three that every row here runs against.
var apis = []struct {
	format llmtest.Format
	info   func(model string) Info
	path   string
	// forced and free are the words that bind the model to a tool, and to any.
	forced, free string
	make         func(key, url string, retry retryPolicy) (Provider, error)
}{
	{llmtest.Anthropic, AnthropicInfo, "/v1/messages", "tool", "any", func(key, url string, retry retryPolicy) (Provider, error) {
		p, err := NewAnthropic(key, url)
		if err == nil {
			p.retry = retry
		}
		return p, err
	}},
	{llmtest.OpenAI, OpenAIInfo, "/responses", "function", "required", func(key, url string, retry retryPolicy) (Provider, error) {
		p, err := NewOpenAI(key, url)
		if err == nil {
			p.retry = retry
		}
		return p, err
	}},
	{llmtest.Compatible, CompatibleInfo, "/chat/completions", "function", "required", func(key, url string, retry retryPolicy) (Provider, error) {
		p, err := NewOpenAICompatible(key, url)
		if err == nil {
			p.retry = retry
		}
		return p, err
	}},
}

var quick = retryPolicy{repeats: 2, first: time.Millisecond, longest: 5 * time.Millisecond}

// provider returns one for url whose retries are quick.
func provider(t testing.TB, api int, url string) Provider {
	t.Helper()
	p, err := apis[api].make(testKey, url, quick)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const verdictSchema = `{"type":"object","properties":{"verdict":{"type":"string","enum":["deny","unsure"]},` +
	`"reason":{"type":"string","maxLength":600,"description":"why"}},"required":["verdict","reason"],"additionalProperties":false}`

func question() Request {
	return Request{
		Model: "model-1", System: "judge", User: "a path", MaxTokens: 64,
		Tool: Tool{Name: "verdict", Description: "your verdict", Schema: jsontext.Value(verdictSchema)},
	}
}
