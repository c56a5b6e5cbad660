package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/client/project"
	"github.com/assent-dev/assent/pkg/protocol"
)

// checkProject says whether the permission modules of the project here run: those
// of a project that nobody trusts are left out, and its authors would not know.
func (d *doctor) checkProject(ctx context.Context) {
	const check = "project"
	here, err := os.Getwd()
	if err != nil {
		return // a folder that went has no project
	}
	p, err := project.Find(here)
	if err != nil {
		d.fail(check, "mend the file: no call from here is decided meanwhile", "%v", err)
		return
	}
	bringModules(&p, io.Discard)
	if len(p.Modules) == 0 {
		return
	}
	brings := fmt.Sprintf("the project %s brings %s", protocol.Safe(p.ID, 200, false), count(len(p.Modules), "permission module"))
	at, ok := d.as(protocol.RoleAgent, d.agent, check)
	if !ok {
		return
	}
	creds, err := bus.ReadCreds(at.Creds)
	if err != nil {
		d.warn(check, "", "not checked whether they run: %v", err)
		return
	}
	book, err := d.readPolicy(ctx)
	if err != nil {
		return // said already, of the policy
	}
	if !book.Set().Base().TrustsProject(policy.Who{Agent: creds.Name, Project: p.ID, Root: p.Root}) {
		d.warn(check, fmt.Sprintf(`if you trust it, say so in the fleet's policy: "trustedProjects": [{"id": %q, "root": %q, "agents": [%q]}]`, p.ID, p.Root, creds.Name),
			"%s, and the policy does not trust it for agent %s: they do not run", brings, creds.Name)
		return
	}
	for _, m := range p.Modules {
		if m.Error != "" {
			d.fail(check, "mend the file (`assent module test FILE` tells the place), or take it out of the folder", "%s; %s does not load: %s",
				brings, protocol.Safe(m.Name, 100, false), protocol.Safe(m.Error, 500, false))
			return
		}
	}
	d.ok(check, "%s, and the policy trusts it for agent %s", brings, creds.Name)
}
