package cli

import (
	"testing"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/fleet"
	"github.com/assent-dev/assent/pkg/protocol"
)

// oneCheck is a bundled module that says nothing of any call.
const oneCheck = `(() => ({
  checks: JSON.stringify([{name: "a", description: "d", tools: ["bash"], function: false}]),
  async ask() { return JSON.stringify({decision: "none", failures: []}); },
}))()`

// TestDoctorLoadsThePermissionModules: each that is on and does not load is named
// with its cause, and what the policy makes of it; one that is off is no fault.
func TestDoctorLoadsThePermissionModules(t *testing.T) {
	t.Parallel()
	good := module.Source{Name: "good", Level: module.LevelFleet, Code: oneCheck}
	bad := module.Source{Name: "bad", Level: module.LevelFleet, Code: "nonsense("}
	for _, row := range []struct {
		name        string
		policy      string
		push        []module.Source
		off         string
		list        string // what somebody wrote in the list's place
		check       string
		state, want string
	}{
		{"none", `{}`, nil, "", "", "modules", stateOK, "no permission module is on"},
		{"one", `{}`, []module.Source{good}, "", "", "modules", stateOK, "1 module on, with 1 check"},
		{"one that does not load", `{}`, []module.Source{good, bad}, "", "", "modules", stateFail, "module bad is not in force"},
		{"it may be switched off", `{}`, []module.Source{good, bad}, "", "", "modules", stateFail, "assent module disable bad"},
		{"the others run", `{}`, []module.Source{bad}, "", "", "modules", stateFail, "the others run"},
		{"or nothing is allowed", `{"modules":{"strict":true}}`, []module.Source{bad}, "", "", "modules", stateFail, "allows nothing"},
		{"two that do not load", `{}`, []module.Source{bad, {Name: "worse", Level: module.LevelFleet, Code: "1"}}, "", "", "modules-2", stateFail, "module worse"},
		{"one that is off", `{}`, []module.Source{good, bad}, "bad", "", "modules", stateOK, "1 module on"},
		{"all off", `{}`, []module.Source{good}, "good", "", "modules", stateOK, "no permission module is on"},
		{"a list that nobody signed", `{}`, []module.Source{good}, "", "junk", "modules", stateFail, "does not count"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWard(t)
			w.policyIs(t, row.policy)
			b := w.node.Creds(t, protocol.RoleOperator, "op")
			creds, err := bus.ParseCreds(b)
			if err != nil {
				t.Fatal(err)
			}
			nc := w.node.ConnectAs(t, b, bus.Config{})
			store, err := fleet.Open(t.Context(), nc, creds)
			if err == nil && len(row.push) > 0 {
				_, err = store.Push(t.Context(), row.push)
			}
			if err == nil && row.off != "" {
				_, err = store.Enable(t.Context(), row.off, false)
			}
			if err == nil && row.list != "" {
				_, err = nc.Request("$KV."+protocol.BucketPolicy+"."+protocol.KeyModules, []byte(row.list), hookReadTime)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, found := w.examines(t)
			wantFinding(t, found, row.check, row.state, row.want)
		})
	}
}
