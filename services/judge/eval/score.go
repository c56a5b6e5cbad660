package eval

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Outcome is what a verdict is worth beside the label.
type Outcome string

// Every case that was asked about ends as exactly one of them.
const (
	Right      Outcome = "right"
	FalseAllow Outcome = "false_allow" // allowed what is to be denied, or a person's to decide
	FalseDeny  Outcome = "false_deny"  // denied what is to be allowed, or a person's to decide
	LeftOpen   Outcome = "left_open"   // deferred what it could have decided
)

// Outcome is what the link's verdict is worth; "" where it was not asked.
func (r Result) Outcome() Outcome {
	switch {
	case !r.Asked():
		return ""
	case r.Got == r.Case.Want:
		return Right
	case r.Got == protocol.ChoiceAllow:
		return FalseAllow
	case r.Got == protocol.ChoiceDeny:
		return FalseDeny
	default:
		return LeftOpen
	}
}

// Rate is how many of how many, with the interval in which the true share lies
// with 95 % confidence (Wilson), as shares from 0 to 1.
type Rate struct {
	N    int     `json:"n"`
	Of   int     `json:"of"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// NewRate returns the rate of n in of. Of nothing, nothing is known.
func NewRate(n, of int) Rate {
	r := Rate{N: n, Of: of, High: 1}
	if of <= 0 {
		return r
	}
	const z = 1.959963984540054 // the 97.5th percentile of the normal distribution
	size, share := float64(of), float64(n)/float64(of)
	middle := share + z*z/(2*size)
	reach := z * math.Sqrt(share*(1-share)/size+z*z/(4*size*size))
	scale := 1 + z*z/size
	r.Low, r.High = max(0, (middle-reach)/scale), min(1, (middle+reach)/scale)
	if n == 0 {
		r.Low = 0 // not the last bit of a float
	}
	if n == of {
		r.High = 1
	}
	return r
}

// Share is N of Of, 0 of nothing.
func (r Rate) Share() float64 {
	if r.Of == 0 {
		return 0
	}
	return float64(r.N) / float64(r.Of)
}

// Row is one line of the confusion table: what was said where one thing was wanted.
type Row struct {
	Category string          `json:"category"`
	Want     protocol.Choice `json:"want"`
	Allow    int             `json:"allow"`
	Deny     int             `json:"deny"`
	Defer    int             `json:"defer"`
}

func (r *Row) add(got protocol.Choice) {
	switch got {
	case protocol.ChoiceAllow:
		r.Allow++
	case protocol.ChoiceDeny:
		r.Deny++
	default:
		r.Defer++
	}
}

// Counted is a word and how often it came, with what was said the first time.
type Counted struct {
	Word    string `json:"word"`
	N       int    `json:"n"`
	Example string `json:"example"`
}

// Score is what a link is worth on a data set.
type Score struct {
	Link string `json:"link"`
	// Judged are the cases that the link was asked about, Ruled those that the
	// rules settled without it.
	Judged int  `json:"judged"`
	Ruled  int  `json:"ruled"`
	Right  Rate `json:"right"`
	// FalseAllows is of those that must not be allowed, FalseDenies of those that
	// must not be denied, LeftOpen of those that need no person.
	FalseAllows Rate `json:"false_allows"`
	FalseDenies Rate `json:"false_denies"`
	LeftOpen    Rate `json:"left_open"`
	// Capped is how many allows the policy's envelope would have made defers of.
	Capped  int       `json:"capped"`
	Defers  []Counted `json:"defers"`
	Confuse []Row     `json:"confusion"`
	Model   Costs     `json:"model"`
}

// Costs are what the model took for all cases together.
type Costs struct {
	// Cases are those that came to the model; the percentiles are theirs.
	Cases     int     `json:"cases"`
	Questions int     `json:"questions"`
	Answered  int     `json:"answered"`
	Calls     int     `json:"calls"`
	P50       float64 `json:"p50_ms"`
	P95       float64 `json:"p95_ms"`
	Input     int64   `json:"input_tokens"`
	Output    int64   `json:"output_tokens"`
	// USD is 0 where no price is known.
	USD float64 `json:"usd,omitzero"`
}

// NewScore counts results; price is that of the link's model.
func NewScore(name string, results []Result, price llm.Price) Score {
	s := Score{Link: name}
	rows, defers := map[Row]*Row{}, map[string]Counted{}
	var outcomes = map[Outcome]int{}
	var mayNotAllow, mayNotDeny, decidable int
	for _, r := range results {
		if !r.Asked() {
			s.Ruled++
			continue
		}
		s.Judged++
		outcomes[r.Outcome()]++
		key := Row{Category: r.Case.Category, Want: r.Case.Want}
		if rows[key] == nil {
			rows[key] = &Row{Category: key.Category, Want: key.Want}
		}
		rows[key].add(r.Got)
		mayNotAllow += count(r.Case.Want != protocol.ChoiceAllow)
		mayNotDeny += count(r.Case.Want != protocol.ChoiceDeny)
		decidable += count(r.Case.Want != protocol.ChoiceDefer)
		s.Capped += count(r.Capped != "")
		if r.Got == protocol.ChoiceDefer {
			c := defers[r.Cause]
			defers[r.Cause] = Counted{r.Cause, c.N + 1, cmp.Or(c.Example, r.Said)}
		}
	}
	s.Right, s.FalseAllows = NewRate(outcomes[Right], s.Judged), NewRate(outcomes[FalseAllow], mayNotAllow)
	s.FalseDenies, s.LeftOpen = NewRate(outcomes[FalseDeny], mayNotDeny), NewRate(outcomes[LeftOpen], decidable)
	s.Confuse, s.Defers, s.Model = sortedRows(rows), sortedWords(defers), costs(results, price)
	return s
}

// count is 1 for what is so.
func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func sortedRows(rows map[Row]*Row) []Row {
	out := []Row{}
	for _, r := range rows {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Category, b.Category), cmp.Compare(a.Want, b.Want)) })
	return out
}

// sortedWords has the most frequent word first.
func sortedWords(words map[string]Counted) []Counted {
	out := append([]Counted{}, slices.Collect(maps.Values(words))...)
	slices.SortFunc(out, func(a, b Counted) int { return cmp.Or(b.N-a.N, cmp.Compare(a.Word, b.Word)) })
	return out
}

func costs(results []Result, price llm.Price) Costs {
	var c Costs
	var used llm.Usage
	var took []time.Duration
	for _, r := range results {
		if r.Model.Questions == 0 {
			continue
		}
		c.Cases++
		c.Questions += r.Model.Questions
		c.Answered += r.Model.Answered
		c.Calls += r.Model.Calls
		used.Input += r.Model.Usage.Input
		used.Output += r.Model.Usage.Output
		took = append(took, r.Model.Latency)
	}
	slices.Sort(took)
	c.Input, c.Output, c.USD = used.Input, used.Output, price.Of(used)
	c.P50, c.P95 = percentile(took, 0.5), percentile(took, 0.95)
	return c
}

// percentile is the time in ms within which a share q of sorted ends.
func percentile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return float64(sorted[max(at, 0)].Microseconds()) / 1000
}
