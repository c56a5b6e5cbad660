package bench

import (
	"slices"
	"time"
)

// sample is one work, measured once.
type sample struct {
	took  []time.Duration // sorted
	total time.Duration
	cpu   time.Duration // of the whole process; 0 where the system does not say
}

func newSample(total, cpu time.Duration, by [][]time.Duration) sample {
	s := sample{total: total, cpu: cpu, took: slices.Concat(by...)}
	slices.Sort(s.took)
	return s
}

// at is the duration within which a share q of all operations ended.
func (s sample) at(q float64) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	return s.took[min(int(q*float64(len(s.took))), len(s.took)-1)]
}

// each is the processor time of one operation, in microseconds.
func (s sample) each() float64 {
	if len(s.took) == 0 {
		return 0
	}
	return micros(s.cpu) / float64(len(s.took))
}

// Row is what came of one work with one number of callers: medians over the
// rounds, of the callers' own waiting.
type Row struct {
	Work    string `json:"work"`
	Callers int    `json:"callers"`
	// Operations of all rounds together.
	Operations int     `json:"operations"`
	PerSecond  float64 `json:"per_second"`
	P50        float64 `json:"p50_us"`
	P90        float64 `json:"p90_us"`
	P99        float64 `json:"p99_us"`
	Max        float64 `json:"max_us"`
	// CPU is the time on processors of one operation, of this whole process: with
	// a node of its own that is whoever asks, the server, the gate and the judges.
	// Neighbours on the machine change it least.
	CPU float64 `json:"cpu_us,omitzero"`
	// Raw and Bare are how much longer it takes, at the median, than the raw
	// round trip and than the bare ask of the same round; 0 where none was measured.
	Raw  float64 `json:"times_raw,omitzero"`
	Bare float64 `json:"times_bare,omitzero"`
}

// Report is everything that a run has measured.
type Report struct {
	works   []string
	callers []int
	samples map[cell][]sample
}

type cell struct {
	work    string
	callers int
}

func newReport(p Plan, works []Work) Report {
	r := Report{callers: p.Callers, samples: map[cell][]sample{}}
	for _, w := range works {
		r.works = append(r.works, w.Name)
	}
	return r
}

func (r *Report) add(work string, callers int, s sample) {
	at := cell{work, callers}
	r.samples[at] = append(r.samples[at], s)
}

// Rows are the results, those of one number of callers together.
func (r *Report) Rows() (rows []Row) {
	for _, callers := range r.callers {
		for _, work := range r.works {
			rows = append(rows, r.row(cell{work, callers}))
		}
	}
	return rows
}

// JSON is the report as it is printed for programs.
func (r *Report) JSON() any {
	return struct {
		Rows []Row `json:"rows"`
		Bars []Bar `json:"bars"`
	}{r.Rows(), r.Bars()}
}

func (r *Report) row(at cell) Row {
	row := Row{Work: at.work, Callers: at.callers}
	var longest time.Duration
	for _, s := range r.samples[at] {
		row.Operations += len(s.took)
		longest = max(longest, s.at(1))
	}
	row.Max = micros(longest)
	row.PerSecond = r.median(at, func(s sample) float64 { return float64(len(s.took)) / s.total.Seconds() })
	row.CPU = r.median(at, sample.each)
	row.P50 = r.median(at, quantile(0.5))
	row.P90 = r.median(at, quantile(0.9))
	row.P99 = r.median(at, quantile(0.99))
	row.Raw = r.ratio(at, cell{Raw, at.callers})
	row.Bare = r.ratio(at, cell{Bare, at.callers})
	return row
}

func quantile(q float64) func(sample) float64 {
	return func(s sample) float64 { return micros(s.at(q)) }
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// median is the median over the rounds of what of says of each sample.
func (r *Report) median(at cell, of func(sample) float64) float64 {
	var all []float64
	for _, s := range r.samples[at] {
		all = append(all, of(s))
	}
	return medianOf(all)
}

// ratio is the median over the rounds of how much longer at took than against.
func (r *Report) ratio(at, against cell) float64 {
	return r.perRound(func(round int) float64 {
		ours, theirs := r.samples[at], r.samples[against]
		if len(theirs) == 0 {
			return 0
		}
		return micros(ours[round].at(0.5)) / micros(theirs[round].at(0.5))
	}, len(r.samples[at]))
}

func (r *Report) perRound(of func(round int) float64, rounds int) float64 {
	all := make([]float64, rounds)
	for i := range all {
		all[i] = of(i)
	}
	return medianOf(all)
}

func medianOf(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	if n := len(all); n%2 == 0 {
		return (all[n/2-1] + all[n/2]) / 2
	}
	return all[len(all)/2]
}
