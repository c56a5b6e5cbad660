// Package nodetest runs a real node for a test: a server in this process with
// real accounts, credentials, streams and rights.
package nodetest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Name is the node's name unless a Config says otherwise.
const Name = "main"

// Node is a node that ends with its test.
type Node struct {
	*node.Node
	// Subjects builds the subjects of this node.
	Subjects protocol.Subjects

	log *slog.Logger
}

// Option changes how the node runs.
type Option func(*node.Config)

// Store runs the node on that folder instead of a new one.
func Store(dir string) Option { return func(c *node.Config) { c.Store = dir } }

// Listen puts the node on that address instead of a port of its own.
func Listen(address string) Option { return func(c *node.Config) { c.Listen = address } }

// Named gives the node another name.
func Named(name string) Option { return func(c *node.Config) { c.Node = name } }

// Quiet keeps the server's log out of the test's: for tests of many refusals.
func Quiet() Option { return func(c *node.Config) { c.Logger = slog.New(slog.DiscardHandler) } }

// Start runs a node on a folder of its own and a port of its own, until the
// test is over.
func Start(t testing.TB, opts ...Option) *Node {
	t.Helper()
	cfg := node.Config{Listen: "127.0.0.1:0", Node: Name, NoSyncAlways: true, Logger: Logger(t)}
	for _, o := range opts {
		o(&cfg)
	}
	if cfg.Store == "" {
		cfg.Store = Dir(t)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	n, err := node.Start(ctx, cfg)
	if err != nil {
		t.Fatalf("starting a node: %v", err)
	}
	t.Cleanup(func() {
		if err := n.Shutdown(context.Background()); err != nil {
			t.Errorf("shutting the node down: %v", err)
		}
	})
	subjects, err := protocol.NewSubjects(cfg.Node)
	if err != nil {
		t.Fatal(err)
	}
	return &Node{Node: n, Subjects: subjects, log: cfg.Logger}
}

// Creds issues credentials. A judge without links in opts may serve every link.
func (n *Node) Creds(t testing.TB, role protocol.Role, name string, opts ...node.IssueOptions) []byte {
	t.Helper()
	return issue(t, n.Authority(), role, name, opts)
}

func issue(t testing.TB, a *node.Authority, role protocol.Role, name string, opts []node.IssueOptions) []byte {
	t.Helper()
	o := node.IssueOptions{}
	if len(opts) > 0 {
		o = opts[0]
	}
	o.Again = true
	if role == protocol.RoleJudge && len(o.Links) == 0 {
		o.Links = []string{"*"}
	}
	creds, err := a.Issue(role, name, o)
	if err != nil {
		t.Fatalf("issuing credentials for %s %s: %v", role, name, err)
	}
	return creds
}

// Connect connects with new credentials; the connection ends with the test.
func (n *Node) Connect(t testing.TB, role protocol.Role, name string, opts ...node.IssueOptions) *nats.Conn {
	t.Helper()
	return n.ConnectAs(t, n.Creds(t, role, name, opts...), bus.Config{})
}

// ConnectAs connects in this process with creds and whatever else cfg says.
func (n *Node) ConnectAs(t testing.TB, creds []byte, cfg bus.Config) *nats.Conn {
	t.Helper()
	cfg.InProcess, cfg.CredsBytes = n, creds
	if cfg.Logger == nil {
		cfg.Logger = n.log
	}
	nc, err := bus.Connect(context.Background(), cfg)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// CheckFor runs f every step until it returns nil. After total it fails the
// test with f's last error.
func CheckFor(t testing.TB, total, step time.Duration, f func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(total); time.Now().Before(deadline); time.Sleep(step) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatalf("not within %s: %v", total, err)
}

// Dir is a new folder that only its owner may enter, as a store must be.
func Dir(t testing.TB) string {
	t.Helper()
	return t.TempDir() + "/store"
}

// Logger writes to the test's log, and no more once the test is over.
func Logger(t testing.TB) *slog.Logger {
	w := &testWriter{t: t}
	t.Cleanup(w.close)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type testWriter struct {
	mu   sync.Mutex
	t    testing.TB
	over bool
}

func (w *testWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}

func (w *testWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.t.Log(string(b))
	}
	return len(b), nil
}
