package module

import (
	"path"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// callInput is what a module is told of a call, but for its permissionRoot.
type callInput struct {
	Cwd     string       `json:"cwd"`
	Session sessionInput `json:"session"`
	Project projectInput `json:"project"`
	Tool    toolInput    `json:"tool"`
}

type sessionInput struct {
	ID          string `json:"id"`
	Parent      string `json:"parent"`
	Root        string `json:"root"`
	Interactive bool   `json:"interactive"`
}

type projectInput struct {
	ID   string `json:"id"`
	Root string `json:"root"`
}

type toolInput struct {
	// ToolName is the tool's exact name, or of a built-in one the name of its
	// kind: a module written for bash must not miss an agent's "Bash". An MCP tool
	// that is called by a gateway is mcp__server__tool, its input what it is given.
	ToolName string `json:"toolName"`
	// AgentToolName is the exact name always.
	AgentToolName string         `json:"agentToolName"`
	Input         jsontext.Value `json:"input"`
	Detail        string         `json:"detail"`
	Command       *string        `json:"command,omitzero"`
	Path          *string        `json:"path,omitzero"`
	AbsolutePath  *string        `json:"absolutePath,omitzero"`
	ProjectPath   *string        `json:"projectPath,omitzero"`
}

// Detail is the one text that says what a call is about: a command, a path, or
// the whole input. A prompt's highlight counts in it.
func Detail(ask *protocol.Ask) string {
	return newTool(ask, policy.FieldsOf(ask.Tool.Name, ask.Tool.Input), "").Detail
}

// inputOf is a call as modules are told it, with path as the one file that it
// names of several; "" where it names one or none.
func inputOf(ask *protocol.Ask, f policy.ToolFields, path string) (input jsontext.Value, detail string, err error) {
	t := newTool(ask, f, path)
	input, err = json.Marshal(&callInput{
		Cwd:     ask.Cwd,
		Session: sessionInput{ask.Session.ID, ask.Session.Parent, ask.Session.Root, ask.Session.Interactive},
		Project: projectInput{ask.Project.ID, ask.Project.Root},
		Tool:    t,
	})
	return input, t.Detail, err
}

func newTool(ask *protocol.Ask, f policy.ToolFields, several string) toolInput {
	t := toolInput{ToolName: ask.Tool.Name, AgentToolName: ask.Tool.Name, Input: ask.Tool.Input}
	if len(t.Input) == 0 {
		t.Input = jsontext.Value("{}")
	}
	if f.Kind != "" {
		t.ToolName = f.Kind
	} else if name, args, ok := policy.JoinedMCP(ask.Tool.Name, t.Input); ok {
		// A module is about the tool, by whatever way an agent calls it. The detail
		// is what an approver sees, and stays the whole call.
		t.Detail = compact(t.Input)
		t.ToolName, t.Input = name, args
		return t
	}
	switch {
	case f.Command != "":
		t.Command, t.Detail = &f.Command, f.Command
	case several != "":
		t.Detail = compact(t.Input) // the one place that names them all
		t.setPath(several, ask)
	case f.Path != "":
		t.Detail = f.Path
		t.setPath(f.Path, ask)
	default:
		t.Detail = compact(t.Input)
	}
	return t
}

func (t *toolInput) setPath(path string, ask *protocol.Ask) {
	abs, rel, inside := lexical(path, ask)
	t.Path, t.AbsolutePath = &path, &abs
	if inside && rel != "" {
		t.ProjectPath = &rel
	}
}

// lexical is a path made absolute by its letters alone, and relative to the
// working directory where it lies within. The agent's host may be another one.
func lexical(p string, ask *protocol.Ask) (abs, rel string, inside bool) {
	cwd := ask.Cwd
	if strings.HasPrefix(ask.Platform, "win") {
		p, cwd = strings.ReplaceAll(p, `\`, "/"), strings.ReplaceAll(cwd, `\`, "/")
	}
	switch {
	case (p == "~" || strings.HasPrefix(p, "~/")) && ask.Home != "":
		p = ask.Home + p[1:]
	case !rooted(p):
		p = cwd + "/" + p
	}
	abs, cwd = path.Clean(p), path.Clean(cwd)
	switch {
	case abs == cwd:
		return abs, "", true
	case cwd == "/" && strings.HasPrefix(abs, "/"):
		return abs, abs[1:], true
	case strings.HasPrefix(abs, cwd+"/"):
		return abs, abs[len(cwd)+1:], true
	}
	return abs, "", false
}

func rooted(p string) bool {
	return strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && p[2] == '/'
}

// compact is an input without the spaces between its tokens, as
// JSON.stringify would write it.
func compact(v jsontext.Value) string {
	c := v.Clone()
	if err := c.Compact(); err != nil {
		return string(v)
	}
	return string(c)
}
