package module

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var asked = asking{Serial: 300, Ask: "01JZZZZZZZZZZZZZZZZZZZZZZZ", Steps: []step{{7, []int{0, 2, 130}}, {8, []int{1}}, {9, []int{0}}}, Input: []byte(`{"cwd":"/r"}`)}

func TestACallIsReadAsItWasAsked(t *testing.T) {
	got, err := readAsking(asked.append(nil))
	if d := cmp.Diff(asked, got); err != nil || d != "" {
		t.Errorf("%v, %s", err, d)
	}
}

// What is said of a call says what it says only whole: one byte less, and it says
// nothing at all, least of all that no check has anything against the call.
func TestAnswersAreReadAsTheyWereWritten(t *testing.T) {
	for _, results := range [][]result{
		{{Module: 7, Nothing: true}},
		{{Module: 7, Nothing: true}, {Module: 8, Nothing: true}, {Module: 9, Nothing: true}},
		{{Module: 7, Nothing: true}, {Module: 8, Answer: `{"decision":"block","check":1}`}},
		{{Module: 7, Error: "it threw"}},
		{{Module: 7}}, // no answer
	} {
		sent := answers{Serial: 300, Results: results}
		frame := sent.append(nil)
		got, err := readAnswers(frame)
		if d := cmp.Diff(sent, got); err != nil || d != "" {
			t.Errorf("%v, %s", err, d)
		}
		if err := got.fit(&asked); err != nil {
			t.Error(err)
		}
		for n := range frame {
			if got, err := readAnswers(frame[:n]); !errors.Is(err, errFrame) || len(got.Results) > 0 {
				t.Errorf("%d of %d bytes: got %+v, %v", n, len(frame), got, err)
			}
		}
	}
}

// A result that is not set, as one that says nothing in particular, is a failure.
func TestAResultThatIsNoneIsNoPass(t *testing.T) {
	for _, row := range []struct {
		does  string
		r     result
		nihil bool
	}{
		{"nothing, said so", result{Nothing: true}, true},
		{"nothing, as the script wrote it", result{Answer: plainNone}, true},
		{"the zero result", result{}, false},
		{"an empty answer", result{Module: 7, Answer: ""}, false},
		{"an error, and nothing", result{Nothing: true, Error: "it threw"}, false},
	} {
		if a, err := row.r.read([]int{0}); (err == nil && a.passes()) != row.nihil {
			t.Errorf("%s: %+v, %v", row.does, a, err)
		}
	}
}

func TestAnswersThatDoNotFit(t *testing.T) {
	nothing := func(serial uint64, modules ...uint64) string {
		a := answers{Serial: serial}
		for _, m := range modules {
			a.Results = append(a.Results, result{Module: m, Nothing: true})
		}
		return string(a.append(nil))
	}
	for _, row := range []struct {
		does, frame string
		fits        bool
	}{
		{"nothing of the first", nothing(300, 7), true},
		{"nothing of all", nothing(300, 7, 8, 9), true},

		{"an empty frame", "", false},
		{"zeros", strings.Repeat("\x00", 64), false},
		{"ones", strings.Repeat("\xff", 64), false},
		{"JSON", `{"results":[{"nothing":true}]}`, false},
		{"a call", string(asked.append(nil)), false},
		{"nothing of the call before", nothing(299, 7), false},
		{"nothing of no call", nothing(0, 7), false},
		{"no results", nothing(300), false},
		{"more results than steps", nothing(300, 7, 8, 9, 9), false},
		{"nothing of another module", nothing(300, 8), false},
		{"nothing in another order", nothing(300, 7, 9, 8), false},
		{"a tail", nothing(300, 7) + "\x00", false},
		{"an end that is none", strings.ReplaceAll(nothing(300, 7), "n", "\x00"), false},
		{"an answer that is longer than its frame", "R\x01\x01\x07a\xff\xff\x03{}", false},
		{"more results than a frame may have", "R\x01\xff\xff\xff\xff\x0f", false},
		{"a number without an end", "R" + strings.Repeat("\xff", 11), false},
	} {
		a, err := readAnswers([]byte(row.frame))
		if err == nil {
			err = a.fit(&asked)
		}
		if (err == nil) != row.fits || err != nil && !errors.Is(err, errFrame) {
			t.Errorf("%s: %v, want it to fit: %v", row.does, err, row.fits)
		}
	}
}

func TestACallThatDoesNotFit(t *testing.T) {
	head := "A\x01\x0301J"
	for _, row := range []struct{ does, frame string }{
		{"it is empty", ""},
		{"it ends in its id", "A\x01\x0401J"},
		{"it has more steps than a frame may have", head + "\x11"},
		{"a step has more checks than it may have", head + "\x01\x07\x21" + strings.Repeat("\x00", 33)},
		{"a check has a number that none has", head + "\x01\x07\x01\xff\xff\x03"},
		{"it ends in its steps", head + "\x02\x07\x01\x00"},
	} {
		if _, err := readAsking([]byte(row.frame)); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", row.does, err)
		}
	}
}

// Whatever bytes come, they are read as no more than they say, and what they say
// could have been written so.
func FuzzAsking(f *testing.F) {
	f.Add(asked.append(nil))
	for _, r := range []result{{Module: 7, Nothing: true}, {Module: 8, Answer: plainNone}, {Module: 9, Error: "x"}, {}} {
		f.Add((&answers{Serial: 300, Results: []result{r}}).append(nil))
	}
	f.Add([]byte("A\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if a, err := readAsking(data); err == nil {
			again, err := readAsking(a.append(nil))
			if d := cmp.Diff(fmt.Sprint(a), fmt.Sprint(again)); err != nil || d != "" {
				t.Errorf("a call: %v, %s", err, d)
			}
		}
		a, err := readAnswers(data)
		if err != nil {
			if len(a.Results) > 0 {
				t.Errorf("%+v with %v", a, err)
			}
			return
		}
		again, err := readAnswers(a.append(nil))
		if d := cmp.Diff(a, again); err != nil || d != "" {
			t.Errorf("answers: %v, %s", err, d)
		}
		said := 0
		for _, r := range a.Results {
			if r.Nothing {
				said++
			}
		}
		if said > bytes.Count(data, []byte{endNothing}) {
			t.Errorf("%d results of nothing out of %q", said, data)
		}
	})
}
