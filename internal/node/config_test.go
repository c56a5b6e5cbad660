package node_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

var update = flag.Bool("update", false, "write docs/permissions.md anew")

// outside starts a nats-server from a printed configuration.
func outside(t *testing.T, a *node.Authority, cfg node.ServerConfig) *server.Server {
	t.Helper()
	var b bytes.Buffer
	if err := a.WriteConfig(&b, cfg); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"SO", "SA", "SU"} {
		for line := range strings.Lines(b.String()) {
			if strings.HasPrefix(line, secret) || strings.Contains(line, `"`+secret) {
				t.Errorf("a seed is in the configuration: %.20s", line)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if !opts.SyncAlways {
		t.Error("acknowledged records are not on the disk")
	}
	opts.NoSigs, opts.NoLog = true, true
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("not ready")
	}
	return s
}

func TestAnOutsideServerFromThePrintedConfigurationHasTheSameRights(t *testing.T) {
	t.Parallel()
	a, _ := authority(t)
	s := outside(t, a, node.ServerConfig{Listen: "127.0.0.1:-1", Store: t.TempDir()})
	connect := func(role protocol.Role, name string, opts node.IssueOptions) *connected {
		t.Helper()
		creds, err := a.Issue(role, name, opts)
		if err != nil {
			t.Fatal(err)
		}
		nc, err := bus.Connect(t.Context(), bus.Config{URL: s.ClientURL(), CredsBytes: creds, Logger: nodetest.Logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return &connected{nc, creds}
	}
	op := connect(protocol.RoleOperator, "op", node.IssueOptions{})
	js, err := bus.JetStream(op.Conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := node.EnsureStreams(t.Context(), js, a.Node(), node.StreamLimits{}); err != nil {
		t.Fatal(err)
	}
	gate := connect(protocol.RoleGate, "g1", node.IssueOptions{})
	agent := connect(protocol.RoleAgent, "a1", node.IssueOptions{})
	answerAll(t, gate.Conn, "assent.v1.main.ask.*", "yes")
	if m, err := agent.Request("assent.v1.main.ask.a1", nil, 5*time.Second); err != nil || string(m.Data) != "yes" {
		t.Fatalf("%v %v", m, err)
	}
	if err := agent.Publish("assent.v1.main.ask.a2", nil); err != nil {
		t.Fatal(err)
	}
	if !refusedNow(t, agent.Conn, "Publish to", "assent.v1.main.ask.a2") {
		t.Error("an agent asks as another")
	}
	desk := connect(protocol.RoleApprover, "p1", node.IssueOptions{})
	if all, err := bus.LastPerKey(t.Context(), desk.Conn, protocol.BucketPending); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
	t.Run("and hears of a revocation", func(t *testing.T) {
		if _, err := a.Revoke(t.Context(), node.Selector{Role: protocol.RoleAgent, Name: "a1"}); err != nil {
			t.Fatal(err)
		}
		if err := a.PushTo(t.Context(), s.ClientURL()); err != nil {
			t.Fatal(err)
		}
		_, err := bus.Connect(t.Context(), bus.Config{URL: s.ClientURL(), CredsBytes: agent.creds, Logger: nodetest.Logger(t)})
		if !errors.Is(err, bus.ErrRefused) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAPrintedClusterHasItsRoutes(t *testing.T) {
	t.Parallel()
	a, _ := authority(t)
	s := outside(t, a, node.ServerConfig{
		Name: "n1", Listen: "127.0.0.1:-1", Store: t.TempDir(),
		Cluster: node.Cluster{Name: "assent", Listen: "127.0.0.1:-1", Routes: []string{"nats://127.0.0.1:1"}},
	})
	if s.ClusterName() != "assent" || s.Name() != "n1" {
		t.Errorf("cluster %q of %q", s.ClusterName(), s.Name())
	}
}

func TestTheDocumentedTableIsTheTable(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "permissions.md")
	want := docsHead + node.Markdown("main")
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("docs/permissions.md differs from the table (%v); run: go test ./internal/node -run Documented -update", err)
	}
}

const docsHead = `# Who may do what

This page is printed from the permission table in internal/node/roles.go (node "main"); a test keeps the two equal. The table is also what
the embedded server enforces, what ` + "`assent node config`" + ` prints, and what the attack tests try to break.

` + "`{{name()}}`" + ` is the name that a credential was issued for, ` + "`{{tag(link)}}`" + ` each link that a judge's credential is bound to. The server fills them in. What is
not listed is refused.

`
