package layers

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// ErrFrozenNobody: a freeze that names nobody in a way that can be stored.
var ErrFrozenNobody = errors.New("cannot be frozen")

// Frozen is whom a freeze stops: the fleet, an agent, or a session with its whole
// tree. Its zero value is nobody.
type Frozen struct {
	kind frozenKind
	name string
}

type frozenKind string

const (
	frozenAll     frozenKind = "all"
	frozenAgent   frozenKind = "agent"
	frozenSession frozenKind = "session"
	// frozenUnread is whom a key stops that does not read: everybody, since nobody
	// can tell whom it meant.
	frozenUnread frozenKind = "unread"
)

// Fleet is everybody.
func Fleet() Frozen { return Frozen{kind: frozenAll} }

// Agent is the agent of a credential. ErrFrozenNobody for what is no name of one.
func Agent(name string) (Frozen, error) {
	if err := protocol.CheckToken("agent", name); err != nil {
		return Frozen{}, fmt.Errorf("%w: %w", ErrFrozenNobody, err)
	}
	return Frozen{frozenAgent, name}, nil
}

// Session is a session, and all whose parent or root it is. ErrFrozenNobody for an
// id that no ask can have.
func Session(id string) (Frozen, error) {
	if id == "" || len(id) > protocol.MaxName {
		return Frozen{}, fmt.Errorf("%w: a session's id has 1 to %d bytes", ErrFrozenNobody, protocol.MaxName)
	}
	return Frozen{frozenSession, id}, nil
}

var sessionEncoding = base64.RawURLEncoding.Strict()

// Key is where the bucket holds the freeze.
func (f Frozen) Key() string {
	switch f.kind {
	case frozenAgent:
		return protocol.FreezePrefix + "agent." + f.name
	case frozenSession:
		return protocol.FreezePrefix + "session." + sessionEncoding.EncodeToString([]byte(f.name))
	case frozenUnread:
		return f.name
	default:
		return protocol.FreezePrefix + "all"
	}
}

// String says whom it stops, for people.
func (f Frozen) String() string {
	switch f.kind {
	case frozenAll:
		return "the whole fleet"
	case frozenAgent:
		return "agent " + f.name
	case frozenSession:
		return "session " + f.name
	case frozenUnread:
		return "the whole fleet (key " + f.name + " does not read)"
	default:
		return "nobody"
	}
}

// Fields are whom it stops, for programs: "all", "agent", "session" or "unread",
// and the name of which one.
func (f Frozen) Fields() (kind, name string) { return string(f.kind), f.name }

// frozenOfKey reads what Key wrote; ok is false for a key that is no freeze's.
func frozenOfKey(key string) (f Frozen, ok bool) {
	rest, ok := strings.CutPrefix(key, protocol.FreezePrefix)
	if !ok {
		return Frozen{}, false
	}
	kind, name, _ := strings.Cut(rest, ".")
	switch frozenKind(kind) {
	case frozenAll:
		f = Fleet()
	case frozenAgent:
		f, _ = Agent(name)
	case frozenSession:
		if id, err := sessionEncoding.DecodeString(name); err == nil {
			f, _ = Session(string(id))
		}
	}
	if f == (Frozen{}) || f.Key() != key {
		return Frozen{frozenUnread, key}, true
	}
	return f, true
}

// Freeze is what one key of a freeze held from one revision on.
type Freeze struct {
	Frozen
	Revision uint64
	// Removed: thawed.
	Removed bool
	// Word is the operator's; where it does not read, what is wrong stands in its
	// place. Of one that was lifted it holds the moment of that alone.
	Word protocol.Freeze
	Err  error
}

// Reason is what whoever meets the freeze is told.
func (f Freeze) Reason() string {
	if f.Err != nil {
		return "The stored freeze of " + f.Frozen.String() + " does not read, so it holds until it is mended or lifted."
	}
	return f.Word.Reason
}

// Line is the freeze in one line, safe to show.
func (f Freeze) Line() string {
	if f.Err != nil {
		return protocol.Safe(f.Reason(), 400, false)
	}
	return protocol.Safe(fmt.Sprintf("%s, by %s: %s", f.Frozen, f.Word.By, f.Word.Reason), 400, false)
}

// ReadFreeze reads one entry of the bucket; ok is false for a key that is no
// freeze's.
func ReadFreeze(key string, value []byte, revision uint64) (f Freeze, ok bool) {
	who, ok := frozenOfKey(key)
	if !ok {
		return Freeze{}, false
	}
	f = Freeze{Frozen: who, Revision: revision}
	f.Word, f.Err = protocol.Read[protocol.Freeze](value)
	if f.Err == nil && who.kind == frozenUnread {
		f.Err = fmt.Errorf("key %s names nobody: want freeze.all, freeze.agent.NAME or freeze.session.ID", key)
	}
	return f, true
}

// Freezes are the freezes of a node at one moment. Its zero value is none. It is
// never changed: With makes another.
type Freezes struct{ of map[Frozen]Freeze }

// With is f after one more entry was taken in.
func (f Freezes) With(one Freeze) Freezes {
	of := maps.Clone(f.of)
	if of == nil {
		of = map[Frozen]Freeze{}
	}
	of[one.Frozen] = one
	return Freezes{of}
}

// Revision is the one that a key is known at, thawed or not; 0 for none.
func (f Freezes) Revision(key string) uint64 {
	who, _ := frozenOfKey(key)
	return f.of[who].Revision
}

// Standing are those in force: the fleet's first, then agents, then sessions.
func (f Freezes) Standing() []Freeze {
	out := slices.DeleteFunc(slices.Collect(maps.Values(f.of)), func(f Freeze) bool { return f.Removed })
	rank := func(f Freeze) int {
		return slices.Index([]frozenKind{frozenUnread, frozenAll, frozenAgent, frozenSession}, f.kind)
	}
	slices.SortFunc(out, func(a, b Freeze) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.name, b.name)) })
	return out
}

// Of is the freeze that an ask falls under, if any. via is the child node that
// relayed it: an agent's freeze is then about that node, for the agent is the
// child's to name.
func (f Freezes) Of(agent, via string, s protocol.Session) (Freeze, bool) {
	if len(f.of) == 0 {
		return Freeze{}, false
	}
	for who, one := range f.of {
		if who.kind == frozenUnread && !one.Removed {
			return one, true
		}
	}
	if via != "" {
		agent = via
	}
	for _, who := range []Frozen{Fleet(), {frozenAgent, agent}, {frozenSession, s.Root}, {frozenSession, s.Parent}, {frozenSession, s.ID}} {
		if one, known := f.of[who]; known && !one.Removed {
			return one, true
		}
	}
	return Freeze{}, false
}

// freezeOf is the entry as a freeze.
func freezeOf(kv jetstream.KeyValueEntry) (Freeze, bool) {
	f, ok := ReadFreeze(kv.Key(), kv.Value(), kv.Revision())
	if ok && kv.Operation() != jetstream.KeyValuePut {
		f.Removed, f.Word, f.Err = true, protocol.Freeze{At: kv.Created()}, nil
	}
	return f, ok
}

// Freezes are those in force now.
func (s *Store) Freezes(ctx context.Context) (Freezes, error) {
	book := NewBook()
	entries, err := s.entries(ctx)
	for _, e := range entries {
		if e.Freeze != nil {
			_ = book.Take(e, func(Entry) (*policy.Document, error) { return nil, nil }) // a freeze has no older document
		}
	}
	return book.Freezes(), err
}

// FreezeHistory is every revision of a freeze that is kept, newest first.
func (s *Store) FreezeHistory(ctx context.Context) ([]Freeze, error) {
	entries, err := s.entries(ctx, jetstream.IncludeHistory())
	var out []Freeze
	for _, e := range entries {
		if e.Freeze != nil {
			out = append(out, *e.Freeze)
		}
	}
	slices.SortFunc(out, func(a, b Freeze) int { return cmp.Compare(b.Revision, a.Revision) })
	return out, err
}

// Freeze stores a freeze over what its key holds now, and returns its revision.
// ErrOvertaken where somebody else was faster.
func (s *Store) Freeze(ctx context.Context, who Frozen, word protocol.Freeze) (uint64, error) {
	body, err := protocol.Write(word)
	if err != nil {
		return 0, err
	}
	have, err := s.Freezes(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	// A key that was never there has revision 0, which is the server's word for it;
	// one that was lifted has that of its end.
	revision, err := s.kv.Update(ctx, who.Key(), body, have.Revision(who.Key()))
	return revision, changed("freezing", who.String(), err)
}

// Thaw lifts a freeze, which must stand as over says, and returns the revision of
// its end. Errors as for Freeze.
func (s *Store) Thaw(ctx context.Context, over Freeze) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	if err := s.kv.Delete(ctx, over.Key(), jetstream.LastRevision(over.Revision)); err != nil {
		return 0, changed("lifting the freeze of", over.Frozen.String(), err)
	}
	have, err := s.Freezes(ctx)
	return have.Revision(over.Key()), err
}
