package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/auditor"
	"github.com/assent-dev/assent/services/gate"
	"github.com/assent-dev/assent/services/terminal/parent"
)

// Gate runs one gate against an existing NATS.
func Gate(env *Env) *cobra.Command {
	return serviceCommand(env, protocol.RoleGate, "gate", "Run one gate: rules, chain, record",
		"Runs a gate against an existing NATS. Any number of gates serve one node. Each runs the permission\n"+
			"modules of the fleet (assent module push) and those of its own folder: give all gates of a node the same.",
		func(p place, name string, f *serviceFlags, log *slog.Logger) (service, error) {
			dir, err := f.modules.folder(env)
			if err != nil {
				return service{}, err
			}
			metrics, _, err := serveMetrics(f.metrics, log)
			return gateService(p.Node, name, gateModules{dir, p.Creds}, metrics, log), err
		})
}

// Terminal runs one terminal against an existing NATS.
func Terminal(env *Env) *cobra.Command {
	return serviceCommand(env, protocol.RoleTerminal, "terminal", "Run one terminal: the end of the chain",
		"Runs the terminals (human and deny) against an existing NATS and takes approvers' answers. With\n"+
			"--parent it also relays to the node above what nobody here decides: see \"A tree of nodes\" in\ndocs/operating.md.",
		func(p place, name string, f *serviceFlags, log *slog.Logger) (service, error) {
			above, err := f.parent.config(p.Node, log)
			if err != nil {
				return service{}, err
			}
			return terminalService(p.Node, name, above, log)
		})
}

// Auditor runs one auditor against an existing NATS.
func Auditor(env *Env) *cobra.Command {
	return serviceCommand(env, protocol.RoleAuditor, "auditor", "Run one auditor: copy the record into a review log",
		"Runs an auditor against an existing NATS. It copies every decision and review record into a\nlog of JSON lines (mode 0600, rotated by size).",
		func(p place, _ string, f *serviceFlags, log *slog.Logger) (service, error) {
			dir := f.log
			if dir == "" && p.Store != "" {
				dir = filepath.Join(p.Store, "review")
			}
			if dir == "" {
				return service{}, usagef("name the folder of the review log with --log DIR")
			}
			return auditorService(p.Node, dir, log), nil
		})
}

// Judge runs the links of a judges file against an existing NATS.
func Judge(env *Env) *cobra.Command {
	cmd := serviceCommand(env, protocol.RoleJudge, "judge", "Run the links of a judges file",
		"Runs every link of the judges file against an existing NATS. Which of them are asked, and in\nwhich order, is the policy's to say (authorizerChain). Any number of judges may run the same file:\n"+
			"each ask goes to one of them. At its start a judge asks each link's model one question of its own,\n"+
			"whether it can; `assent links` shows the answer, and since when a link has had no verdict out of its model.",
		func(p place, _ string, f *serviceFlags, log *slog.Logger) (service, error) {
			if f.config == "" {
				return service{}, usagef("name the judges file with --config FILE")
			}
			judges, err := readJudges(f.config)
			if err != nil {
				return service{}, err
			}
			metrics, _, err := serveMetrics(f.metrics, log)
			return judgeService(p.Node, judges, metrics, log), err
		})
	cmd.AddCommand(judgeEvalCommand(env))
	return cmd
}

// serviceFlags are the flags of the service commands; each has those it needs.
type serviceFlags struct {
	target               target
	logging              logging
	config, log, metrics string
	parent               parentFlags
	modules              modulesFlag
}

// serviceCommand makes the command of one service.
func serviceCommand(env *Env, role protocol.Role, name, short, long string, make func(place, string, *serviceFlags, *slog.Logger) (service, error)) *cobra.Command {
	var f serviceFlags
	cmd := &cobra.Command{
		Use: name, Short: short, Long: long,
		Example: "  assent " + name + " --nats nats://127.0.0.1:4222 --creds " + name + ".creds --node main" + exampleFlags[role],
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := f.target.resolve(env, role)
			if err != nil {
				return err
			}
			creds, err := bus.ReadCreds(p.Creds)
			if err != nil {
				return err
			}
			log := f.logging.logger(env)
			s, err := make(p, creds.Name, &f, log)
			if err != nil {
				return err
			}
			s.bus = bus.Config{URL: p.NATS, Creds: p.Creds, Role: role}
			return runServices(cmd.Context(), log, []service{s}, nil)
		},
	}
	f.target.flags(cmd.Flags())
	f.logging.flags(cmd.Flags())
	switch role {
	case protocol.RoleJudge:
		cmd.Flags().StringVar(&f.config, "config", "", "judges file (JSONC)")
		metricsFlag(cmd, &f)
	case protocol.RoleAuditor:
		cmd.Flags().StringVar(&f.log, "log", "", "folder of the review log (default: review in the local store)")
	case protocol.RoleTerminal:
		f.parent.flags(cmd.Flags())
	case protocol.RoleGate:
		metricsFlag(cmd, &f)
		f.modules.flags(cmd.Flags())
	}
	return cmd
}

func metricsFlag(cmd *cobra.Command, f *serviceFlags) {
	cmd.Flags().StringVar(&f.metrics, "metrics", "", "address for Prometheus metrics, as 127.0.0.1:9464 (default: none)")
}

var exampleFlags = map[protocol.Role]string{
	protocol.RoleJudge:   " --config judges.jsonc",
	protocol.RoleAuditor: " --log /var/lib/assent/review",
	protocol.RoleGate:    " --metrics 127.0.0.1:9464",
}

// nodeServices are the services of a whole node, in the order in which they
// start: nothing takes asks before everything behind it is there.
func nodeServices(n *node.Node, creds credentials, store, modules string, judges *judgesFile, above *parent.Config, metrics prometheus.Registerer, log *slog.Logger) ([]service, error) {
	end, err := terminalService(n.Name(), creds[protocol.RoleTerminal].name, above, log)
	if err != nil {
		return nil, err
	}
	services := []service{auditorService(n.Name(), filepath.Join(store, "review"), log), end}
	roles := []protocol.Role{protocol.RoleAuditor, protocol.RoleTerminal}
	if judges != nil {
		services = append(services, judgeService(n.Name(), judges, metrics, log))
		roles = append(roles, protocol.RoleJudge)
	}
	services = append(services, gateService(n.Name(), creds[protocol.RoleGate].name, gateModules{modules, creds[protocol.RoleGate].file}, metrics, log))
	roles = append(roles, protocol.RoleGate)
	for i, role := range roles {
		services[i].bus = bus.Config{InProcess: n, Creds: creds[role].file, Role: role}
	}
	return services, nil
}

func gateService(node, name string, modules gateModules, metrics prometheus.Registerer, log *slog.Logger) service {
	return service{name: "gate", run: func(ctx context.Context, nc *nats.Conn, ready func()) error {
		return modules.during(ctx, nc, log, metrics, func(m gate.Modules) error {
			g, err := gate.New(ctx, nc, gate.Config{Node: node, Name: name, Logger: log, Metrics: metrics, Modules: m})
			if err != nil {
				return unprepared(err)
			}
			return g.Run(ctx, ready)
		})
	}}
}

func auditorService(node, dir string, log *slog.Logger) service {
	return service{name: "auditor", run: func(ctx context.Context, nc *nats.Conn, ready func()) error {
		return auditor.Run(ctx, nc, auditor.Config{Node: node, Dir: dir, Logger: log, Ready: ready})
	}}
}

// serveMetrics serves Prometheus metrics at addr; nothing without one.
func serveMetrics(addr string, log *slog.Logger) (prometheus.Registerer, func(), error) {
	if addr == "" {
		return nil, func() {}, nil
	}
	registry := prometheus.NewRegistry()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("serving metrics: %w: name another address with --metrics", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics are not served any more", "err", err)
		}
	}()
	log.Info("metrics", "address", l.Addr().String())
	return registry, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		srv.Shutdown(ctx) //nolint:errcheck // what is open after two seconds is cut
		<-done
	}, nil
}
