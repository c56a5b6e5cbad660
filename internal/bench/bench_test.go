package bench

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

func TestARoundRunsEveryWorkWithEveryNumberOfCallers(t *testing.T) {
	t.Parallel()
	var most, now atomic.Int64
	slow := Work{Name: "slow", Do: func(context.Context) error {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		time.Sleep(2 * time.Millisecond)
		return nil
	}}
	quick := Work{Name: Raw, Do: func(context.Context) error { time.Sleep(time.Millisecond); return nil }}
	var steps []Step
	r, err := Run(t.Context(), Plan{Rounds: 2, Sample: 30 * time.Millisecond, Callers: []int{1, 3}}, []Work{quick, slow}, func(s Step) { steps = append(steps, s) })
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 8 || steps[0] != (Step{0, 8, Raw, 1}) || steps[7] != (Step{7, 8, "slow", 3}) {
		t.Errorf("steps %v", steps)
	}
	rows := r.Rows()
	if len(rows) != 4 || rows[1].Work != "slow" || rows[1].Callers != 1 || rows[3].Callers != 3 {
		t.Fatalf("rows %+v", rows)
	}
	if most.Load() != 3 {
		t.Errorf("%d callers at once, want 3", most.Load())
	}
	for _, row := range rows {
		if row.Operations < 2 || row.PerSecond <= 0 || row.P50 < 1000 || row.P50 > row.P90 || row.P90 > row.P99 || row.P99 > row.Max || row.CPU <= 0 {
			t.Errorf("row %+v", row)
		}
	}
	if rows[0].Raw != 1 || rows[1].Raw <= 1 || rows[1].Bare != 0 {
		t.Errorf("ratios %v, %v, %v: want 1, more than 1, none", rows[0].Raw, rows[1].Raw, rows[1].Bare)
	}
}

func TestWhatFailsHasNoFigures(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var n atomic.Int64
	w := Work{Name: "w", Do: func(context.Context) error {
		if n.Add(1) > 10 {
			return broken
		}
		return nil
	}}
	r, err := Run(t.Context(), Plan{Rounds: 1, Sample: time.Minute, Callers: []int{4}}, []Work{w}, nil)
	if !errors.Is(err, ErrWork) || !errors.Is(err, broken) || len(r.Rows()) > 0 {
		t.Errorf("%v, rows %v", err, r.Rows())
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	w.Do = func(context.Context) error { return nil }
	if _, err := Run(ctx, Plan{Rounds: 1, Sample: time.Minute, Callers: []int{4}}, []Work{w}, nil); !errors.Is(err, broken) {
		t.Errorf("ended from outside: %v", err)
	}
}

func TestAPlanThatMeasuresNothingIsRefused(t *testing.T) {
	t.Parallel()
	good := Plan{Rounds: 1, Sample: time.Millisecond, Callers: []int{1, maxCallers}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Plan){
		"no round":          func(p *Plan) { p.Rounds = 0 },
		"rounds for a day":  func(p *Plan) { p.Rounds = maxRounds + 1 },
		"no time":           func(p *Plan) { p.Sample = 0 },
		"a time before now": func(p *Plan) { p.Warm = -1 },
		"no callers":        func(p *Plan) { p.Callers = nil },
		"nobody":            func(p *Plan) { p.Callers = []int{1, 0} },
		"a crowd":           func(p *Plan) { p.Callers = []int{maxCallers + 1} },
	} {
		p := good
		change(&p)
		if err := p.Check(); !errors.Is(err, ErrPlan) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// filled is a report of two rounds, the second twice as slow throughout, as on a
// machine that somebody else began to use: no ratio may change.
func filled(took map[string]time.Duration) Report {
	r := Report{callers: []int{1}, samples: map[cell][]sample{}}
	for _, work := range []string{Raw, Bare, Ask, BareChain(2), Chain(2)} {
		if took[work] == 0 {
			continue
		}
		r.works = append(r.works, work)
		for round := range 2 {
			d := took[work] * time.Duration(round+1)
			r.add(work, 1, newSample(time.Second, time.Millisecond, [][]time.Duration{{d, d}, {d}}))
		}
	}
	return r
}

func TestBarsAreKeptOrNotWhateverTheMachineDoes(t *testing.T) {
	t.Parallel()
	us := time.Microsecond
	for name, row := range map[string]struct {
		took map[string]time.Duration
		is   []float64
		met  []bool
	}{
		"kept":                  {map[string]time.Duration{Bare: 30 * us, Ask: 42 * us, BareChain(2): 100 * us, Chain(2): 125 * us}, []float64{1.4, 1.25}, []bool{true, true}},
		"an ask too dear":       {map[string]time.Duration{Bare: 30 * us, Ask: 43 * us, BareChain(2): 100 * us, Chain(2): 90 * us}, []float64{43. / 30, 0.9}, []bool{false, true}},
		"a chain too dear":      {map[string]time.Duration{Bare: 30 * us, Ask: 30 * us, BareChain(2): 100 * us, Chain(2): 126 * us}, []float64{1, 1.26}, []bool{true, false}},
		"nothing to compare":    {map[string]time.Duration{Raw: 10 * us, Ask: 30 * us, Chain(2): 30 * us}, nil, nil},
		"no chain was measured": {map[string]time.Duration{Bare: 30 * us, Ask: 30 * us}, []float64{1}, []bool{true}},
	} {
		r := filled(row.took)
		bars := r.Bars()
		if len(bars) != len(row.is) {
			t.Errorf("%s: %+v", name, bars)
			continue
		}
		for i, b := range bars {
			if math.Abs(b.Is-row.is[i]) > 1e-9 || b.Met != row.met[i] || b.Callers != 1 {
				t.Errorf("%s: %+v, want %v, kept %v", name, b, row.is[i], row.met[i])
			}
		}
	}
}

func TestQuantilesAndMedians(t *testing.T) {
	t.Parallel()
	var all [][]time.Duration
	for i := range 100 {
		all = append(all, []time.Duration{time.Duration(99 - i)})
	}
	s := newSample(time.Second, time.Millisecond, all)
	for q, want := range map[float64]time.Duration{0: 0, 0.5: 50, 0.99: 99, 1: 99} {
		if got := s.at(q); got != want {
			t.Errorf("at %v: %v, want %v", q, got, want)
		}
	}
	if got := (sample{}).at(0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	for want, of := range map[float64][]float64{0: nil, 3: {9, 3, 1}, 2.5: {4, 1, 2, 3}} {
		if got := medianOf(slices.Clone(of)); got != want {
			t.Errorf("median of %v: %v, want %v", of, got, want)
		}
	}
}

func TestAFormChangesItsIdAndNothingElse(t *testing.T) {
	t.Parallel()
	old, id := protocol.NewAskID(), protocol.NewAskID()
	f := newForm([]byte("a "+old+" b "+old), old)
	if got := string(f.with(id)); got != "a "+id+" b "+id {
		t.Errorf("got %q", got)
	}
	if got := string(f.text); got != "a "+old+" b "+old {
		t.Errorf("the form itself is now %q", got)
	}
	if got, ok := f.idOf(f.with(id)); !ok || got != id {
		t.Errorf("id %q, %v", got, ok)
	}
	if _, ok := f.idOf([]byte("another")); ok {
		t.Error("took another message for one of this form")
	}
}

func TestPacedWorkKeepsItsPaceAndMeasuresTheWorkAlone(t *testing.T) {
	t.Parallel()
	w := Paced(Work{Name: "w", Do: func(context.Context) error { return nil }}, 100)
	r, err := Run(t.Context(), Plan{Rounds: 1, Sample: 200 * time.Millisecond, Callers: []int{8}}, []Work{w}, nil)
	if err != nil {
		t.Fatal(err)
	}
	row := r.Rows()[0]
	// Each caller may end the wait that it began.
	if row.Operations < 8 || row.Operations > 30 || row.P50 > 5000 {
		t.Errorf("%d operations at a median of %v µs, want some 20 that take nothing", row.Operations, row.P50)
	}
}
