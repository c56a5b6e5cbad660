package module

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Bounds of what a script says.
const (
	maxAnswer   = 64 << 10 // one answer, in bytes
	maxFailure  = 300      // the text of a failure, in bytes
	maxLabel    = 80
	maxGuidance = protocol.MaxReason
	maxSpans    = 256
)

var errAnswer = errors.New("the module's answer makes no sense")

// answer is what a script says of one step. Nothing in it is believed that does
// not fit the question.
type answer struct {
	Decision string    `json:"decision"`
	Check    int       `json:"check,omitzero"`
	Reason   string    `json:"reason,omitzero"`
	Prompt   *prompt   `json:"prompt,omitempty"`
	Failures []failure `json:"failures,omitempty"`
}

type prompt struct {
	Guidance     string `json:"guidance,omitzero"`
	ApproveLabel string `json:"approveLabel,omitzero"`
	EditLabel    string `json:"editLabel,omitzero"`
	RejectLabel  string `json:"rejectLabel,omitzero"`
	Highlight    []span `json:"highlight,omitempty"`
}

// span counts UTF-16 units, as scripts do.
type span struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

// failure is a check that threw, or answered nothing that the library knows.
type failure struct {
	Check int    `json:"check"`
	Error string `json:"error"`
}

// The decisions of a script.
const (
	saysNone    = "none"
	saysBlock   = "block"
	saysRequest = "request"
)

// The everyday answer, known without reading it: as the library writes it, and as
// one that always lists its failures.
const (
	plainNone  = `{"decision":"none"}`
	listedNone = `{"decision":"none","failures":[]}`
)

// readAnswer reads what a script says when it was asked the checks in asked, in
// that order.
func readAnswer(text string, asked []int) (answer, error) {
	if text == plainNone || text == listedNone {
		return answer{Decision: saysNone}, nil
	}
	if len(text) > maxAnswer {
		return answer{}, fmt.Errorf("%w: it has %d bytes, the limit is %d", errAnswer, len(text), maxAnswer)
	}
	var a answer
	if err := json.Unmarshal([]byte(text), &a, json.RejectUnknownMembers(true)); err != nil {
		return answer{}, fmt.Errorf("%w: %s", errAnswer, line(err.Error(), maxFailure))
	}
	return a, a.fits(asked)
}

// fits refuses an answer that names a check which nobody asked, or one twice, or
// a check as failed that the walk had not come to.
func (a *answer) fits(asked []int) error {
	left := asked
	for _, f := range a.Failures {
		i := slices.Index(left, f.Check)
		if i < 0 {
			return fmt.Errorf("%w: it names check %d as failed, which was not asked there", errAnswer, f.Check)
		}
		left = left[i+1:]
	}
	switch a.Decision {
	case saysNone:
		return nil
	case saysBlock, saysRequest:
		if !slices.Contains(left, a.Check) {
			return fmt.Errorf("%w: check %d is said to %s, which was not asked there", errAnswer, a.Check, a.Decision)
		}
		return nil
	default:
		return fmt.Errorf("%w: decision %q, want none, block or request", errAnswer, clip(a.Decision, 40))
	}
}

// passes says whether the walk goes on after a with nothing to note.
func (a *answer) passes() bool { return a.Decision == saysNone && len(a.Failures) == 0 }

// reason is a block's, for the agent.
func (a *answer) reason(c Check) string {
	if r := strings.TrimSpace(protocol.Safe(a.Reason, protocol.MaxReason, true)); r != "" {
		return r
	}
	return "The check " + c.Name + " blocks this call."
}

// shown is a request's prompt. A module's labels change words, nothing else.
func (a *answer) shown(c Check, detail string) protocol.Prompt {
	p := protocol.Prompt{Name: c.Name, Description: c.Description}
	if a.Prompt == nil {
		return p
	}
	p.Guidance = protocol.Safe(a.Prompt.Guidance, maxGuidance, true)
	p.ApproveLabel = line(a.Prompt.ApproveLabel, maxLabel)
	p.EditLabel = line(a.Prompt.EditLabel, maxLabel)
	p.RejectLabel = line(a.Prompt.RejectLabel, maxLabel)
	p.Highlight = byteSpans(detail, a.Prompt.Highlight)
	return p
}

// byteSpans makes spans of UTF-16 units spans of bytes of detail: in order,
// within it, at the borders of characters and apart from each other.
func byteSpans(detail string, spans []span) []protocol.Span {
	if len(spans) > maxSpans {
		spans = spans[:maxSpans]
	}
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int {
		switch {
		case a.Start < b.Start:
			return -1
		case a.Start > b.Start:
			return 1
		default:
			return 0
		}
	})
	at := unitReader{text: detail}
	var out []protocol.Span
	for _, s := range spans {
		if !(s.Start < s.End) {
			continue
		}
		start := at.to(s.Start, false)
		end := at.peek(s.End)
		if n := len(out); n > 0 && start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, end)
			continue
		}
		if start < end {
			out = append(out, protocol.Span{Start: start, End: end})
		}
	}
	return out
}

// unitReader finds the bytes of a text at which its UTF-16 units stand, going
// forward only, so that many spans of a long text cost one pass.
type unitReader struct {
	text  string
	bytes int
	units float64
}

// to goes forward to the character that holds unit and returns where it begins;
// with up, where the first one at or after unit begins.
func (u *unitReader) to(unit float64, up bool) int {
	for u.bytes < len(u.text) {
		r, size := utf8.DecodeRuneInString(u.text[u.bytes:])
		width := 1.0
		if r > 0xFFFF {
			width = 2
		}
		if !up && u.units+width > unit || up && u.units >= unit {
			break
		}
		u.bytes, u.units = u.bytes+size, u.units+width
	}
	return u.bytes
}

// peek is where the first character at or after unit begins.
func (u unitReader) peek(unit float64) int { return u.to(unit, true) }
