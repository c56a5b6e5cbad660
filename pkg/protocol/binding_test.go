package protocol

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// reads are the readers that hold a body to the subject, or to the request, that
// it belongs to: name is the credential's, id the ask's.
var reads = map[string]func(data []byte, name, id string) (any, error){
	"ask":              func(b []byte, name, _ string) (any, error) { v, err := ReadAskFor(name, b); return v, err },
	"verdict":          func(b []byte, _, id string) (any, error) { v, err := ReadVerdictFor(id, b); return v, err },
	"terminal_verdict": func(b []byte, _, id string) (any, error) { v, err := ReadTerminalVerdictFor(id, b); return v, err },
	"answer":           func(b []byte, name, id string) (any, error) { v, err := ReadAnswerFor(name, id, b); return v, err },
	"decision":         func(b []byte, name, id string) (any, error) { v, err := ReadDecisionFor(id, name, b); return v, err },
}

func TestReadHoldsTheBodyToItsSubject(t *testing.T) {
	const agent, approver = "ci-42", "oncall-1"
	rows := []struct {
		behaviour, message, name, id string
		want                         error
	}{
		{"an ask from its agent", "ask", agent, "", nil},
		{"an ask in another agent's name", "ask", "ci-43", "", ErrMismatch},
		{"an ask in another case of its agent's name", "ask", "CI-42", "", ErrMismatch},
		{"a verdict on the ask", "verdict", "", askID, nil},
		{"a verdict on another ask", "verdict", "", otherID, ErrMismatch},
		{"a terminal's verdict on the ask", "terminal_verdict", "", askID, nil},
		{"a terminal's verdict on another ask", "terminal_verdict", "", otherID, ErrMismatch},
		{"a terminal's verdict when none was asked for", "terminal_verdict", "", "", ErrMismatch},
		{"an answer of its approver on the ask", "answer", approver, askID, nil},
		{"an answer in another approver's name", "answer", "oncall-2", askID, ErrMismatch},
		{"an answer on another ask", "answer", approver, otherID, ErrMismatch},
		{"a decision for the agent on the ask", "decision", agent, askID, nil},
		{"a decision for another agent", "decision", "ci-43", askID, ErrMismatch},
		{"a decision on another ask", "decision", agent, otherID, ErrMismatch},
	}
	for _, row := range rows {
		t.Run(row.behaviour, func(t *testing.T) {
			s := sampleNamed(t, row.message)
			b, err := s.write()
			if err != nil {
				t.Fatal(err)
			}
			v, err := reads[row.message](b, row.name, row.id)
			if row.want != nil {
				refused(t, v, err, row.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(s.value, v, alike); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	for name, read := range reads {
		v, err := read([]byte(`{"v":1`), agent, askID)
		t.Run("cut short: "+name, func(t *testing.T) { refused(t, v, err, ErrMalformed) })
	}
}

// TestMaxBytes: a reader's own limit holds for Read and Write alike.
func TestMaxBytes(t *testing.T) {
	for _, s := range samples() {
		b, err := s.write()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.read(b, MaxBytes(len(b))); err != nil {
			t.Errorf("%s: exactly as large as allowed: %v", s.name, err)
		}
		for _, n := range []int{len(b) - 1, 1, 0, -1} {
			if _, _, err := s.read(b, MaxBytes(n)); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s: %d bytes with limit %d: %v", s.name, len(b), n, err)
			}
		}
	}
	big := sampleAsk()
	big.Tool.Input = []byte(`{"content":` + text(DefaultMaxBytes) + `}`)
	if _, err := Write(big); !errors.Is(err, ErrTooLarge) {
		t.Errorf("written though its reader must refuse it: %v", err)
	}
	b, err := Write(big, MaxBytes(2*DefaultMaxBytes))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read[Ask](b, MaxBytes(2*DefaultMaxBytes)); err != nil {
		t.Error(err)
	}
}

// TestWhatIsReadCanBeCarried: an ask at the very limits of depth and size still
// makes a pending entry, a link's request and a terminal's that can be read. Were
// it not so, one agent could park asks that no gate can read any more.
func TestWhatIsReadCanBeCarried(t *testing.T) {
	deep := sampleAsk()
	deep.Tool.Input = []byte(nested(`{"a":`, "1", "}", maxDepth-2))
	large := sampleAsk()
	small, err := Write(large)
	if err != nil {
		t.Fatal(err)
	}
	large.Tool.Input = []byte(`{"command":"git push origin main","pad":` + text(DefaultMaxBytes-len(small)-len(`,"pad":""`)) + `}`)
	for name, a := range map[string]Ask{"deep": deep, "large": large} {
		t.Run(name, func(t *testing.T) {
			b, err := Write(a)
			if err != nil {
				t.Fatal(err)
			}
			if a, err = Read[Ask](b); err != nil {
				t.Fatal(err)
			}
			carriedBack(t, a)
		})
	}
	deeper := sampleAsk()
	deeper.Tool.Input = []byte(nested(`{"a":`, "1", "}", maxDepth-1))
	if _, err := Write(deeper); !errors.Is(err, ErrMalformed) {
		t.Errorf("one level deeper: %v", err)
	}
}

func carriedBack(t *testing.T, a Ask) {
	t.Helper()
	p := samplePending()
	p.Ask, p.Verdict.EditedInput = a, a.Tool.Input
	b, err := Write(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read[Pending](b); err != nil {
		t.Error(err)
	}
	r := TerminalRequest{Kind: TerminalHuman, Ask: a, Asks: p.Asks, Units: p.Units, Deadline: at(9)}
	if b, err = Write(r); err != nil {
		t.Fatal(err)
	}
	if _, err := Read[TerminalRequest](b); err != nil {
		t.Error(err)
	}
	l := LinkRequest{Link: "model-judge", Ask: a, Asks: p.Asks, Units: p.Units, Deadline: at(9),
		Query: "assent.v1.main.query.g.c", Log: "assent.v1.main.log.g.c"}
	if b, err = Write(l); err != nil {
		t.Fatal(err)
	}
	if _, err := Read[LinkRequest](b); err != nil {
		t.Error(err)
	}
}

func TestCheckTime(t *testing.T) {
	a := sampleAsk()
	made := AskTime(a.ID)
	for _, row := range []struct {
		name string
		now  time.Time
		ok   bool
	}{
		{"asked now", made, true},
		{"asked a day ago", made.Add(MaxAskAge), true},
		{"asked a day ahead", made.Add(-MaxAskAge), true},
		{"asked just over a day ago", made.Add(MaxAskAge + time.Millisecond), false},
		{"asked just over a day ahead", made.Add(-MaxAskAge - time.Millisecond), false},
		{"a clock that was never set", time.Time{}, false},
	} {
		if err := a.CheckTime(row.now); (err == nil) != row.ok || err != nil && !errors.Is(err, ErrField) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	a.ID = strings.ToLower(a.ID)
	if a.CheckTime(made) == nil {
		t.Error("an id that is none has a time")
	}
}

func TestMaxWait(t *testing.T) {
	for ms, want := range map[int64]time.Duration{0: 0, 1: time.Millisecond, 90_000: 90 * time.Second, 1<<63 - 1: 365 * 24 * time.Hour} {
		if got := (&Ask{MaxWaitMS: ms}).MaxWait(); got != want {
			t.Errorf("%d ms: %v, want %v", ms, got, want)
		}
	}
}
