// Package pending reads and changes the open asks of a node, in the bucket
// ASSENT_PENDING. Every change is a compare-and-set, so gates, terminals and
// approvers that meet over one ask end with one story.
package pending

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/pkg/protocol"
)

// MaxBytes is the size limit of one entry: an ask at its own limit, with what
// the rules and the trail add.
const MaxBytes = 768 << 10

// tombstone is how long the mark of a deleted entry is kept, for watchers that
// were away for a moment.
const tombstone = 10 * time.Minute

// Bounds of one call of a Store: a JetStream that is dead must not hold up who
// has to answer, or to renew a lease.
const (
	opTime     = 3 * time.Second
	changeTime = 4 * time.Second
)

// Errors of a Store.
var (
	// ErrGone: the ask is not open, or not any more.
	ErrGone = errors.New("ask is not pending")
	// ErrExists: the ask is open already.
	ErrExists = errors.New("ask is pending already")
	// ErrBroken: the entry cannot be read.
	ErrBroken = errors.New("pending entry is broken")
)

// Item is one entry and the revision that it was read at.
type Item struct {
	protocol.Pending
	Revision uint64
}

// Store is the bucket as one process sees it; safe for concurrent use. No call
// but Watch takes longer than some seconds.
type Store struct {
	kv        jetstream.KeyValue
	lookAfter time.Duration
}

// Open binds the bucket, which the node has made.
func Open(ctx context.Context, js jetstream.JetStream) (*Store, error) {
	kv, err := js.KeyValue(ctx, protocol.BucketPending)
	if err != nil {
		return nil, fmt.Errorf("opening bucket %s: %w", protocol.BucketPending, err)
	}
	return &Store{kv: kv, lookAfter: lookAfter}, nil
}

// Create stores a new entry. ErrExists when the ask is open already.
func (s *Store) Create(ctx context.Context, p protocol.Pending) (Item, error) {
	b, err := encode(p)
	if err != nil {
		return Item{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	rev, err := s.kv.Create(ctx, p.Ask.ID, b)
	if errors.Is(err, jetstream.ErrKeyExists) {
		return Item{}, fmt.Errorf("creating pending ask %s: %w", p.Ask.ID, ErrExists)
	}
	if err != nil {
		return Item{}, fmt.Errorf("creating pending ask %s: %w", p.Ask.ID, err)
	}
	return Item{Pending: p, Revision: rev}, nil
}

// Get reads an entry. ErrGone when there is none.
func (s *Store) Get(ctx context.Context, id string) (Item, error) {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	e, err := s.kv.Get(ctx, id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Item{}, fmt.Errorf("reading pending ask %s: %w", id, ErrGone)
	}
	if err != nil {
		return Item{}, fmt.Errorf("reading pending ask %s: %w", id, err)
	}
	return Decode(e.Key(), e.Value(), e.Revision())
}

// Update reads the entry, lets change work on it and stores the result, and
// does so again when somebody else was faster; change may therefore run more
// than once. An error of change ends it and is returned as it is.
func (s *Store) Update(ctx context.Context, id string, change func(*protocol.Pending) error) (Item, error) {
	item, err := s.Get(ctx, id)
	if err != nil {
		return Item{}, err
	}
	return s.UpdateFrom(ctx, item, change)
}

// UpdateFrom is Update that begins with an item read before, which saves the
// read while nobody else has changed it.
func (s *Store) UpdateFrom(ctx context.Context, item Item, change func(*protocol.Pending) error) (Item, error) {
	id := item.Ask.ID
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	try := func() error {
		next := item
		if err := change(&next.Pending); err != nil {
			return backoff.Permanent(err)
		}
		b, err := encode(next.Pending)
		if err != nil {
			return backoff.Permanent(err)
		}
		rev, err := s.kv.Update(ctx, id, b, item.Revision)
		if err == nil {
			item = Item{Pending: next.Pending, Revision: rev}
			return nil
		}
		err = fmt.Errorf("changing pending ask %s: %w", id, err)
		fresh, gerr := s.Get(ctx, id)
		if errors.Is(gerr, ErrGone) || errors.Is(gerr, ErrBroken) {
			return backoff.Permanent(gerr)
		}
		if gerr == nil {
			item = fresh
		}
		return err
	}
	if err := backoff.Retry(try, backoff.WithContext(quick(), ctx)); err != nil {
		return Item{}, err
	}
	return item, nil
}

// Delete takes a settled entry away. It is no error when it is gone already.
func (s *Store) Delete(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	if err := s.kv.Purge(ctx, id, jetstream.PurgeTTL(tombstone)); err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return fmt.Errorf("deleting pending ask %s: %w", id, err)
	}
	return nil
}

// quick retries a lost race within a second or two and then gives up.
func quick() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(2*time.Millisecond), backoff.WithMaxInterval(200*time.Millisecond), backoff.WithMaxElapsedTime(3*time.Second))
}

func encode(p protocol.Pending) ([]byte, error) {
	b, err := protocol.Write(p)
	if err != nil {
		return nil, fmt.Errorf("encoding pending ask %s: %w", p.Ask.ID, err)
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("encoding pending ask %s: %w: %d bytes, the limit is %d", p.Ask.ID, protocol.ErrTooLarge, len(b), MaxBytes)
	}
	return b, nil
}

// Decode reads the value of an entry; an entry under another ask's key is
// broken, never that ask.
func Decode(key string, value []byte, revision uint64) (Item, error) {
	p, err := protocol.Read[protocol.Pending](value, protocol.MaxBytes(MaxBytes))
	if err != nil {
		return Item{}, fmt.Errorf("%w: %s: %w", ErrBroken, key, err)
	}
	if p.Ask.ID != key {
		return Item{}, fmt.Errorf("%w: key %s holds ask %s", ErrBroken, key, p.Ask.ID)
	}
	return Item{Pending: p, Revision: revision}, nil
}
