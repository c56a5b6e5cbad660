package node

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// The trap: to the server, an empty allow list without a deny is everything.
func TestARowWithoutSubjectsIsClosed(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	n, err := Start(t.Context(), Config{Store: store, Node: "main", NoSyncAlways: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Shutdown(context.Background()) })
	rows := map[string]struct {
		perms jwt.Permissions
		open  bool
	}{
		"the table's row with nothing in it": {Right{Role: protocol.RoleAgent}.permissions("main"), false},
		"what the server takes for nothing":  {jwt.Permissions{}, true},
	}
	for what, row := range rows {
		t.Run(what, func(t *testing.T) {
			creds := n.withAgentScope(t, row.perms)
			nc, err := n.Connect(t.Context(), creds)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if err := nc.Publish("assent.v1.main.ask.other", nil); err != nil {
				t.Fatal(err)
			}
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			if refused := nc.LastError() != nil; refused == row.open {
				t.Errorf("publishing: %v", nc.LastError())
			}
			sub, err := nc.SubscribeSync("_INBOX.>")
			if err != nil {
				t.Fatal(err)
			}
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			_, err = sub.NextMsg(time.Millisecond)
			if refused := err != nil && strings.Contains(err.Error(), "permissions violation"); refused == row.open {
				t.Errorf("subscribing: %v", err)
			}
		})
	}
}

// withAgentScope gives the running server an agents' account with other
// permissions, and returns a credential of it.
func (n *Node) withAgentScope(t *testing.T, perms jwt.Permissions) (creds []byte) {
	t.Helper()
	var token string
	err := n.auth.locked("", func(k *keys, led *ledger) error {
		c, err := accountClaims(Agents, k.Node, k, led)
		if err != nil {
			return err
		}
		pub, err := k.scopePublic(protocol.RoleAgent)
		if err != nil {
			return err
		}
		scope := jwt.NewUserScope()
		scope.Key, scope.Role = pub, "agent"
		scope.Template.Permissions = perms
		c.SigningKeys.AddScopedSigner(scope)
		if token, err = k.signAccount(c); err != nil {
			return err
		}
		creds, _, err = k.issue(protocol.RoleAgent, "a1", IssueOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := n.auth.systemConn(t.Context(), bus.Config{InProcess: n, Logger: n.log})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := pushClaim(t.Context(), nc, token); err != nil {
		t.Fatal(err)
	}
	return creds
}

func TestTheTableHoldsTogether(t *testing.T) {
	t.Parallel()
	seen := map[protocol.Role]bool{}
	for _, r := range Rights() {
		if seen[r.Role] {
			t.Errorf("%s stands twice", r.Role)
		}
		seen[r.Role] = true
		for _, s := range append(r.Publish, r.Subscribe...) {
			if strings.ContainsAny(s, " \t") {
				t.Errorf("%s: %q pins a queue: the server drops it from a list with templates", r.Role, s)
			}
			if s == "" || s == ">" || s == "*" || strings.HasPrefix(s, "_INBOX.>") {
				t.Errorf("%s: %q is everything", r.Role, s)
			}
		}
		if len(r.Connections) == 0 {
			t.Errorf("%s: to the server, no kind of connection is every kind", r.Role)
		}
		for _, s := range r.Subscribe {
			if strings.HasPrefix(s, "_INBOX.") && s != inbox(r.Role) {
				t.Errorf("%s listens to %s", r.Role, s)
			}
		}
		switch r.Role {
		case protocol.RoleJudge:
			if r.Responses == nil || r.Responses.Max < 1 || r.Responses.Within <= 0 {
				t.Error("a judge cannot answer")
			}
		default:
			if r.Responses != nil {
				t.Errorf("%s answers wherever it is asked from", r.Role)
			}
		}
		if r.Account != Core && r.Account != System {
			outsideCore(t, r)
		}
	}
	for _, role := range protocol.Roles {
		if !seen[role] {
			t.Errorf("%s is missing", role)
		}
	}
}

// outsideCore: whoever is outside can aim nothing, since it can make no consumer.
func outsideCore(t *testing.T, r Right) {
	t.Helper()
	for _, s := range r.Publish {
		if strings.Contains(s, ".CONSUMER.CREATE") || strings.HasPrefix(s, "$JS.API") || strings.HasSuffix(s, "API.>") {
			t.Errorf("%s publishes %s", r.Role, s)
		}
		crosses := false
		for _, b := range Borders() {
			local := b.Subject
			if b.Local != "" {
				local = b.Local
			}
			crosses = crosses || b.Account == r.Account && !b.Notice && covers(local, strings.ReplaceAll(s, "{{name()}}", "x"))
		}
		if !crosses {
			t.Errorf("%s may publish %s, which crosses no border: a right to nothing", r.Role, s)
		}
	}
}

// covers says whether the border's subject takes in the right's: token by
// token, "*" for one, ">" for the rest.
func covers(border, right string) bool {
	b, r := strings.Split(border, "."), strings.Split(right, ".")
	for i, tok := range b {
		if tok == ">" {
			return i < len(r)
		}
		if i >= len(r) || tok != "*" && tok != r[i] {
			return false
		}
	}
	return len(b) == len(r)
}

func TestWhatIsAcknowledgedIsOnTheDiskUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	for _, relaxed := range []bool{false, true} {
		store := filepath.Join(t.TempDir(), "store")
		auth, err := OpenAuthority(store, "main")
		if err != nil {
			t.Fatal(err)
		}
		n := &Node{cfg: Config{Store: store, Node: "main", NoSyncAlways: relaxed}, auth: auth}
		opts, err := n.options()
		if err != nil {
			t.Fatal(err)
		}
		if opts.SyncAlways == relaxed || !opts.NoSigs || !opts.DontListen || opts.MaxPayload != defaultMaxPayload {
			t.Errorf("relaxed %v: %+v", relaxed, opts)
		}
	}
}
