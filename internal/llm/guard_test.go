package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// scripted is a provider whose answers a test sets.
type scripted struct {
	mu    sync.Mutex
	err   error
	asked int
	// before is run in each Ask, unlocked.
	before func(ctx context.Context)
}

func (s *scripted) Describe(model string) Info { return Info{API: "scripted", ModelID: model} }

func (s *scripted) Ask(ctx context.Context, r Request) (ToolCall, Info, error) {
	s.mu.Lock()
	s.asked++
	err, before := s.err, s.before
	s.mu.Unlock()
	if before != nil {
		before(ctx)
	}
	info := s.Describe(r.Model)
	info.Attempts, info.Latency = 1, time.Second
	if err != nil {
		return ToolCall{}, info, err
	}
	return ToolCall{Input: []byte(deny)}, info, nil
}

func (s *scripted) set(err error) { s.mu.Lock(); s.err = err; s.mu.Unlock() }

func (s *scripted) count() int { s.mu.Lock(); defer s.mu.Unlock(); return s.asked }

// ask asks n times and says how many reached the provider.
func ask(t *testing.T, g *Guard, s *scripted, n int) (reached int, last error) {
	t.Helper()
	before := s.count()
	for range n {
		var call ToolCall
		call, _, last = g.Ask(t.Context(), question())
		if (last == nil) != (call.Input != nil) {
			t.Errorf("input %s with the error %v", call.Input, last)
		}
	}
	return s.count() - before, last
}

func TestBreakerCounts(t *testing.T) {
	late := func(ctx context.Context, left time.Duration) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, left)
	}
	rows := []struct {
		name string
		err  error
		left time.Duration // 0: no deadline
		want string
	}{
		{"three server errors in a row", ErrServer, 0, BreakerOpen},
		{"three lost connections", ErrUnreachable, 0, BreakerOpen},
		{"three rate limits", ErrRateLimited, 0, BreakerOpen},
		{"three malformed replies", ErrMalformed, 0, BreakerOpen},
		{"three times a key that is not taken", ErrAuth, 0, BreakerOpen},
		{"three times no such model", ErrModel, 0, BreakerOpen},
		{"three timeouts with time enough", ErrTimeout, 2 * time.Second, BreakerOpen},
		{"three timeouts without any deadline", ErrTimeout, 0, BreakerOpen},

		{"answers", nil, 0, BreakerClosed},
		{"three timeouts of asks that left no time", ErrTimeout, 500 * time.Millisecond, BreakerClosed},
		{"three asks without time", ErrNoTime, 2 * time.Second, BreakerClosed},
		{"three that the caller gave up", ErrAborted, 0, BreakerClosed},
		{"three over budget in the middle", ErrOverBudget, 0, BreakerClosed},
		{"three helpers that failed", ErrHelper, 0, BreakerClosed},
		{"three requests that are rejected", ErrRejected, 0, BreakerClosed},
		{"three that could not be asked", ErrCall, 0, BreakerClosed},
		{"three refusals, which an ask can provoke", ErrRefused, 0, BreakerClosed},
		{"three times prose, which an ask can provoke", ErrProse, 0, BreakerClosed},
		{"three cut off, which an ask can provoke", ErrCutOff, 0, BreakerClosed},
		{"three wrong calls, which an ask can provoke", ErrWrongCall, 0, BreakerClosed},
		{"three empty answers", ErrEmpty, 0, BreakerClosed},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := &scripted{err: row.err}
			g := NewGuard(s, GuardConfig{})
			for range 3 {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if row.left != 0 {
					ctx, cancel = late(ctx, row.left)
				}
				_, _, err := g.Ask(ctx, question())
				cancel()
				if !errors.Is(err, row.err) {
					t.Fatalf("err %v, want the provider's %v", err, row.err)
				}
			}
			if st := g.State(); st.Breaker != row.want || (st.Failures == 3) != (row.want == BreakerOpen) || (st.Reason == Reason(row.err)) != (row.want == BreakerOpen || row.err == nil) {
				t.Errorf("state %+v, want %s", st, row.want)
			}
			if reached, err := ask(t, g, s, 1); (reached == 0) != (row.want == BreakerOpen) || errors.Is(err, ErrBreakerOpen) != (row.want == BreakerOpen) {
				t.Errorf("the fourth: reached %d, %v", reached, err)
			}
		})
	}
}

func TestBreakerSuccessBetween(t *testing.T) {
	t.Parallel()
	s := &scripted{}
	g := NewGuard(s, GuardConfig{})
	for range 4 { // 8 failures and 4 answers: no three in a row, and too few calls for a rate until the tenth
		s.set(ErrServer)
		ask(t, g, s, 1)
		s.set(nil)
		ask(t, g, s, 1)
	}
	if st := g.State(); st.Breaker != BreakerClosed || st.Failures != 0 || st.Reason != "" {
		t.Errorf("state %+v", st)
	}
}

func TestBreakerRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		g := NewGuard(s, GuardConfig{})
		half := func(pause time.Duration) {
			for _, err := range []error{nil, ErrServer} {
				s.set(err)
				ask(t, g, s, 1)
				time.Sleep(pause)
			}
		}
		for range 20 { // half of them fail, but never ten in a minute
			half(8 * time.Second)
		}
		if st := g.State(); st.Breaker != BreakerClosed {
			t.Fatalf("few calls: %+v", st)
		}
		for range 5 {
			half(time.Second)
		}
		if st := g.State(); st.Breaker != BreakerOpen {
			t.Errorf("ten calls in a minute, half of which failed: %+v", st)
		}
	})
}

// TestBreakerRareCalls: a model that is asked every five minutes is left alone
// too, after three failures in a row.
func TestBreakerRareCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{err: ErrServer}
		g := NewGuard(s, GuardConfig{})
		for range 3 {
			ask(t, g, s, 1)
			time.Sleep(5 * time.Minute)
		}
		if g.State().Failures != 3 || g.State().Breaker != BreakerHalfOpen {
			t.Errorf("state %+v, want the probe due", g.State())
		}
	})
}

func TestBreakerHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{err: ErrUnreachable}
		g := NewGuard(s, GuardConfig{})
		ask(t, g, s, 3)
		time.Sleep(59 * time.Second)
		reached, err := ask(t, g, s, 5)
		if reached != 0 || !strings.Contains(err.Error(), "unreachable, 3 in a row; it is tried again in 1s") {
			t.Fatalf("open: reached %d, %v", reached, err)
		}
		time.Sleep(2 * time.Second)
		if st := g.State(); st.Breaker != BreakerHalfOpen {
			t.Fatalf("after a minute: %+v", st)
		}

		gate := make(chan struct{})
		s.mu.Lock()
		s.before = func(context.Context) { <-gate }
		s.mu.Unlock()
		probe := make(chan error)
		go func() { _, _, err := g.Ask(t.Context(), question()); probe <- err }()
		synctest.Wait()
		reached, err = ask(t, g, s, 10)
		if reached != 0 || Reason(err) != "breaker-open" || !strings.Contains(err.Error(), "one call is trying it") {
			t.Errorf("beside the probe: reached %d, %v", reached, err)
		}
		close(gate)
		if err := <-probe; !errors.Is(err, ErrUnreachable) || g.State().Breaker != BreakerOpen || g.State().Failures != 4 {
			t.Errorf("a probe that fails: %v, %+v", err, g.State())
		}
		time.Sleep(61 * time.Second)
		s.set(nil)
		if reached, err := ask(t, g, s, 5); reached != 5 || err != nil || g.State().Breaker != BreakerClosed || g.State().Failures != 0 {
			t.Errorf("a probe that is answered: reached %d, %v, %+v", reached, err, g.State())
		}
	})
}

// TestBreakerProbeWithoutNews: a probe that its caller gives up says nothing,
// and must not keep the next one out for ever.
func TestBreakerProbeWithoutNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{err: ErrServer}
		g := NewGuard(s, GuardConfig{})
		ask(t, g, s, 3)
		time.Sleep(61 * time.Second)
		s.set(ErrAborted)
		ask(t, g, s, 1)
		if st := g.State(); st.Breaker != BreakerHalfOpen {
			t.Errorf("after it: %+v", st)
		}
		s.set(nil)
		if reached, err := ask(t, g, s, 1); reached != 1 || err != nil || g.State().Breaker != BreakerClosed {
			t.Errorf("the next: %v, %+v", err, g.State())
		}
	})
}

// TestBreakerCrowd: however many ask at once, the half-open breaker lets one
// through.
func TestBreakerCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{err: ErrServer}
		g := NewGuard(s, GuardConfig{})
		ask(t, g, s, 3)
		time.Sleep(61 * time.Second)
		before := s.count()
		s.mu.Lock()
		s.before = func(context.Context) { time.Sleep(time.Second) }
		s.mu.Unlock()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { _, _, _ = g.Ask(t.Context(), question()) })
		}
		all.Wait()
		if n := s.count() - before; n != 1 {
			t.Errorf("%d calls reached the model, want 1", n)
		}
	})
}

func TestGuardTellsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{err: ErrServer}
		var told []string
		var g *Guard
		g = NewGuard(s, GuardConfig{Changed: func(st GuardState) {
			told = append(told, fmt.Sprintf("%s %d %s", st.Breaker, st.Failures, st.Reason))
			g.State() // may be asked from inside
		}})
		ask(t, g, s, 5)
		time.Sleep(61 * time.Second)
		s.set(nil)
		ask(t, g, s, 2)
		if got := strings.Join(told, "; "); got != "open 3 server-error; closed 0 " {
			t.Errorf("told %q", got)
		}
	})
}

// TestGuardInfo: a record of a question that was not put says of which model.
func TestGuardInfo(t *testing.T) {
	t.Parallel()
	s := &scripted{err: ErrServer}
	g := NewGuard(s, GuardConfig{Budget: Budget{CallsPerMinute: 3}})
	for i := range 5 {
		_, info, err := g.Ask(t.Context(), question())
		if info.API != "scripted" || info.ModelID != "model-1" || (info.Attempts == 0) != (i >= 3) || (Reason(err) == "breaker-open") != (i >= 3) {
			t.Errorf("ask %d: %+v, %v", i, info, err)
		}
	}
	for _, api := range apis {
		p, err := api.make(testKey, "", quick)
		if err != nil || Describe(p, "m") != api.info("m") || Describe(NewGuard(p, GuardConfig{}), "m") != api.info("m") {
			t.Errorf("%s: %v, %+v", api.format, err, Describe(p, "m"))
		}
	}
	if Describe(Unavailable{Info: OpenAIInfo("m")}, "other") != OpenAIInfo("m") {
		t.Error("a provider that cannot work knows which it is")
	}
}

func TestGuardMetrics(t *testing.T) {
	t.Parallel()
	s := &scripted{}
	r := prometheus.NewRegistry()
	g := NewGuard(s, GuardConfig{Name: "model-judge", Metrics: r})
	NewGuard(s, GuardConfig{Name: "other", Metrics: r})
	ask(t, g, s, 2)
	s.set(ErrServer)
	ask(t, g, s, 4)
	err := testutil.GatherAndCompare(r, strings.NewReader(`
# HELP assent_judge_breaker 1 for the state that the model's breaker is in.
# TYPE assent_judge_breaker gauge
assent_judge_breaker{link="model-judge",state="closed"} 0
assent_judge_breaker{link="model-judge",state="half-open"} 0
assent_judge_breaker{link="model-judge",state="open"} 1
assent_judge_breaker{link="other",state="closed"} 1
assent_judge_breaker{link="other",state="half-open"} 0
assent_judge_breaker{link="other",state="open"} 0
# HELP assent_judge_model_asks_total Questions to a model by their end: answered, or why there was no answer.
# TYPE assent_judge_model_asks_total counter
assent_judge_model_asks_total{end="answered",link="model-judge"} 2
assent_judge_model_asks_total{end="breaker-open",link="model-judge"} 1
assent_judge_model_asks_total{end="server-error",link="model-judge"} 3
`), "assent_judge_breaker", "assent_judge_model_asks_total")
	if err != nil {
		t.Error(err)
	}
}
