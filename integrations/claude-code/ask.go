package claudecode

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/pkg/client/paths"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Host is what the adapter knows about the machine and Claude Code does not say.
type Host struct {
	// Home is the person's home folder, absolute.
	Home string
	// Platform is runtime.GOOS.
	Platform string
	// Project is the project that the call's folder belongs to.
	Project protocol.Project
}

// names maps Claude Code's tools to the surfaces that rules speak about. A tool
// that is not here keeps its own name: no rule about another surface may then
// catch it by chance, and `*` decides.
var names = map[string]string{
	"Bash":         "bash",
	"Read":         "read",
	"NotebookRead": "read",
	"Write":        "write",
	"Edit":         "edit",
	"MultiEdit":    "edit",
	"NotebookEdit": "edit",
	"Glob":         "glob",
	"Grep":         "grep",
	"LS":           "ls",
	"WebFetch":     "webfetch",
	"WebSearch":    "websearch",
	"Skill":        "skill",
	"Agent":        "agent",
	"Task":         "agent",
}

const surfaceMCP = "mcp"

// Ask is the call as an ask, with the facts of this host: paths are resolved
// here, where the links are. Id and agent are left to whoever asks.
func (in Input) Ask(host Host) protocol.Ask {
	ask := protocol.Ask{
		Source:   protocol.SourceToolCall,
		Session:  in.session(),
		Tool:     protocol.Tool{Name: in.Tool, CallID: in.ToolUse, Input: in.ToolInput},
		Cwd:      in.Cwd,
		Home:     host.Home,
		Platform: host.Platform,
		Project:  host.Project,
	}
	if name, known := names[in.Tool]; known {
		ask.Tool.Name = name
	}
	if call, ok := in.mcp(); ok {
		ask.Tool.Name, ask.Tool.Input = surfaceMCP, call.encode()
	}
	ask.Paths = paths.Resolve(in.Cwd, host.Home, in.typed())
	ask.Paths = append(ask.Paths, paths.Links(in.Cwd, host.Home, in.words())...)
	return ask
}

// session: a subagent's calls carry the session that started it.
func (in Input) session() protocol.Session {
	if in.Agent == "" {
		return protocol.Session{ID: in.Session}
	}
	return protocol.Session{ID: in.Agent, Parent: in.Session, Root: in.Session}
}

// mcpCall is the input of the surface mcp.
type mcpCall struct {
	Server    string         `json:"server"`
	Tool      string         `json:"tool"`
	Arguments jsontext.Value `json:"arguments"`
}

// mcp takes mcp__SERVER__TOOL apart, where there is one way to. A server that an
// agent has named "exa__x" must not pass for the server exa; the gate rules such a
// name in every way that it can be read.
func (in Input) mcp() (mcpCall, bool) {
	rest, ok := strings.CutPrefix(in.Tool, "mcp__")
	if !ok {
		return mcpCall{}, false
	}
	server, tool, ok := strings.Cut(rest, "__")
	if !ok || server == "" || tool == "" || splitsAgain("_"+tool) {
		return mcpCall{}, false
	}
	return mcpCall{Server: server, Tool: tool, Arguments: in.ToolInput}, true
}

// splitsAgain says whether two underscores part a name with something behind
// them.
func splitsAgain(name string) bool {
	i := strings.Index(name, "__")
	return i >= 0 && i+2 < len(name)
}

// encode never fails on what ReadInput has read; on anything else it gives no
// input, and an ask without one is refused.
func (c mcpCall) encode() jsontext.Value {
	b, err := json.Marshal(c, json.Deterministic(true))
	if err != nil {
		return nil
	}
	return b
}
