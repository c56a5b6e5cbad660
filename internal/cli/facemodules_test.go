package cli

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/fleet"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// TestTheFaceIsToldOfModulesThatAreNotInForce: when it happens, and whoever comes to
// the desk later; each once, and the others run.
func TestTheFaceIsToldOfModulesThatAreNotInForce(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, `{"permission":{"*":"allow","bash":"allow"},"terminal":{"kind":"deny"}}`)
	b := d.node.Creds(t, protocol.RoleOperator, "op")
	creds, err := bus.ParseCreds(b)
	if err != nil {
		t.Fatal(err)
	}
	store, err := fleet.Open(t.Context(), d.node.ConnectAs(t, b, bus.Config{}), creds)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Push(t.Context(), []module.Source{
		{Name: "bad", Level: module.LevelFleet, Code: "nonsense("}, {Name: "good", Level: module.LevelFleet, Code: oneCheck},
	}); err != nil {
		t.Fatal(err)
	}
	const told = "! a permission module is not in force: fleet module bad"
	d.waitFor(t, told)

	others := maps.Clone(d.creds)
	others[protocol.RoleApprover] = credential{filepath.Join(nodetest.Dir(t), "late.creds"), "late"}
	if err := issueTo(d.node.Authority(), protocol.RoleApprover, "late", others[protocol.RoleApprover].file); err != nil {
		t.Fatal(err)
	}
	late := startFace(t, d.node, others)
	late.waitFor(t, told)
	if dec := <-d.asks(t, "ls"); !dec.Allowed() || dec.Policy.Modules == "" {
		t.Errorf("the others do not run: %+v", dec)
	}
	for _, screen := range []string{d.shown.String(), late.shown.String()} {
		if n := strings.Count(screen, told); n != 1 || strings.Contains(screen, "module good") {
			t.Errorf("told %d times:\n%s", n, screen)
		}
	}
}
