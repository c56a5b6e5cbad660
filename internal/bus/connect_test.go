package bus_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

func file(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.creds")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConnecting(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Quiet())
	other := nodetest.Start(t, nodetest.Quiet())
	creds := file(t, n.Creds(t, protocol.RoleAgent, "a1"))
	revoked := n.Creds(t, protocol.RoleAgent, "revoked")
	if _, err := n.Authority().Revoke(t.Context(), node.Selector{Role: protocol.RoleAgent, Name: "revoked"}); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "nats://" + free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	rows := map[string]struct {
		ctx  context.Context
		cfg  bus.Config
		want error
		says string
	}{
		"by address":                   {nil, bus.Config{URL: n.ClientURL(), Creds: creds}, nil, ""},
		"within the process":           {nil, bus.Config{InProcess: n, Creds: creds}, nil, ""},
		"as whom one is":               {nil, bus.Config{InProcess: n, Creds: creds, Role: protocol.RoleAgent, Name: "a1"}, nil, ""},
		"from bytes":                   {nil, bus.Config{InProcess: n, CredsBytes: n.Creds(t, protocol.RoleGate, "g1")}, nil, ""},
		"where nobody listens":         {nil, bus.Config{URL: nobody, Creds: creds}, bus.ErrNoServer, "assent up"},
		"without an address":           {nil, bus.Config{Creds: creds}, bus.ErrNoServer, "--nats"},
		"without credentials":          {nil, bus.Config{InProcess: n}, bus.ErrCreds, "--creds"},
		"with a file that is not":      {nil, bus.Config{InProcess: n, Creds: creds + ".not"}, bus.ErrCreds, "creds issue"},
		"with junk":                    {nil, bus.Config{InProcess: n, CredsBytes: []byte("junk")}, bus.ErrCreds, "creds issue"},
		"with another role's":          {nil, bus.Config{InProcess: n, Creds: creds, Role: protocol.RoleGate}, bus.ErrCreds, "role gate"},
		"with another's":               {nil, bus.Config{InProcess: n, Creds: creds, Name: "a2"}, bus.ErrCreds, `"a2"`},
		"with another node's":          {nil, bus.Config{URL: other.ClientURL(), Creds: creds}, bus.ErrRefused, "another node"},
		"revoked, by address":          {nil, bus.Config{URL: n.ClientURL(), CredsBytes: revoked}, bus.ErrRefused, "revoked"},
		"revoked, within the process":  {nil, bus.Config{InProcess: n, CredsBytes: revoked}, bus.ErrRefused, "revoked"},
		"when there is no time for it": {over, bus.Config{InProcess: n, Creds: creds}, context.Canceled, ""},
	}
	for what, row := range rows {
		t.Run(what, func(t *testing.T) {
			ctx := row.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			start := time.Now()
			nc, err := bus.Connect(ctx, row.cfg)
			if nc != nil {
				nc.Close()
			}
			if !errors.Is(err, row.want) || (row.want == nil) != (nc != nil) {
				t.Fatalf("got %v, want %v", err, row.want)
			}
			if err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("%q does not say %q", err, row.says)
			}
			if took := time.Since(start); took > 4*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestWhatTheServerForbidsIsHeard(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Quiet())
	heard := make(chan error, 4)
	nc := n.ConnectAs(t, n.Creds(t, protocol.RoleAgent, "a1"), bus.Config{Violation: func(err error) { heard <- err }})
	if err := nc.Publish("assent.v1.main.ask.a2", nil); err != nil {
		t.Fatalf("publishing does not fail on its own: %v", err)
	}
	select {
	case err := <-heard:
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), "assent.v1.main.ask.a2") {
			t.Errorf("heard %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("nothing was heard")
	}
}

func TestNothingOldIsSentAfterABreak(t *testing.T) {
	t.Parallel()
	store := nodetest.Dir(t)
	n := nodetest.Start(t, nodetest.Store(store), nodetest.Quiet())
	creds := n.Creds(t, protocol.RoleAgent, "a1")
	nc, err := bus.Connect(t.Context(), bus.Config{URL: n.ClientURL(), CredsBytes: creds, Logger: nodetest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := n.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	nodetest.CheckFor(t, 5*time.Second, time.Millisecond, func() error {
		if nc.IsConnected() {
			return errors.New("still connected")
		}
		return nil
	})
	if err := nc.Publish("assent.v1.main.ask.a1", []byte("old")); err == nil {
		t.Error("an ask was kept for later")
	}
	if _, err := nc.Request("assent.v1.main.ask.a1", nil, time.Second); err == nil {
		t.Error("a request without a server succeeded")
	}
	if nc.IsClosed() {
		t.Error("it does not try again")
	}
}

func TestAnInboxIsTheHoldersOwn(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	for _, role := range protocol.Roles {
		nc := n.Connect(t, role, "x")
		want, err := protocol.InboxPrefix(role, "x")
		if err != nil {
			t.Fatal(err)
		}
		if inbox := nc.NewInbox(); !strings.HasPrefix(inbox, want+".") {
			t.Errorf("%s: %s", role, inbox)
		}
	}
}
