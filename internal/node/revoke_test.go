package node_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

func connects(n *nodetest.Node, creds []byte) error {
	nc, err := bus.Connect(context.Background(), bus.Config{URL: n.ClientURL(), CredsBytes: creds, Logger: nil})
	if err == nil {
		nc.Close()
	}
	return err
}

func TestRevoking(t *testing.T) {
	t.Parallel()
	store := nodetest.Dir(t)
	n := nodetest.Start(t, nodetest.Store(store), nodetest.Quiet())
	good, bad := n.Creds(t, protocol.RoleAgent, "good"), n.Creds(t, protocol.RoleAgent, "bad")
	closed := make(chan error, 1)
	n.ConnectAs(t, bad, bus.Config{Closed: func(err error) { closed <- err }})
	still := n.ConnectAs(t, good, bus.Config{})

	revoked, err := n.Authority().Revoke(t.Context(), node.Selector{Role: protocol.RoleAgent, Name: "bad"})
	if err != nil || len(revoked) != 1 || revoked[0].Name != "bad" {
		t.Fatalf("revoked %v, %v", revoked, err)
	}
	t.Run("cuts the connection", func(t *testing.T) {
		select {
		case err := <-closed:
			if !errors.Is(err, bus.ErrRefused) {
				t.Errorf("closed with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("still connected")
		}
	})
	t.Run("refuses a new one", func(t *testing.T) {
		if err := connects(n, bad); !errors.Is(err, bus.ErrRefused) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("leaves others alone", func(t *testing.T) {
		if err := still.Flush(); err != nil {
			t.Error(err)
		}
		if err := connects(n, good); err != nil {
			t.Error(err)
		}
	})
	t.Run("allows new credentials of the same name", func(t *testing.T) {
		again, err := n.Authority().Issue(protocol.RoleAgent, "bad", node.IssueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := connects(n, again); err != nil {
			t.Error(err)
		}
	})
	t.Run("is for good", func(t *testing.T) {
		still.Close()
		if err := n.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		n2 := nodetest.Start(t, nodetest.Store(store), nodetest.Quiet())
		if err := connects(n2, bad); !errors.Is(err, bus.ErrRefused) {
			t.Errorf("after a restart: %v", err)
		}
		if err := connects(n2, good); err != nil {
			t.Errorf("after a restart: %v", err)
		}
	})
}

// What `assent creds revoke` does beside a running node.
func TestRevokingFromAnotherAuthorityReachesTheRunningNode(t *testing.T) {
	t.Parallel()
	store := nodetest.Dir(t)
	n := nodetest.Start(t, nodetest.Store(store), nodetest.Quiet())
	other, err := node.OpenAuthority(store, "")
	if err != nil {
		t.Fatal(err)
	}
	creds, err := other.Issue(protocol.RoleAgent, "a1", node.IssueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := connects(n, creds); err != nil {
		t.Fatalf("issuing needs no restart, yet: %v", err)
	}
	if _, err := other.Revoke(t.Context(), node.Selector{Role: protocol.RoleAgent, Name: "a1"}); err != nil {
		t.Fatal(err)
	}
	if err := connects(n, creds); !errors.Is(err, bus.ErrRefused) {
		t.Errorf("got %v", err)
	}
}

func TestRevokingByKeyLeavesTheSameNamesOtherCredential(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Quiet())
	first, second := n.Creds(t, protocol.RoleAgent, "a1"), n.Creds(t, protocol.RoleAgent, "a1")
	who, err := bus.ParseCreds(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Authority().Revoke(t.Context(), node.Selector{Key: who.Key}); err != nil {
		t.Fatal(err)
	}
	if err := connects(n, first); !errors.Is(err, bus.ErrRefused) {
		t.Errorf("got %v", err)
	}
	if err := connects(n, second); err != nil {
		t.Error(err)
	}
}

func TestRevokingWhatIsNotThere(t *testing.T) {
	t.Parallel()
	a, err := node.OpenAuthority(nodetest.Dir(t), "main")
	if err != nil {
		t.Fatal(err)
	}
	for _, sel := range []node.Selector{{}, {Key: "U"}, {Role: protocol.RoleAgent}, {Name: "a1"}, {Role: protocol.RoleAgent, Name: "a1"}} {
		if _, err := a.Revoke(t.Context(), sel); !errors.Is(err, node.ErrUnknownCredential) {
			t.Errorf("%+v: %v", sel, err)
		}
	}
}

func TestExpiredCredentialsAreCutAndRefused(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, nodetest.Quiet())
	creds := n.Creds(t, protocol.RoleAgent, "a1", node.IssueOptions{Expires: time.Now().Add(2 * time.Second)})
	closed := make(chan error, 1)
	n.ConnectAs(t, creds, bus.Config{Closed: func(err error) { closed <- err }})
	select {
	case err := <-closed:
		if !errors.Is(err, bus.ErrRefused) {
			t.Errorf("closed with %v", err)
		}
	case <-time.After(15 * time.Second):
		t.Fatal("still connected")
	}
	// Within the second of its expiry the server still takes it, and cuts it at
	// once.
	nodetest.CheckFor(t, 5*time.Second, 50*time.Millisecond, func() error {
		if err := connects(n, creds); !errors.Is(err, bus.ErrRefused) {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
}

// What is recorded as revoked may be said again until a server has heard it.
func TestWithdrawingIsRepeatableAndTellingSaysWhomItTold(t *testing.T) {
	t.Parallel()
	store := nodetest.Dir(t)
	a, err := node.OpenAuthority(store, "main")
	if err != nil {
		t.Fatal(err)
	}
	creds, err := a.Issue(protocol.RoleAgent, "a1", node.IssueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sel := node.Selector{Role: protocol.RoleAgent, Name: "a1"}
	if w, err := a.Withdraw(sel); err != nil || len(w.Now) != 1 || len(w.Before) != 0 {
		t.Errorf("first: %+v, %v", w, err)
	}
	if w, err := a.Withdraw(sel); err != nil || len(w.Now) != 0 || len(w.Before) != 1 {
		t.Errorf("again: %+v, %v", w, err)
	}
	if told, err := a.Tell(t.Context(), ""); err != nil || len(told) != 0 {
		t.Errorf("with nobody there: told %v, %v", told, err)
	}
	if told, err := a.Tell(t.Context(), "nats://127.0.0.1:1"); !errors.Is(err, node.ErrNotConfirmed) || len(told) != 0 {
		t.Errorf("a wrong address: told %v, %v", told, err)
	}
	n := nodetest.Start(t, nodetest.Store(store), nodetest.Quiet())
	if err := connects(n, creds); !errors.Is(err, bus.ErrRefused) {
		t.Errorf("a node that starts later takes them: %v", err)
	}
	if told, err := a.Tell(t.Context(), n.ClientURL()); err != nil || len(told) != 1 || told[0] != n.ClientURL() {
		t.Errorf("the node on the store: told %v, %v", told, err)
	}
	// Credentials of the same name that are live are meant before those of old.
	if _, err := a.Issue(protocol.RoleAgent, "a1", node.IssueOptions{}); err != nil {
		t.Fatal(err)
	}
	if w, err := a.Withdraw(sel); err != nil || len(w.Now) != 1 || len(w.Before) != 0 {
		t.Errorf("a new one: %+v, %v", w, err)
	}
}
