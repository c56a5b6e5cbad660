package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/bundle"
	"github.com/assent-dev/assent/internal/module/fleet"
	"github.com/assent-dev/assent/pkg/protocol"
)

// withFleet connects as an operator and calls use with the modules of the node.
func withFleet(ctx context.Context, env *Env, t target, use func(*fleet.Store, place) error) error {
	return withConn(ctx, env, t, protocol.RoleOperator, func(nc *nats.Conn, p place) error {
		creds, err := bus.ReadCreds(p.Creds)
		if err != nil {
			return err
		}
		store, err := fleet.Open(ctx, nc, creds)
		if err != nil {
			return unprepared(err)
		}
		return use(store, p)
	})
}

func modulePush(env *Env) *cobra.Command {
	var t target
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "push FILE|FOLDER…",
		Short: "Put permission modules in force at every gate of the node",
		Long: `Bundles modules, stores them and puts them in force for all agents of the node: at every gate,
without a restart, from the next ask on. A module takes the place of the one of its name, and is
switched on. A folder is read as a gate reads its own: files at its top, and folders whose
package.json names modules. The list of modules is signed with the operator's credentials; a gate
follows no other.

Exit 3: a module does not bundle or load, and nothing was stored.`,
		Example: "  assent module push release.ts\n  assent module push ./permissions",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wrongArgs(cmd, "FILE or FOLDER", args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			loaded, err := bundleToPush(cmd.Context(), args)
			if err != nil {
				return err
			}
			return withFleet(cmd.Context(), env, t, func(store *fleet.Store, p place) error {
				now, err := store.Push(cmd.Context(), loaded.sources)
				if err != nil {
					return err
				}
				return printChanged(env, p.Node, now, loaded.names(), asJSON)
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// loadedModules are modules that were run once, as a gate would.
type loadedModules struct {
	sources  []module.Source
	problems []module.Problem
	checks   []module.Check
}

func (l loadedModules) names() (out []string) {
	for _, s := range l.sources {
		out = append(out, s.Name)
	}
	return out
}

// checksOf are the checks of one module.
func (l loadedModules) checksOf(level module.Level, name string) (out []module.Check) {
	for _, c := range l.checks {
		if c.Level == level && c.Module == name {
			out = append(out, c)
		}
	}
	return out
}

// problemOf is what is wrong with one module, "" for nothing.
func (l loadedModules) problemOf(level module.Level, name string) string {
	for _, p := range l.problems {
		if p.Level == level && p.Module == name {
			return p.Message
		}
	}
	return ""
}

// tryModules loads modules in an engine of this process's own.
func tryModules(ctx context.Context, sources []module.Source, problems []module.Problem) (out loadedModules, err error) {
	out = loadedModules{sources: sources, problems: slices.Clone(problems)}
	if len(sources) == 0 {
		return out, nil
	}
	engine, err := module.New(module.Config{Logger: quietLog(), Workers: 1})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	set, more := engine.Load(ctx, sources)
	out.problems, out.checks = append(out.problems, more...), set.Checks()
	return out, nil
}

// bundleToPush bundles and loads what is to be pushed: all of it, or an error.
func bundleToPush(ctx context.Context, paths []string) (loadedModules, error) {
	var sources []module.Source
	var problems []module.Problem
	for _, path := range paths {
		s, p, err := bundlesAt(path)
		if err != nil {
			return loadedModules{}, err
		}
		sources, problems = append(sources, s...), append(problems, p...)
	}
	loaded, err := tryModules(ctx, sources, problems)
	if err != nil {
		return loadedModules{}, err
	}
	if len(loaded.problems) > 0 {
		var lines []string
		for _, p := range loaded.problems {
			lines = append(lines, "  "+protocol.Safe(p.Module+": "+p.Message, 1000, false))
		}
		return loadedModules{}, &exitError{code: ExitDenied, err: fmt.Errorf("nothing was stored, for this does not load:\n%s", strings.Join(lines, "\n"))}
	}
	if len(sources) == 0 {
		return loadedModules{}, usagef("no module stands in %s: a module is a .ts or .js file, or a folder whose package.json names some", strings.Join(paths, ", "))
	}
	return loaded, nil
}

func bundlesAt(path string) ([]module.Source, []module.Problem, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, usagef("%w: name a file or folder of modules", err)
	}
	if info.IsDir() {
		return bundle.Dir(path, module.LevelFleet)
	}
	s, err := bundle.File(path, module.LevelFleet)
	if err != nil {
		return nil, []module.Problem{{Module: path, Level: module.LevelFleet, Message: err.Error()}}, nil
	}
	return []module.Source{s}, nil, nil
}

// changedModules is what push, enable, disable and remove print as JSON.
type changedModules struct {
	Node string `json:"node"`
	// Revision is that of the list in the bucket of the policy.
	Revision uint64 `json:"revision"`
	Serial   uint64 `json:"serial"`
	// Modules are those that the command named; one that is not in the list any more
	// is left out.
	Modules []fleet.Entry `json:"modules"`
}

func printChanged(env *Env, node string, now fleet.Standing, names []string, asJSON bool) error {
	out := changedModules{Node: node, Revision: now.Revision, Serial: now.List.Serial, Modules: []fleet.Entry{}}
	for _, name := range names {
		e, ok := now.List.Find(name)
		if ok {
			out.Modules = append(out.Modules, e)
		}
		if asJSON {
			continue
		}
		state := "is removed"
		if ok {
			state = "is " + onOff(e.Enabled) + ", version " + shortVersion(e.Version) + ", pushed by " + e.PushedBy
		}
		if _, err := fmt.Fprintf(env.Stdout, "modules of node %s: %s %s\n", node, name, state); err != nil {
			return err
		}
	}
	if asJSON {
		return printJSON(env, out)
	}
	return nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// shortVersion is as much of a version as a decision's origin says.
func shortVersion(version string) string {
	const digits = 12
	short := strings.TrimPrefix(version, "sha256:")
	return short[:min(len(short), digits)]
}

func moduleSwitch(env *Env, word string) *cobra.Command {
	on := word == "enable"
	long := "Switches a module of the fleet off at every gate of the node, from the next ask on. It stays in the\nlist, and its code stays stored: `assent module enable` puts it in force again."
	if on {
		long = "Switches a module of the fleet on again, at every gate of the node and from the next ask on, in the\nversion that was pushed last."
	}
	return moduleEdit(env, word+" NAME", "Switch a module of the fleet "+onOff(on), long, func(ctx context.Context, s *fleet.Store, name string) (fleet.Standing, error) {
		return s.Enable(ctx, name, on)
	})
}

func moduleRemove(env *Env) *cobra.Command {
	return moduleEdit(env, "remove NAME", "Take a module away from the fleet",
		"Takes a module out of the list of the node, at every gate and from the next ask on. Its code is dropped\nwith the change after this one.",
		func(ctx context.Context, s *fleet.Store, name string) (fleet.Standing, error) {
			return s.Remove(ctx, name)
		})
}

func moduleEdit(env *Env, use, short, long string, edit func(context.Context, *fleet.Store, string) (fleet.Standing, error)) *cobra.Command {
	var t target
	var asJSON bool
	word, _, _ := strings.Cut(use, " ")
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long,
		Example: "  assent module " + word + " release",
		Args:    exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withFleet(cmd.Context(), env, t, func(store *fleet.Store, p place) error {
				now, err := edit(cmd.Context(), store, args[0])
				if errors.Is(err, fleet.ErrUnknown) {
					return fmt.Errorf("%w of the fleet: see `assent module list`; a module of a machine or project is a file, so take it out of its folder", err)
				}
				if err != nil {
					return err
				}
				return printChanged(env, p.Node, now, args, asJSON)
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
