package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/assent-dev/assent/examples"
	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// filePut remembers, in the store's folder, which policy `assent up` itself put
// in force last. Only over that one may a file speak at the next start: an old
// file must not undo what was pushed since, a deny perhaps.
type filePut struct{ path string }

func filePutIn(store string) filePut { return filePut{filepath.Join(store, "policy-put")} }

// digest is that of the policy put last, "" for never.
func (f filePut) digest() (string, error) {
	b, err := os.ReadFile(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading which policy was put last: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

func (f filePut) remember(doc []byte) error {
	read, err := policy.Read(policy.Fleet(), policy.LayerFleet, doc)
	if err == nil {
		err = os.WriteFile(f.path, []byte(read.Digest()+"\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("remembering which policy was put last: %w", err)
	}
	return nil
}

// started is the fleet layer as a start leaves it.
type started struct {
	text     []byte
	revision uint64
	// kept: what is stored is not what the start was given, and stays.
	kept bool
}

// putPolicy puts doc in force as the fleet layer, unless somebody else has stored
// another since `assent up` did. Without doc a new store gets the starter policy,
// and an old one keeps what it has.
func putPolicy(ctx context.Context, n *node.Node, creds credentials, put filePut, doc []byte, log *slog.Logger) (started, error) {
	nc, err := bus.Connect(ctx, bus.Config{InProcess: n, Creds: creds[protocol.RoleOperator].file, Role: protocol.RoleOperator, Logger: log})
	if err != nil {
		return started{}, fmt.Errorf("storing the policy: %w", err)
	}
	defer nc.Close()
	js, err := bus.JetStream(nc)
	if err != nil {
		return started{}, err
	}
	store, err := layers.Open(ctx, js)
	if err != nil {
		return started{}, err
	}
	return startPolicy(ctx, store, put, doc, log)
}

func startPolicy(ctx context.Context, store *layers.Store, put filePut, doc []byte, log *slog.Logger) (started, error) {
	stored, err := store.Get(ctx, policy.Fleet())
	if err != nil && !errors.Is(err, layers.ErrNone) {
		return started{}, err
	}
	last, err := put.digest()
	if err != nil {
		return started{}, err
	}
	isNew := stored.Revision == 0 && last == ""
	switch {
	case doc == nil && isNew:
		log.Info("new store: the starter policy is put in force (see examples/policy.jsonc)")
		doc = []byte(examples.Policy)
	case doc == nil && stored.Revision == 0:
		log.Warn("the fleet layer was removed: everything asks until one is pushed (assent policy push)")
		return started{}, nil
	case doc == nil:
		log.Info("the stored policy goes on", "revision", stored.Revision)
		return started{text: stored.Text, revision: stored.Revision}, nil
	case !isNew && !overridable(stored, last, doc):
		return started{text: stored.Text, revision: stored.Revision, kept: true}, nil
	}
	revision, err := store.Put(ctx, policy.Fleet(), doc, stored)
	if err != nil {
		return started{}, err
	}
	return started{text: doc, revision: revision}, put.remember(doc)
}

// overridable says whether a file may take the place of what is stored: that is
// what was put from a file last, or what this one says, or does not read.
func overridable(stored layers.Entry, last string, doc []byte) bool {
	if stored.Revision == 0 {
		return false // removed, by somebody else
	}
	return stored.Broken() || stored.Document.Digest() == last || string(stored.Text) == string(doc)
}

// keptText says that a policy file is not in force, and what to do.
func keptText(file string, s started) string {
	what := fmt.Sprintf("revision %d, stored since by somebody else,", s.revision)
	if s.revision == 0 {
		what = "its removal by somebody else, after which everything asks,"
	}
	return fmt.Sprintf("THE POLICY FILE %s IS NOT IN FORCE: %s stays. Compare them (assent policy diff --file %s), and put the file in force with assent policy push %s", file, what, file, file)
}
