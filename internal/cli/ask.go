package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/local"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/shell"
	"github.com/assent-dev/assent/pkg/client"
	"github.com/assent-dev/assent/pkg/client/paths"
	"github.com/assent-dev/assent/pkg/client/project"
	"github.com/assent-dev/assent/pkg/protocol"
)

// askCommand is one ask from the command line.
type askCommand struct {
	env     *Env
	target  target
	tool    string
	input   string
	cwd     string
	id      string
	session string
	name    string
	project string
	timeout time.Duration
	json    bool
	// works is the project that the call's folder belongs to.
	works project.Project
	// stage is where the ask was when a gate last spoke of it.
	stage string
}

// Ask is the command that asks for one tool call and says the decision.
func Ask(env *Env) *cobra.Command {
	c := &askCommand{env: env}
	cmd := &cobra.Command{
		Use:   "ask --tool NAME --input JSON",
		Short: "Ask for one tool call and wait for the decision",
		Long: "Asks a gate for one tool call, waits for the decision and prints it.\n" +
			"Exit 0: allowed. 3: denied. 1: could not ask, or no decision in time. 2: wrong usage.\n" +
			"Whoever gives up (time over, Ctrl-C) withdraws the ask. The same --id always gets the same decision.\n\n" +
			"The project is found from the folder, and its own policy and permission modules (.assent/policy.jsonc and\n.assent/permissions at its root) go with the ask.",
		Example: "  assent ask --tool bash --input '{\"command\":\"git push\"}'\n" +
			"  assent ask --tool read --input '{\"path\":\".env\"}' --json",
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&c.tool, "tool", "", "name of the tool, as the rules say it: bash, read, write, edit, mcp, …")
	f.StringVar(&c.input, "input", "{}", "the tool's input, a JSON object; '@FILE' reads it from a file")
	f.StringVar(&c.cwd, "cwd", "", "folder in which the call would run (default: this one)")
	f.StringVar(&c.id, "id", "", "id of the ask, a ULID: asking again with it joins or repeats (default: a new one)")
	f.StringVar(&c.session, "session", "", "id of the agent's session")
	f.StringVar(&c.name, "agent-name", "", "name of the kind of agent: selects the policy's layers agent/NAME and project-agent/ID/NAME")
	f.StringVar(&c.project, "project", "", "id of the project, as github.com/acme/shop: selects the layer project/ID (default: found from the folder)")
	c.timeout = hookDeadline
	span(f, &c.timeout, "timeout", "how long to wait for a decision, as 90s or 15m")
	f.BoolVar(&c.json, "json", false, "print the whole decision as JSON")
	c.target.flags(f)
	return cmd
}

func (c *askCommand) run(ctx context.Context) error {
	ask, err := c.build()
	if err != nil {
		return err
	}
	at, err := c.target.resolve(c.env, protocol.RoleAgent)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, c.timeout)
	defer stop()
	a, err := dialAgent(ctx, at, "ask", append(carrying(c.works), client.OnProgress(c.progress()))...)
	if err != nil {
		return err
	}
	defer a.close()
	d, err := a.ask(ctx, ask)
	if gone := (*withdrawnError)(nil); errors.As(err, &gone) {
		gone.stage = c.stage
	}
	if err != nil {
		return fmt.Errorf("not allowed: %w", err)
	}
	if err := c.print(d); err != nil {
		return err
	}
	if !d.Allowed() {
		return &exitError{code: ExitDenied}
	}
	return nil
}

func (c *askCommand) build() (protocol.Ask, error) {
	switch {
	case c.tool == "":
		return protocol.Ask{}, usagef("name the tool with --tool, as in `assent ask --tool bash --input '{\"command\":\"git push\"}'`")
	case c.timeout <= 0:
		return protocol.Ask{}, usagef("--timeout %s: want more than 0", c.timeout)
	case c.id != "" && protocol.CheckAskID(c.id) != nil:
		return protocol.Ask{}, usagef("--id %q: want a ULID of 26 characters, upper case", c.id)
	}
	input, err := objectFlag("--input", c.input)
	if err != nil {
		return protocol.Ask{}, err
	}
	if err := checkInput(c.tool, input); err != nil {
		return protocol.Ask{}, err
	}
	cwd, err := c.folder()
	if err != nil {
		return protocol.Ask{}, err
	}
	home := c.env.Getenv("HOME")
	if !filepath.IsAbs(home) {
		if home, err = local.SystemHome(); err != nil {
			return protocol.Ask{}, err
		}
	}
	if err := c.findProject(cwd); err != nil {
		return protocol.Ask{}, err
	}
	return protocol.Ask{
		ID: firstOf(c.id, protocol.NewAskID()), AgentName: c.name, Source: protocol.SourceToolCall, Project: c.works.Facts(),
		Session: protocol.Session{ID: c.session}, Tool: protocol.Tool{Name: c.tool, Input: input},
		Cwd: cwd, Home: home, Platform: runtime.GOOS, Paths: append(paths.Resolve(cwd, home, paths.Typed(input)), paths.Links(cwd, home, shellWords(c.tool, input))...),
	}, nil
}

// findProject finds the project that the call's folder belongs to, and says what
// is wrong with its own policy: a gate takes that, and clamps.
func (c *askCommand) findProject(cwd string) (err error) {
	if c.works, err = project.Find(cwd); err != nil {
		return err
	}
	c.works.ID = firstOf(c.project, c.works.ID)
	bringModules(&c.works, c.env.Stderr)
	if !c.works.HasPolicy {
		return nil
	}
	if _, err := policy.Read(policy.ProjectLayer(c.works.ID), filepath.Join(c.works.Root, project.PolicyFile), []byte(c.works.Policy)); err != nil {
		fmt.Fprintf(c.env.Stderr, "assent: the project's own policy does not read, so nothing is allowed without asking:\n%s\n", protocol.Safe(err.Error(), 2000, true))
	}
	return nil
}

// checkInput refuses a bash call without a command: the rules would rule on
// nothing, and the answer would say nothing of the call that was meant.
func checkInput(tool string, input jsontext.Value) error {
	if tool != "bash" {
		return nil
	}
	var args struct {
		Command string `json:"command"`
	}
	if err := json.Unmarshal(input, &args); err != nil || args.Command == "" {
		return usagef("--tool bash needs a command, a text, in its input: --input '{\"command\":\"git push\"}'")
	}
	return nil
}

// shellWords are the words of a shell command that may name files.
func shellWords(tool string, input jsontext.Value) []string {
	var call struct {
		Command string `json:"command"`
	}
	if tool != "bash" || json.Unmarshal(input, &call) != nil {
		return nil
	}
	return shell.Touched(call.Command)
}

func (c *askCommand) folder() (string, error) {
	dir := c.cwd
	if !filepath.IsAbs(dir) {
		here, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("finding the working folder: %w: name one with --cwd", err)
		}
		dir = filepath.Join(here, dir)
	}
	// It may be a folder of another machine: asking is no harm.
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		fmt.Fprintf(c.env.Stderr, "assent: --cwd %s is no folder here: paths are taken as they are written\n", protocol.Safe(dir, 300, false))
	}
	return dir, nil
}

// progress says on stderr where the ask is, once a stage.
func (c *askCommand) progress() func(protocol.Progress) {
	last := ""
	return func(p protocol.Progress) {
		if p.Stage == last {
			return
		}
		last, c.stage = p.Stage, stageForPeople(p.Stage)
		hint := ""
		if p.Stage == "terminal:"+string(protocol.TerminalHuman) {
			hint = fmt.Sprintf(": assent answer %s allow|deny", p.Ask)
		}
		fmt.Fprintf(c.env.Stderr, "waiting for %s%s\n", c.stage, hint)
	}
}

func (c *askCommand) print(d protocol.Decision) error {
	if c.json {
		b, err := protocol.Write(d)
		if err != nil {
			return err
		}
		return say(c.env.Stdout, string(b))
	}
	word, colour := "denied ", "31"
	if d.Allowed() {
		word, colour = "allowed", "32"
	}
	if isTerminal(c.env.Stdout) && c.env.Getenv("NO_COLOR") == "" {
		word = "\x1b[1;" + colour + "m" + word + "\x1b[0m"
	}
	return say(c.env.Stdout, word+"  "+d.Say())
}

// say writes one line; a result that could not be written is no result.
func say(w io.Writer, line string) error {
	if _, err := fmt.Fprintln(w, line); err != nil {
		return fmt.Errorf("writing the decision: %w", err)
	}
	return nil
}
