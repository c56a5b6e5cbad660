package protocol

import "strings"

func decisionRows() []fieldRow {
	granted := func(grant string) []string {
		return []string{`result="allow"`, `outcome="allowed_by_human"`, "grant=" + grant}
	}
	const whole = `{"scope":"session","surface":"bash","patterns":["git *"],"node":"main","agent":"ci-42","granted_by":"oncall-1","ask":"` + askID + `"}`
	rows := []fieldRow{
		no(ErrField, "a grant on a denial", "grant="+whole),
		no(ErrField, "a grant on a link's allow", append(granted(whole), `outcome="allowed_by_link"`)...),
		no(ErrField, "a grant for another agent", granted(strings.Replace(whole, "ci-42", "ci-43", 1))...),
		no(ErrField, "a grant by another person", granted(strings.Replace(whole, "oncall-1", "ci-42", 1))...),
		no(ErrField, "a grant of another ask", granted(strings.Replace(whole, askID, otherID, 1))...),
		yes("a grant on a person's allow", granted(whole)...),
		yes("a grant on a person's allow with an end", granted(strings.Replace(whole, `"node"`, `"expires":"2026-03-02T18:00:00Z","node"`, 1))...),
		yes("a grant on a person's allow with uses", granted(strings.Replace(whole, `"node"`, `"uses":3,"node"`, 1))...),
		yes("a person's allow without a grant", granted("null")...),
		yes("a denial with no grant in it", "grant=null"),
		no(ErrField, "result missing", "result="),
		no(ErrField, "result null", "result=null"),
		no(ErrEnum, "result empty", `result=""`),
		no(ErrEnum, "defer", `result="defer"`),
		no(ErrEnum, "ask", `result="ask"`),
		no(ErrEnum, "result in another case", `result="Deny"`),
		no(ErrMalformed, "result a boolean", "result=false"),
		no(ErrField, "result only in another case of its name", "result=", `Result="deny"`),
		no(ErrField, "outcome missing", "outcome="),
		no(ErrField, "outcome empty", `outcome=""`),
		no(ErrToken, "outcome no word", `outcome="denied by\nme"`),
		no(ErrToken, "outcome of 65 bytes", "outcome="+text(65)),
		no(ErrToken, "node missing", "node="),
		no(ErrToken, "node a wildcard", `node="*"`),
		no(ErrToken, "agent missing", "agent="),
		no(ErrToken, "agent with a dot", `agent="a.b"`),
		no(ErrField, "nobody decided", "decided_by="),
		no(ErrField, "decider of no kind", "decided_by.kind="),
		no(ErrField, "decider of kind null", "decided_by.kind=null"),
		no(ErrEnum, "decider of an empty kind", `decided_by.kind=""`),
		no(ErrEnum, "decider of an unknown kind", `decided_by.kind="oracle"`),
		no(ErrEnum, "decider's kind in another case", `decided_by.kind="Rule"`),
		no(ErrField, "edited input a text", `edited_input="ls"`),
		no(ErrField, "a trail entry without a verdict", `trail=[{"link":"a"}]`),
		no(ErrEnum, "a trail entry with an unknown verdict", `trail=[{"link":"a","verdict":"ok"}]`),
		no(ErrMalformed, "a negative policy revision", "policy.revision=-1"),
		no(ErrMalformed, "a policy revision beyond 64 bits", "policy.revision=18446744073709551616"),
		no(ErrMalformed, "decided at no time", `decided_at=""`),

		yes("no reason", "reason="),
		yes("result beside another word in another case of its name", `Result="allow"`),
		yes("an unknown outcome that denies", `outcome="denied_by_court"`),
		yes("an unknown outcome that allows", `outcome="allowed_by_court"`, `result="allow"`),
		yes("an unknown outcome whose name says the contrary", `outcome="allowed_by_court"`),
		yes("outcome of 64 bytes", "outcome="+text(64)),
		yes("an abort", "abort=true"),
		yes("an edited input", "edited_input={}", `result="allow"`, `outcome="allowed_by_human"`),
		yes("edited input left out", "edited_input="),
		yes("no trail", "trail="),
		yes("no entries", "asks="),
		yes("no session", "session="),
		yes("no requester", "requester="),
		yes("no policy", "policy="),
		yes("the highest policy revision", "policy.revision=18446744073709551615"),
		yes("no times", "asked_at=", "decided_at="),
		yes("a surface that is no token", `surface="mcp/exa.search"`),
		yes("no gate", "gate="),
		yes("a trail entry of a missing link", `trail=[{"link":"a","verdict":"defer","failure":"unregistered"}]`),
	}
	for _, k := range []string{"rule", "module", "grant", "yolo", "link", "human", "parent", "terminal", "gate"} {
		rows = append(rows, yes("decided by a "+k, `decided_by.kind="`+k+`"`))
	}
	return append(rows, outcomeRows()...)
}

// outcomeRows hold each known outcome to its result, both ways.
func outcomeRows() []fieldRow {
	var rows []fieldRow
	for _, o := range outcomes {
		right, wrong := "deny", "allow"
		if strings.HasPrefix(string(o), "allowed_") {
			right, wrong = wrong, right
		}
		rows = append(rows,
			yes(string(o)+" with "+right, `outcome="`+string(o)+`"`, `result="`+right+`"`),
			no(ErrField, string(o)+" with "+wrong, `outcome="`+string(o)+`"`, `result="`+wrong+`"`))
	}
	return rows
}

func reviewRows() []fieldRow {
	return []fieldRow{
		no(ErrToken, "event missing", "event="),
		no(ErrToken, "event with a wildcard", `event="a.>"`),
		no(ErrToken, "event of five tokens", `event="a.b.c.d.e"`),
		no(ErrToken, "node missing", "node="),
		no(ErrToken, "gate with a dot", `gate="a.b"`),
		no(ErrToken, "link with a blank", `link="a b"`),
		no(ErrField, "fields a list", "fields=[]"),
		no(ErrMalformed, "at no time", `at="now"`),

		yes("the gate's own record", `event="permission_request.denied"`, "link="),
		yes("event of four tokens", `event="a.b.c.d"`),
		yes("no gate", "gate="),
		yes("no fields", "fields="),
		yes("fields null", "fields=null"),
		yes("fields empty", "fields={}"),
		yes("fields with names of ours", `fields={"ask":"x","node":"y","v":2}`),
		yes("no time", "at="),
	}
}

func pendingRows() []fieldRow {
	return []fieldRow{
		no(ErrVersion, "the ask without a version", "ask.v="),
		no(ErrVersion, "the verdict without a version", "verdict.v="),
		no(ErrVersion, "the cancel without a version", "withdrawn.v="),
		no(ErrVersion, "the ask missing", "ask="),
		no(ErrAskID, "the ask's id in lower case", `ask.id="`+strings.ToLower(askID)+`"`),
		no(ErrField, "digest missing", "digest="),
		no(ErrField, "role missing", "role="),
		no(ErrField, "role null", "role=null"),
		no(ErrEnum, "role empty", `role=""`),
		no(ErrEnum, "role auto, which is not fixed yet", `role="auto"`),
		no(ErrField, "stage missing", "stage="),
		no(ErrField, "deadline missing", "deadline="),
		no(ErrToken, "node missing", "node="),
		no(ErrToken, "owner with a dot", `owner="g.1"`),
		no(ErrToken, "a link of the chain with a blank", `chain=["model judge"]`),
		no(ErrEnum, "the verdict a defer", `verdict.verdict="defer"`),
		no(ErrField, "the verdict without a word", "verdict.verdict="),
		no(ErrField, "the verdict an allow with a denial's outcome", `verdict.outcome="expired"`),
		no(ErrMismatch, "the verdict on another ask", `verdict.ask="`+otherID+`"`),
		no(ErrMismatch, "the cancel of another ask", `withdrawn.ask="`+otherID+`"`),
		no(ErrField, "an entry of a unit that is not there", `asks=[{"surface":"bash","unit":2}]`),
		no(ErrField, "a trail entry without a verdict", `trail=[{"link":"a"}]`),

		yes("not answered", "verdict="),
		yes("verdict null", "verdict=null"),
		yes("not withdrawn", "withdrawn="),
		yes("withdrawn null", "withdrawn=null"),
		yes("role parent", `role="parent"`),
		yes("role deny", `role="deny"`),
		yes("role human", `role="human"`),
		yes("nobody owns it", `owner=""`, "lease="),
		yes("owner left out", "owner="),
		yes("owner of 64 bytes", "owner="+text(64)),
		yes("not taken", "taken="),
		yes("no chain", "chain="),
		yes("a chain of two", `chain=["a","b"]`),
		yes("no trail", "trail="),
		yes("no units", "units="),
		yes("no suggestion", "suggest="),
		yes("no prompt", "prompt="),
		yes("no policy", "policy="),
		yes("no requester", "requester="),
		yes("a denial", `verdict.verdict="deny"`, `verdict.outcome="denied_by_human"`, "verdict.grant=", "verdict.edited_input=null"),
		yes("the first link's stage", `stage="link:model-judge"`),
		yes("a deadline long past", `deadline="2001-01-01T00:00:00Z"`),
	}
}
