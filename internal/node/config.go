package node

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// ServerConfig says what a nats-server of its own should be like.
type ServerConfig struct {
	// Name must differ between the servers of a cluster.
	Name string
	// Listen is host:port for clients; default 0.0.0.0:4222.
	Listen string
	// Store is the server's own folder for streams and accounts, not the
	// authority's; default /data.
	Store string
	// Monitor is host:port for the server's HTTP pages; empty is none.
	Monitor string
	// Cluster joins servers; the zero value is a server alone.
	Cluster Cluster
	// MaxPayload is the largest message in bytes; default as for Start.
	MaxPayload int32
}

// Cluster says how a server finds its fellows.
type Cluster struct {
	Name   string
	Listen string
	Routes []string
}

// WriteConfig prints a complete configuration with which an outside
// nats-server has the same accounts and the same rights as Start gives. It
// holds no secret: credentials are made by the authority, which no server
// needs. Later revocations go to the running server by PushTo.
func (a *Authority) WriteConfig(w io.Writer, cfg ServerConfig) error {
	var operator, system string
	var accounts map[string]string
	err := a.locked("", func(k *keys, led *ledger) error {
		operator, system = k.OperatorJWT, k.Accounts[System]
		var err error
		accounts, err = a.resign(k, led)
		return err
	})
	if err != nil {
		return err
	}
	var b strings.Builder
	store := cmp.Or(cfg.Store, "/data")
	a.writeHead(&b, cfg, store)
	fmt.Fprintf(&b, "\n# Who is trusted. The operator's keys stay with `assent creds`.\n")
	fmt.Fprintf(&b, "operator: %q\nsystem_account: %q\n", operator, system)
	fmt.Fprintf(&b, "resolver {\n  type: full\n  dir: %q\n  allow_delete: false\n  interval: \"2m\"\n}\n", path.Join(store, "accounts"))
	fmt.Fprintf(&b, "# Taken in at the first start only: what is newer in the folder above stays.\nresolver_preload {\n")
	for _, pub := range slices.Sorted(maps.Keys(accounts)) {
		fmt.Fprintf(&b, "  %s: %q\n", pub, accounts[pub])
	}
	b.WriteString("}\n")
	writeCluster(&b, cfg.Cluster)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return nil
}

func (a *Authority) writeHead(b *strings.Builder, cfg ServerConfig, store string) {
	fmt.Fprintf(b, "# nats-server configuration for the Assent node %q, printed by `assent node config`.\n", a.node)
	fmt.Fprintf(b, "# The rights of each role stand in the accounts' tokens below; in words:\n#\n")
	for line := range strings.Lines(Markdown(a.node)) {
		b.WriteString(strings.TrimRight("# "+line, " \n") + "\n")
	}
	fmt.Fprintf(b, "\nserver_name: %q\nlisten: %q\n", cmp.Or(cfg.Name, "assent-"+a.node), cmp.Or(cfg.Listen, "0.0.0.0:4222"))
	fmt.Fprintf(b, "max_payload: %d\n", cmp.Or(cfg.MaxPayload, defaultMaxPayload))
	if cfg.Monitor != "" {
		fmt.Fprintf(b, "http: %q\n", cfg.Monitor)
	}
	// Always: an acknowledged decision is on the disk before the agent hears it.
	fmt.Fprintf(b, "jetstream {\n  store_dir: %q\n  sync_interval: always\n}\n", store)
}

func writeCluster(b *strings.Builder, c Cluster) {
	if c.Name == "" {
		return
	}
	fmt.Fprintf(b, "cluster {\n  name: %q\n  listen: %q\n  routes: [\n", c.Name, cmp.Or(c.Listen, "0.0.0.0:6222"))
	for _, r := range c.Routes {
		fmt.Fprintf(b, "    %q\n", r)
	}
	b.WriteString("  ]\n}\n")
}
