package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxAskAge is how far an ask id's time may lie from the gate's clock.
const MaxAskAge = 24 * time.Hour

// MaxHops is how many nodes may relay one ask.
const MaxHops = 8

// SourceToolCall is the source of an ask that stands before a tool call.
const SourceToolCall = "tool_call"

// Ask is one tool call that an adapter asks about, with the facts it fixed.
// The facts come from the agent's host: they may tighten a ruling, never loosen
// one. The id is the idempotency key.
type Ask struct {
	V         Version `json:"v"`
	ID        string  `json:"id"`
	Agent     string  `json:"agent"`
	AgentName string  `json:"agent_name"`
	Source    string  `json:"source"`
	Session   Session `json:"session"`
	Tool      Tool    `json:"tool"`
	Cwd       string  `json:"cwd"`
	Home      string  `json:"home"`
	Platform  string  `json:"platform"`
	Paths     []Path  `json:"paths,omitempty"`
	// MCPServers are the names of the MCP servers that the agent has, where its
	// host knows them: by them a tool's name that joins server and tool is taken
	// apart too, for what that makes stricter.
	MCPServers []string `json:"mcp_servers,omitempty"`
	Project    Project  `json:"project"`
	// Intent is what the person asked for, in the person's own words; optional.
	Intent string `json:"intent,omitempty"`
	// MaxWaitMS bounds the wait in milliseconds; 0 = the policy's. The smaller
	// of the two counts.
	MaxWaitMS int64 `json:"max_wait_ms"`
	// Hops are the nodes that relayed the ask, the one that the agent asked first:
	// empty in what an agent sends. A node that finds itself there is in a loop.
	Hops []string `json:"hops,omitempty"`
	// HumanOnly: a node below left something open that only a person may allow.
	HumanOnly bool `json:"human_only,omitzero"`
	// Prompt is how the node below puts it to a person: a permission module there
	// asks for one. Never in what an agent sends.
	Prompt *Prompt `json:"prompt,omitempty"`
}

// Session is where in a tree of agent sessions the call was made.
type Session struct {
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"`
	Root   string `json:"root,omitempty"`
	// Interactive: a person sits at this session and is an approver of the node.
	Interactive bool `json:"interactive"`
}

// Tool is the call itself. Input is a JSON object, as the agent gave it.
type Tool struct {
	Name   string         `json:"name"`
	CallID string         `json:"call_id,omitempty"`
	Input  jsontext.Value `json:"input"`
}

// Path is a path of the call as typed and as the adapter resolved it.
type Path struct {
	Raw      string `json:"raw"`
	Resolved string `json:"resolved"`
}

// Project is the project the agent works in.
type Project struct {
	ID     string `json:"id,omitempty"`
	Root   string `json:"root,omitempty"`
	Digest string `json:"digest,omitempty"`
}

func (a *Ask) version() Version { return a.V }

func (a *Ask) check() error {
	if a.Source != "" && a.Source != SourceToolCall {
		return fmt.Errorf("%w: source %q, want %q", ErrEnum, clip(a.Source, 40), SourceToolCall)
	}
	if a.MaxWaitMS < 0 {
		return fmt.Errorf("%w: max_wait_ms is negative", ErrField)
	}
	if len(a.Paths) > MaxPaths {
		return fmt.Errorf("%w: %d paths, the limit is %d", ErrField, len(a.Paths), MaxPaths)
	}
	for _, p := range a.Paths {
		if err := first(path("paths.raw", p.Raw), path("paths.resolved", p.Resolved)); err != nil {
			return err
		}
	}
	if len(a.MCPServers) > MaxMCPServers {
		return fmt.Errorf("%w: %d mcp_servers, the limit is %d", ErrField, len(a.MCPServers), MaxMCPServers)
	}
	for _, s := range a.MCPServers {
		if err := name("mcp_servers", s); err != nil {
			return err
		}
	}
	if err := hops(a.Hops); err != nil {
		return err
	}
	return first(
		CheckAskID(a.ID),
		CheckToken("agent", a.Agent),
		optionalName("agent_name", a.AgentName),
		optionalName("session.id", a.Session.ID),
		optionalName("session.parent", a.Session.Parent),
		optionalName("session.root", a.Session.Root),
		name("tool.name", a.Tool.Name),
		optionalName("tool.call_id", a.Tool.CallID),
		object("tool.input", a.Tool.Input),
		path("cwd", a.Cwd),
		path("home", a.Home),
		optionalName("platform", a.Platform),
		path("project.id", a.Project.ID),
		path("project.root", a.Project.Root),
		optionalName("project.digest", a.Project.Digest),
		bounded("intent", a.Intent, MaxIntent),
		a.Prompt.check(),
	)
}

// Via is the child node that the ask came through: the last that relayed it. ""
// for one of a node's own agents.
func (a *Ask) Via() string {
	if len(a.Hops) == 0 {
		return ""
	}
	return a.Hops[len(a.Hops)-1]
}

// hops refuses a path that no tree of nodes has.
func hops(path []string) error {
	if len(path) > MaxHops {
		return fmt.Errorf("%w: relayed by %d nodes, the limit is %d (%s)", ErrLoop, len(path), MaxHops, clip(strings.Join(path, " > "), MaxName))
	}
	for i, h := range path {
		if err := CheckToken("hops", h); err != nil {
			return err
		}
		if slices.Contains(path[:i], h) {
			return fmt.Errorf("%w: %s has relayed it twice (%s)", ErrLoop, h, strings.Join(path, " > "))
		}
	}
	return nil
}

// CheckTime refuses an id whose time lies more than MaxAskAge from now: the
// record of older ids may be gone, and with it the proof that they were decided.
func (a *Ask) CheckTime(now time.Time) error {
	if d := now.Sub(AskTime(a.ID)).Abs(); d > MaxAskAge {
		return fmt.Errorf("%w: ask id %s lies %s from this gate's clock, the limit is %s: ask again with a new id, or set the clock", ErrField, a.ID, d.Round(time.Second), MaxAskAge)
	}
	return nil
}

// MaxWait is how long the asker wants to wait at most; 0 = the policy's.
func (a *Ask) MaxWait() time.Duration {
	const limit = int64(365 * 24 * time.Hour / time.Millisecond)
	return time.Duration(min(a.MaxWaitMS, limit)) * time.Millisecond
}

// facts are what a call's digest is over. The keys stand in the order of the
// canonical form, so that only the tool's input has to be brought into it.
type facts struct {
	Agent string `json:"agent"`
	Cwd   string `json:"cwd"`
	// An agent of a child is nobody's namesake, and what only a person may
	// allow is not answered by what allowed the like of it.
	Hops      []string     `json:"hops,omitempty"`
	HumanOnly bool         `json:"human_only,omitzero"`
	Node      string       `json:"node"`
	Paths     []Path       `json:"paths"` // raw, resolved
	Project   projectFacts `json:"project"`
	Session   sessionFacts `json:"session"`
	Tool      toolFacts    `json:"tool"`
}

type projectFacts struct {
	Digest string `json:"digest,omitempty"`
	ID     string `json:"id,omitempty"`
	Root   string `json:"root,omitempty"`
}

type sessionFacts struct {
	ID          string `json:"id"`
	Interactive bool   `json:"interactive"`
	Parent      string `json:"parent,omitempty"`
	Root        string `json:"root,omitempty"`
}

type toolFacts struct {
	CallID string         `json:"call_id,omitempty"`
	Input  jsontext.Value `json:"input"`
	Name   string         `json:"name"`
}

// Digest identifies the call: SHA-256 over node, agent, session, tool, cwd,
// paths and project, and over hops and human_only where an ask has them, as canonical JSON (RFC 8785, but with numbers as they were
// spelled: two integers beyond 2^53 stay two calls). The same id with another
// digest is a conflict.
func (a *Ask) Digest(node string) (string, error) {
	input := a.Tool.Input.Clone()
	if len(input) == 0 {
		input = jsontext.Value("null")
	} else if err := input.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return "", fmt.Errorf("digest of ask %s: %w", a.ID, err)
	}
	b, err := json.Marshal(&facts{
		Agent: a.Agent, Cwd: a.Cwd, Hops: a.Hops, HumanOnly: a.HumanOnly, Node: node, Paths: a.Paths,
		Project: projectFacts{Digest: a.Project.Digest, ID: a.Project.ID, Root: a.Project.Root},
		Session: sessionFacts{ID: a.Session.ID, Interactive: a.Session.Interactive, Parent: a.Session.Parent, Root: a.Session.Root},
		Tool:    toolFacts{CallID: a.Tool.CallID, Input: input, Name: a.Tool.Name},
	})
	if err != nil {
		return "", fmt.Errorf("digest of ask %s: %w", a.ID, err)
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// ReadAskFor reads an ask that came on agent's subject: the name in the subject
// is the credential's, and the body must agree.
func ReadAskFor(agent string, data []byte, opts ...ReadOption) (Ask, error) {
	a, err := Read[Ask](data, opts...)
	if err != nil {
		return Ask{}, err
	}
	if a.Agent != agent {
		return Ask{}, fmt.Errorf("%w: the ask says agent %q, the credential is %q's", ErrMismatch, a.Agent, agent)
	}
	if len(a.Hops) > 0 {
		return Ask{}, fmt.Errorf("%w: hops in an agent's ask: only a child node relays", ErrMismatch)
	}
	if a.Prompt != nil { // an agent must not write what its approver reads
		return Ask{}, fmt.Errorf("%w: a prompt in an agent's ask: only a child node hands one on", ErrMismatch)
	}
	return a, nil
}

// ReadRelayedAsk reads an ask that child has relayed to node: the last of its
// hops is the child's, as the subject has it, and node is not among them. A path
// that leads back here, or is too long, is an error that says "loop".
func ReadRelayedAsk(child, node string, data []byte, opts ...ReadOption) (Ask, error) {
	a, err := Read[Ask](data, opts...)
	if err != nil {
		return Ask{}, err
	}
	if a.Via() != child {
		return Ask{}, fmt.Errorf("%w: the ask says it was relayed by %q last, the credential is %q's", ErrMismatch, a.Via(), child)
	}
	if slices.Contains(a.Hops, node) {
		return Ask{}, fmt.Errorf("%w: this node has relayed it before (%s > %s)", ErrLoop, strings.Join(a.Hops, " > "), node)
	}
	return a, nil
}

// Cancel withdraws a pending ask.
type Cancel struct {
	V      Version `json:"v"`
	Ask    string  `json:"ask"`
	Reason string  `json:"reason"`
}

func (c *Cancel) version() Version { return c.V }
func (c *Cancel) check() error {
	return first(CheckAskID(c.Ask), bounded("reason", c.Reason, MaxReason))
}

// CancelReceipt says whether the ask was withdrawn; false when it was decided
// before.
type CancelReceipt struct {
	V         Version `json:"v"`
	Ask       string  `json:"ask"`
	Cancelled bool    `json:"cancelled"`
}

func (c *CancelReceipt) version() Version { return c.V }
func (c *CancelReceipt) check() error     { return CheckAskID(c.Ask) }

// Progress says that an ask is not decided yet: ask again with the same id.
type Progress struct {
	V      Version   `json:"v"`
	Ask    string    `json:"ask"`
	Status string    `json:"status"`
	Stage  string    `json:"stage"`
	Since  time.Time `json:"since"`
}

// StatusPending is the only status of a Progress.
const StatusPending = "pending"

func (p *Progress) version() Version { return p.V }
func (p *Progress) check() error {
	if p.Status != StatusPending {
		return fmt.Errorf("%w: status %q, want %q", ErrEnum, clip(p.Status, 40), StatusPending)
	}
	return first(CheckAskID(p.Ask), name("stage", p.Stage))
}
