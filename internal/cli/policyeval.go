package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/jsonwords"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/shell"
	"github.com/assent-dev/assent/pkg/client/paths"
	"github.com/assent-dev/assent/pkg/protocol"
)

func policyEval(env *Env) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Rule calls offline: JSON lines in, rulings out",
		Long: `Reads calls as JSON lines on standard input and prints one line for each: how the rules
and grants decide it. No server is asked and nothing runs.

A line in is a call, {"id","tool","input"}, a question about a value on a surface,
{"id","surface","value"}, or about a tool as a whole, {"id","query_tool"}. Any may hold
  "layers"       {"fleet":{…},"project":{…},"agent":{…},"project-agent":{…}}; without it
                 the file of --policy is the fleet layer
  "trusted"      false: layers other than fleet only tighten, as they do where the fleet
                 layer does not trust them; without it they may loosen
  "cwd" "home"   absolute paths on the agent's host
  "platform"     the agent's system: linux, darwin (macOS) or windows
  "agent_name" "mcp_servers" "paths" "grants"   as in an ask
  "resolve"      true: follow symbolic links on this host, as an adapter would

A line out holds the decision (allow, ask or deny), the surface, value, pattern and origin
that decided, the reason, every shell unit, and the pattern that an approver would be
offered for a grant. A line that cannot be read gives a line with "error"; the others are
still ruled, and the exit code is 1. So does a fleet layer that is broken. Where another
layer is broken, the call is ruled without it and every allow becomes an ask, as at a gate:
"clamped" then says why, and so does standard error.`,
		Example: `  echo '{"id":"1","cwd":"/repo","tool":"bash","input":{"command":"git status"}}' | assent policy eval --policy policy.jsonc`,
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			e := evaluator{read: map[string]readLayer{}}
			if file == "-" {
				return usagef("--policy -: standard input holds the calls; name a file")
			}
			if file != "" {
				path, doc, err := policyFile(env, file)
				if err != nil {
					return err
				}
				if e.fleet, err = policy.Read(policy.Fleet(), path, doc); err != nil {
					return &exitError{code: exitBadPolicy, err: err}
				}
			}
			return e.lines(env.Stdin, env.Stdout, env.Stderr)
		},
	}
	cmd.Flags().StringVar(&file, "policy", "", "policy file for the calls that bring no layers of their own")
	return cmd
}

// maxEvalLine bounds one line of input, in bytes.
const maxEvalLine = 4 << 20

// maxWarned bounds the warnings about broken layers, each of which is said once.
const maxWarned = 20

// evalLine is one line in.
type evalLine struct {
	ID         string                    `json:"id"`
	Layers     map[string]jsontext.Value `json:"layers"`
	Trusted    *bool                     `json:"trusted"`
	Cwd        string                    `json:"cwd"`
	Home       string                    `json:"home"`
	Platform   string                    `json:"platform"`
	AgentName  string                    `json:"agent_name"`
	Grants     []evalGrant               `json:"grants"`
	Paths      []protocol.Path           `json:"paths"`
	Resolve    bool                      `json:"resolve"`
	MCPServers []string                  `json:"mcp_servers"`
	// Source says where a call came from; it changes no ruling.
	Source string `json:"source"`

	Tool  string         `json:"tool"`
	Input jsontext.Value `json:"input"`

	Surface string `json:"surface"`
	Value   string `json:"value"`

	QueryTool string `json:"query_tool"`
}

// evalGrant is a grant as far as a ruling knows of it.
type evalGrant struct {
	Surface  string   `json:"surface"`
	Patterns []string `json:"patterns"`
}

// evaluated is one line out.
type evaluated struct {
	ID             string     `json:"id"`
	Decision       string     `json:"decision"`
	Surface        string     `json:"surface"`
	Value          string     `json:"value"`
	MatchedPattern string     `json:"matched_pattern"`
	Origin         string     `json:"origin"`
	Reason         string     `json:"reason"`
	Units          []evalUnit `json:"units"`
	Suggest        []string   `json:"suggest"`
	// Clamped says why every allow was held to an ask: a layer is broken.
	Clamped string `json:"clamped,omitempty"`
	Error   string `json:"error"`
}

type evalUnit struct {
	Text     string `json:"text"`
	Decision string `json:"decision"`
	Pattern  string `json:"pattern"`
	Note     string `json:"note"`
}

// evaluator rules lines. Layers that many lines share are read once.
type evaluator struct {
	fleet *policy.Document
	read  map[string]readLayer
}

type readLayer struct {
	doc *policy.Document
	err error
}

var errEvalLines = errors.New("could not be ruled: see \"error\" in the line out")

func (e *evaluator) lines(in io.Reader, out, errs io.Writer) error {
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 64<<10), maxEvalLine)
	w := bufio.NewWriter(out)
	bad, number := 0, 0
	warned := map[string]bool{}
	for scan.Scan() {
		number++
		if len(bytes.TrimSpace(scan.Bytes())) == 0 {
			continue
		}
		r := e.line(scan.Bytes())
		if r.Error != "" {
			bad++
		}
		if r.Error != "" && r.ID == "" {
			r.Error = fmt.Sprintf("line %d: %s", number, r.Error) // nothing else says which
		}
		if r.Clamped != "" && len(warned) < maxWarned && !warned[r.Clamped] {
			warned[r.Clamped] = true
			fmt.Fprintf(errs, "assent: every allow is held to ask: %s\n", protocol.Safe(r.Clamped, 2000, true))
		}
		b, err := json.Marshal(r, json.Deterministic(true))
		if err != nil {
			return fmt.Errorf("writing a ruling: %w", err)
		}
		if _, err := w.Write(append(b, '\n')); err != nil {
			return fmt.Errorf("writing a ruling: %w", err)
		}
		// Whoever feeds lines one by one waits for each answer.
		if err := w.Flush(); err != nil {
			return fmt.Errorf("writing a ruling: %w", err)
		}
	}
	switch err := scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("reading calls: a line has more than %d bytes", maxEvalLine)
	case err != nil:
		return fmt.Errorf("reading calls: %w", err)
	case bad > 0:
		return fmt.Errorf("%s %w", counted(bad, "line"), errEvalLines)
	}
	return nil
}

// line rules one line.
func (e *evaluator) line(text []byte) evaluated {
	var l evalLine
	if err := json.Unmarshal(text, &l, json.RejectUnknownMembers(true)); err != nil {
		var id struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(text, &id) // where even that does not read, the line has no name
		return unruled(id.ID, fmt.Errorf("reading the line: %w", jsonwords.Of(err)))
	}
	if err := l.checkPlace(); err != nil {
		return unruled(l.ID, err)
	}
	s, err := e.snapshot(l)
	if err != nil {
		return unruled(l.ID, err)
	}
	out := l.ruled(s)
	out.Clamped = s.Clamped()
	return out
}

// ruled is what a policy makes of a line, whatever layers that brings.
func (l evalLine) ruled(s *policy.Snapshot) evaluated {
	isCall, asked := l.Tool != "" || l.Input != nil, 0
	for _, it := range []bool{isCall, l.Surface != "", l.QueryTool != ""} {
		if it {
			asked++
		}
	}
	switch {
	case asked != 1:
		return unruled(l.ID, errors.New(`expected exactly one of "tool", "surface" and "query_tool" in the line`))
	case !isCall:
		q := policy.Query{Surface: l.Surface, Value: l.Value, Tool: l.QueryTool, Cwd: l.Cwd, Home: l.Home, Platform: l.Platform, Paths: l.fixed()}
		c := s.Check(q)
		return evaluated{ID: l.ID, Decision: c.State.String(), Surface: l.Surface, Value: l.Value, MatchedPattern: c.MatchedPattern,
			Origin: c.Origin, Reason: c.Reason, Units: []evalUnit{}, Suggest: append([]string{}, s.Suggest(q)...)}
	}
	grants, err := l.grants()
	if err != nil {
		return unruled(l.ID, err)
	}
	return l.call(s, grants)
}

func unruled(id string, err error) evaluated {
	return evaluated{ID: id, Error: err.Error(), Units: []evalUnit{}, Suggest: []string{}}
}

// grants are the grants of a line, named by their place in it.
func (l evalLine) grants() ([]policy.Grant, error) {
	var out []policy.Grant
	for i, g := range l.Grants {
		made, err := policy.NewGrant(strconv.Itoa(i+1), g.Surface, g.Patterns)
		if err != nil {
			return nil, fmt.Errorf("grant %d: %w", i+1, err)
		}
		out = append(out, made)
	}
	return out, nil
}

func (l evalLine) call(s *policy.Snapshot, grants []policy.Grant) evaluated {
	r := s.RuleWith(l.policyCall(), grants)
	d := r.Decisive
	out := evaluated{ID: l.ID, Decision: r.Action.String(), Surface: d.Surface, Value: d.Value, MatchedPattern: d.MatchedPattern, Origin: d.Origin,
		Reason: d.Reason, Units: []evalUnit{}, Suggest: append([]string{}, r.Suggest...)}
	for _, u := range r.Units {
		out.Units = append(out.Units, evalUnit{u.Text, u.Action.String(), u.Pattern, u.Note})
	}
	return out
}

func (l evalLine) policyCall() policy.Call {
	return policy.Call{Tool: l.Tool, Input: l.Input, Cwd: l.Cwd, Home: l.Home, Platform: l.Platform, Paths: l.fixed(), MCPServers: l.MCPServers}
}

// fixed are the paths that an adapter would have fixed.
func (l evalLine) fixed() []policy.Path {
	all := l.Paths
	if l.Resolve {
		all = append(all, resolved(l)...)
	}
	var out []policy.Path
	for _, p := range all {
		out = append(out, policy.Path{Raw: p.Raw, Resolved: p.Resolved})
	}
	return out
}

// resolved follows the links behind everything in a call that may be a path.
func resolved(l evalLine) []protocol.Path {
	words := inputTexts(l.Input)
	if l.Value != "" {
		words = append(words, l.Value)
	}
	for _, w := range slices.Clone(words) {
		words = append(words, shell.Touched(w)...)
	}
	return append(paths.Resolve(l.Cwd, l.Home, paths.Typed(l.Input)), paths.Links(l.Cwd, l.Home, words)...)
}

// inputTexts are the texts at the top of a tool's input.
func inputTexts(input jsontext.Value) []string {
	var args map[string]jsontext.Value
	if json.Unmarshal(input, &args) != nil {
		return nil
	}
	var out []string
	for _, v := range args {
		var s string
		if v.Kind() == '"' && json.Unmarshal(v, &s) == nil {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// evalProject stands for the project of a line's layers.
const evalProject = "project"

// snapshot is the policy of a line: its layers, or that of --policy.
func (e *evaluator) snapshot(l evalLine) (*policy.Snapshot, error) {
	var docs []*policy.Document
	var broken []string
	known := 0
	if l.Layers == nil {
		if e.fleet == nil {
			return nil, errors.New(`the line has no "layers": give them, or --policy`)
		}
		docs = append(docs, e.fleet)
	}
	for _, kind := range []string{"fleet", "project", "agent", "project-agent"} {
		doc, given := l.Layers[kind]
		if !given {
			continue
		}
		known++
		if l.AgentName == "" && strings.Contains(kind, "agent") {
			continue // it speaks of agents that wear a name
		}
		d, err := e.layer(kind, l.AgentName, doc)
		switch {
		case err == nil:
			docs = append(docs, d)
		case kind == policy.LayerFleet:
			return nil, err
		default:
			broken = append(broken, err.Error()) // a gate goes on without it, and clamps
		}
	}
	if known != len(l.Layers) {
		return nil, errors.New(`unknown layer; expected "fleet", "project", "agent" and "project-agent"`)
	}
	s := policy.Layered(l.Trusted == nil || *l.Trusted, docs...)
	if len(broken) > 0 {
		s = s.Clamp("a layer does not read: " + strings.Join(broken, "; "))
	}
	return s, nil
}

// layer reads one layer of a line. The agent of its layers is the line's own.
func (e *evaluator) layer(kind, agent string, doc jsontext.Value) (*policy.Document, error) {
	at := map[string]policy.Layer{
		"fleet": policy.Fleet(), "project": policy.ProjectLayer(evalProject), "agent": policy.AgentLayer(agent),
		"project-agent": policy.ProjectAgentLayer(evalProject, agent),
	}[kind]
	key := at.String() + "\n" + string(doc)
	have, ok := e.read[key]
	if !ok {
		have.doc, have.err = policy.Read(at, kind, doc)
		if len(e.read) > 1000 {
			clear(e.read)
		}
		e.read[key] = have
	}
	return have.doc, have.err
}
