package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// TestAGateOfAnOlderStoreLearnsWhoseSignatureCounts: `assent up` makes the gate's
// credentials anew where they do not say it, and keeps all others.
func TestAGateOfAnOlderStoreLearnsWhoseSignatureCounts(t *testing.T) {
	t.Parallel()
	n, store := nodetest.Start(t, nodetest.Quiet()), nodetest.Dir(t)
	first, err := localCreds(n.Authority(), store)
	if err != nil {
		t.Fatal(err)
	}
	key := func(role protocol.Role) string {
		t.Helper()
		c, err := bus.ReadCreds(filepath.Join(store, "creds", string(role)+".creds"))
		if err != nil {
			t.Fatal(err)
		}
		if (len(c.Signers) > 0) != (role == protocol.RoleGate) {
			t.Errorf("%s: signers %q", role, c.Signers)
		}
		return c.Key
	}
	gate, operator := key(protocol.RoleGate), key(protocol.RoleOperator)
	if _, err := localCreds(n.Authority(), store); err != nil || key(protocol.RoleGate) != gate {
		t.Errorf("made anew without need: %v", err)
	}
	withoutSigner(t, first[protocol.RoleGate].file)
	if _, err := localCreds(n.Authority(), store); err != nil {
		t.Fatal(err)
	}
	if key(protocol.RoleGate) == gate || key(protocol.RoleOperator) != operator {
		t.Error("the gate's credentials stayed, or the operator's did not")
	}
	// And they are good.
	nc, err := bus.Connect(t.Context(), bus.Config{InProcess: n, Creds: first[protocol.RoleGate].file, Role: protocol.RoleGate, Logger: quietLog()})
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

// withoutSigner makes of a gate's credentials what an older version issued.
func withoutSigner(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := nkeys.ParseDecoratedJWT(b)
	if err != nil {
		t.Fatal(err)
	}
	user, err := nkeys.ParseDecoratedNKey(b)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	c, err := jwt.DecodeUserClaims(tok)
	if err != nil {
		t.Fatal(err)
	}
	// Whoever signed it: nothing here asks the server, which alone would care.
	issuer, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	c.Tags = jwt.TagList{"role:gate"}
	if tok, err = c.Encode(issuer); err != nil {
		t.Fatal(err)
	}
	if b, err = jwt.FormatUserConfig(tok, seed); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
