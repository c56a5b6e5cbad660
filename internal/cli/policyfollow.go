package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/policy"
)

// followEvery is how often the policy file is looked at. Editors replace files
// in more ways than a notice of the system tells apart, and a look costs less
// than a notice that was missed.
const followEvery = time.Second

// follower puts the changes of a policy file in force. The file speaks for the
// fleet layer as long as nobody else does: what a push stored is not undone by
// whoever saves the file next.
type follower struct {
	path string
	log  *slog.Logger
	// seen is the text last looked at, put the one that this process stored.
	seen, put []byte
	// remember keeps, for the next start, what was put in force.
	remember func([]byte) error
	// unread is the last complaint about the file itself.
	unread string
}

// follow serves until ctx ends.
func (f *follower) follow(ctx context.Context, nc *nats.Conn, ready func()) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	store, err := layers.Open(ctx, js)
	if err != nil {
		return err
	}
	ready()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			f.look(ctx, store)
		}
	}
}

// look takes the file in, if it has changed. Whatever is wrong is said once, and
// what is in force stays so.
func (f *follower) look(ctx context.Context, store *layers.Store) {
	doc, err := os.ReadFile(f.path)
	if err != nil {
		if f.unread != err.Error() {
			f.unread = err.Error()
			f.log.Error("the policy file cannot be read: what was stored last stays in force", "file", f.path, "err", err)
		}
		return
	}
	f.unread = ""
	if bytes.Equal(doc, f.seen) {
		return
	}
	switch err := f.take(ctx, store, doc); {
	case err == nil:
		f.seen = doc
	case errors.Is(err, policy.ErrPolicy):
		f.seen = doc
		f.log.Error("THE POLICY FILE HAS ERRORS: what was stored last stays in force until it is mended", "file", f.path, "err", err)
	case errors.Is(err, layers.ErrOvertaken):
		f.seen = doc
		f.log.Warn("the policy file has changed, and is not put in force: somebody else has stored another policy since. Compare them (assent policy diff --file), and push the one that is right", "file", f.path)
	case ctx.Err() == nil:
		f.log.Warn("the policy file has changed and could not be stored yet: it is tried again", "file", f.path, "err", err)
	}
}

// take stores doc where the fleet layer still is what this process stored, or
// what the file said before: who has pushed the file itself is on its side. Or it
// is doc already.
func (f *follower) take(ctx context.Context, store *layers.Store, doc []byte) error {
	if _, err := policy.Read(policy.Fleet(), f.path, doc); err != nil {
		return err
	}
	over, err := store.Get(ctx, policy.Fleet())
	if err != nil && !errors.Is(err, layers.ErrNone) {
		return err
	}
	if known := [][]byte{f.put, f.seen, doc}; !slices.ContainsFunc(known, func(text []byte) bool { return bytes.Equal(over.Text, text) }) {
		return layers.ErrOvertaken
	}
	revision, err := store.Put(ctx, policy.Fleet(), doc, over)
	if err != nil {
		return err
	}
	f.put = doc
	if err := f.remember(doc); err != nil {
		f.log.Warn("the next start will not know that this file was in force", "file", f.path, "err", err)
	}
	f.log.Info("the policy file has changed and is in force", "file", f.path, "revision", revision)
	return nil
}
