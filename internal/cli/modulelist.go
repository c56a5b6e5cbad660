package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/bundle"
	"github.com/assent-dev/assent/internal/module/fleet"
	"github.com/assent-dev/assent/pkg/protocol"
)

// listedModule is a module as list prints it.
type listedModule struct {
	Level   module.Level  `json:"level"`
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Enabled bool          `json:"enabled"`
	Checks  []listedCheck `json:"checks"`
	// PushedBy and PushedAt are those of a module of the fleet.
	PushedBy string `json:"pushed_by,omitempty"`
	PushedAt string `json:"pushed_at,omitempty"`
	// Problem is why it is not in force though it should be, or what is wrong with
	// the list; then Name is "".
	Problem string `json:"problem,omitempty"`
}

type listedCheck struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Tools are the tools that it is about; null where it is asked about every call
	// or a function of its own decides.
	Tools []string `json:"tools"`
}

func moduleList(env *Env) *cobra.Command {
	var t target
	var folder modulesFlag
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List permission modules, their checks and what is wrong with them",
		Long: `Lists the modules of the fleet and those in the folder of this machine, in the order in which a gate
asks them, with their checks. Each is loaded here as a gate loads it; one that does not load is told with the cause.
A gate elsewhere has a folder of its own, and a project brings its modules with its asks: they are
not shown.

Exit 1: a module that is on does not load, or the list of the fleet does not count.`,
		Example: "  assent module list\n  assent module list --json",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := folder.folder(env)
			if err != nil {
				return err
			}
			return withFleet(cmd.Context(), env, t, func(store *fleet.Store, _ place) error {
				list, err := listModules(cmd.Context(), store, dir)
				if err != nil {
					return err
				}
				return printModules(env, list, asJSON)
			})
		},
	}
	t.flags(cmd.Flags())
	folder.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a module")
	return cmd
}

// listModules are the modules of the fleet and of a folder, "" for none, in order.
func listModules(ctx context.Context, store *fleet.Store, dir string) ([]listedModule, error) {
	now, err := store.Get(ctx)
	if err != nil {
		return nil, err
	}
	var out []listedModule
	if now.Err != nil {
		out = append(out, listedModule{Level: module.LevelFleet, Checks: []listedCheck{}, Problem: "the list does not count, and what was in force before stays so: " + now.Err.Error() + ": push a module, and the list is signed anew"})
	}
	sources, problems := fleetSources(ctx, store, now)
	for _, e := range now.List.Modules {
		out = append(out, listedModule{Level: module.LevelFleet, Name: e.Name, Version: e.Version, Enabled: e.Enabled, PushedBy: e.PushedBy, PushedAt: e.PushedAt.Format(time.RFC3339)})
	}
	if dir != "" {
		own, more, err := bundle.Dir(dir, module.LevelUser)
		if err != nil {
			return nil, err
		}
		for _, s := range own {
			out = append(out, listedModule{Level: module.LevelUser, Name: s.Name, Version: s.Version(), Enabled: true})
		}
		for _, p := range more {
			out = append(out, listedModule{Level: module.LevelUser, Name: p.Module, Enabled: true})
		}
		sources, problems = append(sources, own...), append(problems, more...)
	}
	loaded, err := tryModules(ctx, sources, problems)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].fill(loaded)
	}
	return out, nil
}

// fleetSources reads the code of a list's modules, switched off ones too: what
// would happen when they are switched on should be seen before.
func fleetSources(ctx context.Context, store *fleet.Store, now fleet.Standing) (sources []module.Source, problems []module.Problem) {
	for _, e := range now.List.Modules {
		code, err := store.Code(ctx, e.Version)
		if err != nil {
			problems = append(problems, module.Problem{Module: e.Name, Level: module.LevelFleet, Message: err.Error()})
			continue
		}
		sources = append(sources, module.Source{Name: e.Name, Level: module.LevelFleet, Code: code})
	}
	return sources, problems
}

func (m *listedModule) fill(loaded loadedModules) {
	m.Checks = []listedCheck{}
	if m.Name == "" {
		return
	}
	m.Problem = loaded.problemOf(m.Level, m.Name)
	for _, c := range loaded.checksOf(m.Level, m.Name) {
		m.Checks = append(m.Checks, listedCheck{Name: c.Name, Description: c.Description, Tools: c.Tools})
	}
}

func printModules(env *Env, list []listedModule, asJSON bool) error {
	broken := 0
	for _, m := range list {
		if m.Problem != "" && (m.Enabled || m.Name == "") {
			broken++
		}
		if asJSON {
			if err := printJSON(env, m); err != nil {
				return err
			}
		}
	}
	if !asJSON {
		if err := printModuleTable(env.Stdout, list); err != nil {
			return err
		}
	}
	if broken > 0 {
		return &exitError{code: ExitFailure, err: fmt.Errorf("%s not in force: the others run", count(broken, "module"))}
	}
	return nil
}

func printModuleTable(out io.Writer, list []listedModule) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "no modules: `assent module push` puts some in force for the fleet")
		return err
	}
	return table(out, func(w io.Writer) {
		fmt.Fprintln(w, "LEVEL\tMODULE\tVERSION\tSTATE\tPUSHED BY\tCHECKS")
		for _, m := range list {
			name := protocol.Safe(firstOf(m.Name, "(the list)"), 64, false)
			checks := make([]string, 0, len(m.Checks))
			for _, c := range m.Checks {
				checks = append(checks, protocol.Safe(c.Name, 60, false))
			}
			state, said := onOff(m.Enabled), strings.Join(checks, ", ")
			if m.Problem != "" {
				state, said = "BROKEN", protocol.Safe(m.Problem, 300, false)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Level, name, shortVersion(m.Version), state, m.PushedBy, said)
		}
	})
}
