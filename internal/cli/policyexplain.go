package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/syntax"

	"github.com/assent-dev/assent/internal/jsonwords"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/client/project"
	"github.com/assent-dev/assent/pkg/protocol"
)

// explainCommand is one call to be explained.
type explainCommand struct {
	env    *Env
	layers layerFlags
	line   evalLine
	input  string
	call   string
	json   bool
}

func policyExplain(env *Env) *cobra.Command {
	c := &explainCommand{env: env}
	cmd := &cobra.Command{
		Use:   "explain --policy FILE [--tool NAME --input JSON | --call FILE | COMMAND…]",
		Short: "Say which rule decides a call, and what would have to change",
		Long: `Rules one call offline and shows for each command in it which rule in which file and line
decided, which other rules match and lost, what no rule can lift, and what would have to
change for the call to be allowed, asked or denied. Each change that it proposes was tried:
the call was ruled under the changed rules.

COMMAND is a shell command: one word is taken as a command line, several as the words of
one command. It stands behind all flags; write -- in front of it where it begins with one.
--call reads a call as a line of policy eval, from a file or - for standard input; the line
may bring layers of its own.

Exit 0: explained, whatever the ruling. Exit 3: no gate would take the policy.`,
		Example: `  assent policy explain --policy policy.jsonc git push origin main
  assent policy explain --policy policy.jsonc -- 'cd web && npm install'
  assent policy explain --policy policy.jsonc --tool read --input '{"path":".env"}' --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() < 0 {
				if err := flagBehind(cmd.Flags(), args); err != nil {
					return err
				}
			}
			return c.run(args)
		},
	}
	f := cmd.Flags()
	// What stands behind the first word of a command belongs to the command.
	f.SetInterspersed(false)
	c.layers.add(f)
	f.StringVar(&c.line.Tool, "tool", "", "name of the tool: bash, read, write, edit, mcp, …")
	f.StringVar(&c.input, "input", "", "the tool's input, a JSON object")
	f.StringVar(&c.call, "call", "", "file with one call as a line of policy eval, - for standard input")
	f.StringVar(&c.line.Cwd, "cwd", "", "folder in which the call would run (default: this one, and symbolic links are followed)")
	f.StringVar(&c.line.Home, "home", "", "home of the agent's user (default: yours)")
	f.StringVar(&c.line.Platform, "platform", "", "the agent's system: linux, darwin (macOS) or windows (default: this one)")
	f.StringVar(&c.line.AgentName, "agent-name", "", "name of the agent: selects the layers agent/NAME and project-agent/ID/NAME")
	f.BoolVar(&c.json, "json", false, "print the explanation as one JSON object")
	return cmd
}

// flagBehind refuses a flag of explain's own behind the words of a command: it
// would be taken for one of the command's, and the answer be about another call.
func flagBehind(own *pflag.FlagSet, words []string) error {
	for _, w := range words {
		name, _, _ := strings.Cut(w, "=")
		if long, ok := strings.CutPrefix(name, "--"); ok && long != "" && own.Lookup(long) != nil {
			return usagef("%s stands behind the command: write flags of explain in front of it, or -- in front of a command that has such a flag", name)
		}
	}
	return nil
}

func (c *explainCommand) run(args []string) error {
	if err := c.read(args); err != nil {
		return err
	}
	s, err := c.snapshot()
	if err != nil {
		return err
	}
	grants, err := c.line.grants()
	if err != nil {
		return usagef("%w", err)
	}
	if why := s.Clamped(); why != "" {
		fmt.Fprintf(c.env.Stderr, "assent: every allow is held to ask: %s\n", protocol.Safe(why, 2000, true))
	}
	c.sayLeftOut()
	x := s.Explain(c.line.policyCall(), grants)
	if c.json {
		return printJSON(c.env, explainedOf(x))
	}
	return newTree(c.env).print(c.line, x)
}

// sayLeftOut says that the project of the call's folder has a policy of its own
// which no flag names: a gate rules by it too.
func (c *explainCommand) sayLeftOut() {
	if c.line.Layers != nil || !c.line.Resolve || len(c.layers.layers) > 0 {
		return
	}
	p, err := project.Find(c.line.Cwd)
	file := filepath.Join(p.Root, project.PolicyFile)
	switch {
	case err != nil:
		fmt.Fprintf(c.env.Stderr, "assent: not counted: %s\n", protocol.Safe(err.Error(), 500, false))
	case p.HasPolicy && !sameFile(file, c.layers.policy):
		spec, err := syntax.Quote("project/"+p.ID+"="+file, syntax.LangBash)
		if err != nil {
			return // no shell could say it
		}
		fmt.Fprintf(c.env.Stderr, "assent: this project's own policy is not counted; a gate does: add --layer %s\n", protocol.Safe(spec, 500, false))
	}
}

func sameFile(a, b string) bool {
	left, err := os.Stat(a)
	if err != nil {
		return false
	}
	right, err := os.Stat(b)
	return err == nil && os.SameFile(left, right)
}

// read fills the line from flags, arguments or a file.
func (c *explainCommand) read(args []string) error {
	given := 0
	for _, is := range []bool{c.line.Tool != "", c.call != "", len(args) > 0} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return usagef("name one call: a shell command, --tool NAME with --input JSON, or --call FILE: see `assent policy explain --help`")
	case c.call != "":
		return c.readCall()
	case len(args) > 0:
		text, err := commandLine(args)
		if err != nil {
			return err
		}
		c.line.Tool, c.line.Input = "bash", shellInput(text)
	default:
		c.line.Input = jsontext.Value(firstOf(c.input, "{}"))
		if err := checkInput(c.line.Tool, c.line.Input); err != nil {
			return err
		}
		if c.line.Input.Kind() != '{' || !c.line.Input.IsValid() {
			return usagef("--input %s: expected one JSON object, as '{\"path\":\"main.go\"}'", clipped(c.input))
		}
	}
	return c.place()
}

// place fills in where the call would run.
func (c *explainCommand) place() (err error) {
	if c.line.Cwd, err = fromHere("cwd", c.line.Cwd); err != nil {
		return err
	}
	if c.line.Home, err = fromHere("home", c.line.Home); err != nil {
		return err
	}
	if err := c.line.checkPlace(); err != nil {
		return usagef("--%w", err)
	}
	if c.line.Cwd == "" {
		here, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("finding the working folder: %w: name one with --cwd", err)
		}
		c.line.Cwd, c.line.Resolve = here, true
	}
	if c.line.Home == "" {
		c.line.Home = c.env.Getenv("HOME")
	}
	c.line.Platform = firstOf(c.line.Platform, runtime.GOOS)
	return nil
}

func (c *explainCommand) readCall() error {
	var in io.Reader = c.env.Stdin
	if c.call != "-" {
		f, err := os.Open(c.call)
		if err != nil {
			return fmt.Errorf("reading the call: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxEvalLine))
	if err != nil {
		return fmt.Errorf("reading the call: %w", err)
	}
	if err := json.Unmarshal(text, &c.line, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("reading the call: %w", jsonwords.Of(err))
	}
	if err := c.line.checkPlace(); err != nil {
		return fmt.Errorf("reading the call: %w", err)
	}
	if c.line.Tool == "" {
		return errors.New("reading the call: it names no \"tool\"; questions about surfaces are for policy eval")
	}
	return nil
}

func (c *explainCommand) snapshot() (*policy.Snapshot, error) {
	if c.line.Layers != nil {
		e := evaluator{read: map[string]readLayer{}}
		return e.snapshot(c.line)
	}
	if c.layers.policy == "" && len(c.layers.layers) == 0 {
		return nil, usagef("name the policy: --policy FILE; examples/policy.jsonc is one to start from")
	}
	docs, err := c.layers.read(c.env)
	if err != nil {
		return nil, err
	}
	return docs.snapshot(c.line.AgentName), nil
}

// commandLine is a shell command from arguments: one is a line as it stands,
// several are words, which are quoted as a person's shell has unquoted them.
func commandLine(args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	words := make([]string, len(args))
	for i, a := range args {
		q, err := syntax.Quote(a, syntax.LangBash)
		if err != nil {
			return "", usagef("the word %q cannot stand in a shell command: %w", a, err)
		}
		words[i] = q
	}
	return strings.Join(words, " "), nil
}

// shellInput is the input of a bash call.
func shellInput(command string) jsontext.Value {
	b, err := json.Marshal(map[string]string{"command": strings.ToValidUTF8(command, "�")})
	if err != nil {
		return jsontext.Value("{}") // a text always is JSON
	}
	return b
}
