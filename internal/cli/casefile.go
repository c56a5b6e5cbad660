package cli

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/assent-dev/assent/internal/jsonwords"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// caseFile is a file of `policy test`: calls, and what is wanted of them.
type caseFile struct {
	Schema     string            `json:"$schema,omitempty" jsonschema_description:"Where editors find this schema. It tests nothing."`
	Policy     string            `json:"policy,omitempty" jsonschema_description:"The policy that is tested, relative to this file. --policy names another."`
	Layers     map[string]string `json:"layers,omitempty" jsonschema_description:"Further layers and their files, as {\"project/shop\": \"project.jsonc\"}."`
	Trusted    bool              `json:"trusted,omitempty" jsonschema_description:"The further layers may loosen, as where the fleet layer trusts them; else they only tighten."`
	Cwd        string            `json:"cwd,omitempty" jsonschema_description:"Where the calls run that do not say it themselves. Default /repo."`
	Home       string            `json:"home,omitempty" jsonschema_description:"The home of the agent's user. Default /home/dev."`
	Platform   string            `json:"platform,omitempty" jsonschema:"enum=linux,enum=darwin,enum=windows" jsonschema_description:"The agent's system. Default linux."`
	MCPServers []string          `json:"mcp_servers,omitempty" jsonschema_description:"The MCP servers that the agent has."`
	Cases      []testCase        `json:"cases" jsonschema:"minItems=1"`

	// at are the places of the cases.
	at []policy.Position
}

// testCase is one call and what is wanted of it.
type testCase struct {
	Description string   `json:"description" jsonschema:"minLength=1" jsonschema_description:"What the case shows, in a few words."`
	Call        caseCall `json:"call" jsonschema_description:"The call: a shell command as a text, or tool and input."`
	Want        string   `json:"want" jsonschema:"enum=allow,enum=ask,enum=deny"`
	Pattern     *string  `json:"pattern,omitempty" jsonschema_description:"The pattern that has to decide."`
	Reason      *string  `json:"reason,omitempty" jsonschema_description:"The reason that has to be given."`
	Suggest     []string `json:"suggest,omitempty" jsonschema_description:"The patterns that an approver has to be offered for a grant; [] for none."`
}

// caseCall is a call in a case: a text for a shell command, or an object.
type caseCall struct {
	Tool       string          `json:"tool"`
	Input      jsontext.Value  `json:"input"`
	Cwd        string          `json:"cwd"`
	Home       string          `json:"home"`
	Platform   string          `json:"platform"`
	AgentName  string          `json:"agent_name"`
	Grants     []evalGrant     `json:"grants"`
	Paths      []protocol.Path `json:"paths"`
	MCPServers []string        `json:"mcp_servers"`
}

// UnmarshalJSONFrom reads either form.
func (c *caseCall) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '"', '{':
	default:
		return errors.New(`expected a shell command as a text, or {"tool": "read", "input": {"path": ".env"}}`)
	}
	if dec.PeekKind() == '"' {
		var command string
		if err := json.UnmarshalDecode(dec, &command); err != nil {
			return err
		}
		*c = caseCall{Tool: "bash", Input: shellInput(command)}
		return nil
	}
	type plain caseCall
	return json.UnmarshalDecode(dec, (*plain)(c))
}

// What calls have that a file says nothing of: the same on every machine.
const (
	caseCwd      = "/repo"
	caseHome     = "/home/dev"
	casePlatform = "linux"
)

// line is the case's call as policy eval would read it.
func (f *caseFile) line(c testCase) evalLine {
	servers := c.Call.MCPServers
	if servers == nil {
		servers = f.MCPServers
	}
	return evalLine{
		Tool: c.Call.Tool, Input: c.Call.Input, Cwd: firstOf(c.Call.Cwd, f.Cwd, caseCwd), Home: firstOf(c.Call.Home, f.Home, caseHome),
		Platform: firstOf(c.Call.Platform, f.Platform, casePlatform), AgentName: c.Call.AgentName, Grants: c.Call.Grants,
		Paths: c.Call.Paths, MCPServers: servers,
	}
}

// errCaseFile: something is no file of cases.
var errCaseFile = errors.New("the file of cases does not read")

// readCaseFile reads a file of cases, strictly: a case that is not understood
// tests nothing.
func readCaseFile(path string) (*caseFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading cases: %w", err)
	}
	return parseCases(path, text)
}

func parseCases(path string, text []byte) (*caseFile, error) {
	tree, err := hujson.Parse(bytes.Clone(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errCaseFile, placeOfError(path, text, err), jsonwords.Of(err))
	}
	f := &caseFile{at: casePlaces(path, text, tree)}
	if tree.Find("/permission") != nil {
		return nil, fmt.Errorf("%w: %s is a policy; name a file of cases, which names the policy itself, as examples/policy.test.jsonc does", errCaseFile, path)
	}
	tree.Standardize() // in place: offsets stay those of the file
	if err := json.Unmarshal(tree.Pack(), f, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errCaseFile, placeOfError(path, text, err), jsonwords.Of(err))
	}
	if len(f.Cases) == 0 {
		return nil, fmt.Errorf("%w: %s holds no cases", errCaseFile, path)
	}
	for i, c := range f.Cases {
		if problem := c.lacks(); problem != "" {
			return nil, fmt.Errorf("%w: %s: %s", errCaseFile, f.at[i], problem)
		}
		if err := f.line(c).checkPlace(); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errCaseFile, f.at[i], err)
		}
	}
	return f, nil
}

// lacks says what a case needs and does not have.
func (c testCase) lacks() string {
	switch _, ok := policy.ParseAction(c.Want); {
	case c.Description == "":
		return "the case has no description"
	case c.Call.Tool == "":
		return `the case has no call; expected a shell command as a text, or {"tool": "read", "input": {"path": ".env"}}`
	case !ok:
		return fmt.Sprintf("the case wants %q; expected allow, ask or deny", c.Want)
	}
	return ""
}

// casePlaces are the places of the cases in a file.
func casePlaces(path string, text []byte, tree hujson.Value) []policy.Position {
	list, _ := memberOf(tree, "cases").Value.(*hujson.Array)
	if list == nil {
		return nil
	}
	var out []policy.Position
	for _, e := range list.Elements {
		out = append(out, positionAt(path, text, e.StartOffset))
	}
	return out
}

// memberOf is the value under a key of an object; the zero value for none.
func memberOf(v hujson.Value, key string) hujson.Value {
	obj, _ := v.Value.(*hujson.Object)
	if obj == nil {
		return hujson.Value{}
	}
	for _, m := range obj.Members {
		if name, ok := m.Name.Value.(hujson.Literal); ok && name.String() == key {
			return m.Value
		}
	}
	return hujson.Value{}
}

// placeOfError is where in a file a reader gave up.
func placeOfError(path string, text []byte, err error) policy.Position {
	return positionAt(path, text, jsonwords.Offset(text, err))
}

func positionAt(path string, text []byte, offset int) policy.Position {
	front := text[:min(max(offset, 0), len(text))]
	line := bytes.Count(front, []byte("\n"))
	return policy.Position{File: path, Line: line + 1, Column: 1 + utf8.RuneCount(front[bytes.LastIndexByte(front, '\n')+1:])}
}

// documents are the layers that a file of cases names; policyPath stands for
// its own policy where it is set.
func (f *caseFile) documents(env *Env, path, policyPath string) (layeredDocs, error) {
	out := layeredDocs{trusted: f.Trusted}
	beside := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(filepath.Dir(path), name)
	}
	switch {
	case policyPath != "":
	case f.Policy != "":
		policyPath = beside(f.Policy)
	default:
		return out, usagef("%s names no policy: give it \"policy\", or --policy", path)
	}
	if err := out.add(env, policy.Fleet(), policyPath); err != nil {
		return out, err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Layers)) {
		layer, err := policy.ParseNewLayer(name)
		if err != nil {
			return out, fmt.Errorf("%w: %s: %w", errCaseFile, path, err)
		}
		if err := out.add(env, layer, beside(f.Layers[name])); err != nil {
			return out, err
		}
	}
	return out, nil
}
