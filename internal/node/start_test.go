package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

func start(t *testing.T, cfg node.Config) error {
	t.Helper()
	cfg.Node, cfg.NoSyncAlways = "main", true
	cfg.Logger = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	n, err := node.Start(ctx, cfg)
	if err == nil {
		t.Cleanup(func() { _ = n.Shutdown(context.Background()) })
	}
	return err
}

func TestStartNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	t.Run("the port is taken", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		err = start(t, node.Config{Store: nodetest.Dir(t), Listen: l.Addr().String()})
		if !errors.Is(err, node.ErrPortInUse) || !strings.Contains(err.Error(), l.Addr().String()) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an address that is none", func(t *testing.T) {
		if err := start(t, node.Config{Store: nodetest.Dir(t), Listen: "4222"}); !errors.Is(err, node.ErrRequest) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the store is in use", func(t *testing.T) {
		store := nodetest.Dir(t)
		nodetest.Start(t, nodetest.Store(store))
		err := start(t, node.Config{Store: store, Listen: "127.0.0.1:0"})
		if !errors.Is(err, node.ErrStoreInUse) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the store is open to others", func(t *testing.T) {
		store := nodetest.Dir(t)
		if err := os.Mkdir(store, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := start(t, node.Config{Store: store}); !errors.Is(err, node.ErrExposed) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the store is a file", func(t *testing.T) {
		store := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(store, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := start(t, node.Config{Store: store}); !errors.Is(err, node.ErrStoreAccess) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the streams' folder is a file", func(t *testing.T) {
		store := nodetest.Dir(t)
		if _, err := node.OpenAuthority(store, "main"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(store, "jetstream"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := start(t, node.Config{Store: store, Listen: "127.0.0.1:0"}); !errors.Is(err, node.ErrNotReady) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no store", func(t *testing.T) {
		if err := start(t, node.Config{}); !errors.Is(err, node.ErrStoreAccess) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("another node's store", func(t *testing.T) {
		store := nodetest.Dir(t)
		if _, err := node.OpenAuthority(store, "other"); err != nil {
			t.Fatal(err)
		}
		if err := start(t, node.Config{Store: store}); !errors.Is(err, node.ErrNodeMismatch) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAFailedStartLeavesTheStoreFree(t *testing.T) {
	t.Parallel()
	store := nodetest.Dir(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := start(t, node.Config{Store: store, Listen: l.Addr().String()}); !errors.Is(err, node.ErrPortInUse) {
		t.Fatalf("got %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := start(t, node.Config{Store: store, Listen: l.Addr().String()}); err != nil {
		t.Errorf("got %v", err)
	}
}

// TestMain runs a node that dies, when asked by the test below.
func TestMain(m *testing.M) {
	if store := os.Getenv("ASSENT_TEST_DIE_ON"); store != "" {
		dieOn(store)
	}
	os.Exit(m.Run())
}

func dieOn(store string) {
	n, err := node.Start(context.Background(), node.Config{Store: store, Node: "main", Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	creds, err := n.Authority().Issue(protocol.RoleGate, "g1", node.IssueOptions{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	nc, err := n.Connect(context.Background(), creds)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	js, err := bus.JetStream(nc)
	if err == nil {
		_, err = js.Publish(context.Background(), "assent.v1.main.decision."+askID+".a1.bash.deny", []byte("{}"))
	}
	fmt.Println("recorded:", err)
	select {} // until killed
}

func TestAKilledNodeKeepsWhatItRecorded(t *testing.T) {
	t.Parallel()
	store := nodetest.Dir(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ASSENT_TEST_DIE_ON="+store)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 200)
	n, err := out.Read(line)
	if err != nil || !strings.Contains(string(line[:n]), "recorded: <nil>") {
		t.Errorf("%s %v", line[:n], err)
	}
	if at, err := node.ReadAddress(store); err != nil || at.PID != cmd.Process.Pid || at.Node != "main" {
		t.Errorf("address %+v, %v", at, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if _, err := node.ReadAddress(store); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dead node has an address: %v", err)
	}
	again := nodetest.Start(t, nodetest.Store(store))
	found := 0
	for m, err := range bus.ReadStream(t.Context(), again.Connect(t, protocol.RoleAuditor, "u1"), protocol.StreamDecisions, 0, "") {
		if err != nil {
			t.Fatal(err)
		}
		found++
		if string(m.Data) != "{}" {
			t.Errorf("%s", m.Data)
		}
	}
	if found != 1 {
		t.Errorf("%d records", found)
	}
}

func TestANodeThatDoesNotListenServesItsOwnProcess(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, func(c *node.Config) { c.Listen = "" })
	if n.ClientURL() != "" {
		t.Errorf("address %q", n.ClientURL())
	}
	js, err := bus.JetStream(n.Connect(t, protocol.RoleOperator, "op"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Stream(t.Context(), protocol.StreamDecisions); err != nil {
		t.Error(err)
	}
}

func TestStreamsAreAsTheContractSays(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	js, err := bus.JetStream(n.Connect(t, protocol.RoleOperator, "op"))
	if err != nil {
		t.Fatal(err)
	}
	// Again, with bounds: what is there is brought up to it.
	limits := node.StreamLimits{Decisions: 1 << 20, Review: 1 << 20, MaxRecord: 1 << 19}
	if err := node.EnsureStreams(t.Context(), js, n.Name(), limits); err != nil {
		t.Fatal(err)
	}
	rows := map[string]func(jetstream.StreamConfig) bool{
		"ASSENT_DECISIONS": func(c jetstream.StreamConfig) bool {
			return c.Discard == jetstream.DiscardNew && c.DenyDelete && c.DenyPurge && !c.AllowDirect && !c.AllowRollup && c.MaxBytes == 1<<20 && c.MaxAge == 0
		},
		"ASSENT_REVIEW": func(c jetstream.StreamConfig) bool {
			return c.Discard == jetstream.DiscardOld && c.DenyDelete && c.DenyPurge && c.MaxBytes == 1<<20
		},
		"KV_ASSENT_POLICY":  func(c jetstream.StreamConfig) bool { return c.MaxMsgsPerSubject == 64 && c.MaxAge == 0 },
		"KV_ASSENT_PENDING": func(c jetstream.StreamConfig) bool { return c.MaxAge == 0 && c.AllowDirect && c.MaxMsgsPerSubject == 1 },
		"KV_ASSENT_GRANTS":  func(c jetstream.StreamConfig) bool { return c.AllowMsgTTL && c.MaxAge == 0 },
		"KV_ASSENT_PROJECTS": func(c jetstream.StreamConfig) bool {
			return c.MaxAge == node.ProjectLife && c.MaxAge > policy.MaxMaxWait+24*time.Hour && c.MaxMsgsPerSubject == 1 && c.AllowMsgTTL
		},
		"KV_ASSENT_PRESENCE": func(c jetstream.StreamConfig) bool { return c.MaxAge == time.Minute && !c.AllowRollup },
		"OBJ_ASSENT_MODULES": func(c jetstream.StreamConfig) bool { return true },
	}
	for name, ok := range rows {
		st, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if cfg := st.CachedInfo().Config; !ok(cfg) || cfg.Storage != jetstream.FileStorage {
			t.Errorf("%s: %+v", name, cfg)
		}
	}
}

func TestAFullDecisionStreamRefuses(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, func(c *node.Config) { c.Streams.Decisions = 4096 })
	js, err := bus.JetStream(n.Connect(t, protocol.RoleGate, "g1"))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for range 10 {
		subject, err := n.Subjects.Decision(protocol.NewAskID(), "a1", "bash", protocol.FinalAllow)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.Publish(t.Context(), subject, make([]byte, 1000)); err != nil {
			refused++
		}
	}
	if refused == 0 || refused == 10 {
		t.Errorf("%d of 10 refused", refused)
	}
}
