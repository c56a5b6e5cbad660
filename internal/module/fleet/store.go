package fleet

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
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/protocol"
)

// opTime bounds one call of a Store.
const opTime = 10 * time.Second

// Store is the modules of a node as an operator sees them. Safe for concurrent use.
type Store struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	kv    jetstream.KeyValue
	code  jetstream.ObjectStore
	creds bus.Creds
	trust Trust
}

// Open binds the buckets, which must exist. c are the operator's credentials, with
// which nc is connected.
func Open(ctx context.Context, nc *nats.Conn, c bus.Creds) (*Store, error) {
	js, err := bus.JetStream(nc)
	if err != nil {
		return nil, err
	}
	s := &Store{nc: nc, js: js, creds: c, trust: TrustOf(c)}
	if s.kv, err = js.KeyValue(ctx, protocol.BucketPolicy); err != nil {
		return nil, fmt.Errorf("opening bucket %s: %w", protocol.BucketPolicy, err)
	}
	if s.code, err = js.ObjectStore(ctx, protocol.ObjectsModules); err != nil {
		return nil, fmt.Errorf("opening bucket %s: %w", protocol.ObjectsModules, err)
	}
	return s, nil
}

// Get is the list that is in force at the gates.
func (s *Store) Get(ctx context.Context) (Standing, error) {
	return read(ctx, s.kv, s.trust, Standing{})
}

// Code reads the bundle of a version.
func (s *Store) Code(ctx context.Context, version string) (string, error) {
	return readBundle(ctx, s.nc, version)
}

// Push stores modules and puts them into the list, switched on, in the place of
// those of their names. What is there already, and on, stays as it is. Errors wrap
// ErrList or ErrOvertaken.
func (s *Store) Push(ctx context.Context, sources []module.Source) (Standing, error) {
	over, err := s.Get(ctx)
	if err != nil {
		return Standing{}, err
	}
	next := over.List
	for _, src := range sources {
		e := Entry{Name: src.Name, Version: src.Version(), Size: len(src.Code), Enabled: true, PushedBy: s.creds.Name, PushedAt: time.Now().UTC().Truncate(time.Second)}
		if err := e.check(); err != nil {
			return Standing{}, err
		}
		if have, ok := next.Find(e.Name); ok && have.Version == e.Version {
			e.PushedBy, e.PushedAt = have.PushedBy, have.PushedAt
		}
		// The code first: a gate that hears of the version must find it.
		if err := s.put(ctx, e.Version, src.Code); err != nil {
			return Standing{}, err
		}
		next = next.with(e)
	}
	return s.change(ctx, over, next)
}

// Enable switches a module of the list on or off. Errors wrap ErrUnknown or
// ErrOvertaken.
func (s *Store) Enable(ctx context.Context, name string, on bool) (Standing, error) {
	return s.edit(ctx, name, func(l List, e Entry) List {
		e.Enabled = on
		return l.with(e)
	})
}

// Remove takes a module out of the list. Errors as for Enable.
func (s *Store) Remove(ctx context.Context, name string) (Standing, error) {
	return s.edit(ctx, name, func(l List, _ Entry) List { return l.without(name) })
}

func (s *Store) edit(ctx context.Context, name string, change func(List, Entry) List) (Standing, error) {
	over, err := s.Get(ctx)
	if err != nil {
		return Standing{}, err
	}
	e, ok := over.List.Find(name)
	if !ok {
		return Standing{}, fmt.Errorf("%w: %s", ErrUnknown, protocol.Safe(name, 80, false))
	}
	return s.change(ctx, over, change(over.List, e))
}

// change signs next and stores it over what was read. A list that does not count
// is mended by it: what it left in force goes on from here, signed anew.
func (s *Store) change(ctx context.Context, over Standing, next List) (Standing, error) {
	if over.Err == nil && over.List.Serial > 0 && slices.Equal(next.Modules, over.List.Modules) {
		return over, nil
	}
	// The time, so that a bucket that was made anew, and holds no list before this
	// one, does not begin below what gates that run have seen.
	next.V, next.Serial = listVersion, max(over.List.Serial+1, uint64(time.Now().UnixMilli()))
	data, err := seal(s.creds, next)
	if err != nil {
		return Standing{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	// A key that was never there has revision 0, which is the server's word for it;
	// one that was taken away has that of its end.
	revision, err := s.kv.Update(ctx, protocol.KeyModules, data, over.Revision)
	if err != nil {
		return Standing{}, overtaken(err)
	}
	s.prune(ctx, over.List, next)
	return Standing{List: next, SignedBy: s.creds.Name, Revision: revision}, nil
}

// wrongLast are the server's codes for a condition on a key that does not hold;
// the second is that of a replicated stream.
var wrongLast = []jetstream.ErrorCode{jetstream.JSErrCodeStreamWrongLastSequence, 10164}

func overtaken(err error) error {
	var api *jetstream.APIError
	if errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && slices.Contains(wrongLast, api.ErrorCode) {
		return fmt.Errorf("%w: look at it (assent module list), and try again", ErrOvertaken)
	}
	return fmt.Errorf("storing the list of modules: %w", err)
}

// put stores code under its version unless it is there.
func (s *Store) put(ctx context.Context, version, code string) error {
	if _, err := readBundle(ctx, s.nc, version); err == nil {
		return nil
	} else if !errors.Is(err, ErrNoBundle) && !errors.Is(err, ErrAltered) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, opTime)
	defer cancel()
	if _, err := s.code.PutBytes(ctx, version, []byte(code)); err != nil {
		return fmt.Errorf("storing module %s: %w", version, err)
	}
	return nil
}

// prune drops the code that neither of the two newest lists names. The one before
// stays: it is in force again where the newest turns out not to count. What cannot
// be dropped now goes with the next change.
func (s *Store) prune(ctx context.Context, lists ...List) {
	named := map[string]bool{}
	for _, l := range lists {
		for _, e := range l.Modules {
			named[e.Version] = true
		}
	}
	stored, err := s.code.List(ctx)
	if err != nil {
		return
	}
	for _, o := range stored {
		if strings.HasPrefix(o.Name, versionPrefix) && !named[o.Name] {
			_ = s.code.Delete(ctx, o.Name)
		}
	}
}
