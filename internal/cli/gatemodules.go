package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/bundle"
	"github.com/assent-dev/assent/internal/module/fleet"
	"github.com/assent-dev/assent/internal/module/levels"
	"github.com/assent-dev/assent/services/gate"
)

const (
	// modulesStart is how long the modules of fleet and user may take to be known
	// before the gate serves.
	modulesStart = 45 * time.Second
	// loadAgain is how often what did not load is tried again.
	loadAgain = 30 * time.Second
	// noModules leaves the user's modules out.
	noModules = "off"
)

// modulesFlag is the folder of the user's modules: "" for the usual one, "off"
// for none.
type modulesFlag struct{ dir string }

func (m *modulesFlag) flags(f *pflag.FlagSet) {
	f.StringVar(&m.dir, "modules", "", "folder of permission modules for every agent of this gate, or \"off\" (default: permissions in assent's configuration folder, ~/.config/assent)")
}

// folder is where the user's modules stand, absolute; "" for none.
func (m *modulesFlag) folder(env *Env) (string, error) {
	switch m.dir {
	case noModules:
		return "", nil
	case "":
		return userModules(env)
	}
	// One that is named and is not there is a mistake, and would tighten nothing.
	info, err := os.Stat(m.dir)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no folder")
	}
	if err != nil {
		return "", usagef("--modules %s: %w: name a folder of modules, or \"off\"", m.dir, err)
	}
	return filepath.Abs(m.dir)
}

// userModules is the usual folder of the user's modules, whether it is there or
// not.
func userModules(env *Env) (string, error) {
	base := env.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no place for permission modules: %w: name one with --modules, or say off", err)
		}
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "assent", "permissions"), nil
}

// gateModules runs the permission modules of one gate; the zero value runs none.
type gateModules struct {
	// dir is the folder of the user's modules, "" for none.
	dir string
	// creds are the gate's: they say whose signature the fleet's modules need.
	creds string
}

// during calls use with the modules in force, when those of fleet and user are
// known, and ends what runs them when use is over.
func (m gateModules) during(ctx context.Context, nc *nats.Conn, log *slog.Logger, metrics prometheus.Registerer, use func(gate.Modules) error) (err error) {
	if m.creds == "" {
		return use(nil)
	}
	creds, err := bus.ReadCreds(m.creds)
	if err != nil {
		return err
	}
	engine, err := module.New(module.Config{Logger: log, Metrics: metrics})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	wait := []module.Level{module.LevelFleet}
	if m.dir != "" {
		wait = append(wait, module.LevelUser)
	}
	l := levels.New(engine, wait...)
	defer l.Close()
	watching, stop := context.WithCancelCause(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer stop(nil)
	m.follow(watching, stop, &watchers, nc, fleet.TrustOf(creds), log, l)
	if err := modulesKnown(watching, l); err != nil {
		return err
	}
	return use(inForce{l})
}

// follow starts what keeps l up to date until ctx ends.
func (m gateModules) follow(ctx context.Context, fail context.CancelCauseFunc, watchers *sync.WaitGroup, nc *nats.Conn, trust fleet.Trust, log *slog.Logger, l *levels.Levels) {
	watchers.Go(func() {
		err := fleet.Watch(ctx, nc, trust, log, func(s []module.Source, p []module.Problem) { l.Put(module.LevelFleet, s, p) })
		if err != nil {
			fail(unprepared(err))
		}
	})
	if m.dir != "" {
		watchers.Go(func() {
			levels.Folder(ctx, m.dir, module.LevelUser, bundle.Dir, func(s []module.Source, p []module.Problem) {
				level := slog.LevelInfo
				if len(p) > 0 {
					level = slog.LevelWarn // each is named where the modules are loaded
				}
				log.Log(ctx, level, "user's modules", "folder", m.dir, "modules", len(s), "problems", len(p))
				l.Put(module.LevelUser, s, p)
			})
		})
	}
	watchers.Go(func() {
		tick := time.NewTicker(loadAgain)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				l.Again()
			}
		}
	})
}

// modulesKnown waits for the modules: a gate that began without them would allow
// what they stop.
func modulesKnown(ctx context.Context, l *levels.Levels) error {
	limit := time.NewTimer(modulesStart)
	defer limit.Stop()
	select {
	case <-l.Ready():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.C:
		return fmt.Errorf("the permission modules are not known after %s: is JetStream up, and are these the gate's credentials?", modulesStart)
	}
}

// inForce is Levels as a gate asks it.
type inForce struct{ *levels.Levels }

func (i inForce) In(ctx context.Context, project []module.Source) gate.Checks {
	return i.Levels.In(ctx, project)
}
