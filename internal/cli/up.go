package cli

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/local"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/terminal/parent"
)

// upFlags are the flags of `assent up`.
type upFlags struct {
	policy, judges, store, listen, web, node, metrics string
	json, noDefault, takeDefault                      bool
	parent                                            parentFlags
	modules                                           modulesFlag
	logging                                           logging
}

// Up runs everything in one process.
func Up(env *Env) *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run everything in one process: NATS, gate, judge, terminal, auditor",
		Long: `Runs a whole node in one process: NATS with its streams on disk, a gate, a judge
for each link of the judges file, the terminal and the auditor. Makes a store and
credentials if there are none, and tells the other commands of this machine where
to find them. On a terminal it also shows each ask that waits and takes the answer.

Without --policy the policy that is stored goes on; a new store begins with the
starter policy (examples/policy.jsonc). A policy file takes the place of the one that
'assent up' put there last, and is followed. Where somebody else has stored another
since (assent policy push), that one stays, and it is said loudly: compare them with
'assent policy diff --file FILE', and push the file to put it in force.

With --parent the node is a child: what its rules leave open and nobody here decides goes to
that node, which rules it, asks its own judges and people, and has the last word but one: a
deny here stands. The node starts also while its parent is away.

Exit 3: the policy file has errors, and nothing was started.`,
		Example: `  assent up
  assent up --policy policy.jsonc --judges judges.jsonc
  assent up --json --listen 127.0.0.1:0 --store /tmp/assent   # for a script
  assent up --node ci --parent tls://nats.example:4222 --parent-node main --parent-creds ci.creds`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return up(cmd.Context(), env, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.policy, "policy", "", "policy file to put in force (JSONC)")
	fl.StringVar(&f.judges, "judges", "", "judges file (JSONC); no judge runs without one")
	fl.StringVar(&f.store, "store", "", "store folder (default: ASSENT_STORE, then ~/.local/share/assent/NODE)")
	fl.StringVar(&f.listen, "listen", defaultListen, "address for agents and other services; port 0 picks one")
	fl.StringVar(&f.web, "web", "off", "web desk; this version has none: only \"off\"")
	fl.StringVar(&f.node, "node", "", "name of the node (default: ASSENT_NODE, then main)")
	fl.StringVar(&f.metrics, "metrics", "", "address for Prometheus metrics, as 127.0.0.1:9464 (default: none)")
	fl.BoolVar(&f.json, "json", false, "print one line of JSON when it is ready to serve")
	fl.BoolVar(&f.noDefault, "no-default", false, "do not become the node that the other commands of this user find")
	fl.BoolVar(&f.takeDefault, "default", false, "become it even in the place of another node that runs")
	f.parent.flags(fl)
	f.modules.flags(fl)
	f.logging.flags(fl)
	return cmd
}

const defaultListen = "127.0.0.1:4222"

// ready is what `assent up --json` prints.
type ready struct {
	NATS  string                   `json:"nats"`
	Node  string                   `json:"node"`
	Web   string                   `json:"web"`
	Creds map[protocol.Role]string `json:"creds"`
}

func up(ctx context.Context, env *Env, f upFlags) error {
	if f.web != "off" {
		return usagef("--web %s: this version has no web desk: leave it out, or say off", f.web)
	}
	f.node = firstOf(f.node, env.Getenv("ASSENT_NODE"), defaultNode)
	store, err := storeDir(env, f.store, f.node)
	if err != nil {
		return err
	}
	// Everything that the files can have wrong is told before anything starts.
	doc, err := readPolicy(env, f.policy)
	if err != nil {
		return err
	}
	judges, err := readJudges(f.judges)
	if err != nil {
		return err
	}
	if f.modules.dir, err = f.modules.folder(env); err != nil {
		return err
	}
	// Whoever sits at the face hears of asks and answers there.
	f.logging.quiet = f.logging.quiet || !f.json && !f.logging.verbose && hasFace(env)
	log := f.logging.logger(env)
	above, err := f.parent.config(f.node, log)
	if err != nil {
		return err
	}
	n, err := node.Start(ctx, node.Config{Store: store, Listen: f.listen, Node: f.node, Logger: log})
	if err != nil {
		return err
	}
	defer func() {
		if err := n.Shutdown(context.Background()); err != nil {
			log.Error("node did not shut down cleanly", "err", err)
		}
	}()
	return serveNode(ctx, env, f, n, store, doc, judges, above, log)
}

func serveNode(ctx context.Context, env *Env, f upFlags, n *node.Node, store string, doc []byte, judges *judgesFile, above *parent.Config, log *slog.Logger) error {
	creds, err := localCreds(n.Authority(), store)
	if err != nil {
		return err
	}
	put := filePutIn(store)
	inForce, err := putPolicy(ctx, n, creds, put, doc, log)
	if err != nil {
		return err
	}
	if inForce.kept {
		// Whoever sits at the face sees no log, and must know this.
		fmt.Fprintln(env.Stderr, "assent: "+keptText(f.policy, inForce))
	}
	warnChain(log, inForce.text, judges)
	if above != nil {
		warnPassedBy(log, inForce.text, above.Parent)
	}
	metrics, stopMetrics, err := serveMetrics(f.metrics, log)
	if err != nil {
		return err
	}
	defer stopMetrics()
	services, err := nodeServices(n, creds, store, f.modules.dir, judges, above, metrics, log)
	if err != nil {
		return err
	}
	if f.policy != "" && f.policy != "-" {
		file := &follower{path: f.policy, log: log, seen: doc, put: inForce.text, remember: put.remember}
		if inForce.kept {
			file.put = doc // somebody else speaks, until the two agree
		}
		services = append(services, service{"policy file", bus.Config{InProcess: n, Creds: creds[protocol.RoleOperator].file, Role: protocol.RoleOperator}, file.follow})
	}
	d := local.Default{NATS: n.ClientURL(), Node: n.Name(), Store: store, Creds: creds.files(), Names: creds.names()}
	return runServices(ctx, log, services, func(ctx context.Context) error {
		if err := d.Save(filepath.Join(store, local.FileName)); err != nil {
			return err
		}
		path, err := becomeDefault(env, d, f, log)
		if err != nil {
			return err
		}
		if f.json {
			return printReady(env, d)
		}
		banner(env, d, path, policyLine(f.policy, inForce))
		return showFace(ctx, env, n, d)
	})
}

// storeDir is the store folder, absolute.
func storeDir(env *Env, flag, node string) (string, error) {
	dir := firstOf(flag, env.Getenv("ASSENT_STORE"))
	if dir == "" {
		base := env.Getenv("XDG_DATA_HOME")
		if !filepath.IsAbs(base) {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("no place for the store: %w: name one with --store", err)
			}
			base = filepath.Join(home, ".local", "share")
		}
		dir = filepath.Join(base, "assent", node)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("store %s: %w", dir, err)
	}
	return abs, nil
}

// readPolicy reads and checks a policy file; nil for none.
func readPolicy(env *Env, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	name, doc, err := policyFile(env, path)
	if err != nil {
		return nil, err
	}
	return doc, badPolicy(warnPolicy(env, name, doc))
}

// warnChain says which links the policy names and no judge of this process
// serves: until one elsewhere does, each ask goes past them.
func warnChain(log *slog.Logger, doc []byte, judges *judgesFile) {
	s, err := policy.Compile(policy.LayerFleet, doc)
	if err != nil {
		return // the gate says it, louder
	}
	var serves []string
	if judges != nil {
		serves = judges.file.Names()
	}
	for _, link := range s.Chain() {
		if !slices.Contains(serves, link) {
			log.Warn("the policy's chain names a link that no judge here serves: it is skipped until one does (put it into the judges' file, --judges, or start a judge that serves it)", "link", link)
		}
	}
}

// warnPassedBy says that no ask will reach the parent node that was named.
func warnPassedBy(log *slog.Logger, doc []byte, above string) {
	s, err := policy.Compile(policy.LayerFleet, doc)
	if err != nil {
		return // the gate says it, louder
	}
	switch kind := s.Terminal().Kind; kind {
	case policy.TerminalHuman, policy.TerminalDeny:
		log.Warn(`the policy sends nothing to the parent node: its terminal is neither "auto" nor "parent"`, "parent", above, "terminal", kind)
	}
}

// becomeDefault makes d what the other commands of this user find. A node that
// runs is not pushed out of that place in silence: the commands, and hooks that
// follow the default, would ask another policy from one moment to the next.
func becomeDefault(env *Env, d local.Default, f upFlags, log *slog.Logger) (string, error) {
	if f.noDefault {
		return "", nil
	}
	path, err := local.Path(env.Getenv)
	if err != nil {
		return "", err
	}
	if have, err := local.Load(path); err == nil && have.Store != d.Store && node.InUse(have.Store) && !f.takeDefault {
		log.Warn("another node of this user runs and stays the default: name this one with --store or ASSENT_STORE, or start it with --default", "default", have.Node, "store_of_this", d.Store)
		return "", nil
	}
	if err := d.Save(path); err != nil {
		return "", err
	}
	return path, nil
}

func printReady(env *Env, d local.Default) error {
	b, err := json.Marshal(ready{NATS: d.NATS, Node: d.Node, Creds: d.Creds}, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("printing the ready line: %w", err)
	}
	_, err = fmt.Fprintf(env.Stdout, "%s\n", b)
	return err
}

// policyLine says which policy a start has left in force.
func policyLine(file string, s started) string {
	switch {
	case s.kept:
		return fmt.Sprintf("revision %d as it is stored, NOT %s", s.revision, file)
	case file != "":
		return fmt.Sprintf("%s (revision %d)", file, s.revision)
	case s.revision == 0:
		return "none: everything asks"
	}
	return fmt.Sprintf("revision %d as it is stored", s.revision)
}

// banner tells a person where to look; path is the file by which the commands of
// this user find the node, "" where they find another one, or none.
func banner(env *Env, d local.Default, path, policy string) {
	w := bufio.NewWriter(env.Stdout)
	defer w.Flush()
	fmt.Fprintf(w, "\nAssent serves node %s on %s\n\n", d.Node, d.NATS)
	fmt.Fprintf(w, "  store        %s\n", d.Store)
	fmt.Fprintf(w, "  policy       %s\n", policy)
	install := "assent install claude-code"
	if path != "" {
		fmt.Fprintf(w, "  found by     %s\n\nFrom another terminal:\n\n", path)
	} else {
		install += " --local " + shellQuote(filepath.Join(d.Store, local.FileName))
		fmt.Fprintf(w, "\nFrom another terminal, where this node is found by its store alone:\n\n  export ASSENT_STORE=%s\n", shellQuote(d.Store))
	}
	for _, line := range [][2]string{
		{`assent ask --tool bash --input '{"command":"git status"}'`, "try a call"},
		{install, "point Claude Code at this gate"},
		{"assent pending", "what waits for a person"},
		{"assent log --follow", "every decision, as it falls"},
		{"assent doctor", "prove that it works"},
	} {
		fmt.Fprintf(w, "  %-57s   %s\n", line[0], line[1])
	}
	fmt.Fprint(w, "\nCtrl-C stops it. Open asks wait for the next start.\n\n")
}

// hasFace says whether a person sits at this process.
func hasFace(env *Env) bool { return isTerminal(env.Stdin) && isTerminal(env.Stdout) }

// showFace runs the face of `assent up` where a person sits at it.
func showFace(ctx context.Context, env *Env, n *node.Node, d local.Default) error {
	if !hasFace(env) {
		return nil
	}
	nc, err := bus.Connect(ctx, bus.Config{InProcess: n, Creds: d.Creds[protocol.RoleApprover], Role: protocol.RoleApprover})
	if err != nil {
		return fmt.Errorf("starting the face: %w", err)
	}
	defer nc.Close()
	return runFace(ctx, env, nc, d.Node, d.Names[protocol.RoleApprover])
}
