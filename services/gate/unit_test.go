package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// word is an ending as one line.
func word(e ending) string {
	if !e.decided() {
		return "open"
	}
	return fmt.Sprintf("%s %s by %s %s", e.result, e.outcome, e.by.Kind, e.by.Name)
}

func TestByLink(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		entry protocol.TrailEntry
		want  string
	}{
		"allow":              {protocol.TrailEntry{Link: "l", Verdict: protocol.ChoiceAllow}, "allow allowed_by_link by link l"},
		"deny":               {protocol.TrailEntry{Link: "l", Verdict: protocol.ChoiceDeny}, "deny denied_by_link by link l"},
		"defer":              {protocol.TrailEntry{Link: "l", Verdict: protocol.ChoiceDefer}, "open"},
		"nothing":            {protocol.TrailEntry{Link: "l"}, "open"},
		"a word unknown":     {protocol.TrailEntry{Link: "l", Verdict: 9}, "open"},
		"a capped allow":     {protocol.TrailEntry{Link: "l", Verdict: protocol.ChoiceAllow, Capped: true}, "open"},
		"an allow that fell": {protocol.TrailEntry{Link: "l", Verdict: protocol.ChoiceAllow, Failure: "timeout"}, "open"},
		"a deny that fell":   {protocol.TrailEntry{Link: "l", Verdict: protocol.ChoiceDeny, Failure: "timeout"}, "open"},
	} {
		if got := word(byLink(row.entry)); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

func TestByTerminal(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		role    protocol.TerminalKind
		verdict protocol.TerminalVerdict
		want    string
	}{
		"a person allows":             {protocol.TerminalHuman, protocol.TerminalVerdict{Verdict: allow, Outcome: protocol.AllowedByHuman, Approver: "p"}, "allow allowed_by_human by human p"},
		"a person denies":             {protocol.TerminalHuman, protocol.TerminalVerdict{Verdict: deny, Outcome: protocol.DeniedByHuman, Approver: "p"}, "deny denied_by_human by human p"},
		"nobody is there":             {protocol.TerminalDeny, protocol.TerminalVerdict{Verdict: deny, Outcome: protocol.NoApprover}, "deny no_approver by terminal deny"},
		"nobody allows":               {protocol.TerminalHuman, protocol.TerminalVerdict{Verdict: allow, Outcome: protocol.AllowedByHuman}, "deny unavailable by gate "},
		"a person as a rule":          {protocol.TerminalHuman, protocol.TerminalVerdict{Verdict: allow, Outcome: protocol.AllowedByRule, Approver: "p"}, "deny unavailable by gate "},
		"a person where nobody is":    {protocol.TerminalDeny, protocol.TerminalVerdict{Verdict: allow, Outcome: protocol.AllowedByHuman, Approver: "p"}, "deny unavailable by gate "},
		"a person at a role not ours": {protocol.TerminalParent, protocol.TerminalVerdict{Verdict: allow, Outcome: protocol.AllowedByHuman, Approver: "p"}, "deny unavailable by gate "},
		"no verdict":                  {protocol.TerminalHuman, protocol.TerminalVerdict{Outcome: protocol.AllowedByHuman, Approver: "p"}, "open"},
	} {
		if got := word(byTerminal(row.role, row.verdict)); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

func TestInterruption(t *testing.T) {
	t.Parallel()
	now := time.Now()
	yes := &protocol.TerminalVerdict{Verdict: allow, Outcome: protocol.AllowedByHuman, Approver: "p"}
	gone := &protocol.Cancel{Reason: "r"}
	past, future := now.Add(-time.Second), now.Add(time.Second)
	for name, row := range map[string]struct {
		p    protocol.Pending
		want string
	}{
		"nothing happened":              {protocol.Pending{Role: protocol.TerminalHuman, Deadline: future}, "open"},
		"answered":                      {protocol.Pending{Role: protocol.TerminalHuman, Deadline: future, Verdict: yes}, "allow allowed_by_human by human p"},
		"answered, then withdrawn":      {protocol.Pending{Role: protocol.TerminalHuman, Deadline: future, Verdict: yes, Withdrawn: gone}, "allow allowed_by_human by human p"},
		"answered in time, seen behind": {protocol.Pending{Role: protocol.TerminalHuman, Deadline: past, Verdict: yes}, "allow allowed_by_human by human p"},
		"withdrawn":                     {protocol.Pending{Role: protocol.TerminalHuman, Deadline: future, Withdrawn: gone}, "deny cancelled by gate "},
		"withdrawn in time":             {protocol.Pending{Role: protocol.TerminalHuman, Deadline: past, Withdrawn: gone}, "deny cancelled by gate "},
		"its time is over":              {protocol.Pending{Role: protocol.TerminalHuman, Deadline: past}, "deny expired by gate "},
		"to the instant":                {protocol.Pending{Role: protocol.TerminalHuman, Deadline: now}, "deny expired by gate "},
		"without a deadline":            {protocol.Pending{Role: protocol.TerminalHuman}, "deny expired by gate "},
	} {
		if got := word(interruption(row.p, layers.Freezes{}, now)); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

func TestReadTerminal(t *testing.T) {
	t.Parallel()
	id, other := protocol.NewAskID(), protocol.NewAskID()
	verdict := func(id, word, outcome string) string {
		return fmt.Sprintf(`{"v":1,"ask":%q,"verdict":%q,"outcome":%q,"approver":"p"}`, id, word, outcome)
	}
	for name, row := range map[string]struct {
		role protocol.TerminalKind
		data string
		want string // "" is no answer
	}{
		"allow":                         {protocol.TerminalHuman, verdict(id, "allow", "allowed_by_human"), "allow allowed_by_human by human p"},
		"deny":                          {protocol.TerminalHuman, verdict(id, "deny", "denied_by_human"), "deny denied_by_human by human p"},
		"taken":                         {protocol.TerminalHuman, progressFor(id), "open"},
		"taken, where nobody is":        {protocol.TerminalDeny, progressFor(id), ""},
		"another ask is taken":          {protocol.TerminalHuman, progressFor(other), ""},
		"another ask is allowed":        {protocol.TerminalHuman, verdict(other, "allow", "allowed_by_human"), ""},
		"defer":                         {protocol.TerminalHuman, verdict(id, "defer", "denied_by_human"), ""},
		"an allow that says denied":     {protocol.TerminalHuman, verdict(id, "allow", "denied_by_human"), ""},
		"nothing":                       {protocol.TerminalHuman, "", ""},
		"null":                          {protocol.TerminalHuman, "null", ""},
		"an allow that waits for a day": {protocol.TerminalHuman, strings.Replace(verdict(id, "allow", "allowed_by_human"), `"v":1`, `"v":2`, 1), ""},
	} {
		end, err := readTerminal(protocol.Pending{Role: row.role, Ask: protocol.Ask{ID: id}}, []byte(row.data))
		if got := word(end); (err != nil) != (row.want == "") || row.want != "" && got != row.want || err != nil && end.decided() {
			t.Errorf("%s: %s %v, want %q", name, got, err, row.want)
		}
	}
}

func TestNextStage(t *testing.T) {
	t.Parallel()
	p := protocol.Pending{Role: protocol.TerminalHuman, Chain: []string{"one", "two"}}
	for _, want := range []string{"link:one", "link:two", "terminal:human"} {
		if got := nextStage(p); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		at := len(p.Trail)
		add := appendTrail(at, protocol.TrailEntry{Link: "x"})
		add(&p)
		add(&p) // a change may run twice
		if len(p.Trail) != at+1 || p.Stage != nextStage(p) {
			t.Errorf("trail %v, stage %s", p.Trail, p.Stage)
		}
	}
}

func TestEdited(t *testing.T) {
	t.Parallel()
	ask := protocol.Ask{Tool: protocol.Tool{Input: jsontext.Value(`{"a":1}`)}}
	for in, want := range map[string]string{"": `{"a":1}`, "null": `{"a":1}`, `{"b":2}`: `{"b":2}`} {
		if got := edited(ask, ending{edited: jsontext.Value(in)}); string(got.Tool.Input) != want {
			t.Errorf("%q: %s", in, got.Tool.Input)
		}
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	now := time.Now()
	past, future := now.Add(-time.Second), now.Add(time.Second)
	for name, row := range map[string]struct {
		s    summary
		want bool
	}{
		"carried":                     {summary{owner: "g", lease: future, deadline: future}, false},
		"carried, and answered":       {summary{owner: "g", lease: future, deadline: future, ended: true}, false},
		"carried, its time over":      {summary{owner: "g", lease: future, deadline: past}, false},
		"its owner fell silent":       {summary{owner: "g", lease: past, deadline: future}, true},
		"its owner fell silent, late": {summary{owner: "g", lease: past, deadline: future, taken: true}, true},
		"waits for a person":          {summary{deadline: future, taken: true}, false},
		"answered":                    {summary{deadline: future, taken: true, ended: true}, true},
		"nobody answered":             {summary{deadline: past, taken: true}, true},
		"given up on its way":         {summary{deadline: future}, true},
	} {
		if got := row.s.due(now); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTheMirrorKeepsCount(t *testing.T) {
	t.Parallel()
	item := func(id, agent string, revision uint64) pending.Item {
		return pending.Item{Pending: protocol.Pending{Ask: protocol.Ask{ID: id, Agent: agent}, Stage: fmt.Sprint(revision)}, Revision: revision}
	}
	m := newMirror()
	m.put(item("a", "ci", 3))
	if s := m.put(item("a", "ci", 2)); s.stage != "3" {
		t.Error("an older state stands")
	}
	m.put(item("b", "ci", 4))
	if here, room := m.begin(item("c", "ci", 0), nil, 2); here || room {
		t.Error("a third of two")
	}
	if here, room := m.begin(item("c", "ci", 0), nil, 3); here || !room {
		t.Error("no room for a third of three")
	}
	if _, room := m.begin(item("d", "ci", 0), nil, 3); room {
		t.Error("what is not stored yet does not count")
	}
	if here, _ := m.begin(item("c", "ci", 0), nil, 9); !here {
		t.Error("opened twice")
	}
	m.broke()
	m.put(item("b", "ci", 4))
	if gone := m.prune(); len(gone) != 1 || gone[0] != "a" {
		t.Errorf("pruned %v: what is not stored no watch shows", gone)
	}
	m.put(item("c", "ci", 5)) // now it is
	if _, room := m.begin(item("d", "ci", 0), nil, 3); !room {
		t.Error("what was stored counts twice")
	}
	for _, id := range []string{"b", "b", "c", "d"} {
		m.drop(id)
	}
	if len(m.open)+len(m.count) != 0 {
		t.Errorf("left %v %v", m.open, m.count)
	}
}

func TestTheMirrorKnowsWhatComesBehindADecision(t *testing.T) {
	t.Parallel()
	item := func(id string, revision uint64) pending.Item {
		return pending.Item{Pending: protocol.Pending{Ask: protocol.Ask{ID: id, Agent: "ci"}}, Revision: revision}
	}
	m, now := newMirror(), time.Now()
	m.begin(item("alone", 0), nil, 9)
	if m.settle("alone", now) {
		t.Error("nobody has stored it")
	}
	if !m.put(item("alone", 7)).late {
		t.Error("an entry behind the decision is taken for an open ask")
	}
	m.begin(item("elsewhere", 0), nil, 9)
	m.put(item("elsewhere", 8))
	if !m.settle("elsewhere", now) {
		t.Error("another gate's entry is overlooked")
	}
	if !m.put(item("elsewhere", 9)).late {
		t.Error("an entry that could not be taken away is taken for an open ask")
	}
	if m.put(item("another", 9)).late {
		t.Error("an open ask is taken for a decided one")
	}
	m.forgetSettled(now.Add(settledFor + time.Second))
	if len(m.settled) != 0 {
		t.Errorf("remembers %v for ever", m.settled)
	}
}

func TestTheDeskRunsWhatComesMeanwhileBehind(t *testing.T) {
	t.Parallel()
	d := newDesk()
	var mu sync.Mutex
	var ran []string
	note := func(s string) { mu.Lock(); ran = append(ran, s); mu.Unlock() }
	begun, end := make(chan struct{}), make(chan struct{})
	d.start("a", func(ctx context.Context) { close(begun); <-end; note("first") })
	<-begun
	d.start("a", func(context.Context) { note("overtaken") })
	done := make(chan struct{})
	d.start("a", func(ctx context.Context) {
		note("behind")
		if ctx.Err() != nil {
			t.Error("the interruption of the first reached the second")
		}
		close(done)
	})
	d.interrupt("a")
	close(end)
	<-done
	d.interrupt("b") // nothing to interrupt
	d.start("b", func(ctx context.Context) {
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), errStopping) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		note("stopped")
	})
	d.stop()
	d.start("c", func(context.Context) { t.Error("begun after the stop") })
	d.stop()
	if got := strings.Join(ran, " "); got != "first behind stopped" {
		t.Errorf("ran %s", got)
	}
	if len(d.running) != 0 {
		t.Errorf("%d still run", len(d.running))
	}
}

func TestPresence(t *testing.T) {
	t.Parallel()
	p := newPresence()
	now := time.Now()
	if p.anyone(now) {
		t.Error("somebody, though nobody came")
	}
	p.sign("a", now.Add(-presenceTime+time.Second))
	p.sign("b", now.Add(-presenceTime-time.Second))
	if !p.anyone(now) || p.anyone(now.Add(2*time.Second)) {
		t.Error("presence does not lapse with its time")
	}
	if len(p.last) != 0 {
		t.Errorf("%d remembered", len(p.last))
	}
	p.sign("a", now)
	p.gone("a")
	if p.anyone(now) {
		t.Error("somebody who has left")
	}
}

func TestWaiters(t *testing.T) {
	t.Parallel()
	w := newWaiters()
	one, leaveOne, _ := w.await("a", 3)
	two, leaveTwo, _ := w.await("a", 3)
	_, leaveOther, _ := w.await("b", 1)
	if _, _, room := w.await("a", 2); room {
		t.Error("a third of two")
	}
	d := protocol.Decision{Ask: "a"}
	w.wake(d)
	w.wake(d)
	three, leaveThree, _ := w.await("a", 3) // comes behind
	if (<-one).Ask != "a" || (<-two).Ask != "a" || !w.waiting("a") || !w.waiting("b") {
		t.Error("not woken")
	}
	leaveOne()
	leaveTwo()
	if !w.waiting("a") {
		t.Error("whoever came behind was forgotten")
	}
	w.wake(d)
	<-three
	leaveThree()
	leaveOther()
	if len(w.ids) != 0 {
		t.Errorf("%d left", len(w.ids))
	}
}

func TestTheRecordBoundsWhatItRepeats(t *testing.T) {
	t.Parallel()
	d := protocol.Decision{Value: strings.Repeat("a", 10<<10)}
	for range 200 {
		d.Asks = append(d.Asks, protocol.Entry{Value: strings.Repeat("b", 10<<10)})
	}
	asks := d.Asks
	trim(&d)
	if len(d.Value) > recordedValue+8 || len(d.Asks) != recordedAsks || len(d.Asks[0].Value) > recordedValue+8 {
		t.Errorf("%d bytes, %d entries of %d", len(d.Value), len(d.Asks), len(d.Asks[0].Value))
	}
	if len(asks[0].Value) != 10<<10 {
		t.Error("the ask's own entries were cut")
	}
}

// TestProjectFilesThatAreKeptAreBounded: an agent may name one file under any
// number of projects.
func TestProjectFilesThatAreKeptAreBounded(t *testing.T) {
	t.Parallel()
	var rules []string
	for i := range policy.MaxProjectSize {
		rules = append(rules, fmt.Sprintf(`"c%d":"deny"`, i))
	}
	large := readProject("p", `{"permission":{"bash":{`+strings.Join(rules, ",")+`}}}`)
	if large.broken != "" {
		t.Fatal(large.broken)
	}
	f := newFiles(nil)
	for i := range 3 * maxFileRules / policy.MaxProjectSize {
		key := fileKey{"ci", "d", fmt.Sprint(i)}
		for range 2 { // renewed, it counts once
			f.keep(key, large)
		}
		sum := 0
		for _, kept := range f.read {
			sum += kept.size()
		}
		if _, kept := f.read[key]; !kept || sum != f.rules || sum > maxFileRules {
			t.Fatalf("after %d: kept %v, %d rules, counted %d", i, kept, sum, f.rules)
		}
	}
	heavy := readProject("p", "{}", protocol.ProjectModule{Name: "m", Code: strings.Repeat("x", protocol.MaxProjectCode)})
	for i := range 2 * maxFileRules * codePerRule / protocol.MaxProjectCode {
		f.keep(fileKey{"ci", "m", fmt.Sprint(i)}, heavy)
		if f.rules > maxFileRules {
			t.Fatalf("after %d with modules: %d", i, f.rules)
		}
	}
	for i := range 2 * maxFiles {
		f.keep(fileKey{"ci", "d", fmt.Sprint("broken", i)}, projectFile{broken: "x"})
	}
	if len(f.read) > maxFiles {
		t.Errorf("%d files that do not read", len(f.read))
	}
}
