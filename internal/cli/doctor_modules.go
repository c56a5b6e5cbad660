package cli

import (
	"context"
	"fmt"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/fleet"
	"github.com/assent-dev/assent/pkg/protocol"
)

// checkModules loads the permission modules of the fleet, and those of this
// machine's folder, as a gate would.
func (d *doctor) checkModules(ctx context.Context) {
	list, err := d.modules(ctx)
	if err != nil {
		d.fail("modules", "run `assent node prepare`", "%v", err)
		return
	}
	on, checks, broken := 0, 0, 0
	for _, m := range list {
		if m.Enabled {
			on++
			checks += len(m.Checks)
		}
		if m.Problem == "" || !m.Enabled && m.Name != "" {
			continue
		}
		check := "modules"
		if broken++; broken > 1 {
			check = fmt.Sprintf("modules-%d", broken)
		}
		d.fail(check, moduleRemedy(m), "%s%s", moduleTrouble(m), d.strictly(ctx))
	}
	switch {
	case broken > 0:
	case on == 0:
		d.ok("modules", "no permission module is on")
	default:
		d.ok("modules", "%s on, with %s", count(on, "module"), count(checks, "check"))
	}
}

func (d *doctor) modules(ctx context.Context) ([]listedModule, error) {
	p, err := d.target.resolve(d.env, protocol.RoleOperator)
	if err != nil {
		return nil, err
	}
	creds, err := bus.ReadCreds(p.Creds)
	if err != nil {
		return nil, err
	}
	store, err := fleet.Open(ctx, d.operator, creds)
	if err != nil {
		return nil, err
	}
	dir, err := userModules(d.env)
	if err != nil {
		return nil, err
	}
	return listModules(ctx, store, dir)
}

func moduleTrouble(m listedModule) string {
	if m.Name == "" {
		return m.Problem
	}
	return fmt.Sprintf("the %s's module %s is not in force: %s", m.Level, m.Name, m.Problem)
}

func moduleRemedy(m listedModule) string {
	switch {
	case m.Name == "":
		return "look at what is in force (`assent module list`), and push a module: the list is signed anew"
	case m.Level == module.LevelUser:
		return "mend the file (`assent module test FILE` tells the place), or take it out of the folder"
	}
	return "mend it and push it again, or switch it off (`assent module disable " + m.Name + "`)"
}

// strictly says what a module that does not load costs.
func (d *doctor) strictly(ctx context.Context) string {
	book, err := d.readPolicy(ctx)
	if err != nil || !book.Set().Base().Modules().Strict {
		return "; the others run"
	}
	return "; the policy allows nothing while that is so (\"modules\": {\"strict\": true})"
}
