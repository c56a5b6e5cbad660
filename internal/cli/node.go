package cli

import (
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Node is the group of commands for a NATS that runs elsewhere.
func Node(env *Env) *cobra.Command {
	return group("node", "Run a node on a NATS server of your own", nodeConfig(env), nodePrepare(env))
}

func nodeConfig(env *Env) *cobra.Command {
	var a authorityFlags
	var cfg node.ServerConfig
	var out string
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the configuration of a nats-server for this node",
		Long: `Prints a complete nats-server configuration with the same accounts and rights that
` + "`assent up`" + ` gives its own server: both come from one table (docs/permissions.md).
It holds no secret; the keys stay in the store.`,
		Example: "  assent creds init --store ./keys --node main\n  assent node config --store ./keys --listen 0.0.0.0:4222 --jetstream /data > nats.conf",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			auth, err := a.open(env)
			if err != nil {
				return err
			}
			if out == "" {
				return auth.WriteConfig(env.Stdout, cfg)
			}
			f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
			if err != nil {
				return fmt.Errorf("writing the configuration: %w", err)
			}
			if err := auth.WriteConfig(f, cfg); err != nil {
				f.Close()
				return err
			}
			return f.Close()
		},
	}
	a.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&cfg.Name, "name", "", "name of the server; must differ in a cluster")
	fl.StringVar(&cfg.Listen, "listen", "0.0.0.0:4222", "address for clients")
	fl.StringVar(&cfg.Store, "jetstream", "/data", "the server's own folder for streams and accounts")
	fl.StringVar(&cfg.Monitor, "monitor", "", "address of the server's HTTP pages (default: none)")
	fl.StringVar(&cfg.Cluster.Name, "cluster", "", "name of the cluster (default: a server alone)")
	fl.StringVar(&cfg.Cluster.Listen, "cluster-listen", "", "address for the other servers of the cluster")
	fl.StringSliceVar(&cfg.Cluster.Routes, "route", nil, "address of another server of the cluster, may be repeated")
	fl.StringVarP(&out, "out", "o", "", "file to write (default: print)")
	return cmd
}

func nodePrepare(env *Env) *cobra.Command {
	var t target
	var lim node.StreamLimits
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Make the node's streams and buckets on a NATS that runs elsewhere",
		Long: `Makes the streams, buckets and consumers of a node, or brings those that are there up to
date. ` + "`assent up`" + ` does it by itself. Safe to run again.`,
		Example: "  assent node prepare --nats nats://127.0.0.1:4222 --creds operator.creds --node main",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withConn(cmd.Context(), env, t, protocol.RoleOperator, func(nc *nats.Conn, p place) error {
				js, err := jetstream.New(nc)
				if err != nil {
					return fmt.Errorf("opening JetStream: %w", err)
				}
				if err := node.EnsureStreams(cmd.Context(), js, p.Node, lim); err != nil {
					return err
				}
				fmt.Fprintf(env.Stdout, "streams and buckets of node %s are there\n", p.Node)
				return nil
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().IntVar(&lim.Replicas, "replicas", 1, "replicas of each stream: 1, or 3 in a cluster of three")
	cmd.Flags().Int64Var(&lim.Decisions, "max-decisions", 0, "most bytes of the decision stream; when it is full nothing is allowed (default: the disk)")
	cmd.Flags().Int64Var(&lim.Review, "max-review", 0, "most bytes of the review stream; when it is full the oldest go (default: the disk)")
	return cmd
}
