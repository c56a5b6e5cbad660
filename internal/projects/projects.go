// Package projects keeps what projects have of their own, policies and permission
// modules, as agents uploaded them, in the bucket ASSENT_PROJECTS.
package projects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// PerAgent bounds the uploads that are kept of one agent. Where one more comes,
// the one goes that was renewed longest ago.
const PerAgent = 64

// renewAfter is the age at which an entry that is in use is written anew.
const renewAfter = 24 * time.Hour

// opTime bounds one call of a Store.
const opTime = 3 * time.Second

// ErrAltered: what is stored under a digest has another one.
var ErrAltered = errors.New("what is stored of a project is not what its digest says")

// Stored is an upload as it is stored.
type Stored struct {
	// Text is the project's policy.
	Text    string
	Modules []protocol.ProjectModule
	// At is when it was written or renewed.
	At time.Time
}

// Stale says whether an entry that is in use has to be renewed, so that it
// outlives the wait of an ask that begins now.
func (s Stored) Stale(now time.Time) bool { return now.Sub(s.At) > renewAfter }

// Store is the bucket as one gate sees it; safe for concurrent use.
type Store struct {
	nc *nats.Conn
	js jetstream.JetStream
}

// New returns the store on nc, which stays the caller's.
func New(nc *nats.Conn) (*Store, error) {
	js, err := bus.JetStream(nc)
	if err != nil {
		return nil, err
	}
	return &Store{nc: nc, js: js}, nil
}

const (
	stream = "KV_" + protocol.BucketProjects
	prefix = "$KV." + protocol.BucketProjects + "."
)

// subject is where an agent's policy of a digest stands. Both are checked: they
// become part of a subject.
func subject(agent, digest string) (string, error) {
	if err := protocol.CheckToken("agent", agent); err != nil {
		return "", err
	}
	if err := protocol.CheckProjectDigest(digest); err != nil {
		return "", err
	}
	_, digits, _ := strings.Cut(digest, ":")
	return prefix + agent + "." + digits, nil
}

// Get returns what agent uploaded under digest; found is false where
// there is none. A digest that is none names nothing.
func (s *Store) Get(ctx context.Context, agent, digest string) (stored Stored, found bool, err error) {
	at, err := subject(agent, digest)
	if err != nil {
		return Stored{}, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	for m, err := range bus.ReadStream(ctx, s.nc, stream, 1, at) {
		switch {
		case err != nil:
			return Stored{}, false, fmt.Errorf("reading project policy %s: %w", digest, err)
		case mark(m):
			return Stored{}, false, nil
		}
		stored = Stored{At: m.Time}
		stored.Text, stored.Modules, err = protocol.ReadProjectContent(string(m.Data))
		if err != nil || protocol.ProjectDigest(stored.Text, stored.Modules...) != digest {
			return Stored{}, false, fmt.Errorf("%w: %s of agent %s", ErrAltered, digest, agent)
		}
		return stored, true, nil
	}
	return Stored{}, false, nil
}

// mark says whether a message only says that something went.
func mark(m bus.StreamMsg) bool {
	return m.Header.Get("KV-Operation") != "" || m.Header.Get("Nats-Marker-Reason") != ""
}

// Put stores a project's policy and modules for agent, or renews them, and makes
// room for them first. It returns their digest.
func (s *Store) Put(ctx context.Context, agent, policy string, modules ...protocol.ProjectModule) (digest string, err error) {
	digest = protocol.ProjectDigest(policy, modules...)
	at, err := subject(agent, digest)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	if err := s.room(ctx, agent, at); err != nil {
		return "", err
	}
	if _, err := s.js.PublishMsg(ctx, &nats.Msg{Subject: at, Data: []byte(protocol.ProjectContent(policy, modules...))}); err != nil {
		return "", fmt.Errorf("storing project policy %s: %w", digest, err)
	}
	return digest, nil
}

// room lets the oldest entry of agent go where it has as many as it may. Two
// gates that make room at once may keep some more, for as long as it takes.
func (s *Store) room(ctx context.Context, agent, at string) error {
	all := prefix + agent + ".*"
	st, err := s.js.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("counting project policies of %s: %w", agent, err)
	}
	info, err := st.Info(ctx, jetstream.WithSubjectFilter(all))
	if err != nil {
		return fmt.Errorf("counting project policies of %s: %w", agent, err)
	}
	if _, known := info.State.Subjects[at]; known || len(info.State.Subjects) < PerAgent {
		return nil
	}
	for m, err := range bus.ReadStream(ctx, s.nc, stream, 1, all) {
		if err != nil {
			return fmt.Errorf("making room for project policies of %s: %w", agent, err)
		}
		if mark(m) {
			continue
		}
		gone := &nats.Msg{Subject: m.Subject, Header: nats.Header{"KV-Operation": {"DEL"}}}
		if _, err := s.js.PublishMsg(ctx, gone, jetstream.WithMsgTTL(time.Second)); err != nil {
			return fmt.Errorf("making room for project policies of %s: %w", agent, err)
		}
		return nil
	}
	return nil
}
