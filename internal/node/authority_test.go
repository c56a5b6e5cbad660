package node_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

func authority(t *testing.T) (*node.Authority, string) {
	t.Helper()
	store := nodetest.Dir(t)
	a, err := node.OpenAuthority(store, "main")
	if err != nil {
		t.Fatal(err)
	}
	return a, store
}

func TestIssuing(t *testing.T) {
	t.Parallel()
	rows := []struct {
		what string
		role protocol.Role
		name string
		opts node.IssueOptions
		want error
	}{
		{"an agent", protocol.RoleAgent, "ci-42", node.IssueOptions{}, nil},
		{"a judge of one link", protocol.RoleJudge, "j", node.IssueOptions{Links: []string{"model-judge"}}, nil},
		{"a judge of links in capitals", protocol.RoleJudge, "k", node.IssueOptions{Links: []string{"Model_Judge", "B"}}, nil},
		{"a judge of every link", protocol.RoleJudge, "l", node.IssueOptions{Links: []string{"*"}}, nil},
		{"one that ends", protocol.RoleAuditor, "u", node.IssueOptions{Expires: time.Now().Add(time.Hour)}, nil},
		{"a role that there is not", "root", "x", node.IssueOptions{}, protocol.ErrEnum},
		{"the authority's own role", "system", "x", node.IssueOptions{}, protocol.ErrEnum},
		{"no name", protocol.RoleAgent, "", node.IssueOptions{}, protocol.ErrToken},
		{"a name that is a wildcard", protocol.RoleAgent, "*", node.IssueOptions{}, protocol.ErrToken},
		{"a name that is everything", protocol.RoleAgent, ">", node.IssueOptions{}, protocol.ErrToken},
		{"a name of two tokens", protocol.RoleAgent, "a.b", node.IssueOptions{}, protocol.ErrToken},
		{"a name with a template", protocol.RoleAgent, "{{name()}}", node.IssueOptions{}, protocol.ErrToken},
		{"a judge of no link", protocol.RoleJudge, "x", node.IssueOptions{}, node.ErrRequest},
		{"a judge of links below", protocol.RoleJudge, "x", node.IssueOptions{Links: []string{">"}}, protocol.ErrToken},
		{"an agent with links", protocol.RoleAgent, "x", node.IssueOptions{Links: []string{"l"}}, node.ErrRequest},
		{"one that has ended", protocol.RoleAgent, "x", node.IssueOptions{Expires: time.Now().Add(-time.Second)}, node.ErrRequest},
	}
	a, _ := authority(t)
	issued := 0
	for _, row := range rows {
		creds, err := a.Issue(row.role, row.name, row.opts)
		if !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.what, err, row.want)
		}
		if row.want != nil {
			if creds != nil {
				t.Errorf("%s: refused and issued", row.what)
			}
			continue
		}
		issued++
		c, err := bus.ParseCreds(creds)
		if err != nil || c.Role != row.role || c.Name != row.name || !slices.Equal(c.Links, row.opts.Links) {
			t.Errorf("%s: %+v, %v", row.what, c, err)
		}
	}
	list, err := a.List()
	if err != nil || len(list) != issued {
		t.Errorf("%d in the list, want %d (%v)", len(list), issued, err)
	}
}

func TestASecondCredentialOfOneNameMustBeAskedFor(t *testing.T) {
	t.Parallel()
	a, _ := authority(t)
	if _, err := a.Issue(protocol.RoleAgent, "a1", node.IssueOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Issue(protocol.RoleAgent, "a1", node.IssueOptions{}); !errors.Is(err, node.ErrExists) {
		t.Errorf("got %v", err)
	}
	if _, err := a.Issue(protocol.RoleApprover, "a1", node.IssueOptions{}); err != nil {
		t.Errorf("the same name in another role: %v", err)
	}
	if _, err := a.Issue(protocol.RoleAgent, "a1", node.IssueOptions{Again: true}); err != nil {
		t.Errorf("asked for: %v", err)
	}
	revoked, err := a.Revoke(t.Context(), node.Selector{Role: protocol.RoleAgent, Name: "a1"})
	if err != nil || len(revoked) != 2 {
		t.Errorf("revoked %d, %v", len(revoked), err)
	}
	if _, err := a.Issue(protocol.RoleAgent, "a1", node.IssueOptions{}); err != nil {
		t.Errorf("after revoking: %v", err)
	}
}

func TestOpeningTheAuthority(t *testing.T) {
	t.Parallel()
	t.Run("no keys and no node named", func(t *testing.T) {
		dir := nodetest.Dir(t)
		if _, err := node.OpenAuthority(dir, ""); !errors.Is(err, node.ErrNoAuthority) {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("looking left something behind: %v", err)
		}
	})
	t.Run("another node's store", func(t *testing.T) {
		_, store := authority(t)
		if _, err := node.OpenAuthority(store, "other"); !errors.Is(err, node.ErrNodeMismatch) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a node's name that is no token", func(t *testing.T) {
		if _, err := node.OpenAuthority(nodetest.Dir(t), "a.b"); !errors.Is(err, protocol.ErrToken) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("again, without a name", func(t *testing.T) {
		first, store := authority(t)
		if _, err := first.Issue(protocol.RoleAgent, "a1", node.IssueOptions{}); err != nil {
			t.Fatal(err)
		}
		again, err := node.OpenAuthority(store, "")
		if err != nil || again.Node() != "main" {
			t.Fatalf("%v %v", again, err)
		}
		if list, err := again.List(); err != nil || len(list) != 1 {
			t.Errorf("%v %v", list, err)
		}
	})
}

func TestFilesThatOthersMayReadAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"auth", "auth/keys.json", "auth/issued.json", "auth/CORE.jwt"} {
		t.Run(name, func(t *testing.T) {
			a, store := authority(t)
			if _, err := a.Issue(protocol.RoleAgent, "a1", node.IssueOptions{}); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(store, name)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm()&0o077 != 0 {
				t.Fatalf("made with mode %v", info.Mode())
			}
			if err := os.Chmod(path, info.Mode().Perm()|0o044); err != nil {
				t.Fatal(err)
			}
			if _, err := node.OpenAuthority(store, "main"); !errors.Is(err, node.ErrExposed) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a link to elsewhere", func(t *testing.T) {
		_, store := authority(t)
		keys := filepath.Join(store, "auth", "keys.json")
		if err := os.Rename(keys, keys+".moved"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(keys+".moved", keys); err != nil {
			t.Fatal(err)
		}
		if _, err := node.OpenAuthority(store, "main"); !errors.Is(err, node.ErrExposed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestABrokenLedgerIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	a, store := authority(t)
	if _, err := a.Issue(protocol.RoleAgent, "a1", node.IssueOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := node.WritePrivate(filepath.Join(store, "auth", "issued.json"), []byte(`{"v":1,"issued":[`)); err != nil {
		t.Fatal(err)
	}
	if _, err := node.OpenAuthority(store, "main"); !errors.Is(err, node.ErrStoreAccess) {
		t.Errorf("got %v", err)
	}
}

func TestIssuingFromManyPlacesForgetsNothing(t *testing.T) {
	t.Parallel()
	_, store := authority(t)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			a, err := node.OpenAuthority(store, "main")
			if err != nil {
				t.Error(err)
				return
			}
			for range 3 {
				if _, err := a.Issue(protocol.RoleAgent, "a"+string(rune('0'+i)), node.IssueOptions{Again: true}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	a, err := node.OpenAuthority(store, "")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := a.List(); err != nil || len(list) != 12 {
		t.Errorf("%d in the list, %v", len(list), err)
	}
}

func TestEnsure(t *testing.T) {
	t.Parallel()
	a, store := authority(t)
	path := filepath.Join(store, "gate.creds")
	key := func() string {
		t.Helper()
		if err := a.Ensure(path, protocol.RoleGate, "g1", node.IssueOptions{}); err != nil {
			t.Fatal(err)
		}
		c, err := bus.ReadCreds(path)
		if err != nil {
			t.Fatal(err)
		}
		return c.Key
	}
	first := key()
	if key() != first {
		t.Error("a live credential was replaced")
	}
	if _, err := a.Revoke(t.Context(), node.Selector{Key: first}); err != nil {
		t.Fatal(err)
	}
	second := key()
	if second == first {
		t.Error("a revoked credential was kept")
	}
	if err := os.WriteFile(path, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key() == second {
		t.Error("junk was kept")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := a.Ensure(path, protocol.RoleGate, "g1", node.IssueOptions{}); !errors.Is(err, node.ErrExposed) {
		t.Errorf("a file that others may read: %v", err)
	}
}

func TestTheLedgerHoldsNoSecret(t *testing.T) {
	t.Parallel()
	a, store := authority(t)
	creds, err := a.Issue(protocol.RoleAgent, "a1", node.IssueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(store, "auth", "issued.json"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(creds)) {
		if strings.HasPrefix(line, "SU") && strings.Contains(string(b), strings.TrimSpace(line)) {
			t.Error("the seed is in the ledger")
		}
	}
}
