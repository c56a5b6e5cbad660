package protocol

import "strings"

func askRows() []fieldRow {
	manyPaths := `[` + strings.Repeat(`{"raw":"a","resolved":"/a"},`, MaxPaths) + `{"raw":"a","resolved":"/a"}]`
	return []fieldRow{
		no(ErrToken, "agent missing", "agent="),
		no(ErrToken, "agent null", "agent=null"),
		no(ErrToken, "agent in another case of its name", "agent=", `Agent="ci-42"`),
		no(ErrToken, "agent with a dot", `agent="ci.42"`),
		no(ErrToken, "agent a wildcard", `agent="*"`),
		no(ErrToken, "agent of 65 bytes", "agent="+text(65)),
		no(ErrMalformed, "agent a number", "agent=42"),
		no(ErrEnum, "an unknown source", `source="prompt"`),
		no(ErrEnum, "source in another case", `source="Tool_Call"`),
		no(ErrField, "tool missing", "tool="),
		no(ErrField, "tool null", "tool=null"),
		no(ErrMalformed, "tool a text", `tool="bash"`),
		no(ErrField, "tool without a name", `tool.name=""`),
		no(ErrField, "tool name with a line break", `tool.name="ba\nsh"`),
		no(ErrField, "tool name of 257 bytes", "tool.name="+text(257)),
		no(ErrField, "input missing", "tool.input="),
		no(ErrField, "input null", "tool.input=null"),
		no(ErrField, "input a text", `tool.input="git push"`),
		no(ErrField, "input a list", "tool.input=[]"),
		no(ErrField, "input under another case of its name", "tool.input=", "tool.Input={}"),
		no(ErrField, "cwd with a NUL", `cwd="/repo\u0000/x"`),
		no(ErrField, "cwd of 4,097 bytes", "cwd="+text(4097)),
		no(ErrMalformed, "cwd a list", `cwd=["/repo"]`),
		no(ErrField, "a path with a NUL", `paths=[{"raw":"a\u0000","resolved":"/a"}]`),
		no(ErrField, "a resolved path with a NUL", `paths=[{"raw":"a","resolved":"/a\u0000"}]`),
		no(ErrField, "1,025 paths", "paths="+manyPaths),
		no(ErrMalformed, "paths an object", "paths={}"),
		no(ErrMalformed, "session a text", `session="s1"`),
		no(ErrField, "session id with a control character", `session.id="s\u001b1"`),
		no(ErrMalformed, "interactive as text", `session.interactive="true"`),
		no(ErrMalformed, "interactive as a number", `session.interactive=1`),
		no(ErrField, "project root with a NUL", `project.root="/r\u0000"`),
		no(ErrField, "intent over its bound", "intent="+text(MaxIntent+1)),
		no(ErrField, "a negative wait", "max_wait_ms=-1"),
		no(ErrMalformed, "a wait beyond 64 bits", "max_wait_ms=9223372036854775808"),
		no(ErrMalformed, "a wait with an exponent beyond every number", "max_wait_ms=1e999"),
		no(ErrMalformed, "a wait with a fraction", "max_wait_ms=0.5"),
		no(ErrMalformed, "a wait as text", `max_wait_ms="1"`),

		yes("agent of one letter", `agent="a"`),
		yes("agent of 64 bytes", "agent="+text(64)),
		yes("agent of digits", `agent="42"`),
		yes("agent with dash and underscore", `agent="-a_b"`),
		yes("agent beside one in another case of its name", `Agent="somebody-else"`),
		yes("no agent name", "agent_name="),
		yes("agent name null", "agent_name=null"),
		yes("no source", "source="),
		yes("source empty", `source=""`),
		yes("source null", "source=null"),
		yes("tool name with dots and slashes", `tool.name="mcp/exa.search"`),
		yes("tool name of 256 bytes", "tool.name="+text(256)),
		yes("tool name in UTF-8", `tool.name="поиск"`),
		yes("no call id", "tool.call_id="),
		yes("input empty", "tool.input={}"),
		yes("input with blanks", `tool.input={ "command" : "ls" }`),
		yes("input with a number no float holds", `tool.input={"n":9007199254740993}`),
		yes("input beside one in another case of its name", `tool.Input="x"`),
		yes("input with unknown fields that look like ours", `tool.input={"v":2,"id":"x","verdict":"allow"}`),
		yes("cwd of 4,096 bytes", "cwd="+text(4096)),
		yes("cwd with a line break", `cwd="/re\npo"`),
		yes("no cwd", "cwd="),
		yes("home null", "home=null"),
		yes("no platform", "platform="),
		yes("no paths", "paths="),
		yes("paths null", "paths=null"),
		yes("paths empty", "paths=[]"),
		yes("1,024 paths", "paths="+strings.Replace(manyPaths, `{"raw":"a","resolved":"/a"},`, "", 1)),
		yes("a path of one half", `paths=[{"raw":"a"}]`),
		yes("no session", "session="),
		yes("session null", "session=null"),
		yes("session interactive", "session.interactive=true"),
		yes("no project", "project="),
		yes("project id with slashes", `project.id="github.com/acme/shop"`),
		yes("intent at its bound", "intent="+text(MaxIntent)),
		yes("intent with line breaks", `intent="a\nb"`),
		yes("the longest wait", "max_wait_ms=9223372036854775807"),
		yes("no wait", "max_wait_ms="),
	}
}

func cancelRows() []fieldRow {
	return []fieldRow{
		no(ErrField, "reason over its bound", "reason="+text(MaxReason+1)), no(ErrMalformed, "reason a list", `reason=["x"]`),
		yes("reason at its bound", "reason="+text(MaxReason)), yes("no reason", "reason="),
	}
}

func progressRows() []fieldRow {
	return []fieldRow{
		no(ErrEnum, "status missing", "status="),
		no(ErrEnum, "an unknown status", `status="allow"`),
		no(ErrEnum, "status in another case", `status="Pending"`),
		no(ErrEnum, "status null", "status=null"),
		no(ErrMalformed, "status a boolean", "status=true"),
		no(ErrField, "stage missing", "stage="),
		no(ErrField, "stage with a control character", `stage="link:\u0007"`),
		no(ErrMalformed, "since a number", "since=1700000000"),
		no(ErrMalformed, "since no time", `since="yesterday"`),
		no(ErrMalformed, "since without a zone", `since="2026-03-02T09:30:00"`),

		yes("a link's stage", `stage="link:model-judge"`),
		yes("a terminal's stage", `stage="terminal:human"`),
		yes("the settling stage", `stage="settling"`),
		yes("stage of 256 bytes", "stage="+text(256)),
		yes("no since", "since="),
		yes("since null", "since=null"),
		yes("since in another zone", `since="2026-03-02T10:30:00+01:00"`),
		yes("since to the nanosecond", `since="2026-03-02T09:30:00.123456789Z"`),
		yes("status beside one in another case of its name", `Status="done"`),
		yes("a verdict that does not belong here", `verdict="allow"`),
	}
}

func noticeRows() []fieldRow {
	return []fieldRow{
		no(ErrToken, "kind missing", "kind="),
		no(ErrToken, "kind with a dot", `kind="ui.prompt"`),
		no(ErrToken, "node missing", "node="),
		no(ErrToken, "node a wildcard", `node=">"`),
		no(ErrAskID, "an ask id in lower case", `ask="`+strings.ToLower(askID)+`"`),
		no(ErrToken, "agent with a blank", `agent="a b"`),
		no(ErrToken, "outcome with a blank", `outcome="denied by me"`),
		no(ErrMalformed, "at no time", `at="now"`),

		yes("ready", `kind="ready"`, "ask=", "agent="),
		yes("prompt", `kind="ui_prompt"`),
		yes("prompt closed", `kind="prompt_closed"`, `outcome="denied_by_human"`),
		yes("no ask", "ask="),
		yes("ask empty", `ask=""`),
		yes("no agent", "agent="),
		yes("an outcome of a later version", `outcome="denied_by_court"`),
		yes("no time", "at="),
	}
}

func errorReplyRows() []fieldRow {
	return []fieldRow{
		no(ErrField, "error missing", "error="),
		no(ErrField, "error null", "error=null"),
		no(ErrField, "code missing", "error.code="),
		no(ErrField, "code null", "error.code=null"),
		no(ErrEnum, "code empty", `error.code=""`),
		no(ErrEnum, "an unknown code", `error.code="ok"`),
		no(ErrEnum, "code in another case", `error.code="Conflict"`),
		no(ErrMalformed, "code a number", "error.code=409"),
		no(ErrMalformed, "error a text", `error="conflict"`),
		no(ErrAskID, "an ask id in lower case", `ask="`+strings.ToLower(askID)+`"`),

		yes("invalid", `error.code="invalid"`),
		yes("too large", `error.code="too_large"`),
		yes("forbidden", `error.code="forbidden"`),
		yes("conflict", `error.code="conflict"`),
		yes("expired", `error.code="expired"`),
		yes("project needed", `error.code="need_project"`),
		yes("unavailable", `error.code="unavailable"`),
		yes("ask id unknown", `ask=""`),
		yes("no ask id", "ask="),
		yes("no message and no remedy", "error.message=", "error.remedy="),
	}
}
