package bench

import "fmt"

// The limits that this project holds itself to.
const (
	// AskLimit: an ask that a rule decides may take this many times the bare ask.
	AskLimit = 1.4
	// ChainLimit: a chain of k links may take this many times k + 1 raw round
	// trips, with the record beside.
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
	bar := func(what string, callers int, limit, is float64) {
		out = append(out, Bar{What: what, Callers: callers, Limit: limit, Is: is, Met: is <= limit})
	}
	for _, callers := range r.callers {
		if r.has(Ask, callers) && r.has(Bare, callers) {
			bar("ask by rule / bare ask, record, answer", callers, AskLimit, r.ratio(cell{Ask, callers}, cell{Bare, callers}))
		}
		for _, k := range Chains {
			if r.has(Chain(k), callers) && r.has(Bare, callers) && r.has(Raw, callers) {
				bar(fmt.Sprintf("(%s - record) / %d raw", Chain(k), k+1), callers, ChainLimit, r.chain(k, callers))
			}
		}
	}
	return out
}

func (r *Report) has(work string, callers int) bool { return len(r.samples[cell{work, callers}]) > 0 }

// chain is how much longer a chain of k links takes than k + 1 raw round trips,
// the record taken off: that is what the bare ask takes beyond a raw round trip.
func (r *Report) chain(k, callers int) float64 {
	of := func(work string, round int) float64 {
		return micros(r.samples[cell{work, callers}][round].at(0.5))
	}
	return r.perRound(func(round int) float64 {
		raw := of(Raw, round)
		record := of(Bare, round) - raw
		return (of(Chain(k), round) - record) / (float64(k+1) * raw)
	}, len(r.samples[cell{Raw, callers}]))
}
