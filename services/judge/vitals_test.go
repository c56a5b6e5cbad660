package judge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/micro"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/internal/llm/llmtest"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// answers is a model that does what the test says, and a link that asks it.
type answers struct{ err error }

func (a *answers) Ask(context.Context, llm.Request) (llm.ToolCall, llm.Info, error) {
	return llm.ToolCall{}, llm.Info{}, a.err
}

// rig is the vitals of a link whose verdicts a test scripts.
type vitalsRig struct {
	*vitals
	log   bytes.Buffer
	clock time.Time
	model *answers
	judge link.Link
	ask   bool // whether the model is asked
	says  protocol.Verdict
	err   error
}

func newVitalsRig(r prometheus.Registerer) *vitalsRig {
	v := &vitalsRig{clock: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), model: &answers{}, ask: true, says: link.Defer("unsure")}
	v.vitals = newVitals("model-judge", slog.New(slog.NewTextHandler(&v.log, nil)), newMetrics(r))
	v.now = func() time.Time { return v.clock }
	model := v.watchModel(v.model)
	v.judge = v.watchLink(func(ctx context.Context, _ link.Request) (protocol.Verdict, error) {
		if v.ask {
			if _, _, err := model.Ask(ctx, llm.Request{}); err != nil {
				return link.Unable("call-failed", "no verdict"), nil
			}
		}
		return v.says, v.err
	})
	return v
}

func (v *vitalsRig) run(t *testing.T, n int) {
	t.Helper()
	for range n {
		got, err := v.judge(t.Context(), link.Request{Ask: protocol.Ask{ID: "01K", Agent: "ci"}})
		if !errors.Is(err, v.err) || v.model.err == nil && got != v.says {
			t.Fatalf("the verdict became %+v, %v", got, err)
		}
	}
}

func (v *vitalsRig) loud() int { return strings.Count(v.log.String(), "fails safe") }

// TestAJudgeThatFailsSafeForLongIsLoud, not after a moment's failure and not more
// than once a minute; and it says when it is over.
func TestAJudgeThatFailsSafeForLongIsLoud(t *testing.T) {
	t.Parallel()
	v := newVitalsRig(nil)
	v.model.err = fmt.Errorf("%w: 30 s", llm.ErrTimeout)
	v.run(t, failingAfter-1)
	if v.loud() != 0 || v.state()[StateFailing] != "" {
		t.Fatalf("a moment's failure: %s, %v", v.log.String(), v.state())
	}
	v.clock = v.clock.Add(time.Second)
	v.run(t, 100)
	if v.loud() != 1 || v.state()[StateFailing] != "since 2026-11-30T12:00:00Z: timeout" {
		t.Fatalf("said %d times, %v", v.loud(), v.state())
	}
	v.clock = v.clock.Add(loudEvery)
	v.run(t, 100)
	if v.loud() != 2 {
		t.Errorf("after a minute: said %d times", v.loud())
	}
	v.model.err = fmt.Errorf("%w: 429", llm.ErrRateLimited)
	v.run(t, 1)
	if got := v.state()[StateFailing]; !strings.HasSuffix(got, ": rate-limited") {
		t.Errorf("another reason: %q", got)
	}
	v.model.err, v.ask = nil, false
	v.run(t, 5)
	if v.state()[StateFailing] == "" {
		t.Error("verdicts without the model ended it")
	}
	v.ask = true
	v.run(t, 1)
	if v.state()[StateFailing] != "" || v.state()[StateModel] != StateOK || !strings.Contains(v.log.String(), "judges again") {
		t.Errorf("%v\n%s", v.state(), v.log.String())
	}
	v.model.err = llm.ErrTimeout
	v.run(t, failingAfter)
	if v.loud() != 3 {
		t.Error("the next time nothing is said")
	}
}

func TestEachVerdictAndEachFailSafeIsCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	v := newVitalsRig(registry)
	v.run(t, 2)
	v.says = link.Deny("no")
	v.run(t, 3)
	v.says = link.Unable("malformed", "no verdict")
	v.run(t, 1)
	v.model.err = llm.ErrAuth
	v.run(t, 4)
	v.model.err, v.ask, v.err = nil, false, errors.New("broken")
	v.run(t, 5)
	want := map[string]float64{
		"assent_judge_verdicts_total deny": 3, "assent_judge_verdicts_total defer": 2 + 1 + 4 + 5,
		"assent_judge_fail_safe_total malformed": 1, "assent_judge_fail_safe_total auth-failed": 4, "assent_judge_fail_safe_total error": 5,
	}
	if d := cmp.Diff(want, counted(t, registry)); d != "" {
		t.Error(d)
	}
}

// counted are the counters by name and last label.
func counted(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := m.GetLabel()
			if labels[0].GetName() != "link" || labels[0].GetValue() != "model-judge" {
				t.Errorf("%s: labels %v", f.GetName(), labels)
			}
			got[f.GetName()+" "+labels[len(labels)-1].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return got
}

// announced is what the one running link says of itself, as soon as it does.
func announced(t *testing.T, n *nodetest.Node) map[string]string {
	t.Helper()
	subject, err := micro.ControlSubject(micro.InfoVerb, protocol.ServiceLink, "")
	if err != nil {
		t.Fatal(err)
	}
	nc := n.Connect(t, protocol.RoleOperator, "op")
	defer nc.Close()
	var info micro.Info
	nodetest.CheckFor(t, 10*time.Second, 10*time.Millisecond, func() error { // it may not have said a word yet
		m, err := nc.Request(subject, nil, 5*time.Second)
		if err != nil {
			return err
		}
		return json.Unmarshal(m.Data, &info)
	})
	return info.Metadata
}

// TestTheSelfTestFindsOutAtTheStart whether the key is taken, the model is there
// and calls the tool; the link says so, and takes asks all the same.
func TestTheSelfTestFindsOutAtTheStart(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answer llmtest.Answer
		model  string
	}{
		"it is well":              {llmtest.Calls(`{"ready":true}`), StateOK},
		"the key is not taken":    {llmtest.Fails(401, "authentication_error", "no"), "auth-failed: "},
		"there is no such model":  {llmtest.Fails(404, "not_found_error", "model: m"), "model-unresolved: "},
		"it is cut off":           {llmtest.CutOff(`{"ready":true}`), "cut-off: "},
		"it calls something else": {llmtest.CallsOther("other", `{}`), "wrong-call: "},
		"it hangs":                {llmtest.Hangs(), "timeout: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, nodetest.Start(t))
			server := llmtest.Start(t, row.answer)
			run(t, g, fileFor(t, server.URL, `,"timeoutMs":1000`), key)
			nodetest.CheckFor(t, 10*time.Second, 10*time.Millisecond, func() error {
				if got := announced(t, g.n); !strings.HasPrefix(got[StateModel], row.model) || got[link.MetadataHealth] != link.HealthOK {
					return fmt.Errorf("announced %v, want model %q", got, row.model)
				}
				return nil
			})
			asked := server.Asked()
			if q := asked[0]; len(q.Tools) != 1 || q.Tools[0].Name != SelfTestTool || strings.Contains(string(q.Body), typo) {
				t.Errorf("asked %s", q.Body)
			}
			if _, err := g.ask(linkName, typo); err != nil {
				t.Errorf("asked, it says %v", err)
			}
		})
	}
}

const linkName = name

// TestAModelThatComesBackIsSaidToBeWell by the first ask that it answers.
func TestAModelThatComesBackIsSaidToBeWell(t *testing.T) {
	t.Parallel()
	g := newGate(t, nodetest.Start(t))
	server := llmtest.Start(t, llmtest.Fails(401, "authentication_error", "no"), llmtest.Calls(`{"verdict":"deny","reason":"shop is doubled"}`))
	run(t, g, fileFor(t, server.URL, ""), key)
	model := func(want string) {
		t.Helper()
		nodetest.CheckFor(t, 10*time.Second, 10*time.Millisecond, func() error {
			if got := announced(t, g.n)[StateModel]; !strings.HasPrefix(got, want) {
				return fmt.Errorf("model %q, want %q", got, want)
			}
			return nil
		})
	}
	model("auth-failed")
	if v, err := g.ask(name, typo); err != nil || v.Verdict != protocol.ChoiceDeny {
		t.Fatalf("%+v, %v", v, err)
	}
	model(StateOK)
}
