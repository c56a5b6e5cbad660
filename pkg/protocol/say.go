package protocol

import "strings"

// Bounds of foreign text in what an agent is told, in bytes.
const (
	maxSaid     = 2000
	maxSaidName = 120
)

// speech is one text for an agent: what happened, and the next sensible step.
type speech struct{ happened, next string }

// Say is what the agent is told: what happened, why in the words of the rule,
// judge or person, the person's note, and the next sensible step; one paragraph
// that ends with the ask id. A refusal by a person is not silence, and silence is
// not refusal: an agent that takes one for the other either nags a person or
// gives up on work that nobody has looked at. Foreign text went through Safe.
// An unknown outcome is told by its result; whatever is not Allowed is told as
// not allowed.
func (d *Decision) Say() string {
	if d == nil {
		return "Not allowed: there is no decision."
	}
	s := d.denied()
	if d.Allowed() {
		s = d.allowed()
	}
	parts := []string{s.happened, quoted("Reason", d.Reason), quoted("Note from the approver", d.Note)}
	if d.Allowed() && len(d.EditedInput) > 0 {
		parts = append(parts, "The approver changed the input: only the changed call may run.")
	}
	if step := d.narrower(); step != "" && !d.Allowed() && (d.Outcome == NoApprover || d.Outcome == Expired) {
		s.next = step + " " + s.next
	}
	if d.Abort {
		s.next = "The approver wants you to stop: end this task now and wait for a person's word."
	}
	return paragraph(append(parts, s.next, askLine(d.Ask))...)
}

func (d *Decision) allowed() speech {
	switch d.Outcome {
	case AllowedByRule:
		return speech{happened: "Allowed by a rule."}
	case AllowedByGrant:
		return speech{happened: "Allowed by an approval that a person gave earlier."}
	case AllowedByYolo:
		return speech{happened: "Allowed because yolo mode is on; nobody looked at this call."}
	case AllowedByLink:
		return speech{happened: "Allowed by the judge" + named(d.DecidedBy.Name) + "."}
	case AllowedByHuman:
		return speech{happened: "Allowed by a person" + named(d.DecidedBy.Name) + "."}
	default:
		return speech{happened: "Allowed" + named(string(d.Outcome)) + "."}
	}
}

func (d *Decision) denied() speech {
	switch d.Outcome {
	case DeniedByRule:
		if d.Approver != "" {
			return d.overruled()
		}
		return speech{"Denied by a rule of the policy" + d.rule() + ".",
			"A rule is final: do not try the same thing in another form. Choose a way that the rules allow, or say in your report what you needed and why."}
	case DeniedByModule:
		if d.Approver != "" {
			return d.overruled()
		}
		return speech{"Blocked by the permission check" + named(d.DecidedBy.Name) + ".",
			"Mend what it names and make the call anew, or choose another way; do not dress up the same call."}
	case DeniedByLink:
		return speech{"Denied by the judge" + named(d.DecidedBy.Name) + ", an automatic one; no person has seen this call.",
			"Mend what the reason names and make the call anew, or choose another way; do not dress up the same call."}
	case DeniedByHuman:
		return speech{"Refused by a person" + named(d.DecidedBy.Name) + " who looked at this call.",
			"Take it as an instruction: do not ask for the same again. Do what the person wrote; where nothing is written, ask what to do instead."}
	default:
		return d.undecided()
	}
}

// overruled is a person's allow that a rule or a permission module stopped: the
// agent must know that the call which was denied may not be the one that it made.
func (d *Decision) overruled() speech {
	what := "allowed this call"
	if len(d.EditedInput) > 0 {
		what = "changed this call and allowed it"
	}
	if d.Outcome == DeniedByModule {
		return speech{"A person" + named(d.Approver) + " " + what + ", but the permission check" + named(d.DecidedBy.Name) + " blocks it.",
			"What a check blocks no approver lifts: wait for word from the approver, or go on with other work."}
	}
	return speech{"A person" + named(d.Approver) + " " + what + ", but a rule of the policy" + d.rule() + " denies it.",
		"A rule is final, also for a person: wait for word from the approver, or go on with other work."}
}

// undecided are the denials in which nobody judged the call.
func (d *Decision) undecided() speech {
	const elsewhere = "Go on with work that needs no permission and ask again later, or say in your report that this step waits for a person."
	switch d.Outcome {
	case NoApprover:
		return speech{"Not allowed, because no approver is there to answer. This is not a refusal: no person has seen this call.", elsewhere}
	case Expired:
		return speech{"Not allowed, because nobody answered in time. This is not a refusal: no person has decided on this call.", elsewhere}
	case Cancelled:
		return speech{"Not allowed, because the ask was withdrawn before anyone decided. This is not a refusal.",
			"If the call is still needed, make it again."}
	case Frozen:
		s := speech{"Not allowed, because an operator has frozen this agent, its session or the whole fleet. This is no judgement on this call.",
			"Stop here: no other call will be allowed either until an operator lifts the freeze; do not try it again meanwhile."}
		if d.Approver != "" {
			s.happened = "A person" + named(d.Approver) + " allowed this call, but it was not carried out: an operator has frozen this agent, its session or the whole fleet."
		}
		return s
	case RateLimited:
		return speech{"Not allowed, because too many asks came at once; this one was not looked at. This is not a refusal.",
			"Wait some seconds, then ask again with fewer calls at a time."}
	case Unavailable:
		if d.DecidedBy.Kind == DeciderModule {
			return speech{"Not allowed, because the permission module" + named(d.DecidedBy.Name) + " is out of order, and the policy lets nothing pass meanwhile. This is a fault, not a refusal.",
				"Tell a person that the permission module has to be mended; making the same call again helps only then."}
		}
		return speech{"Not allowed, because the permission service could not decide or could not record a decision. This is a fault, not a refusal.",
			"Wait some seconds and make the call again; if that does not help, tell a person that the permission service is out of order."}
	case Invalid:
		return speech{"Not allowed, because the ask could not be read. This is a fault in how it was asked, not a refusal.",
			"Do not send it again unchanged; make another call, or tell a person that the adapter's ask was refused as invalid."}
	default:
		return speech{"Not allowed" + named(string(d.Outcome)) + ".",
			"Do not make the same call again unchanged; choose another way, or say in your report what you needed and why."}
	}
}

// narrower is how to make a search or glob that could meet protected files in a
// way that needs nobody's permission; "" where the call is open for another
// reason.
func (d *Decision) narrower() string {
	for _, e := range d.Asks {
		if e.Floor && strings.HasPrefix(e.MatchedPattern, "<could-select:") {
			return "The call could show files that a rule protects. Name the files that you mean, or search files of one kind: " +
				"a glob as *.go, grep --include='*.go', rg -t go."
		}
	}
	return ""
}

// rule names the rule that denied, as far as the decision does.
func (d *Decision) rule() string {
	if d.DecidedBy.Kind == DeciderParent {
		// What this record says beside it is what the rules here left open.
		return " at the parent node" + named(d.DecidedBy.Node)
	}
	if d.Surface == "" || d.MatchedPattern == "" {
		return ""
	}
	return ` ("` + Safe(d.MatchedPattern, maxSaidName, false) + `" on ` + Safe(d.Surface, maxSaidName, false) + ")"
}

// faultWords are the sentence and the step for each code.
var faultWords = map[Code]speech{
	CodeInvalid:     {"the message could not be read", "Do not send it again unchanged."},
	CodeTooLarge:    {"the message is too large", "Make a smaller call: put long content into several, or into a file first."},
	CodeForbidden:   {"this sender may not ask that", "Trying again will not help; tell a person which right is missing."},
	CodeConflict:    {"the ask id stands for another call already", "Make the call again under a new id; the first call's decision does not hold for this one."},
	CodeExpired:     {"the time for it is over", "If the call is still needed, make it again."},
	CodeNeedProject: {"the gate does not know the project's policy yet", "The adapter must upload it first, then ask again."},
	CodeUnavailable: {"the permission service is out of order", "Wait some seconds and make the call again; if that does not help, tell a person."},
}

// Say is what the agent is told when its ask got an error reply: no decision at
// all, and so no permission. It is never told as a refusal.
func (e *ErrorReply) Say() string {
	s, known := faultWords[e.Error.Code]
	if !known {
		s = speech{"the ask could not be answered", "Do not send it again unchanged."}
	}
	return paragraph("Not allowed: "+s.happened+". This is a fault, not a refusal.",
		quoted("Reason", e.Error.Message), quoted("Remedy", e.Error.Remedy), s.next, askLine(e.Ask))
}

func named(s string) string {
	if s == "" {
		return ""
	}
	return " (" + Safe(s, maxSaidName, false) + ")"
}

// quoted is foreign text in what an agent is told. A fence of code would end the
// quotation for whoever reads it as Markdown, and begin a block of its own.
func quoted(what, text string) string {
	text = fences.Replace(strings.TrimSpace(Safe(text, maxSaid, false)))
	switch {
	case text == "":
		return ""
	case strings.HasSuffix(text, ".") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, "?"):
		return what + `: "` + text + `"`
	default:
		return what + `: "` + text + `".`
	}
}

var fences = strings.NewReplacer("```", "'''", "~~~", "---")

func askLine(id string) string {
	if CheckAskID(id) != nil {
		return "The ask has no id."
	}
	return "For the record: ask " + id + "."
}

func paragraph(parts ...string) string {
	said := parts[:0]
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return strings.Join(said, " ")
}
