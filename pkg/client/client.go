// Package client is what an agent imports to ask a gate before each tool call.
// Start at Client.Ask. Only a decision whose Allowed method says so is a yes;
// every error is a no.
package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Defaults of the options.
const (
	// DefaultRound is how long one request waits: a gate answers within 5 s,
	// with a decision or with a sign of life.
	DefaultRound = 7 * time.Second
	// DefaultPatience is how long to look for a gate that shows no sign of life.
	DefaultPatience = 2 * time.Second
	// DefaultPace is the least time between two requests of a waiting ask, so
	// that a gate which answers at once is not asked in a busy loop.
	DefaultPace = 500 * time.Millisecond
)

// Client asks the gates of one node as one agent. It is safe for concurrent
// use. It does not own the connection.
type Client struct {
	nc       *nats.Conn
	agent    string
	ask      string
	cancel   string
	upload   string
	projects map[string]own // what projects have of their own, by digest
	round    time.Duration
	patience time.Duration
	pace     time.Duration
	progress func(protocol.Progress)
}

// Option changes a Client.
type Option func(*Client)

// Round sets how long one request waits; at least as long as a gate may take
// to show a sign of life (5 s). DefaultRound without it.
func Round(d time.Duration) Option { return func(c *Client) { c.round = d } }

// Patience sets how long Ask looks for a gate before it gives up; it tries at
// least twice. DefaultPatience without it.
func Patience(d time.Duration) Option { return func(c *Client) { c.patience = d } }

// Pace sets the least time between two requests of a waiting ask. DefaultPace
// without it.
func Pace(d time.Duration) Option { return func(c *Client) { c.pace = d } }

// OnProgress is called, from the goroutine that asks, for each sign of life of
// an ask that is not decided yet.
func OnProgress(f func(protocol.Progress)) Option { return func(c *Client) { c.progress = f } }

// ProjectPolicy hands the client the text of a project's own policy. A gate that
// does not know the one that an ask names by its digest (Ask.Project.Digest,
// protocol.ProjectDigest) gets it uploaded, and is asked again. May be given more
// than once.
func ProjectPolicy(text string) Option { return ProjectOwn(text) }

// ProjectOwn is ProjectPolicy for a project that brings permission modules too;
// protocol.NoProjectPolicy stands for the policy of one that has none.
func ProjectOwn(policy string, modules ...protocol.ProjectModule) Option {
	return func(c *Client) { c.projects[protocol.ProjectDigest(policy, modules...)] = own{policy, modules} }
}

// New returns a client for agent on node. The connection's credentials must be
// those of that agent, and its inbox prefix the agent's own
// (protocol.InboxPrefix): the server lets it ask as nobody else.
func New(nc *nats.Conn, node, agent string, opts ...Option) (*Client, error) {
	if nc == nil {
		return nil, errors.New("asking needs a connection")
	}
	s, err := protocol.NewSubjects(node)
	if err != nil {
		return nil, err
	}
	c := &Client{nc: nc, agent: agent, round: DefaultRound, patience: DefaultPatience, pace: DefaultPace, projects: map[string]own{}, progress: func(protocol.Progress) {}}
	if c.ask, err = s.Ask(agent); err != nil {
		return nil, err
	}
	if c.cancel, err = s.Cancel(agent); err != nil {
		return nil, err
	}
	if c.upload, err = s.Project(agent); err != nil {
		return nil, err
	}
	for _, o := range opts {
		o(c)
	}
	if c.round <= 0 || c.patience < 0 || c.pace < 0 || c.progress == nil {
		return nil, fmt.Errorf("asking as %s: round must be positive, patience and pace not negative, the progress function not nil", agent)
	}
	return c, nil
}

// Agent is the name that the client asks as.
func (c *Client) Agent() string { return c.agent }
