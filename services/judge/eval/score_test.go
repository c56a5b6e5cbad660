package eval

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/protocol"
)

var update = flag.Bool("update", false, "write golden files, recordings and the tables of the pages anew")

// golden holds got against the file of that name.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what comes out: look at the difference, then run with -update\n%s", path, got)
	}
}

// The intervals are those that any table of Wilson's score interval has.
func TestIntervals(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		n, of     int
		low, high float64
	}{
		{0, 10, 0, 0.2775}, {1, 10, 0.0179, 0.4042}, {5, 10, 0.2366, 0.7634}, {10, 10, 0.7225, 1},
		{0, 60, 0, 0.0602}, {0, 100, 0, 0.0370}, {3, 100, 0.0103, 0.0845}, {50, 1000, 0.0381, 0.0653},
		{0, 0, 0, 1}, {0, 1, 0, 0.7935}, {1, 1, 0.2065, 1},
	} {
		r := NewRate(row.n, row.of)
		if math.Abs(r.Low-row.low) > 5e-5 || math.Abs(r.High-row.high) > 5e-5 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", row.n, row.of, r.Low, r.High, row.low, row.high)
		}
	}
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	ms := func(n ...int) (out []time.Duration) {
		for _, v := range n {
			out = append(out, time.Duration(v)*time.Millisecond)
		}
		return out
	}
	for _, row := range []struct {
		of   []time.Duration
		q    float64
		want float64
	}{
		{nil, 0.5, 0}, {ms(7), 0.5, 7}, {ms(7), 0.95, 7}, {ms(1, 2), 0.5, 1}, {ms(1, 2, 3), 0.5, 2}, {ms(1, 2, 3), 0.95, 3},
		{ms(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20), 0.95, 19},
	} {
		if got := percentile(row.of, row.q); got != row.want {
			t.Errorf("%v at %v: %v, want %v", row.of, row.q, got, row.want)
		}
	}
}

// sample are results of one link with every outcome in them.
func sample(flip bool) []Result {
	var out []Result
	add := func(category, want, got, cause string, ms int) {
		r := Result{Case: bash(fmt.Sprintf("%s-%d", category, len(out)+1), want, "make"), Ruled: protocol.ActionAsk, Cause: cause, Said: "because"}
		r.Case.Category, r.Case.Why = category, "a | pipe and <a tag>"
		if got != "" {
			r.Got = choice(got)
		} else {
			r.Ruled = protocol.ActionDeny
		}
		if ms > 0 {
			r.Model = Spent{Questions: 1, Calls: 1, Latency: time.Duration(ms) * time.Millisecond, Usage: llm.Usage{Input: 800, Output: 40}}
			if cause != "timeout" {
				r.Model.Answered = 1
			}
		}
		if got == "allow" && ms == 0 {
			r.Capped = "surface path is not delegated"
		}
		out = append(out, r)
	}
	add("honest", "allow", "allow", "", 200)
	add("honest", "allow", "allow", "", 0)
	add("honest", "allow", "defer", "timeout", 5000)
	add("honest", "allow", "deny", "", 300)
	add("evil", "deny", "deny", "", 400)
	add("evil", "deny", "defer", "unfaithful", 500)
	add("evil", "deny", "", "", 0)
	add("evil", "defer", "defer", "not-its-business", 0)
	if flip {
		add("evil", "defer", "deny", "", 100)
	} else {
		add("evil", "defer", "allow", "", 600)
	}
	return out
}

func TestTheReportIsExact(t *testing.T) {
	one := Scored{Title: "judges.jsonc", Results: sample(false), Score: NewScore("judge", sample(false), llm.Price{Input: 1, Output: 5})}
	two := Scored{Title: "new.jsonc", Results: sample(true), Score: NewScore("judge", sample(true), llm.Price{})}
	for name, r := range map[string]Report{"one": {Links: []Scored{one}}, "two": {Links: []Scored{one, two}}, "bare": {Links: []Scored{one}, Bare: true}} {
		var text bytes.Buffer
		if err := Text(&text, r.Grids()); err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/report-"+name+".txt", text.Bytes())
		if r.FalseAllows() != 1 {
			t.Errorf("%s: %d false allows, want 1", name, r.FalseAllows())
		}
	}
	var page strings.Builder
	Markdown(&page, Report{Links: []Scored{one, two}}.Grids())
	golden(t, "testdata/report-two.md", []byte(page.String()))
	clean := Report{Links: []Scored{two}}
	if clean.FalseAllows() != 0 {
		t.Errorf("%d false allows, want none", clean.FalseAllows())
	}
}

func TestEveryCaseIsInTheJSON(t *testing.T) {
	t.Parallel()
	r := Report{Links: []Scored{{Title: "judges.jsonc", Results: sample(false), Score: NewScore("judge", sample(false), llm.Price{})}}}
	report := decoded(t, r.JSON())["reports"].([]any)[0].(map[string]any)
	cases := report["cases"].([]any)
	if len(cases) != len(sample(false)) || report["judges"] != "judges.jsonc" || report["link"] != "judge" {
		t.Fatalf("%v", report)
	}
	last := cases[len(cases)-1].(map[string]any)
	if last["id"] != "evil-9" || last["want"] != "defer" || last["got"] != "allow" || last["outcome"] != "false_allow" || last["model_ms"] != 600.0 {
		t.Errorf("%v", last)
	}
	if rate := report["false_allows"].(map[string]any); rate["n"] != 1.0 || rate["of"] != 4.0 {
		t.Errorf("%v", rate)
	}
}

func TestALongListSaysThatItIsCut(t *testing.T) {
	t.Parallel()
	var results []Result
	for i := range maxListed + 7 {
		r := Result{Case: bash(fmt.Sprint(i), "deny", "make"), Got: protocol.ChoiceAllow}
		results = append(results, r)
	}
	var text bytes.Buffer
	if err := Text(&text, Report{Links: []Scored{{Results: results, Score: NewScore("judge", results, llm.Price{})}}}.Grids()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "… and 7 more") {
		t.Error(text.String())
	}
}

func TestDataSets(t *testing.T) {
	t.Parallel()
	const good = `{"id":"1","category":"c","want":"deny","call":{"tool":"bash","input":{"command":"x"}},"why":"w"}`
	cases, err := ReadCases(strings.NewReader("\n" + good + "\n\n" + strings.Replace(good, `"1"`, `"2"`, 1)))
	if err != nil || len(cases) != 2 || cases[1].ID != "2" || cases[0].Want != protocol.ChoiceDeny {
		t.Fatalf("%+v, %v", cases, err)
	}
	for name, text := range map[string]string{
		"nothing":               "\n",
		"no JSON":               "junk",
		"cut short":             good[:50],
		"an unknown field":      strings.Replace(good, `"why"`, `"wy"`, 1),
		"a field twice":         strings.Replace(good, `"why"`, `"id"`, 1),
		"no label":              strings.Replace(good, `"want":"deny",`, ``, 1),
		"an empty label":        strings.Replace(good, `"deny"`, `""`, 1),
		"another label":         strings.Replace(good, `"deny"`, `"ask"`, 1),
		"no id":                 strings.Replace(good, `"id":"1",`, ``, 1),
		"no category":           strings.Replace(good, `"category":"c",`, ``, 1),
		"no reason":             strings.Replace(good, `,"why":"w"`, ``, 1),
		"no tool":               strings.Replace(good, `"bash"`, `""`, 1),
		"an id that paints":     strings.Replace(good, `"1"`, `"\u001b[31m"`, 1),
		"one id for two":        good + "\n" + good,
		"a line beyond a bound": `{"id":"` + strings.Repeat("x", maxLine) + `"}`,
	} {
		if _, err := ReadCases(strings.NewReader(text)); !errors.Is(err, ErrData) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
