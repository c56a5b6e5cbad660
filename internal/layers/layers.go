// Package layers keeps the layers of a node's policy in the bucket
// ASSENT_POLICY, and puts together what is in force. Start at Book.
package layers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// opTime bounds one call of a Store.
const opTime = 10 * time.Second

// Errors of a Store.
var (
	// ErrOvertaken: what is stored is not what the writer has seen.
	ErrOvertaken = errors.New("somebody else has changed it meanwhile")
	// ErrNone: the layer is not stored.
	ErrNone = errors.New("no such layer is stored")
	// ErrWatch: the watch ended by itself.
	ErrWatch = errors.New("watching policy: the watch ended")
)

// Entry is what one key of the bucket held from one revision on.
type Entry struct {
	Key string
	// Layer is the zero value where the key is no layer's.
	Layer    policy.Layer
	Revision uint64
	At       time.Time
	// Removed: from here on the layer was not there.
	Removed bool
	Text    []byte
	// Document is nil where there is none that reads; Err then says why, if it is
	// not removed.
	Document *policy.Document
	Err      error
	// Freeze is there where the key is a freeze's; a freeze is no layer, and never
	// broken as one.
	Freeze *Freeze
	// Modules: the key holds the index of the fleet's permission modules, which is
	// no layer either, and read elsewhere.
	Modules bool
}

// Name is the layer's name, or the key of what is no layer.
func (e Entry) Name() string {
	if e.Layer == (policy.Layer{}) {
		return e.Key
	}
	return e.Layer.String()
}

// Broken says whether something is stored that does not read.
func (e Entry) Broken() bool { return e.Err != nil }

func entryOf(kv jetstream.KeyValueEntry) Entry {
	e := Entry{Key: kv.Key(), Revision: kv.Revision(), At: kv.Created(), Removed: kv.Operation() != jetstream.KeyValuePut}
	if f, ok := freezeOf(kv); ok {
		e.Freeze, e.Text = &f, kv.Value()
		return e
	}
	if e.Key == protocol.KeyModules {
		e.Modules, e.Text = true, kv.Value()
		return e
	}
	layer, err := policy.LayerOfKey(e.Key)
	if err == nil {
		e.Layer = layer
	}
	if e.Removed {
		return e
	}
	if e.Text = kv.Value(); err == nil {
		e.Document, err = policy.Read(layer, layer.String(), e.Text)
	}
	e.Err = err
	return e
}

// Store is the bucket. Safe for concurrent use.
type Store struct{ kv jetstream.KeyValue }

// Open binds the bucket, which must exist.
func Open(ctx context.Context, js jetstream.JetStream) (*Store, error) {
	kv, err := js.KeyValue(ctx, protocol.BucketPolicy)
	if err != nil {
		return nil, fmt.Errorf("opening bucket %s: %w", protocol.BucketPolicy, err)
	}
	return &Store{kv}, nil
}

// Bucket is the bucket itself.
func (s *Store) Bucket() jetstream.KeyValue { return s.kv }

// Watch hands each change to take until ctx ends or take fails: first what
// stands, oldest first, then known, then what comes. What was removed is among
// it.
func (s *Store) Watch(ctx context.Context, take func(Entry) error, known func()) error {
	w, err := s.kv.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("watching policy: %w", err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-w.Updates():
			switch {
			case !open:
				return ErrWatch
			case e == nil:
				known()
			default:
				if err := take(entryOf(e)); err != nil {
					return err
				}
			}
		}
	}
}

// Newest is what each key holds now, removed ones among it, in the order of
// layers.
func (s *Store) Newest(ctx context.Context) ([]Entry, error) {
	return s.all(ctx)
}

// Everything is Newest with what is no layer among it: what a Book is made of.
func (s *Store) Everything(ctx context.Context) ([]Entry, error) { return s.entries(ctx) }

// History is every revision that is kept, newest first.
func (s *Store) History(ctx context.Context) ([]Entry, error) {
	out, err := s.all(ctx, jetstream.IncludeHistory())
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(b.Revision, a.Revision) })
	return out, err
}

// all are the entries that are layers.
func (s *Store) all(ctx context.Context, opts ...jetstream.WatchOpt) ([]Entry, error) {
	out, err := s.entries(ctx, opts...)
	return slices.DeleteFunc(out, func(e Entry) bool { return e.Freeze != nil || e.Modules }), err
}

func (s *Store) entries(ctx context.Context, opts ...jetstream.WatchOpt) (out []Entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	w, err := s.kv.WatchAll(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("reading the policy's layers: %w", err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("reading the policy's layers: %w", context.Cause(ctx))
		case e, open := <-w.Updates():
			switch {
			case !open:
				return nil, fmt.Errorf("reading the policy's layers: %w", ErrWatch)
			case e == nil:
				slices.SortFunc(out, compareLayers)
				return out, nil
			}
			out = append(out, entryOf(e))
		}
	}
}

// compareLayers puts the fleet's layer first, then projects, agents and agents
// in projects, each by name; what is no layer comes last.
func compareLayers(a, b Entry) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name(), b.Name()))
}

func rank(e Entry) int {
	kind, _, _ := strings.Cut(e.Layer.String(), "/")
	if i := slices.Index([]string{policy.LayerFleet, "project", "agent", "project-agent"}, kind); i >= 0 {
		return i
	}
	return 4
}

// Get is what a layer holds now. ErrNone where there is none.
func (s *Store) Get(ctx context.Context, layer policy.Layer) (Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	e, err := s.kv.Get(ctx, layer.Key())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Entry{}, fmt.Errorf("%w: %s", ErrNone, layer)
	}
	if err != nil {
		return Entry{}, fmt.Errorf("reading layer %s: %w", layer, err)
	}
	return entryOf(e), nil
}

// Put stores text as a layer and returns its revision, on the condition that
// the layer still is as over says: the zero Entry for not there. The same text
// again changes nothing. Errors wrap policy.ErrPolicy for a text that does not
// read, and ErrOvertaken.
func (s *Store) Put(ctx context.Context, layer policy.Layer, text []byte, over Entry) (revision uint64, err error) {
	if _, err := policy.Read(layer, layer.String(), text); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	switch {
	case over.Revision > 0 && bytes.Equal(over.Text, text):
		return over.Revision, nil
	case over.Revision > 0:
		revision, err = s.kv.Update(ctx, layer.Key(), text, over.Revision)
	default:
		revision, err = s.kv.Create(ctx, layer.Key(), text)
	}
	return revision, changed("storing layer", layer.String(), err)
}

// Remove takes a layer away that still is as over says. Errors as for Put.
func (s *Store) Remove(ctx context.Context, over Entry) error {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	// The server's own condition, not the client's look before it: a deletion is a
	// message like any other.
	err := s.kv.Delete(ctx, over.Key, jetstream.LastRevision(over.Revision))
	return changed("removing layer", over.Layer.String(), err)
}

// wrongLast are the server's codes for a condition on a key that does not hold;
// the second is that of a replicated stream.
var wrongLast = []jetstream.ErrorCode{jetstream.JSErrCodeStreamWrongLastSequence, 10164}

func changed(what, whose string, err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyExists), errors.As(err, &api) && slices.Contains(wrongLast, api.ErrorCode):
		return fmt.Errorf("%s %s: %w", what, whose, ErrOvertaken)
	}
	return fmt.Errorf("%s %s: %w", what, whose, err)
}

// LastGood is the newest document of a broken entry's key that read, nil where
// there never was one: its denies stay in force.
func (s *Store) LastGood(ctx context.Context, broken Entry) (*policy.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	history, err := s.kv.History(ctx, broken.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the history of layer %s: %w", broken.Name(), err)
	}
	for _, kv := range slices.Backward(history) {
		if kv.Revision() > broken.Revision {
			continue // two gates take the same changes in the same order
		}
		if e := entryOf(kv); e.Document != nil {
			return e.Document, nil
		}
	}
	return nil, nil
}
