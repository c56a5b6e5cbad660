package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Whoever stands in a project hears whether its modules run.
func TestDoctorSaysWhetherTheModulesOfTheProjectHereRun(t *testing.T) {
	const module = `import { block } from "@assent/permissions";
export default (api) => api.onToolUse({ name: "n", description: "d", matcher: "bash", handler: () => block("no") });`
	for _, row := range []struct {
		name, text  string // of its module; "" for none
		trusted     string // the agents that may
		state, want string // "" for no finding
	}{
		{"no module", "", "", "", ""},
		{"nobody trusts it", module, "", stateWarn, "do not run"},
		{"for other agents", module, "ci-*", stateWarn, "do not run"},
		{"trusted", module, "doctor", stateOK, "brings 1 permission module"},
		{"trusted, and it does not load", "export default (", "*", stateFail, "m does not load"},
	} {
		t.Run(row.name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err == nil {
				err = os.MkdirAll(filepath.Join(root, ".git"), 0o700)
			}
			if err == nil && row.text != "" {
				err = os.MkdirAll(filepath.Join(root, ".assent", "permissions"), 0o700)
				if err == nil {
					err = os.WriteFile(filepath.Join(root, ".assent", "permissions", "m.ts"), []byte(row.text), 0o600)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			w := newWard(t)
			doc := `{}`
			if row.trusted != "" {
				doc = fmt.Sprintf(`{"trustedProjects":[{"id":%q,"root":%q,"agents":[%q]}]}`, root, root, row.trusted)
			}
			w.policyIs(t, doc)
			agent := w.creds(t, protocol.RoleAgent)
			t.Chdir(filepath.Join(root, ".git"))
			_, found := w.examines(t, "--agent-creds", agent)
			if row.state == "" {
				if f, said := found["project"]; said {
					t.Errorf("%+v", f)
				}
				return
			}
			wantFinding(t, found, "project", row.state, row.want)
		})
	}
}
