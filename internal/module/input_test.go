package module

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// What a module is told of a call: for tools of a known kind by the name of the
// kind and with the typed fields, whatever the agent calls them.
func TestWhatAModuleIsToldOfACall(t *testing.T) {
	for _, row := range []struct{ does, tool, input, want string }{
		{"a command", "bash", `{"command":"git push"}`, `"toolName":"bash","agentToolName":"bash","input":{"command":"git push"},"detail":"git push","command":"git push"`},
		{"an agent's own name for it", "Bash", `{"command":"ls"}`, `"toolName":"bash","agentToolName":"Bash","input":{"command":"ls"},"detail":"ls","command":"ls"`},
		{"another agent's shell", "exec_command", `{"cmd":["git","push"]}`, `"toolName":"bash","agentToolName":"exec_command","input":{"cmd":["git","push"]},"detail":"git push","command":"git push"`},
		{"a file within", "Read", `{"file_path":"/repo/a/../b.go"}`, `"toolName":"read","agentToolName":"Read","input":{"file_path":"/repo/a/../b.go"},"detail":"/repo/a/../b.go","path":"/repo/a/../b.go","absolutePath":"/repo/b.go","projectPath":"b.go"`},
		{"a file outside", "write", `{"path":"../x"}`, `"toolName":"write","agentToolName":"write","input":{"path":"../x"},"detail":"../x","path":"../x","absolutePath":"/x"`},
		{"a folder whose name begins alike", "read", `{"path":"/repository/x"}`, `"toolName":"read","agentToolName":"read","input":{"path":"/repository/x"},"detail":"/repository/x","path":"/repository/x","absolutePath":"/repository/x"`},
		{"the working directory itself", "ls", `{"path":"."}`, `"toolName":"ls","agentToolName":"ls","input":{"path":"."},"detail":".","path":".","absolutePath":"/repo"`},
		{"a file at home", "edit", `{"path":"~/.ssh/config"}`, `"toolName":"edit","agentToolName":"edit","input":{"path":"~/.ssh/config"},"detail":"~/.ssh/config","path":"~/.ssh/config","absolutePath":"/home/dev/.ssh/config"`},
		{"a search without a path", "grep", `{"pattern": "x"}`, `"toolName":"grep","agentToolName":"grep","input":{"pattern":"x"},"detail":"{\"pattern\":\"x\"}"`},
		{"a patch of several files", "apply_patch", `{"input":"*** Update File: a"}`, `"toolName":"edit","agentToolName":"apply_patch","input":{"input":"*** Update File: a"},"detail":"{\"input\":\"*** Update File: a\"}"`},
		{"a tool that nobody here knows", "Deploy", `{"to": "prod", "path": "x"}`, `"toolName":"Deploy","agentToolName":"Deploy","input":{"to":"prod","path":"x"},"detail":"{\"to\":\"prod\",\"path\":\"x\"}"`},
		{"an MCP tool by the gateway", "mcp", `{"server":"billing","tool":"refund","arguments":{"amount":7500}}`, `"toolName":"mcp__billing__refund","agentToolName":"mcp","input":{"amount":7500},"detail":"{\"server\":\"billing\",\"tool\":\"refund\",\"arguments\":{\"amount\":7500}}"`},
		{"one without arguments", "MCP", `{"server":"billing","tool":"list"}`, `"toolName":"mcp__billing__list","agentToolName":"MCP","input":{},"detail":"{\"server\":\"billing\",\"tool\":\"list\"}"`},
		{"its server in front of its name, its arguments a text", "mcp", `{"tool":"billing:refund","args":"{\"amount\":7500}"}`, `"toolName":"mcp__billing__refund","agentToolName":"mcp","input":{"amount":7500},"detail":"{\"tool\":\"billing:refund\",\"args\":\"{\\\"amount\\\":7500}\"}"`},
		{"its joined name by the gateway", "mcp", `{"tool":"mcp__billing__refund"}`, `"toolName":"mcp__billing__refund","agentToolName":"mcp","input":{},"detail":"{\"tool\":\"mcp__billing__refund\"}"`},
		{"arguments said twice are not chosen from", "mcp", `{"server":"b","tool":"t","args":{"n":1},"arguments":{"n":2}}`, `"toolName":"mcp__b__t","agentToolName":"mcp","input":{"server":"b","tool":"t","args":{"n":1},"arguments":{"n":2}},"detail":"{\"server\":\"b\",\"tool\":\"t\",\"args\":{\"n\":1},\"arguments\":{\"n\":2}}"`},
		{"a question to the gateway itself", "mcp", `{"search":"refund"}`, `"toolName":"mcp","agentToolName":"mcp","input":{"search":"refund"},"detail":"{\"search\":\"refund\"}"`},
		{"a tool of nobody knows which server", "mcp", `{"tool":"refund"}`, `"toolName":"mcp","agentToolName":"mcp","input":{"tool":"refund"},"detail":"{\"tool\":\"refund\"}"`},
		{"a tool without input", "ping", ``, `"toolName":"ping","agentToolName":"ping","input":{},"detail":"{}"`},
	} {
		c := call(row.tool, row.input)
		got, detail, err := inputOf(&c.Ask, c.fields(), "")
		want := `{"cwd":"/repo","session":{"id":"s1","parent":"","root":"s0","interactive":true},"project":{"id":"github.com/acme/shop","root":"/repo"},"tool":{` + row.want + `}}`
		if err != nil || string(got) != want || detail != Detail(&c.Ask) {
			t.Errorf("%s:\ngot  %s %v\nwant %s", row.does, got, err, want)
		}
	}
}

// A module gets all of it as JSON text with its own root, whatever stands there.
func TestAModuleIsToldItsRoot(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	s := module("a", checkJS{name: "c", body: `return {block: JSON.stringify([input.permissionRoot, input.cwd, input.tool.input])}`})
	s.Root = "/odd \"root\"\n\u2028é"
	c := call("x", `{"a":"\u2028\ud834\udd1e","__proto__":{"b":1}}`)
	v := set(t, e, s).Check(t.Context(), c)
	var got []any
	if err := json.Unmarshal([]byte(v.Reason), &got); err != nil || got[1] != "/repo" || !strings.HasPrefix(got[0].(string), `/odd "root"`) {
		t.Errorf("got %q (%s), %v", v.Reason, v.Failure, err)
	}
}

// A check that names tools is asked about these and no other, by whatever name
// an agent knows them; one that is turned off is not asked.
func TestWhichChecksAreAsked(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	block := func(name, tools string) checkJS { return checkJS{name, tools, `return {block: "no"}`} }
	for _, row := range []struct {
		does, tools, tool string
		asked             bool
	}{
		{"an MCP tool that the gateway calls", `["mcp__billing__refund"]`, "mcp", true},
		{"another tool of the server", `["mcp__billing__list"]`, "mcp", false},
		{"the gateway, whatever it calls", `["mcp"]`, "mcp", true},
		{"any MCP tool", `["mcp"]`, "mcp__billing__refund", true},
		{"a name that begins alike is no MCP tool", `["mcp"]`, "mcp_x", false},
		{"its tool", `["bash"]`, "bash", true},
		{"its tool as an agent calls it", `["bash"]`, "Bash", true},
		{"another agent's tool of the kind", `["bash"]`, "run_shell_command", true},
		{"the agent's name for it", `["Bash"]`, "bash", true},
		{"one of several", `["read","deploy"]`, "deploy", true},
		{"any tool", `null`, "deploy", true},
		{"another tool", `["bash"]`, "read", false},
		{"one kind of shell only", `["run_shell_command"]`, "bash", false},
		{"a custom tool in another case", `["deploy"]`, "Deploy", false},
		{"a name that only begins alike", `["deploy"]`, "deploy2", false},
	} {
		s := set(t, e, module("m", block("c", row.tools)))
		v := s.Check(t.Context(), call(row.tool, `{"command":"x","server":"billing","tool":"refund"}`))
		if (v.Decision == Block) != row.asked || !row.asked && v.Decision != Pass {
			t.Errorf("%s: got %s (%s), want it asked: %v", row.does, v.Decision, v.Failure, row.asked)
		}
		off := call(row.tool, `{"command":"x","server":"billing","tool":"refund"}`)
		off.Off = func(c Check) bool { return c.ID() == "fleet:m/c" }
		if v := s.Check(t.Context(), off); v.Decision != Pass {
			t.Errorf("%s, turned off: got %s", row.does, v.Decision)
		}
	}
}
