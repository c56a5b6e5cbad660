package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/jsonwords"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/bundle"
	"github.com/assent-dev/assent/pkg/protocol"
)

// moduleTester is `assent module test`.
type moduleTester struct {
	env      *Env
	calls    []string
	json     bool
	callTime time.Duration
	// broken says why none of the modules loaded.
	broken string
	set    *module.Set
}

func moduleTest(env *Env) *cobra.Command {
	c := &moduleTester{env: env}
	cmd := &cobra.Command{
		Use:   "test FILE|DIR",
		Short: "Say what permission modules make of calls",
		Long: `Bundles a module, or all modules of a folder, loads them as a gate would, and says what they
make of calls. No server is asked and nothing runs but the modules. Without calls it lists the checks.

A call is JSON, as a line of assent policy eval: {"tool":"bash","input":{"command":"…"}}, and may hold "id",
"cwd" (this folder), "home", "platform", "agent_name", "session" and "project". --call may be given more than
once; with --json and no --call, calls are read from standard input, one a line.

--json prints a line for each call:
  {"id","decision":"block|request|none","check","reason","prompt":{…},"ms","error"}
"prompt" is what an approver would see, its highlights in bytes of the call's detail; "error" is a check that
failed or a line that could not be read. A check that fails makes the call a request, as at a gate.

Exit 1: a module does not load, a check failed, or a line could not be read.`,
		Example: `  assent module test .assent/permissions
  assent module test release.ts --call '{"tool":"bash","input":{"command":"git push"}}'
  assent module test release.ts --json < calls.jsonl`,
		Args: exactArgs("a file or folder"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&c.calls, "call", nil, "a call to ask about, as JSON")
	f.BoolVar(&c.json, "json", false, "print JSON lines; without --call, read the calls as JSON lines on standard input")
	f.DurationVar(&c.callTime, "call-time", module.DefaultCallTime, "processor time that a check may take")
	return cmd
}

// errModuleTest says that what was printed is not all well.
var errModuleTest = errors.New("not all is well: see above")

func (c *moduleTester) run(ctx context.Context, path string) (err error) {
	sources, problems, err := readModules(path)
	if err != nil {
		return err
	}
	engine, err := module.New(module.Config{Workers: 1, CallTime: c.callTime})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	set, more := engine.Load(ctx, sources)
	c.set, problems = set, append(problems, more...)
	for _, p := range problems {
		fmt.Fprintf(c.env.Stderr, "assent: module %s does not load: %s\n", p.Module, p.Message)
	}
	if len(problems) > 0 && len(set.Checks()) == 0 {
		c.broken = "module " + problems[0].Module + " does not load: " + problems[0].Message
	}
	bad := len(problems) + c.silent(sources, problems)
	switch {
	case len(c.calls) > 0:
		n, err := c.each(ctx, strings.NewReader(strings.Join(c.calls, "\n")))
		if err != nil {
			return err
		}
		bad += n
	case c.json:
		n, err := c.each(ctx, c.env.Stdin)
		if err != nil {
			return err
		}
		bad += n
	default:
		err = c.list(sources)
	}
	if err == nil && bad > 0 {
		err = errModuleTest
	}
	return err
}

// readModules bundles what a path names.
func readModules(path string) ([]module.Source, []module.Problem, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading modules: %w", err)
	}
	if info.IsDir() {
		return bundle.Dir(path, module.LevelUser)
	}
	source, err := bundle.File(path, module.LevelUser)
	if err != nil {
		return nil, []module.Problem{{Module: filepath.Base(path), Level: module.LevelUser, Message: err.Error()}}, nil
	}
	return []module.Source{source}, nil, nil
}

// silent tells of modules that load and say nothing of any call, and how many they
// are: their author has forgotten something.
func (c *moduleTester) silent(sources []module.Source, problems []module.Problem) (n int) {
	for _, s := range sources {
		if slices.ContainsFunc(problems, func(p module.Problem) bool { return p.Module == s.Name }) ||
			slices.ContainsFunc(c.set.Checks(), func(k module.Check) bool { return k.Module == s.Name }) {
			continue
		}
		fmt.Fprintf(c.env.Stderr, "assent: module %s registers no check: its default export calls api.onToolUse({name, description, handler}) for each\n", s.Name)
		n++
	}
	return n
}

// list prints the checks.
func (c *moduleTester) list(sources []module.Source) error {
	fmt.Fprintf(c.env.Stdout, "%s, %s\n", count(len(sources), "module"), count(len(c.set.Checks()), "check"))
	for _, check := range c.set.Checks() {
		about := "every call"
		switch {
		case check.Function:
			about = "calls that its function picks"
		case check.Tools != nil:
			about = strings.Join(check.Tools, ", ")
		}
		if _, err := fmt.Fprintf(c.env.Stdout, "\n%s/%s (%s)\n  %s\n", check.Module, check.Name, protocol.Safe(about, 200, false), check.Description); err != nil {
			return err
		}
	}
	return nil
}

// each asks about every line and returns how many went wrong.
func (c *moduleTester) each(ctx context.Context, in io.Reader) (bad int, err error) {
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 64<<10), maxEvalLine)
	for scan.Scan() {
		if len(bytes.TrimSpace(scan.Bytes())) == 0 {
			continue
		}
		said, ask := c.line(ctx, scan.Bytes())
		if said.Error != "" {
			bad++
		}
		if c.json {
			err = printLine(c.env, said)
		} else {
			err = said.print(c.env.Stdout, ask, c.set)
		}
		if err != nil {
			return bad, err
		}
	}
	if err := scan.Err(); err != nil {
		return bad, fmt.Errorf("reading calls: %w", err)
	}
	return bad, nil
}

// testLine is one call in.
type testLine struct {
	ID         string           `json:"id"`
	Tool       string           `json:"tool"`
	Input      jsontext.Value   `json:"input"`
	Cwd        string           `json:"cwd"`
	Home       string           `json:"home"`
	Platform   string           `json:"platform"`
	AgentName  string           `json:"agent_name"`
	Source     string           `json:"source"`
	Paths      []protocol.Path  `json:"paths"`
	MCPServers []string         `json:"mcp_servers"`
	Session    protocol.Session `json:"session"`
	Project    protocol.Project `json:"project"`
}

// moduleSaid is one line out.
type moduleSaid struct {
	ID       string           `json:"id"`
	Decision string           `json:"decision"`
	Check    string           `json:"check"`
	Reason   string           `json:"reason"`
	Prompt   *protocol.Prompt `json:"prompt"`
	MS       float64          `json:"ms"`
	Error    string           `json:"error"`
	// failed says that the error is one of a check.
	failed bool
}

// line asks about one line.
func (c *moduleTester) line(ctx context.Context, text []byte) (moduleSaid, protocol.Ask) {
	var l testLine
	err := json.Unmarshal(text, &l, json.RejectUnknownMembers(true))
	switch {
	case err != nil:
		err = fmt.Errorf(`reading the line: %w: a call is JSON, as {"tool":"bash","input":{"command":"ls"}}`, jsonwords.Of(err))
	case l.Tool == "":
		err = errors.New(`the line names no "tool"`)
	case l.Input.Kind() != '{':
		err = errors.New(`the line has no "input" that is an object`)
	case c.broken != "":
		err = errors.New(c.broken)
	}
	if err != nil {
		return moduleSaid{ID: l.ID, Decision: "none", Error: protocol.Safe(err.Error(), 1000, false)}, protocol.Ask{}
	}
	ask := l.ask()
	v := c.set.Check(ctx, module.Call{Ask: ask})
	out := moduleSaid{ID: l.ID, Decision: "none", Reason: v.Reason, MS: math.Round(float64(v.Took.Microseconds())) / 1000}
	switch v.Decision {
	case module.Block:
		out.Decision = "block"
	case module.Request:
		out.Decision, out.Prompt = "request", &v.Prompt
	case module.Pass:
	default:
		out.Decision, out.Error = "request", "the modules gave no answer"
	}
	if v.Decision == module.Block || v.Decision == module.Request {
		out.Check = v.Check.Name
	}
	if v.Failure != "" {
		out.Prompt, out.Error, out.failed = nil, v.Failure, true
	}
	return out, ask
}

// ask is the call as a gate would be asked it.
func (l testLine) ask() protocol.Ask {
	cwd := l.Cwd
	if cwd == "" {
		cwd, _ = os.Getwd()
	}
	session := l.Session
	if session.ID == "" {
		session = protocol.Session{ID: "test", Root: "test", Interactive: true}
	}
	return protocol.Ask{
		V: protocol.CurrentVersion, ID: ulid.Make().String(), Agent: "test", AgentName: l.AgentName, Session: session, Tool: protocol.Tool{Name: l.Tool, Input: l.Input},
		Cwd: cwd, Home: l.Home, Platform: l.Platform, Paths: l.Paths, MCPServers: l.MCPServers, Project: l.Project,
	}
}

func printLine(env *Env, v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err == nil {
		_, err = env.Stdout.Write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing what the modules say: %w", err)
	}
	return nil
}

// print says it to a person.
func (t moduleSaid) print(w io.Writer, ask protocol.Ask, set *module.Set) error {
	var b strings.Builder
	switch {
	case t.Error != "" && !t.failed:
		fmt.Fprintf(&b, "error: %s\n", t.Error)
	case t.failed:
		fmt.Fprintf(&b, "request, because check %q failed: %s (%s ms)\n", t.Check, t.Error, milliseconds(t.MS))
	case t.Decision == "block":
		fmt.Fprintf(&b, "block by %q (%s ms)\n  %s\n", t.Check, milliseconds(t.MS), indented(t.Reason))
	case t.Decision == "request":
		fmt.Fprintf(&b, "request by %q (%s ms)\n", t.Check, milliseconds(t.MS))
		t.prompt(&b, ask)
	default:
		fmt.Fprintf(&b, "none of %s objects (%s ms)\n", count(len(set.Checks()), "check"), milliseconds(t.MS))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func milliseconds(ms float64) string { return fmt.Sprintf("%.2f", ms) }

// prompt is what an approver would see, the highlighted parts between marks.
func (t moduleSaid) prompt(b *strings.Builder, ask protocol.Ask) {
	p := t.Prompt
	fmt.Fprintf(b, "  Authorization required: %s\n  %s\n", p.Name, indented(p.Description))
	if p.Guidance != "" {
		fmt.Fprintf(b, "  %s\n", indented(p.Guidance))
	}
	fmt.Fprintf(b, "  %s: %s\n", protocol.Safe(ask.Tool.Name, 100, false), indented(marked(module.Detail(&ask), p.Highlight)))
	var labels []string
	for _, l := range [][2]string{{"approve", p.ApproveLabel}, {"edit", p.EditLabel}, {"reject", p.RejectLabel}} {
		if l[1] != "" {
			labels = append(labels, l[0]+" = "+l[1])
		}
	}
	if len(labels) > 0 {
		fmt.Fprintf(b, "  [%s]\n", strings.Join(labels, ", "))
	}
}

// indented is text of several lines under the first one.
func indented(s string) string {
	return strings.ReplaceAll(protocol.Safe(s, 4000, true), "\n", "\n  ")
}

// marked is a text with »marks« around its highlighted parts.
func marked(detail string, spans []protocol.Span) string {
	var b strings.Builder
	last := 0
	for _, s := range spans {
		if s.Start < last || s.End > len(detail) || s.Start > s.End {
			continue
		}
		b.WriteString(detail[last:s.Start] + "»" + detail[s.Start:s.End] + "«")
		last = s.End
	}
	return b.String() + detail[last:]
}
