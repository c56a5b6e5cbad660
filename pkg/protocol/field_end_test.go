package protocol

import "strings"

func terminalRequestRows() []fieldRow {
	return []fieldRow{
		no(ErrField, "kind missing", "kind="),
		no(ErrField, "kind null", "kind=null"),
		no(ErrEnum, "kind empty", `kind=""`),
		no(ErrEnum, "a policy's word, not a kind", `kind="auto"`),
		no(ErrEnum, "kind in another case", `kind="Human"`),
		no(ErrVersion, "the ask missing", "ask="),
		no(ErrVersion, "the ask without a version", "ask.v="),
		no(ErrToken, "the ask without an agent", "ask.agent="),
		no(ErrField, "deadline missing", "deadline="),
		no(ErrField, "a trail entry without a verdict", `trail=[{"link":"a"}]`),
		no(ErrField, "a trail entry without a link", `trail=[{"verdict":"defer"}]`),
		no(ErrEnum, "a trail entry with an unknown verdict", `trail=[{"link":"a","verdict":"ask"}]`),
		no(ErrMalformed, "a trail entry that took forever", `trail=[{"link":"a","verdict":"defer","ms":1e999}]`),
		no(ErrField, "an entry of a unit that is not there", `asks=[{"surface":"bash","unit":9}]`),

		yes("human", `kind="human"`),
		yes("parent", `kind="parent"`),
		yes("deny", `kind="deny"`),
		yes("no open entry, as after a module's request", "asks=[]"),
		yes("no units", "units=", `asks=[{"surface":"read"}]`),
		yes("no trail", "trail="),
		yes("a trail entry that allowed", `trail=[{"link":"a","verdict":"allow","capped":true}]`),
		yes("a trail entry that denied", `trail=[{"link":"a","verdict":"deny"}]`),
		yes("a trail entry that failed", `trail=[{"link":"a","verdict":"defer","failure":"timeout","ms":8000.0}]`),
		yes("no suggestion", "suggest="),
		yes("no prompt", "prompt="),
		yes("prompt null", "prompt=null"),
		yes("prompt without a highlight", "prompt.highlight="),
		yes("prompt with labels", `prompt.approve_label="Ship it"`),
	}
}

const grantRest = `"surface":"bash","patterns":["git *"],"expires":"","uses":0}`

// endRows are common to an answer and a terminal's verdict, both of which end
// an ask. outcome, if not "", is the change that makes the outcome a denial.
func endRows(outcome string) []fieldRow {
	deny := func(changes ...string) []string {
		all := append([]string{`verdict="deny"`, "grant=null", "edited_input=null"}, changes...)
		if outcome != "" {
			all = append(all, outcome)
		}
		return all
	}
	return []fieldRow{
		no(ErrEnum, "verdict empty", `verdict=""`),
		no(ErrEnum, "defer", `verdict="defer"`),
		no(ErrEnum, "defer in another case", `verdict="Defer"`),
		no(ErrEnum, "an unknown verdict", `verdict="yes"`),
		no(ErrEnum, "allow in another case", `verdict="ALLOW"`),
		no(ErrMalformed, "verdict a number", "verdict=1"),
		no(ErrMalformed, "verdict a boolean", "verdict=true"),
		no(ErrField, "a deny with a grant", deny(`grant={"scope":"session",`+grantRest)...),
		no(ErrField, "a deny with an edited input", deny("edited_input={}")...),
		no(ErrField, "an allow that aborts", "abort=true"),
		no(ErrField, "edited input a text", `edited_input="git push"`),
		no(ErrField, "edited input a list", "edited_input=[]"),
		no(ErrField, "note over its bound", "note="+text(MaxReason+1)),
		no(ErrField, "reason over its bound", "reason="+text(MaxReason+1)),
		no(ErrField, "a grant without a scope", "grant={"+grantRest),
		no(ErrField, "a grant with scope null", `grant={"scope":null,`+grantRest),
		no(ErrEnum, "a grant with an empty scope", `grant={"scope":"",`+grantRest),
		no(ErrEnum, "a grant with an unknown scope", `grant={"scope":"fleet",`+grantRest),
		no(ErrField, "a grant without a surface", "grant.surface="),
		no(ErrField, "a grant without patterns", "grant.patterns="),
		no(ErrField, "a grant with no pattern in its list", "grant.patterns=[]"),
		no(ErrField, "a grant with an empty pattern", `grant.patterns=[""]`),
		no(ErrField, "a grant with 65 patterns", "grant.patterns=["+strings.Repeat(`"a",`, 64)+`"a"]`),
		no(ErrField, "a grant with negative uses", "grant.uses=-1"),
		no(ErrMalformed, "a grant with uses beyond 64 bits", "grant.uses=1e30"),
		no(ErrField, "a grant that ends at no time", `grant.expires="tomorrow"`),
		no(ErrField, "a grant that ends at a day", `grant.expires="2026-03-02"`),
		no(ErrMalformed, "a grant as a boolean", "grant=true"),

		yes("allow"),
		yes("allow beside another word in another case of its name", `Verdict="deny"`),
		yes("allow without grant or edit", "grant=null", "edited_input=null"),
		yes("allow with grant and edit left out", "grant=", "edited_input="),
		yes("allow with abort false", "abort=false"),
		yes("allow with an empty edited input", "edited_input={}"),
		yes("deny", deny()...),
		yes("deny with a reason", deny(`reason="no"`)...),
		yes("deny without a reason", deny("reason=")...),
		yes("deny that aborts", deny("abort=true")...),
		yes("deny with grant and edit left out", deny("grant=", "edited_input=")...),
		yes("note at its bound", "note="+text(MaxReason)),
		yes("reason at its bound", "reason="+text(MaxReason)),
		yes("no note", "note="),
		yes("note null", "note=null"),
		yes("a grant for the session", `grant.scope="session"`),
		yes("a grant for the tree", `grant.scope="tree"`),
		yes("a grant for the agent", `grant.scope="agent"`),
		yes("a grant for the project", `grant.scope="project"`),
		yes("a grant with 64 patterns", "grant.patterns=["+strings.Repeat(`"a",`, 63)+`"a"]`),
		yes("a grant with the widest pattern", `grant.patterns=["*"]`),
		yes("a grant without limit of uses", "grant.uses=0"),
		yes("a grant with uses left out", "grant.uses="),
		yes("a grant for one use", "grant.uses=1"),
		yes("a grant without end", `grant.expires=""`),
		yes("a grant that ends in another zone", `grant.expires="2026-03-02T18:00:00+02:00"`),
		yes("a grant with an unknown field", "grant.zz=1"),
		yes("a grant on a surface that is no token", `grant.surface="mcp/exa.search"`),
	}
}

func answerRows() []fieldRow {
	return append(endRows(""),
		no(ErrField, "verdict missing", "verdict="),
		no(ErrField, "verdict null", "verdict=null"),
		no(ErrToken, "approver missing", "approver="),
		no(ErrToken, "approver with a dot", `approver="on.call"`),
		no(ErrField, "a grant that names its agent", `grant.agent="ci-43"`),
		no(ErrField, "a grant that names its node", `grant.node="other"`),
		no(ErrField, "a grant that names who gave it", `grant.granted_by="boss"`),

		yes("approver of one letter", `approver="a"`),
		yes("approver of 64 bytes", "approver="+text(64)),
		yes("approver beside one in another case of its name", `Approver="boss"`),
		yes("an outcome that does not belong here", `outcome="allowed_by_rule"`),
		yes("a grant that names an empty agent", `grant.agent=""`),
		yes("a grant whose node is null", "grant.node=null"),
		yes("a grant whose giver is left out", "grant.granted_by="),
	)
}

func terminalVerdictRows() []fieldRow {
	return append(endRows(`outcome="denied_by_human"`),
		no(ErrField, "verdict missing", "verdict="),
		no(ErrField, "verdict missing, outcome a denial", "verdict=", `outcome="expired"`),
		no(ErrField, "outcome missing", "outcome="),
		no(ErrField, "a deny without an outcome", `verdict="deny"`, "grant=", "edited_input=", "outcome="),
		no(ErrField, "an allow with a denial's outcome", `outcome="denied_by_human"`),
		no(ErrField, "a deny with an allow's outcome", `verdict="deny"`, "grant=", "edited_input="),
		no(ErrField, "an allow with silence's outcome", `outcome="expired"`),
		no(ErrField, "an allow with an unknown outcome", `outcome="allowed_by_court"`),
		no(ErrToken, "a deny with an outcome that is no word", `verdict="deny"`, "grant=", "edited_input=", `outcome="a b"`),
		no(ErrToken, "approver with a blank", `approver="on call"`),
		no(ErrToken, "a parent without a name", `parent={"decided_by":{"kind":"rule","node":"root"}}`),
		no(ErrField, "a parent where nobody decided", `parent={"node":"root"}`),
		no(ErrToken, "a parent where it is not said on which node", `parent={"node":"root","decided_by":{"kind":"rule"}}`),
		no(ErrEnum, "a parent where an unknown kind decided", `parent={"node":"root","decided_by":{"kind":"court","node":"root"}}`),
		no(ErrField, "a parent's trail without a verdict", `parent={"node":"root","decided_by":{"kind":"rule","node":"root"},"trail":[{"link":"a"}]}`),

		yes("allowed by the parent's rule", `outcome="allowed_by_rule"`),
		yes("allowed by the parent's grant", `outcome="allowed_by_grant"`),
		yes("allowed by the parent's link", `outcome="allowed_by_link"`),
		yes("nobody there", `verdict="deny"`, "grant=", "edited_input=", `outcome="no_approver"`, `approver=""`),
		yes("nobody in time", `verdict="deny"`, "grant=", "edited_input=", `outcome="expired"`, "approver="),
		yes("denied by the parent's rule", `verdict="deny"`, "grant=", "edited_input=", `outcome="denied_by_rule"`),
		yes("a deny with an outcome of a later version", `verdict="deny"`, "grant=", "edited_input=", `outcome="denied_by_court"`),
		yes("a grant that the gate bound", `grant.agent="ci-42"`, `grant.node="main"`, `grant.granted_by="oncall-1"`),
		yes("not stored yet", "at="),
		yes("a parent's rule", `parent={"node":"root","decided_by":{"kind":"rule","name":"bash","node":"root"},"trail":[]}`),
		yes("a parent's parent", `parent={"node":"mid","decided_by":{"kind":"parent","name":"oncall-1","node":"root"}}`),
		yes("a parent's trail", `parent={"node":"root","decided_by":{"kind":"link","name":"a","node":"root"},"trail":[{"link":"a","verdict":"deny","node":"root"}]}`),
		yes("a trail of a node as a whole", `parent={"node":"mid","decided_by":{"kind":"rule","node":"root"},"trail":[{"verdict":"deny","node":"root"}]}`),
		yes("no parent", "parent=null"),
		yes("no approver named", "approver="),
	)
}

func answerReceiptRows() []fieldRow {
	return []fieldRow{
		no(ErrField, "accepted with an error", `error="too late"`),
		no(ErrMalformed, "accepted as text", `accepted="true"`),
		no(ErrMalformed, "accepted as a number", "accepted=1"),
		no(ErrEnum, "defer", `verdict="defer"`),
		no(ErrEnum, "an unknown verdict", `verdict="ok"`),
		no(ErrToken, "answered by no token", `answered_by="on.call"`),
		no(ErrMalformed, "at no time", `at="now"`),

		yes("accepted"),
		yes("too late", "accepted=false", `answered_by="oncall-2"`, `verdict="deny"`),
		yes("refused with an error", "accepted=false", `error="bad field"`, "answered_by=", "verdict=", "at="),
		yes("accepted missing, so not accepted", "accepted=", `error="x"`),
		yes("accepted null, so not accepted", "accepted=null", `error="x"`),
		yes("verdict null", "verdict=null"),
		yes("answered by nobody named", `answered_by=""`),
	}
}

func parentSignRows() []fieldRow {
	return []fieldRow{
		no(ErrToken, "no parent", "parent="),
		no(ErrToken, "a parent that is no token", `parent="a.b"`),
		no(ErrMalformed, "answers as text", `answers="true"`),
		no(ErrField, "a reason over its bound", "reason="+text(MaxReason+1)),

		yes("it answers", "answers=true", "reason="),
		yes("nothing said of answers, so it does not", "answers="),
		yes("no release", "release="),
		yes("no time", "at="),
	}
}
