package bench

import "fmt"

// The limits that this project holds itself to.
const (
	// AskLimit: an ask that a rule decides may take this many times the bare ask.
	AskLimit = 1.4
	// ChainLimit: an ask that k links are asked about may take this many times the
	// bare chain of k: k + 1 round trips and the record.
	ChainLimit = 1.25
)

// Bar is one limit and what was measured of it.
type Bar struct {
	What    string  `json:"what"`
	Callers int     `json:"callers"`
	Limit   float64 `json:"limit"`
	Is      float64 `json:"is"`
	Met     bool    `json:"met"`
}

// Bars holds the run against the limits, as far as it has measured what they
// speak of.
func (r *Report) Bars() []Bar {
	var out []Bar
	bar := func(what, ours, least string, callers int, limit float64) {
		if r.has(ours, callers) && r.has(least, callers) {
			is := r.ratio(cell{ours, callers}, cell{least, callers})
			out = append(out, Bar{What: what, Callers: callers, Limit: limit, Is: is, Met: is <= limit})
		}
	}
	for _, callers := range r.callers {
		bar("ask by rule / bare ask, record, answer", Ask, Bare, callers, AskLimit)
		for _, k := range Chains {
			bar(fmt.Sprintf("chain of %d / bare chain of %d", k, k), Chain(k), BareChain(k), callers, ChainLimit)
		}
	}
	return out
}

func (r *Report) has(work string, callers int) bool { return len(r.samples[cell{work, callers}]) > 0 }
