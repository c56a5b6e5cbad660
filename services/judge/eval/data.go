package eval

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/jsonwords"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Bounds of a data set.
const (
	maxLine  = 1 << 20
	MaxCases = 100_000
)

// ErrData: the data set cannot be read.
var ErrData = errors.New("invalid data set")

// Case is one labelled call.
type Case struct {
	ID string `json:"id"`
	// Category groups cases that test one thing.
	Category string `json:"category"`
	// Want is what a good judge says: defer where it is a person's to decide.
	Want protocol.Choice `json:"want"`
	Call Call            `json:"call"`
	// Why says what speaks for Want.
	Why string `json:"why"`
}

// Call is the call, with the facts that an adapter would have fixed.
type Call struct {
	Tool  string         `json:"tool"`
	Input jsontext.Value `json:"input"`
	// Cwd, Home and Platform as in an ask; /repo, /home/dev and linux without.
	Cwd        string           `json:"cwd,omitempty"`
	Home       string           `json:"home,omitempty"`
	Platform   string           `json:"platform,omitempty"`
	AgentName  string           `json:"agent_name,omitempty"`
	Paths      []protocol.Path  `json:"paths,omitempty"`
	MCPServers []string         `json:"mcp_servers,omitempty"`
	Project    protocol.Project `json:"project,omitzero"`
	Intent     string           `json:"intent,omitempty"`
}

// ask is the call as an adapter would have asked, under the given id.
func (c Call) ask(id string) protocol.Ask {
	a := protocol.Ask{
		ID: id, Agent: "eval", AgentName: c.AgentName, Source: protocol.SourceToolCall, Session: protocol.Session{ID: "eval"},
		Tool: protocol.Tool{Name: c.Tool, Input: c.Input}, Cwd: cmp.Or(c.Cwd, "/repo"), Home: cmp.Or(c.Home, "/home/dev"),
		Platform: cmp.Or(c.Platform, "linux"), Paths: c.Paths, MCPServers: c.MCPServers, Project: c.Project, Intent: c.Intent,
	}
	a.Project.Root = cmp.Or(a.Project.Root, a.Cwd)
	return a
}

// ReadCases reads labelled calls, one a line. Errors wrap ErrData and name the
// line: a case that was left out would make every figure a little too good.
func ReadCases(in io.Reader) ([]Case, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	var cases []Case
	seen := map[string]int{}
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var c Case
		err := json.Unmarshal(lines.Bytes(), &c, json.RejectUnknownMembers(true))
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrData, n, jsonwords.Of(err))
		}
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrData, n, err)
		}
		if at := seen[c.ID]; at > 0 {
			return nil, fmt.Errorf("%w: line %d: id %q is that of line %d", ErrData, n, protocol.Safe(c.ID, 60, false), at)
		}
		if len(cases) == MaxCases {
			return nil, fmt.Errorf("%w: line %d: more than %d cases", ErrData, n, MaxCases)
		}
		seen[c.ID] = n
		cases = append(cases, c)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%w: a line has more than %d bytes", ErrData, maxLine)
	case err != nil:
		return nil, fmt.Errorf("reading the data set: %w", err)
	case len(cases) == 0:
		return nil, fmt.Errorf("%w: it has no cases", ErrData)
	}
	return cases, nil
}

func (c Case) check() error {
	for _, f := range []struct{ name, value string }{{"id", c.ID}, {"category", c.Category}, {"call.tool", c.Call.Tool}, {"why", c.Why}} {
		if f.value == "" {
			return fmt.Errorf("%q is missing: each case has id, category, want, call with its tool, and why", f.name)
		}
		if f.value != protocol.Safe(f.value, 500, false) {
			return fmt.Errorf("%q is longer than 500 bytes, or no line of text", f.name)
		}
	}
	if !c.Want.Valid() {
		return errors.New(`"want" is missing: expected "allow", "deny" or "defer"`)
	}
	return nil
}
