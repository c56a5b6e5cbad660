package llm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/assent-dev/assent/internal/llm/llmtest"
)

// clock is the time that a budget goes by.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)} }

func (c *clock) read() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) add(d time.Duration) { c.mu.Lock(); c.now = c.now.Add(d); c.mu.Unlock() }

// price makes what the scripted server counts cost one cent: half of it read,
// half of it written.
var price = Price{Input: 5000 / llmtest.InputTokens, Output: 5000 / llmtest.OutputTokens}

const cost = 0.01

// reach asks n times for agent and says how many left.
func reach(t *testing.T, p Provider, agent string, n int) (left int, last error) {
	t.Helper()
	for range n {
		_, info, err := p.Ask(WithAgent(t.Context(), agent), question())
		left, last = left+info.Attempts, err
	}
	return left, last
}

func TestCallBudget(t *testing.T) {
	t.Parallel()
	s, c := &scripted{}, newClock()
	g := NewGuard(s, GuardConfig{Now: c.read, Budget: Budget{CallsPerMinute: 6, AgentCallsPerMinute: 4}})
	steps := []struct {
		name  string
		wait  time.Duration
		agent string
		asks  int
		left  int
	}{
		{"an agent has its own bound", 0, "a", 5, 4},
		{"another has what the judge has left", 0, "b", 5, 2},
		{"a third has nothing, and pays nothing", 0, "c", 3, 0},
		{"after ten seconds the judge has one more", 10 * time.Second, "c", 2, 1},
		{"after a minute all of it is back", time.Minute, "a", 5, 4},
	}
	for _, step := range steps {
		c.add(step.wait)
		left, err := reach(t, g, step.agent, step.asks)
		if left != step.left || !errors.Is(err, ErrOverBudget) {
			t.Errorf("%s: %d left, want %d: %v", step.name, left, step.left, err)
		}
	}
}

func TestMoneyBudget(t *testing.T) {
	t.Parallel()
	for api, spec := range apis {
		t.Run(string(spec.format), func(t *testing.T) {
			t.Parallel()
			s, c := llmtest.Start(t, llmtest.Calls(deny)), newClock()
			most := price.Of(Usage{Input: requestSize(question()), Output: int64(question().MaxTokens)})
			g := NewGuard(provider(t, api, s.URL), GuardConfig{Now: c.read, Price: price,
				Budget: Budget{DollarsPerDay: most + 2.5*cost, AgentDollarsPerDay: most + 1.5*cost}})
			steps := []struct {
				name  string
				wait  time.Duration
				agent string
				left  int
			}{
				{"an agent may ask while the most that it can cost is left", 0, "a", 2},
				{"another may use what the judge has left", 0, "b", 1},
				{"a third finds nothing", 0, "c", 0},
				{"nor does it in the evening", 11 * time.Hour, "c", 0},
				{"nor if the clock is set back a day", -24 * time.Hour, "a", 0},
				{"the next day is new", 26 * time.Hour, "a", 2},
			}
			for _, step := range steps {
				c.add(step.wait)
				if left, err := reach(t, g, step.agent, 4); left != step.left || Reason(err) != "over-budget" {
					t.Errorf("%s: %d left, want %d: %v", step.name, left, step.left, err)
				}
			}
			if st := g.State(); math.Abs(st.SpentToday-2*cost) > 1e-9 || st.Limit != most+2.5*cost || st.Breaker != BreakerClosed {
				t.Errorf("state %+v: %d asks of $%.2f", st, 2, cost)
			}
		})
	}
}

// TestWhatACallCosts: what nobody counted is taken for the most it can be,
// unless it never came to work.
func TestWhatACallCosts(t *testing.T) {
	most := price.Of(Usage{Input: requestSize(question()), Output: int64(question().MaxTokens)})
	uncounted := `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c","name":"verdict","input":` + deny + `}],"stop_reason":"tool_use"`
	rows := []struct {
		name   string
		answer llmtest.Answer
		want   float64
	}{
		{"an answer costs what was counted", llmtest.Calls(deny), cost},
		{"prose costs the same", llmtest.Says("no"), cost},
		{"what was cut off costs the same", llmtest.CutOff(deny), cost},
		{"a refused key costs nothing", llmtest.Fails(401, "x", "x"), 0},
		{"a rejected request costs nothing", llmtest.Fails(400, "x", "x"), 0},
		{"three server errors cost nothing", llmtest.Fails(500, "x", "x"), 0},
		{"a server that hangs may have worked", llmtest.Hangs(), most},
		{"three broken connections may all have been worked on", llmtest.HangsUp(""), 3 * most},
		{"junk may have cost anything", llmtest.Raw(200, "text/html", "x"), most},
		{"an answer that nobody counted", llmtest.Raw(200, "application/json", uncounted+`}`), most},
		{"tokens that the server gives back", llmtest.Raw(200, "application/json", uncounted+`,"usage":{"input_tokens":-1000000,"output_tokens":-5}}`), most},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			g := NewGuard(provider(t, 0, llmtest.Start(t, row.answer).URL), GuardConfig{Price: price})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, info, err := g.Ask(ctx, question())
			if st := g.State(); math.Abs(st.SpentToday-row.want) > 1e-9 || info.Usage.Input < 0 || info.Usage.Output < 0 {
				t.Errorf("spent $%f, want $%f, usage %+v (%v)", st.SpentToday, row.want, info.Usage, err)
			}
		})
	}
	t.Run("nobody at the address costs nothing", func(t *testing.T) {
		g := NewGuard(provider(t, 0, "http://127.0.0.1:1"), GuardConfig{Price: price})
		if left, _ := reach(t, g, "a", 1); left != 3 || g.State().SpentToday != 0 {
			t.Errorf("%d attempts, spent $%f", left, g.State().SpentToday)
		}
	})
}

// TestMoneyOfRounds: each round is paid, and the budget can end an Ask between
// two of them.
func TestMoneyOfRounds(t *testing.T) {
	t.Parallel()
	for api, spec := range apis {
		s := llmtest.Start(t, llmtest.CallsAll(checks("ls")))
		r := withHelper(9, helps("allow"))
		most := price.Of(Usage{Input: requestSize(r), Output: int64(r.MaxTokens)})
		g := NewGuard(provider(t, api, s.URL), GuardConfig{Price: price, Budget: Budget{DollarsPerDay: most + 4*cost}})
		_, info, err := g.Ask(t.Context(), r)
		// Each round is longer by what was said, so that the most it can cost grows.
		if Reason(err) != "over-budget" || info.Rounds < 1 || info.Rounds > 4 || math.Abs(g.State().SpentToday-float64(info.Rounds)*cost) > 1e-9 {
			t.Errorf("%s: %d rounds, $%f: %v", spec.format, info.Rounds, g.State().SpentToday, err)
		}
		if st := g.State(); st.Breaker != BreakerClosed {
			t.Errorf("an empty purse is no fault of the model: %+v", st)
		}
	}
}

// TestBudgetCrowd: calls that are made at once cannot spend together what each
// of them alone may.
func TestBudgetCrowd(t *testing.T) {
	t.Parallel()
	s := llmtest.Start(t, llmtest.Hangs())
	most := price.Of(Usage{Input: requestSize(question()), Output: int64(question().MaxTokens)})
	g := NewGuard(provider(t, 0, s.URL), GuardConfig{Price: price, Budget: Budget{AgentDollarsPerDay: 3.5 * most}})
	ctx, cancel := context.WithTimeout(WithAgent(t.Context(), "a"), 500*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { _, _, _ = g.Ask(ctx, question()) })
	}
	all.Wait()
	if n := len(s.Asked()); n != 3 {
		t.Errorf("%d calls left at once, want the 3 that the budget holds", n)
	}
	if spent := g.State().SpentToday; spent > 3.5*most {
		t.Errorf("spent $%f of $%f", spent, 3.5*most)
	}
}

// TestManyAgents: an agent cannot push another one's account out, and so begin
// anew itself, nor fill the memory with names.
func TestManyAgents(t *testing.T) {
	t.Parallel()
	s, c := &scripted{}, newClock()
	g := NewGuard(s, GuardConfig{Now: c.read, Budget: Budget{AgentCallsPerMinute: 2}})
	reach(t, g, "first", 2)
	for i := range 3 * maxAgents {
		reach(t, g, fmt.Sprintf("agent-%d", i), 1)
	}
	if n := len(g.ledger.agents); n != maxAgents {
		t.Errorf("%d agents are kept apart, want %d", n, maxAgents)
	}
	if left, _ := reach(t, g, "first", 1); left != 0 {
		t.Error("the first agent has a new budget")
	}
	if left, _ := reach(t, g, "one-more", 1); left != 0 {
		t.Error("the agents beyond the bound do not share one budget")
	}
	c.add(24 * time.Hour)
	if left, _ := reach(t, g, "first", 1); left != 1 || len(g.ledger.agents) != 1 {
		t.Errorf("the next day: %d left, %d agents", left, len(g.ledger.agents))
	}
}

func TestMoneyMetrics(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	s := llmtest.Start(t, llmtest.Calls(deny))
	g := NewGuard(provider(t, 0, s.URL), GuardConfig{Name: "j", Metrics: r, Price: price})
	reach(t, g, "a", 3)
	err := testutil.GatherAndCompare(r, strings.NewReader(`
# HELP assent_judge_model_dollars_total US dollars spent, by the configured price.
# TYPE assent_judge_model_dollars_total counter
assent_judge_model_dollars_total{link="j"} 0.03
# HELP assent_judge_model_tokens_total Tokens used, or the most that can have been where the server did not say.
# TYPE assent_judge_model_tokens_total counter
assent_judge_model_tokens_total{direction="in",link="j"} 30
assent_judge_model_tokens_total{direction="out",link="j"} 15
`), "assent_judge_model_dollars_total", "assent_judge_model_tokens_total")
	if err != nil {
		t.Error(err)
	}
}
