package eval

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Scored is one link with its results.
type Scored struct {
	// Title tells it from another, as the name of its judges' file.
	Title   string
	Results []Result
	Score   Score
}

// Report is what is said of one link, or of two side by side.
type Report struct {
	Links []Scored
	// Bare leaves out what the model took, where that means nothing: of a
	// scripted model.
	Bare bool
}

// Grids are the tables of the report.
func (r Report) Grids() []Grid {
	grids := []Grid{r.figures(), r.confusion(), r.defers()}
	if len(r.Links) == 2 {
		grids = append(grids, r.differences())
	}
	for _, l := range r.Links {
		grids = append(grids, r.wrong(l))
	}
	return slices.DeleteFunc(grids, func(g Grid) bool { return len(g.Rows) == 0 })
}

// FalseAllows is how many calls one of the links allowed that nobody should
// have.
func (r Report) FalseAllows() int {
	n := 0
	for _, l := range r.Links {
		n = max(n, l.Score.FalseAllows.N)
	}
	return n
}

// Silent is a link whose model was asked and never answered, nil where there is
// none: what its table says of false allows says nothing of the model.
func (r Report) Silent() *Scored {
	for i := range r.Links {
		if m := r.Links[i].Score.Model; m.Questions > 0 && m.Answered == 0 {
			return &r.Links[i]
		}
	}
	return nil
}

func (r Report) titles(before ...string) []string {
	for _, l := range r.Links {
		before = append(before, l.Title)
	}
	return before
}

// figures has a column for each link.
func (r Report) figures() Grid {
	g := Grid{Head: r.titles("shares with 95 % intervals")}
	line := func(name string, of func(Score) string) {
		row := []string{name}
		for _, l := range r.Links {
			row = append(row, of(l.Score))
		}
		g.Rows = append(g.Rows, row)
	}
	line("link", func(s Score) string { return s.Link })
	line("cases judged", func(s Score) string { return fmt.Sprint(s.Judged) })
	line("settled by the rules", func(s Score) string { return fmt.Sprint(s.Ruled) })
	line("false allows", func(s Score) string { return s.FalseAllows.String() })
	line("false denies", func(s Score) string { return s.FalseDenies.String() })
	line("left to a person in vain", func(s Score) string { return s.LeftOpen.String() })
	line("as wanted", func(s Score) string { return s.Right.String() })
	line("allows outside the envelope", func(s Score) string { return fmt.Sprint(s.Capped) })
	if r.Bare {
		return g
	}
	line("cases put to the model", func(s Score) string { return fmt.Sprintf("%d, in %d calls", s.Model.Cases, s.Model.Calls) })
	line("questions it answered", func(s Score) string { return fmt.Sprintf("%d of %d", s.Model.Answered, s.Model.Questions) })
	line("time at the model, p50, p95", func(s Score) string { return fmt.Sprintf("%.0f ms, %.0f ms", s.Model.P50, s.Model.P95) })
	line("tokens in, out", func(s Score) string { return fmt.Sprintf("%d, %d", s.Model.Input, s.Model.Output) })
	line("cost", func(s Score) string { return dollars(s.Model) })
	return g
}

// String is the rate as people read it.
func (r Rate) String() string {
	if r.Of == 0 {
		return "none to count"
	}
	return fmt.Sprintf("%d of %d, %.1f %% (%.1f to %.1f)", r.N, r.Of, 100*r.Share(), 100*r.Low, 100*r.High)
}

func dollars(c Costs) string {
	switch {
	case c.USD > 0:
		return fmt.Sprintf("$%.4f", c.USD)
	case c.Input+c.Output == 0:
		return "nothing"
	default:
		return "no price is known"
	}
}

// confusion has what was said for each thing that was wanted, by category.
func (r Report) confusion() Grid {
	g := Grid{Title: "What was wanted, and what was said", Head: []string{"category", "wanted"}}
	rows := map[Row][]Row{}
	var keys []Row
	for i, l := range r.Links {
		of := ""
		if len(r.Links) > 1 {
			of = ", " + l.Title
		}
		g.Head = append(g.Head, "allow"+of, "deny"+of, "defer"+of)
		for _, row := range l.Score.Confuse {
			key := Row{Category: row.Category, Want: row.Want}
			if rows[key] == nil {
				rows[key] = make([]Row, len(r.Links))
				keys = append(keys, key)
			}
			rows[key][i] = row
		}
	}
	slices.SortFunc(keys, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Category, b.Category), cmp.Compare(a.Want, b.Want)) })
	for _, key := range keys {
		line := []string{key.Category, key.Want.String()}
		for _, row := range rows[key] {
			line = append(line, number(row.Allow), number(row.Deny), number(row.Defer))
		}
		g.Rows = append(g.Rows, line)
	}
	return g
}

// number leaves an empty place where nothing is, so that what is stands out.
func number(n int) string {
	if n == 0 {
		return "."
	}
	return fmt.Sprint(n)
}

// maxExample bounds what is shown of a verdict's words, in bytes.
const maxExample = 120

func (r Report) defers() Grid {
	g := Grid{Title: "Why it was deferred", Head: r.titles("reason")}
	counts := map[string][]int{}
	var words []string
	for i, l := range r.Links {
		for _, c := range l.Score.Defers {
			if counts[c.Word] == nil {
				counts[c.Word] = make([]int, len(r.Links))
				words = append(words, c.Word)
			}
			counts[c.Word][i] = c.N
		}
	}
	if len(r.Links) == 1 {
		g.Head = append(g.Head, "for example")
	}
	for i, w := range words {
		row := []string{w}
		for _, n := range counts[w] {
			row = append(row, number(n))
		}
		if len(r.Links) == 1 {
			row = append(row, protocol.Safe(r.Links[0].Score.Defers[i].Example, maxExample, false))
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// maxListed bounds a list of cases.
const maxListed = 50

// differences are the cases of which two links say different things.
func (r Report) differences() Grid {
	g := Grid{Title: "Where they differ", Head: append(r.titles("case", "wanted"), "why")}
	a, b := r.Links[0], r.Links[1]
	for i, one := range a.Results {
		if other := b.Results[i]; one.Got != other.Got {
			g.Rows = append(g.Rows, []string{one.Case.ID, one.Case.Want.String(), said(one), said(other), one.Case.Why})
		}
	}
	return g.bounded()
}

// wrong are the cases that a link got wrong by deciding: false allows first.
func (r Report) wrong(l Scored) Grid {
	g := Grid{Title: "Wrongly decided", Head: []string{"case", "wanted", "said", "why"}}
	if len(r.Links) > 1 {
		g.Title += ": " + l.Title
	}
	for _, kind := range []Outcome{FalseAllow, FalseDeny} {
		for _, res := range l.Results {
			if res.Outcome() == kind {
				g.Rows = append(g.Rows, []string{res.Case.ID, res.Case.Want.String(), said(res), res.Case.Why})
			}
		}
	}
	return g.bounded()
}

func said(r Result) string {
	switch {
	case !r.Asked():
		return "not asked"
	case r.Got == protocol.ChoiceDefer && r.Cause != "":
		return "defer: " + r.Cause
	default:
		return r.Got.String()
	}
}

// JSON is the report as it is printed for programs.
func (r Report) JSON() any {
	type line struct {
		ID       string  `json:"id"`
		Category string  `json:"category"`
		Want     string  `json:"want"`
		Got      string  `json:"got"`
		Outcome  Outcome `json:"outcome"`
		Cause    string  `json:"cause"`
		Reason   string  `json:"reason"`
		Capped   string  `json:"capped"`
		Ruled    string  `json:"ruled"`
		MS       float64 `json:"model_ms"`
	}
	type scored struct {
		Judges string `json:"judges"`
		Score
		Cases []line `json:"cases"`
	}
	var out struct {
		Reports []scored `json:"reports"`
	}
	for _, l := range r.Links {
		s := scored{Judges: l.Title, Score: l.Score}
		for _, c := range l.Results {
			got := ""
			if c.Asked() {
				got = c.Got.String()
			}
			s.Cases = append(s.Cases, line{c.Case.ID, c.Case.Category, c.Case.Want.String(), got, c.Outcome(), c.Cause, c.Said, c.Capped,
				c.Ruled.String(), float64(c.Model.Latency.Microseconds()) / 1000})
		}
		out.Reports = append(out.Reports, s)
	}
	return out
}
