package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// diary is a log capability that keeps what it gets.
type diary struct {
	lines []string
	until []time.Duration
	err   error
}

func (d *diary) Review(ctx context.Context, event string, fields any) error {
	return d.write(ctx, "review", event, fields)
}

func (d *diary) Debug(ctx context.Context, event string, fields any) error {
	return d.write(ctx, "debug", event, fields)
}

func (d *diary) write(ctx context.Context, level, event string, fields any) error {
	b, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	d.lines, d.until = append(d.lines, level+" "+event+" "+string(b)), append(d.until, time.Until(deadline))
	return d.err
}

var info = llm.Info{API: "anthropic-messages", ToolChoice: "tool", ModelID: "anthropic/m", Attempts: 2, Rounds: 3, Latency: 1500 * time.Microsecond,
	Usage: llm.Usage{Input: 700, Output: 40}, Text: "I\x1b[2J cannot\nsay."}

const id = "01K6AAAAAAAAAAAAAAAAAAAAAA"

func request(d *diary) link.Request {
	return link.Request{Ask: protocol.Ask{ID: id}, Log: d}
}

// TestDecision shows each field of the record, in its order.
func TestDecision(t *testing.T) {
	t.Parallel()
	put := func(i llm.Info, err error, v protocol.Verdict, why string) Decision {
		var d Decision
		d.Put(i, err)
		d.Judged(v, why)
		return d
	}
	spent := func(i llm.Info, err error, v protocol.Verdict, why string) Decision {
		d := put(i, err, v, why)
		d.Spent(i, err)
		return d
	}
	onPath := put(info, nil, link.Deny("wrong"), "")
	onPath.Path, onPath.MatchedPattern = "/a/packages/a", "x"
	cached := put(llm.Info{ModelID: "anthropic/m", API: "anthropic-messages", ToolChoice: "tool"}, nil, link.Deny("wrong"), "")
	cached.Cached = true
	commands := spent(info, nil, link.Allow("fine"), "")
	commands.Commands = 4
	idle := llm.Info{ModelID: "anthropic/m", API: "anthropic-messages", ToolChoice: "tool"}
	const head = `"modelCalled":true,"modelId":"anthropic/m","latencyMs":1.5,"api":"anthropic-messages","toolChoice":"tool",`
	const kept = `"modelCalled":false,"modelId":"anthropic/m","latencyMs":null,"api":"anthropic-messages","toolChoice":"tool",`
	const took = `,"rounds":3,"inputTokens":700,"outputTokens":40`
	wrong := func(err error) error { return fmt.Errorf("%w: more", err) }
	for _, row := range []struct {
		name string
		d    Decision
		want string
	}{
		{"a link on paths denies", onPath, `"path":"/a/packages/a","matchedPattern":"x",` + head + `"verdict":"deny","deferReason":null`},
		{"a denial remembered", cached, kept + `"verdict":"deny","deferReason":null,"cached":true`},
		{"an allow", commands, head + `"verdict":"allow","deferReason":null` + took + `,"commands":4`},
		{"a defer of the model", put(info, nil, link.Defer("x"), "unsure"), head + `"verdict":"defer","deferReason":"unsure"`},
		{"too late", spent(info, wrong(llm.ErrTimeout), link.Unable("timeout", ""), "timeout"), head + `"verdict":"defer","deferReason":"timeout","modelReason":"timeout"` + took},
		{"prose", spent(info, wrong(llm.ErrProse), link.Unable("no-tool-call", ""), "no-tool-call"), head + `"verdict":"defer","deferReason":"no-tool-call","modelReason":"prose"` + took},
		{"the key is not taken", put(info, wrong(llm.ErrAuth), link.Unable("auth-failed", ""), "auth-failed"), kept + `"verdict":"defer","deferReason":"auth-failed"`},
		{"no such model", put(info, wrong(llm.ErrModel), link.Unable("model-unresolved", ""), "model-unresolved"), kept + `"verdict":"defer","deferReason":"model-unresolved"`},
		{"nothing was sent", spent(idle, wrong(llm.ErrNoTime), link.Unable("timeout", ""), "timeout"), kept + `"verdict":"defer","deferReason":"timeout","modelReason":"no-time"`},
		{"the breaker is open", spent(idle, wrong(llm.ErrBreakerOpen), link.Unable("breaker_open", ""), "breaker-open"), kept + `"verdict":"defer","deferReason":"breaker-open","modelReason":"breaker-open","breaker":"open"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := &diary{}
			New(slog.New(slog.DiscardHandler)).Decision(t.Context(), request(d), row.d)
			want := `review model_judge.decision {"requestId":"` + id + `",` + row.want + `}`
			if len(d.lines) != 1 || d.lines[0] != want {
				t.Errorf("record\n%v, want\n%s", d.lines, want)
			}
			if d.until[0] <= 0 || d.until[0] > writeTime {
				t.Errorf("it may take %s", d.until[0])
			}
		})
	}
}

func TestDebugRecords(t *testing.T) {
	t.Parallel()
	path, none := "/x", ""
	d := &diary{}
	j, r := New(slog.New(slog.DiscardHandler)), request(d)
	j.ShortCircuit(t.Context(), r, &path, "pattern-miss")
	j.ShortCircuit(t.Context(), r, &none, "no-path")
	j.ShortCircuit(t.Context(), r, nil, "all-allowed")
	j.ModelReply(t.Context(), r, info, llm.ToolCall{Input: jsontext.Value(`{"verdict":"deny"}`)})
	j.ModelReply(t.Context(), r, info, llm.ToolCall{})
	j.ModelReply(t.Context(), r, llm.Info{Text: strings.Repeat("a", 2*maxRawReply)}, llm.ToolCall{})
	want := []string{
		`debug model_judge.short_circuit {"requestId":"` + id + `","path":"/x","reason":"pattern-miss"}`,
		`debug model_judge.short_circuit {"requestId":"` + id + `","path":"","reason":"no-path"}`,
		`debug model_judge.short_circuit {"requestId":"` + id + `","reason":"all-allowed"}`,
		`debug model_judge.model_reply {"requestId":"` + id + `","modelId":"anthropic/m","rawReply":"{\"verdict\":\"deny\"}"}`,
		`debug model_judge.model_reply {"requestId":"` + id + `","modelId":"anthropic/m","rawReply":"I·[2J cannot\nsay."}`,
		`debug model_judge.model_reply {"requestId":"` + id + `","modelId":"","rawReply":"` + strings.Repeat("a", maxRawReply-len("…")) + `…"}`,
	}
	for i, line := range d.lines {
		if line != want[i] {
			t.Errorf("record\n%s, want\n%s", line, want[i])
		}
	}
	if len(d.lines) != len(want) {
		t.Errorf("%d records", len(d.lines))
	}
}

// TestWhatCannotBeWrittenIsSaid: a decision that is missing on the ask's log is
// a warning in the judge's own.
func TestWhatCannotBeWrittenIsSaid(t *testing.T) {
	t.Parallel()
	for _, fails := range []error{nil, errors.New("the gate is gone")} {
		var said strings.Builder
		d := &diary{err: fails}
		j := New(slog.New(slog.NewTextHandler(&said, nil)))
		j.Decision(t.Context(), request(d), Decision{Verdict: "deny"})
		j.ShortCircuit(t.Context(), request(d), nil, "x")
		warned := strings.Contains(said.String(), "level=WARN") && strings.Contains(said.String(), id) && strings.Contains(said.String(), "the gate is gone")
		if warned != (fails != nil) || strings.Count(said.String(), "\n") > 1 {
			t.Errorf("with %v it says %q", fails, said.String())
		}
	}
}
