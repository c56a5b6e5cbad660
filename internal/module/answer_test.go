package module

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/pkg/protocol"
)

func TestAnAnswerIsReadStrictly(t *testing.T) {
	asked := []int{2, 5, 7}
	for _, row := range []struct {
		does, text string
		fits       bool
	}{
		{"nothing", `{"decision":"none"}`, true},
		{"nothing, with no failures", `{"decision":"none","failures":[]}`, true},
		{"nothing, two failed", `{"decision":"none","failures":[{"check":2,"error":"a"},{"check":7,"error":"b"}]}`, true},
		{"a block", `{"decision":"block","check":5,"reason":"no"}`, true},
		{"a block without a reason", `{"decision":"block","check":2}`, true},
		{"a block after a failure", `{"decision":"block","check":5,"reason":"no","failures":[{"check":2,"error":"a"}]}`, true},
		{"a request", `{"decision":"request","check":7,"prompt":{"guidance":"look","approveLabel":"a","highlight":[{"start":0,"end":1}]}}`, true},
		{"a request without a prompt", `{"decision":"request","check":7,"prompt":null}`, true},

		{"an allow", `{"decision":"allow","check":2}`, false},
		{"a decision in another case", `{"decision":"None"}`, false},
		{"no decision", `{}`, false},
		{"an empty text", ``, false},
		{"null", `null`, false},
		{"a number", `1`, false},
		{"two answers", `{"decision":"none"}{"decision":"none"}`, false},
		{"a decision said twice", `{"decision":"block","decision":"none","check":2}`, false},
		{"a key in another case", `{"Decision":"none"}`, false},
		{"an unknown key", `{"decision":"none","allow":true}`, false},
		{"a block by a check that was not asked", `{"decision":"block","check":3}`, false},
		{"a block by no check", `{"decision":"block"}`, false},
		{"a block by a check that failed", `{"decision":"block","check":5,"failures":[{"check":5,"error":"a"}]}`, false},
		{"a failure after the block", `{"decision":"block","check":2,"failures":[{"check":5,"error":"a"}]}`, false},
		{"failures out of order", `{"decision":"none","failures":[{"check":7,"error":"a"},{"check":2,"error":"b"}]}`, false},
		{"a failure of a check that was not asked", `{"decision":"none","failures":[{"check":1,"error":"a"}]}`, false},
		{"a reason that is no text", `{"decision":"block","check":2,"reason":{}}`, false},
		{"too long", `{"decision":"block","check":2,"reason":"` + strings.Repeat("x", maxAnswer) + `"}`, false},
		{"invalid UTF-8", "{\"decision\":\"block\",\"check\":2,\"reason\":\"\xff\"}", false},
	} {
		_, err := readAnswer(row.text, asked)
		if (err == nil) != row.fits || err != nil && !errors.Is(err, errAnswer) {
			t.Errorf("%s: got %v, want it to fit: %v", row.does, err, row.fits)
		}
	}
}

// What a module writes reaches a person's terminal and a message with bounds.
func TestAPromptIsFitToBeShown(t *testing.T) {
	c := Check{Name: "push", Description: "asks before a push"}
	a := answer{Decision: saysRequest, Prompt: &prompt{
		Guidance: "look\nat it\u001b[2J" + strings.Repeat("x", 2*maxGuidance), ApproveLabel: "Yes\nreally", RejectLabel: strings.Repeat("é", maxLabel),
		Highlight: []span{{0, 3}},
	}}
	p := a.shown(c, "git push")
	if p.Name != "push" || p.Description != "asks before a push" || !strings.HasPrefix(p.Guidance, "look\nat it·[2J") || len(p.Guidance) > maxGuidance ||
		p.ApproveLabel != "Yes really" || len(p.RejectLabel) > maxLabel || len(p.Highlight) != 1 {
		t.Errorf("got %+v", p)
	}
	if r := (&answer{Reason: " \u200b"}).reason(c); r == "" {
		t.Error("a block that says nothing has no reason")
	}
}

func TestHighlightsAreBytesOfTheDetail(t *testing.T) {
	const detail = "aé𝄞z" // bytes 1 2 4 1, units 1 1 2 1
	for _, row := range []struct {
		does  string
		spans []span
		want  []protocol.Span
	}{
		{"none", nil, nil},
		{"a letter of one byte", []span{{0, 1}}, []protocol.Span{{Start: 0, End: 1}}},
		{"a letter of two bytes", []span{{1, 2}}, []protocol.Span{{Start: 1, End: 3}}},
		{"a letter of two units", []span{{2, 4}}, []protocol.Span{{Start: 3, End: 7}}},
		{"half a letter is the letter", []span{{3, 4}}, []protocol.Span{{Start: 3, End: 7}}},
		{"all of it", []span{{0, 5}}, []protocol.Span{{Start: 0, End: 8}}},
		{"more than there is", []span{{-3, 1e300}}, []protocol.Span{{Start: 0, End: 8}}},
		{"beyond the end", []span{{9, 12}}, nil},
		{"backwards", []span{{3, 1}}, nil},
		{"out of order and touching", []span{{4, 5}, {0, 1}, {1, 2}}, []protocol.Span{{Start: 0, End: 3}, {Start: 7, End: 8}}},
		{"one within another", []span{{0, 5}, {1, 2}}, []protocol.Span{{Start: 0, End: 8}}},
	} {
		if d := cmp.Diff(row.want, byteSpans(detail, row.spans)); d != "" {
			t.Errorf("%s: %s", row.does, d)
		}
	}
}

// Whatever a script answers, what is believed of it names checks that were
// asked, and shows spans that lie in the detail.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"decision":"none"}`, "git push")
	f.Add(`{"decision":"block","check":2,"reason":"no","failures":[{"check":1,"error":"x"}]}`, "é")
	f.Add(`{"decision":"request","check":3,"prompt":{"guidance":"g","highlight":[{"start":1,"end":3},{"start":0,"end":2}]}}`, "a𝄞b")
	asked := []int{1, 2, 3}
	f.Fuzz(func(t *testing.T, text, detail string) {
		a, err := readAnswer(text, asked)
		if err != nil {
			return
		}
		for _, fail := range a.Failures {
			if fail.Check < 1 || fail.Check > 3 {
				t.Fatalf("a failure of check %d is believed", fail.Check)
			}
		}
		if a.Decision != saysNone && (a.Check < 1 || a.Check > 3) {
			t.Fatalf("%s by check %d is believed", a.Decision, a.Check)
		}
		if !utf8.ValidString(detail) {
			return
		}
		last := -1
		p := a.shown(Check{Name: "n"}, detail)
		for _, s := range p.Highlight {
			if s.Start <= last || s.Start >= s.End || s.End > len(detail) || !utf8.ValidString(detail[s.Start:s.End]) {
				t.Fatalf("span %v of %d bytes after %d", s, len(detail), last)
			}
			last = s.End
		}
		if a.Prompt != nil && len(a.Prompt.Highlight) == 1 {
			holdsUnits(t, detail, a.Prompt.Highlight[0], p.Highlight)
		}
		if _, err := json.Marshal(&p); err != nil {
			t.Fatalf("the prompt cannot be sent: %v", err)
		}
	})
}

// holdsUnits holds one span against the text in UTF-16, as a script has it.
func holdsUnits(t *testing.T, detail string, s span, got []protocol.Span) {
	units := utf16.Encode([]rune(detail))
	from, to := max(s.Start, 0), min(s.End, float64(len(units)))
	if from != float64(int(from)) || to != float64(int(to)) || from >= to {
		return
	}
	if len(got) != 1 {
		t.Fatalf("span %v of %q: got %v", s, detail, got)
	}
	if want := string(utf16.Decode(units[int(from):int(to)])); !strings.ContainsRune(want, utf8.RuneError) && detail[got[0].Start:got[0].End] != want {
		t.Fatalf("span %v of %q is %q, got %q", s, detail, want, detail[got[0].Start:got[0].End])
	}
}
