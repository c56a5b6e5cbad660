package brief

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/internal/shell"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Names of facts, as they stand in the JSON and in Brief.Masked.
const (
	factOpen      = "open"
	factCommand   = "command"
	factArgv      = "argv"
	factUnits     = "units"
	factComments  = "comments"
	factPaths     = "paths"
	factArguments = "arguments"
	factCwd       = "cwd"
	factProject   = "project_root"
	factIntent    = "intent"
	factTool      = "tool"
)

// facts are all that a model sees of an ask. What is not here, it does not see.
type facts struct {
	// Agent is the name that the agent's credential states. The name that it
	// gives itself is not shown: it would speak for it.
	Agent       string `json:"agent"`
	Tool        string `json:"tool"`
	Cwd         string `json:"cwd"`
	ProjectRoot string `json:"project_root,omitzero"`
	// Open are the entries that the rules left open.
	Open []entry `json:"open"`
	// Command is the whole text that a shell would run.
	Command string   `json:"command,omitzero"`
	Argv    []string `json:"argv,omitempty"`
	// CommentsRead is false where nobody can tell which parts of the command
	// are comments.
	CommentsRead *bool     `json:"comments_read,omitempty"`
	Comments     []comment `json:"comments,omitempty"`
	Units        []unit    `json:"units,omitempty"`
	Paths        []path    `json:"paths,omitempty"`
	// Arguments are those of the tool's input that name what it works on.
	Arguments map[string][]string `json:"arguments,omitempty"`
	// NotShown are the names of the others, Hidden how many have no fit name.
	NotShown []string `json:"arguments_not_shown,omitempty"`
	Hidden   int      `json:"arguments_without_a_fit_name,omitzero"`
	Intent   string   `json:"intent,omitzero"`
}

type entry struct {
	Surface        string `json:"surface"`
	Value          string `json:"value"`
	MatchedPattern string `json:"matched_pattern"`
	Origin         string `json:"origin"`
	Unit           int    `json:"unit"`
}

type unit struct {
	Text    string `json:"text"`
	State   string `json:"state,omitzero"`
	Pattern string `json:"matched_pattern,omitzero"`
	Note    string `json:"note,omitzero"`
}

type path struct {
	Raw      string `json:"raw"`
	Resolved string `json:"resolved"`
}

// comment is a span of the command that the shell skips, in bytes of the text
// as the agent gave it.
type comment struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Text  string `json:"text"`
}

// rawSize is how long the texts to be shown are.
func rawSize(r link.Request, in input) int {
	size := len(in.command) + len(r.Ask.Cwd) + len(r.Ask.Project.Root) + len(r.Ask.Intent)
	for _, e := range r.Asks {
		size += len(e.Value)
	}
	for _, u := range r.Units {
		size += len(u.Text)
	}
	for _, p := range r.Ask.Paths {
		size += len(p.Raw) + len(p.Resolved)
	}
	for _, list := range in.shown {
		size += total(list)
	}
	return size + total(in.argv)
}

func total(texts []string) (n int) {
	for _, t := range texts {
		n += len(t)
	}
	return n
}

func gather(r link.Request, in input, m *masker) (facts, error) {
	if in.command == "" && len(in.argv) == 0 && slices.ContainsFunc(r.Asks, onShell) {
		return facts{}, fmt.Errorf("%w: no command in the input of %q", ErrUnreadable, protocol.Safe(r.Ask.Tool.Name, 60, false))
	}
	f := facts{
		Agent: r.Ask.Agent, Tool: m.mask(factTool, r.Ask.Tool.Name),
		Cwd: m.mask(factCwd, r.Ask.Cwd), ProjectRoot: m.mask(factProject, r.Ask.Project.Root),
	}
	for _, e := range r.Asks {
		f.Open = append(f.Open, entry{e.Surface, m.mask(factOpen, e.Value), e.MatchedPattern, e.Origin, e.Unit})
	}
	f.addCommand(in, m)
	for _, u := range r.Units {
		state := ""
		if u.Decision.Valid() {
			state = u.Decision.String()
		}
		f.Units = append(f.Units, unit{m.mask(factUnits, u.Text), state, u.Pattern, u.Note})
	}
	for _, p := range r.Ask.Paths {
		f.Paths = append(f.Paths, path{m.mask(factPaths, p.Raw), m.mask(factPaths, p.Resolved)})
	}
	for name, values := range in.shown {
		if f.Arguments == nil {
			f.Arguments = map[string][]string{}
		}
		f.Arguments[name] = m.all(factArguments, values)
	}
	f.NotShown, f.Hidden = in.left, in.unnamed
	f.Intent = m.mask(factIntent, r.Ask.Intent)
	return f, nil
}

func (f *facts) addCommand(in input, m *masker) {
	f.Argv = m.all(factArgv, in.argv)
	if in.command == "" {
		return
	}
	f.Command = m.mask(factCommand, in.command)
	spans, read := shell.Comments(in.command)
	f.CommentsRead = &read
	for _, s := range spans {
		f.Comments = append(f.Comments, comment{s.Start, s.End, m.mask(factComments, in.command[s.Start:s.End])})
	}
}

func onShell(e protocol.Entry) bool { return e.Surface == "bash" }
