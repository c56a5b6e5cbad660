// Package grants keeps remembered approvals in the bucket ASSENT_GRANTS, and
// says to which calls one applies.
//
// The record makes a grant: it is the decision by which a person allowed. What
// stands in the bucket only says that it still holds, and how often.
package grants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// PerAgent bounds the grants of one agent that are looked at: each costs a
// message on every call that the rules leave open.
const PerAgent = 64

// opTime bounds one call of a Store.
const opTime = 3 * time.Second

// buried is how long the mark of a grant that is revoked or used up stays: as
// long as anybody might still carry the answer through that made it.
const buried = 24 * time.Hour

// Errors of a Store.
var (
	// ErrGone: there is no such grant, or not any more.
	ErrGone = errors.New("no such grant")
	// ErrLost: another call used the grant at the same moment, or it was revoked.
	ErrLost = errors.New("the grant was used or revoked meanwhile")
	// ErrMany: an agent has more grants than are looked at.
	ErrMany = errors.New("too many grants: revoke some")
	// ErrBroken: an entry cannot be read as a grant of its key.
	ErrBroken = errors.New("grant is broken")
)

// Stored is a grant and the revision that it was read at.
type Stored struct {
	protocol.Grant
	Revision uint64
}

// Store is the bucket as one process sees it; safe for concurrent use. It is
// read through the stream's leader alone: a grant counts, and a revoked one
// stops, from the acknowledgement on and wherever that came from.
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
	stream = "KV_" + protocol.BucketGrants
	prefix = "$KV." + protocol.BucketGrants + "."
)

// subject is where the grant of a holder stands that was given on ask id.
func subject(holder, id string) string { return prefix + holder + "." + id }

// Holder names whose the grants are that may speak of an agent's calls: the
// agent's, with the way that its asks come before it. No name of an agent or a
// node holds the stroke between them.
func Holder(agent string, hops []string) string {
	return strings.Join(append(slices.Clone(hops), agent), "/")
}

func holder(g protocol.Grant) string { return Holder(g.Agent, g.Hops) }

// Put stores a grant, if it never was stored: one that is revoked or used up
// meanwhile stays so. It may be called again by whoever carries the same answer
// through.
func (s *Store) Put(ctx context.Context, g protocol.Grant) error {
	ttl, live := left(g, time.Now())
	if !live {
		return nil
	}
	err := s.write(ctx, g, 0, ttl)
	if errors.Is(err, ErrLost) {
		return nil
	}
	return err
}

// Use counts one use of a grant that has a limit. ErrLost where it does not
// stand any more as it was read.
func (s *Store) Use(ctx context.Context, g Stored) error {
	if g.Uses == 0 {
		return nil
	}
	next := g.Grant
	next.Uses--
	ttl, live := left(next, time.Now())
	if !live {
		return fmt.Errorf("using grant %s: %w", g.Ask, ErrLost)
	}
	if next.Uses == 0 {
		return s.bury(ctx, g)
	}
	return s.write(ctx, next, g.Revision, ttl)
}

// left is how long a grant still holds, 0 for without end.
func left(g protocol.Grant, now time.Time) (ttl time.Duration, live bool) {
	if g.Expires == "" || g.Expired(now) {
		return 0, g.Expires == ""
	}
	end, _ := time.Parse(time.RFC3339, g.Expires) // Expired has read it
	return end.Sub(now).Truncate(time.Second) + time.Second, true
}

// write stores g where its key is at revision, 0 for never used.
func (s *Store) write(ctx context.Context, g protocol.Grant, revision uint64, ttl time.Duration) error {
	body, err := protocol.Write(protocol.StoredGrant{Grant: g})
	if err != nil {
		return fmt.Errorf("storing grant %s: %w", g.Ask, err)
	}
	var opts []jetstream.PublishOpt
	if ttl > 0 {
		// Only tidiness: the end counts by the clock of whoever uses it.
		opts = append(opts, jetstream.WithMsgTTL(ttl))
	}
	return s.publish(ctx, g, &nats.Msg{Subject: subject(holder(g), g.Ask), Data: body}, revision, opts...)
}

// bury puts a mark in the place of a grant, at which it was read.
func (s *Store) bury(ctx context.Context, g Stored) error {
	msg := &nats.Msg{Subject: subject(holder(g.Grant), g.Ask), Header: nats.Header{"KV-Operation": {"DEL"}}}
	return s.publish(ctx, g.Grant, msg, g.Revision, jetstream.WithMsgTTL(buried))
}

func (s *Store) publish(ctx context.Context, g protocol.Grant, msg *nats.Msg, revision uint64, opts ...jetstream.PublishOpt) error {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	_, err := s.js.PublishMsg(ctx, msg, append(opts, jetstream.WithExpectLastSequencePerSubject(revision))...)
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == wrongLastSequenceReplicated):
		return fmt.Errorf("changing grant %s: %w", g.Ask, ErrLost)
	}
	return fmt.Errorf("changing grant %s: %w", g.Ask, err)
}

// wrongLastSequenceReplicated is the same refusal by a replicated stream.
const wrongLastSequenceReplicated jetstream.ErrorCode = 10164

// Of returns the grants of one holder, oldest first, at most PerAgent: a grant
// beyond that clears nothing. Entries that are no grants are left out and
// returned as an error beside the others.
func (s *Store) Of(ctx context.Context, holder string) ([]Stored, error) {
	for name := range strings.SplitSeq(holder, "/") {
		if err := protocol.CheckToken("holder", name); err != nil {
			return nil, err
		}
	}
	out, err := s.read(ctx, prefix+holder+".*", PerAgent+1)
	if len(out) > PerAgent {
		out, err = out[:PerAgent], errors.Join(err, fmt.Errorf("%w: agent %s, %d are looked at", ErrMany, holder, PerAgent))
	}
	return out, err
}

// All returns every grant of the node, oldest first, with errors as Of has.
func (s *Store) All(ctx context.Context) ([]Stored, error) {
	return s.read(ctx, prefix+">", 0)
}

// read returns what stands under a filter, at most limit grants; 0 is no limit.
func (s *Store) read(ctx context.Context, filter string, limit int) (out []Stored, err error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	var broken []error
	for m, err := range bus.ReadStream(ctx, s.nc, stream, 1, filter) {
		if err != nil {
			return nil, fmt.Errorf("reading grants: %w", err)
		}
		if m.Header.Get("KV-Operation") != "" || m.Header.Get("Nats-Marker-Reason") != "" {
			continue
		}
		g, err := decode(m)
		if err != nil {
			broken = append(broken, err)
			continue
		}
		if out = append(out, g); len(out) == limit {
			break
		}
	}
	return out, errors.Join(broken...)
}

// decode reads one entry. One under the key of another agent or ask is broken,
// never theirs.
func decode(m bus.StreamMsg) (Stored, error) {
	g, err := protocol.Read[protocol.StoredGrant](m.Data)
	if err == nil && m.Subject != subject(holder(g.Grant), g.Ask) {
		err = fmt.Errorf("it says agent %s and ask %s", g.Agent, g.Ask)
	}
	if err != nil {
		return Stored{}, fmt.Errorf("%w: %s: %w", ErrBroken, strings.TrimPrefix(m.Subject, prefix), err)
	}
	return Stored{Grant: g.Grant, Revision: m.Seq}, nil
}

// Revoke ends a grant: no call is cleared by it any more. ErrGone where there is
// none.
func (s *Store) Revoke(ctx context.Context, id string) (protocol.Grant, error) {
	for {
		all, err := s.read(ctx, prefix+"*."+id, 1)
		if err != nil {
			return protocol.Grant{}, err
		}
		if len(all) == 0 {
			return protocol.Grant{}, fmt.Errorf("%w: %s", ErrGone, id)
		}
		// Used at this moment, it stands under another revision: once more.
		if err := s.bury(ctx, all[0]); !errors.Is(err, ErrLost) {
			return all[0].Grant, err
		}
	}
}
