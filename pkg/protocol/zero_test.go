package protocol

import (
	"testing"

	"github.com/go-json-experiment/json"
)

// TestZeroMessagesCannotBeWritten: a value that nobody filled in never leaves a
// process.
func TestZeroMessagesCannotBeWritten(t *testing.T) {
	for _, s := range samples() {
		if b, err := s.zero(); err == nil || !IsRefusal(err) {
			t.Errorf("%s: %s, %v", s.name, b, err)
		}
		if _, err := s.write(); err != nil {
			t.Errorf("%s: filled in: %v", s.name, err)
		}
	}
}

// TestVerdictsLeftOutCannotBeWritten: everything filled in but the one word.
func TestVerdictsLeftOutCannotBeWritten(t *testing.T) {
	link := Verdict{Ask: askID, Reason: "fine"}
	if _, err := Write(link); err == nil {
		t.Error("a verdict without a word was written")
	}
	link.Verdict = ChoiceAllow
	if _, err := Write(link); err != nil {
		t.Error(err)
	}
	end := sampleTerminalVerdict()
	if _, err := Write(end); err != nil {
		t.Error(err)
	}
	end.Verdict = 0
	if _, err := Write(end); err == nil {
		t.Error("a terminal's verdict without a word was written")
	}
	d := allowed()
	if _, err := Write(d); err != nil {
		t.Error(err)
	}
	d.Result = 0
	if _, err := Write(d); err == nil {
		t.Error("a decision without a result was written")
	}
	check := Check{MatchedPattern: "*"}
	if _, err := Write(check); err == nil {
		t.Error("a check without a state was written")
	}
	check.State = ActionAllow
	if _, err := Write(check); err != nil {
		t.Error(err)
	}
}

func TestWordsOutOfRange(t *testing.T) {
	for i := range 256 {
		c, f, a := Choice(i), FinalChoice(i), Action(i)
		if c.Valid() != (i >= 1 && i <= 3) || f.Valid() != (i == 1 || i == 2) || a.Valid() != (i >= 1 && i <= 3) {
			t.Errorf("%d: valid as choice %v, final %v, action %v", i, c.Valid(), f.Valid(), a.Valid())
		}
		for _, w := range []struct {
			value any
			valid bool
			word  string
		}{{c, c.Valid(), c.String()}, {f, f.Valid(), f.String()}, {a, a.Valid(), a.String()}} {
			b, err := json.Marshal(w.value)
			if (err == nil) != w.valid || w.valid && string(b) != `"`+w.word+`"` || !w.valid && w.word != "none" {
				t.Errorf("%d: %s, %v, %q", i, b, err, w.word)
			}
		}
	}
	if ActionAllow >= ActionAsk || ActionAsk >= ActionDeny {
		t.Error("a greater action is not stricter")
	}
}

// TestAReadThatFailsLeavesNoWord: a word read into a used variable does not keep
// the old one.
func TestAReadThatFailsLeavesNoWord(t *testing.T) {
	c, f, a := ChoiceAllow, FinalAllow, ActionAllow
	for _, err := range []error{c.UnmarshalText([]byte("x")), f.UnmarshalText([]byte("defer")), a.UnmarshalText([]byte("defer"))} {
		if err == nil {
			t.Error("read")
		}
	}
	if c.Valid() || f.Valid() || a.Valid() {
		t.Errorf("left over: %s, %s, %s", c, f, a)
	}
}

func allowed() Decision {
	d := sampleDecision()
	d.Result, d.Outcome, d.DecidedBy = FinalAllow, AllowedByRule, Decider{Kind: DeciderRule, Name: "fleet", Node: "main"}
	return d
}

func TestAllowed(t *testing.T) {
	yes, edited, later := allowed(), allowed(), allowed()
	edited.Outcome, edited.EditedInput = AllowedByHuman, []byte(`{"command":"ls"}`)
	later.Outcome = "allowed_by_court"
	for name, d := range map[string]*Decision{"by a rule": &yes, "with an edited input": &edited, "with an outcome of a later version": &later} {
		if !d.Allowed() {
			t.Errorf("%s: not allowed", name)
		}
	}
	for _, o := range []Outcome{AllowedByGrant, AllowedByYolo, AllowedByLink, AllowedByHuman} {
		d := allowed()
		if d.Outcome = o; !d.Allowed() {
			t.Errorf("%s: not allowed", o)
		}
	}

	var none, zero, result, outcome = (*Decision)(nil), Decision{}, allowed(), allowed()
	result.Result, outcome.Outcome = 0, Expired
	noID, noAgent := allowed(), allowed()
	noID.Ask, noAgent.Agent = "", ""
	broken := allowed()
	broken.EditedInput = []byte(`"ls"`)
	for name, d := range map[string]*Decision{"none": none, "zero": &zero, "no result": &result, "silence": &outcome,
		"on no ask": &noID, "for nobody": &noAgent, "with an input that is none": &broken} {
		if d.Allowed() {
			t.Errorf("%s: allowed", name)
		}
	}
}
