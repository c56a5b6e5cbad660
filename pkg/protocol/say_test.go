package protocol

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// said are the decisions of the golden text: every outcome once, and the forms
// that change the text.
func said() []struct {
	name string
	d    *Decision
} {
	base := func(o Outcome, kind DeciderKind, name, reason string) *Decision {
		d := sampleDecision()
		d.Outcome, d.DecidedBy, d.Reason = o, Decider{Kind: kind, Name: name, Node: "main"}, reason
		d.Surface, d.Value, d.MatchedPattern, d.Approver = "bash", "npm install", "npm *", ""
		if o.Allows() {
			d.Result = FinalAllow
		}
		return &d
	}
	with := func(d *Decision, change func(*Decision)) *Decision { change(d); return d }
	return []struct {
		name string
		d    *Decision
	}{
		{"allowed by a rule", base(AllowedByRule, DeciderRule, "fleet", "")},
		{"allowed by a grant", base(AllowedByGrant, DeciderGrant, "oncall-1", "")},
		{"allowed by yolo", base(AllowedByYolo, DeciderYolo, "", "")},
		{"allowed by a link", base(AllowedByLink, DeciderLink, "model-judge", "Only reads.")},
		{"allowed by a person", base(AllowedByHuman, DeciderHuman, "oncall-1", "")},
		{"allowed by a person with a note and an edit", with(base(AllowedByHuman, DeciderHuman, "oncall-1", ""), func(d *Decision) {
			d.Note, d.EditedInput = "push tags too", []byte(`{"command":"git push --tags"}`)
		})},
		{"allowed with an unknown outcome", with(base("allowed_by_court", DeciderTerminal, "court", ""), func(d *Decision) { d.Result = FinalAllow })},
		{"denied by a rule", base(DeniedByRule, DeciderRule, "fleet", "Use pnpm instead")},
		{"denied by a rule without a reason or a pattern", with(base(DeniedByRule, DeciderRule, "fleet", ""), func(d *Decision) { d.MatchedPattern = "" })},
		{"denied by a rule though a person allowed", with(base(DeniedByRule, DeciderRule, "fleet", "Use pnpm instead"), func(d *Decision) { d.Approver = "oncall-1" })},
		{"denied by a rule as a person changed it", with(base(DeniedByRule, DeciderRule, "fleet", "Use pnpm instead"), func(d *Decision) {
			d.Approver, d.EditedInput = "oncall-1", []byte(`{"command":"npm ci"}`)
		})},
		{"denied by a rule of the parent node", with(base(DeniedByRule, DeciderParent, "bash", "Use pnpm instead"), func(d *Decision) { d.DecidedBy.Node = "root" })},
		{"blocked by a module", base(DeniedByModule, DeciderModule, "deploys/no-friday", "It is Friday.")},
		{"blocked by a module though a person allowed", with(base(DeniedByModule, DeciderModule, "deploys/no-friday", "It is Friday."), func(d *Decision) { d.Approver = "oncall-1" })},
		{"blocked by a module as a person changed it", with(base(DeniedByModule, DeciderModule, "deploys/no-friday", "It is Friday."), func(d *Decision) {
			d.Approver, d.EditedInput = "oncall-1", []byte(`{"command":"deploy prod"}`)
		})},
		{"a module that is out of order", base(Unavailable, DeciderModule, "deploys", "The fleet permission module \"deploys\" does not load.")},
		{"no approver for what a module asks", base(NoApprover, DeciderTerminal, "deny", "The permission check \"tag\" asks for a person, and no approver is there to answer.")},
		{"denied by a link", base(DeniedByLink, DeciderLink, "model-judge", "The path lies outside the project.")},
		{"refused by a person", base(DeniedByHuman, DeciderHuman, "oncall-1", "")},
		{"refused by a person with a reason and a note", with(base(DeniedByHuman, DeciderHuman, "oncall-1", "not on main"), func(d *Decision) { d.Note = "open a pull request" })},
		{"refused by a person who stops the agent", with(base(DeniedByHuman, DeciderHuman, "oncall-1", "wrong task"), func(d *Decision) { d.Abort = true })},
		{"no approver", base(NoApprover, DeciderTerminal, "human", "")},
		{"no approver for a search of everything", with(base(NoApprover, DeciderTerminal, "deny", "Nobody is there to ask."), func(d *Decision) {
			d.Asks = []Entry{{Surface: "path", Value: "*", MatchedPattern: "<could-select:*.env>", Origin: "builtin", Floor: true}}
		})},
		{"refused by a person, a search of everything", with(base(DeniedByHuman, DeciderHuman, "oncall-1", ""), func(d *Decision) {
			d.Asks = []Entry{{Surface: "path", Value: "*", MatchedPattern: "<could-select:*.env>", Origin: "builtin", Floor: true}}
		})},
		{"expired", base(Expired, DeciderTerminal, "human", "")},
		{"cancelled", base(Cancelled, DeciderGate, "g-7f3a", "")},
		{"frozen", base(Frozen, DeciderGate, "g-7f3a", "incident 7")},
		{"frozen though a person allowed", with(base(Frozen, DeciderGate, "g-7f3a", "incident 7"), func(d *Decision) { d.Approver, d.Note = "oncall-1", "go on" })},
		{"a judge's reason with a fence", base(DeniedByLink, DeciderLink, "judge", "no: ```sh\ncurl x | sh\n``` ~~~~")},
		{"rate limited", base(RateLimited, DeciderGate, "g-7f3a", "more than 50 asks a second")},
		{"unavailable", base(Unavailable, DeciderGate, "g-7f3a", "the record could not be written")},
		{"invalid", base(Invalid, DeciderGate, "g-7f3a", "bad field: tool.input is missing or no JSON object")},
		{"denied with an unknown outcome", base("denied_by_court", DeciderTerminal, "court", "out of order")},
		{"an allow's outcome without an allow", with(base(AllowedByRule, DeciderRule, "fleet", ""), func(d *Decision) { d.Result = 0 })},
		{"the zero decision", &Decision{}},
		{"no decision", nil},
		{"hostile text", with(base(DeniedByLink, DeciderLink, "judge\x1b[2J\u202E", "line\nbreak \x1b[31m\u200Bend"), func(d *Decision) { d.Note = " \n " })},
	}
}

func saidFaults() []*ErrorReply {
	var all []*ErrorReply
	for _, c := range []Code{CodeInvalid, CodeTooLarge, CodeForbidden, CodeConflict, CodeExpired, CodeNeedProject, CodeUnavailable} {
		all = append(all, &ErrorReply{V: 1, Ask: askID, Error: Fault{Code: c, Message: "the gate's own words"}})
	}
	return append(all, &ErrorReply{V: 1, Error: Fault{Code: "later", Message: "new", Remedy: "update"}}, &ErrorReply{})
}

// TestSay holds what agents are told still, every outcome and code.
func TestSay(t *testing.T) {
	var b strings.Builder
	for _, s := range said() {
		fmt.Fprintf(&b, "# %s\n%s\n\n", s.name, s.d.Say())
	}
	for _, e := range saidFaults() {
		fmt.Fprintf(&b, "# error reply %q\n%s\n\n", e.Error.Code, e.Say())
	}
	golden(t, "say.txt", []byte(b.String()))
}

func TestSayCoversEveryOutcome(t *testing.T) {
	covered := map[Outcome]bool{}
	for _, s := range said() {
		if s.d != nil {
			covered[s.d.Outcome] = true
		}
	}
	for _, o := range outcomes {
		if !covered[o] {
			t.Errorf("no text for %s in the golden file", o)
		}
	}
}

// TestSayTellsRefusalFromSilence: a person's no, nobody's word and a fault are
// three things, and the last two are said to be no refusal.
func TestSayTellsRefusalFromSilence(t *testing.T) {
	for _, s := range said() {
		if s.d == nil {
			continue
		}
		var silence, fault bool
		switch s.d.Outcome {
		case NoApprover, Expired, Cancelled, RateLimited:
			silence = true
		case Unavailable, Invalid:
			fault = true
		}
		for phrase, want := range map[string]bool{
			"Refused by a person": s.d.Outcome == DeniedByHuman,
			"not a refusal":       silence || fault,
			"This is a fault":     fault,
			"no person has":       s.d.Outcome == NoApprover || s.d.Outcome == Expired || s.d.Outcome == DeniedByLink,
		} {
			if got := strings.Contains(s.d.Say(), phrase); got != want {
				t.Errorf("%s: says %q: %v", s.name, phrase, got)
			}
		}
	}
}

func TestSayIsOneSafeParagraph(t *testing.T) {
	texts := map[string]string{}
	for _, s := range said() {
		texts[s.name] = s.d.Say()
		if allowed := strings.HasPrefix(texts[s.name], "Allowed"); allowed != s.d.Allowed() {
			t.Errorf("%s: told as allowed: %v", s.name, allowed)
		}
		if s.d != nil && s.d.Ask != "" && !strings.HasSuffix(texts[s.name], " "+askID+".") {
			t.Errorf("%s: does not end with the ask id", s.name)
		}
	}
	for _, e := range saidFaults() {
		texts[string(e.Error.Code)] = e.Say()
		if !strings.HasPrefix(e.Say(), "Not allowed") {
			t.Errorf("error reply %q: %s", e.Error.Code, e.Say())
		}
	}
	long := sampleDecision()
	long.Reason, long.Note = strings.Repeat("é", 2*maxSaid), strings.Repeat("\x1b", 2*maxSaid)
	texts["long"] = long.Say()
	for name, text := range texts {
		if strings.Contains(text, "```") || strings.Contains(text, "~~~") {
			t.Errorf("%s: a fence of code: %q", name, text)
		}
		if strings.ContainsFunc(text, hidden) || !utf8.ValidString(text) || strings.Contains(text, "  ") || len(text) > 2*maxSaid+1000 {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// TestSayRepeatsReasonAndNote: the words of whoever decided reach the agent as
// they are.
func TestSayRepeatsReasonAndNote(t *testing.T) {
	for _, o := range outcomes {
		d := sampleDecision()
		d.Outcome, d.Reason, d.Note = o, `It says "no" <here> – нет`, "Take the other road."
		if o.Allows() {
			d.Result = FinalAllow
		}
		if text := d.Say(); !strings.Contains(text, `"`+d.Reason+`"`) || !strings.Contains(text, `"`+d.Note+`"`) {
			t.Errorf("%s: %s", o, text)
		}
	}
}
