package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// errNoSuchRevision: the bucket keeps no such revision of a layer.
var errNoSuchRevision = errors.New("no such revision of the layer is kept: see assent policy history")

// withLayers connects as an operator and calls use with the node's layers.
func withLayers(ctx context.Context, env *Env, t target, use func(*layers.Store, place) error) error {
	return withConn(ctx, env, t, protocol.RoleOperator, func(nc *nats.Conn, p place) error {
		js, err := jetstream.New(nc)
		if err != nil {
			return fmt.Errorf("opening JetStream: %w", err)
		}
		store, err := layers.Open(ctx, js)
		if err != nil {
			return unprepared(err)
		}
		return use(store, p)
	})
}

// layerArg reads the name of a layer; the fleet's is meant where none is given.
func layerArg(name string) (policy.Layer, error) {
	if name == "" {
		return policy.Fleet(), nil
	}
	return policy.ParseLayer(name)
}

func policyPush(env *Env) *cobra.Command {
	var t target
	var name string
	cmd := &cobra.Command{
		Use:   "push FILE",
		Short: "Put a policy file in force at every gate of the node",
		Long: `Stores a policy file as a layer of the node, the fleet layer if no other is named. Every
gate takes it at once, without a restart. A file that does not compile is refused, and so
is a push that somebody else's has overtaken. Warnings are those of policy check. "-" for
FILE reads standard input.

Layers below the fleet's only tighten, unless the fleet layer trusts them
("trustedProjects", "trustedAgentNames").`,
		Example: "  assent policy push policy.jsonc\n  assent policy push --layer agent/reviewer reviewer.jsonc",
		Args:    exactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			layer, err := layerArg(name)
			if err != nil {
				return err
			}
			path, doc, err := policyFile(env, args[0])
			if err != nil {
				return err
			}
			warnings, err := policyWarnings(layer, path, doc)
			if err != nil {
				return err
			}
			printWarnings(env, warnings)
			return withLayers(cmd.Context(), env, t, func(store *layers.Store, p place) error {
				revision, err := pushLayer(cmd.Context(), store, layer, doc)
				if err == nil {
					fmt.Fprintf(env.Stdout, "policy of node %s: layer %s is revision %d\n", p.Node, layer, revision)
				}
				return err
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().StringVar(&name, "layer", "", "layer to store: fleet (default), project/ID, agent/NAME or project-agent/ID/NAME")
	return cmd
}

// pushLayer stores doc over what the layer holds now.
func pushLayer(ctx context.Context, store *layers.Store, layer policy.Layer, doc []byte) (uint64, error) {
	over, err := store.Get(ctx, layer)
	if err != nil && !errors.Is(err, layers.ErrNone) {
		return 0, err
	}
	revision, err := store.Put(ctx, layer, doc, over)
	if errors.Is(err, layers.ErrOvertaken) {
		return 0, fmt.Errorf("%w: look at it (assent policy diff %s), and push again", err, layer)
	}
	return revision, err
}

func policyRemove(env *Env) *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "remove LAYER",
		Short: "Take a layer of the policy away",
		Long: `Removes a layer of the node's policy. Without the fleet layer everything asks. What was
removed stays in the history.`,
		Example: "  assent policy remove agent/reviewer",
		Args:    exactArgs("LAYER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			layer, err := policy.ParseLayer(args[0])
			if err != nil {
				return err
			}
			return withLayers(cmd.Context(), env, t, func(store *layers.Store, p place) error {
				have, err := store.Get(cmd.Context(), layer)
				if err == nil {
					err = store.Remove(cmd.Context(), have)
				}
				if err == nil {
					fmt.Fprintf(env.Stdout, "policy of node %s: layer %s is removed\n", p.Node, layer)
				}
				return err
			})
		},
	}
	t.flags(cmd.Flags())
	return cmd
}

// storedLayer is a layer as show and history print it.
type storedLayer struct {
	Layer    string    `json:"layer"`
	Revision uint64    `json:"revision"`
	At       time.Time `json:"at"`
	Digest   string    `json:"digest"`
	State    string    `json:"state"`
	Text     string    `json:"text,omitempty"`
}

func storedAs(e layers.Entry, text bool) storedLayer {
	out := storedLayer{Layer: e.Name(), Revision: e.Revision, At: e.At.UTC(), State: "in force"}
	switch {
	case e.Removed:
		out.State = "removed"
	case e.Broken():
		out.State = "broken: every allow is clamped to ask"
	default:
		out.Digest = e.Document.Digest()
	}
	if text {
		out.Text = string(e.Text)
	}
	return out
}

func (l storedLayer) row() string {
	return fmt.Sprintf("%-32s %8d  %s  %-20.20s %s", protocol.Safe(l.Layer, 64, false), l.Revision, l.At.Format(time.DateTime), l.Digest, l.State)
}

const layerHeading = "LAYER                            REVISION  AT (UTC)             DIGEST               STATE"

func policyShow(env *Env) *cobra.Command {
	var t target
	var asJSON bool
	var revision uint64
	cmd := &cobra.Command{
		Use:   "show [LAYER]",
		Short: "Show the layers in force, or the text of one",
		Long: `Lists the layers of the node's policy, with the revision and the digest of each; with
LAYER (fleet, project/ID, agent/NAME, project-agent/ID/NAME) prints its text, as it is now
or as it was at a revision. Beside every layer stand the built-in rules that keep Assent
and the agents' hooks out of reach of agents: "builtin" for LAYER prints them.`,
		Example: "  assent policy show\n  assent policy show fleet --revision 3\n  assent policy show builtin",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == policy.OriginBuiltin {
				return showBuiltin(env, asJSON)
			}
			return withLayers(cmd.Context(), env, t, func(store *layers.Store, _ place) error {
				if len(args) == 0 {
					return listLayers(cmd.Context(), env, store.Newest, asJSON, true)
				}
				e, err := storedAt(cmd.Context(), store, args[0], revision)
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(env, storedAs(e, true))
				}
				_, err = env.Stdout.Write(e.Text)
				return err
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().Uint64Var(&revision, "revision", 0, "the text at this revision (default: the newest)")
	return cmd
}

// listLayers prints entries, one a line. Without removed, those are left out.
func listLayers(ctx context.Context, env *Env, read func(context.Context) ([]layers.Entry, error), asJSON, standing bool) error {
	entries, err := read(ctx)
	if err != nil {
		return err
	}
	out := []storedLayer{}
	for _, e := range entries {
		if !standing || !e.Removed {
			out = append(out, storedAs(e, false))
		}
	}
	if asJSON {
		return printJSON(env, out)
	}
	if len(out) == 0 {
		fmt.Fprintln(env.Stdout, "no policy is stored: everything asks; assent policy push FILE stores one")
		return nil
	}
	fmt.Fprintln(env.Stdout, layerHeading)
	for _, l := range out {
		fmt.Fprintln(env.Stdout, l.row())
	}
	return nil
}

// showBuiltin prints the rules of the engine itself.
func showBuiltin(env *Env, asJSON bool) error {
	rules := policy.BuiltinRules()
	if asJSON {
		type builtin struct {
			Group   string `json:"group"`
			Surface string `json:"surface"`
			Pattern string `json:"pattern"`
			Action  string `json:"action"`
			Reason  string `json:"reason"`
		}
		out := make([]builtin, len(rules))
		for i, r := range rules {
			out[i] = builtin{r.Group, r.Surface, r.Pattern, r.Action.String(), r.Reason}
		}
		return printJSON(env, out)
	}
	for _, r := range rules {
		fmt.Fprintf(env.Stdout, "%-20s %-6s %-12s %s\n", r.Group, r.Action, r.Surface, r.Pattern)
	}
	return nil
}

// storedAt is a layer as it is, or as it was at a revision.
func storedAt(ctx context.Context, store *layers.Store, name string, revision uint64) (layers.Entry, error) {
	layer, err := policy.ParseLayer(name)
	if err != nil {
		return layers.Entry{}, err
	}
	if revision == 0 {
		return store.Get(ctx, layer)
	}
	all, err := store.History(ctx)
	if err != nil {
		return layers.Entry{}, err
	}
	for _, e := range all {
		if e.Layer == layer && e.Revision == revision {
			return e, nil
		}
	}
	return layers.Entry{}, fmt.Errorf("%w: %s at %d", errNoSuchRevision, layer, revision)
}

func policyHistory(env *Env) *cobra.Command {
	var t target
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "history [LAYER]",
		Short:   "List the revisions of the policy, newest first",
		Long:    `Lists every revision that is kept, of all layers or of one, newest first.`,
		Example: "  assent policy history\n  assent policy history agent/reviewer --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			only := policy.Layer{}
			if len(args) == 1 {
				var err error
				if only, err = policy.ParseLayer(args[0]); err != nil {
					return err
				}
			}
			return withLayers(cmd.Context(), env, t, func(store *layers.Store, _ place) error {
				read := func(ctx context.Context) ([]layers.Entry, error) {
					all, err := store.History(ctx)
					return ofLayer(all, only), err
				}
				return listLayers(cmd.Context(), env, read, asJSON, false)
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// ofLayer keeps the entries of one layer, all for the zero value.
func ofLayer(all []layers.Entry, only policy.Layer) []layers.Entry {
	var out []layers.Entry
	for _, e := range all {
		if only == (policy.Layer{}) || e.Layer == only {
			out = append(out, e)
		}
	}
	return out
}

func policyDiff(env *Env) *cobra.Command {
	var t target
	var from, to uint64
	var file string
	cmd := &cobra.Command{
		Use:   "diff [LAYER]",
		Short: "Show what changed in a layer, or what a file would change",
		Long: `Compares the text of a layer (fleet if none is named) with its revision before, with two
revisions of your choice, or with a file that you are about to push. Prints nothing where
they are the same.`,
		Example: "  assent policy diff\n  assent policy diff agent/reviewer --from 3 --to 7\n  assent policy diff --file policy.jsonc",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			layer, err := layerArg(strings.Join(args, ""))
			if err != nil {
				return err
			}
			return withLayers(cmd.Context(), env, t, func(store *layers.Store, _ place) error {
				all, err := store.History(cmd.Context())
				if err != nil {
					return err
				}
				old, fresh, err := sides(env, ofLayer(all, layer), from, to, file)
				if err != nil {
					return fmt.Errorf("layer %s: %w", layer, err)
				}
				return printDiff(env, old, fresh)
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().Uint64Var(&from, "from", 0, "older revision (default: the one before)")
	cmd.Flags().Uint64Var(&to, "to", 0, "newer revision (default: the newest)")
	cmd.Flags().StringVar(&file, "file", "", "compare the newest revision with this file, - for standard input")
	return cmd
}

// side is one text of a comparison.
type side struct{ name, text string }

// sides picks the two texts to compare from a layer's revisions, newest first.
func sides(env *Env, revisions []layers.Entry, from, to uint64, file string) (old, fresh side, err error) {
	at := func(revision uint64, otherwise int) (side, error) {
		for i, e := range revisions {
			if e.Revision == revision || revision == 0 && i == otherwise {
				return side{fmt.Sprintf("%s revision %d", e.Name(), e.Revision), string(e.Text)}, nil
			}
		}
		if revision == 0 {
			return side{name: "nothing"}, nil
		}
		return side{}, errNoSuchRevision
	}
	if file != "" {
		path, doc, err := policyFile(env, file)
		if err != nil {
			return side{}, side{}, err
		}
		old, err = at(from, 0)
		return old, side{path, string(doc)}, err
	}
	if fresh, err = at(to, 0); err != nil {
		return side{}, side{}, err
	}
	before := 1
	for i, e := range revisions {
		if e.Revision == to {
			before = i + 1
		}
	}
	old, err = at(from, before)
	return old, fresh, err
}

// printDiff prints a unified diff, coloured for a person.
func printDiff(env *Env, old, fresh side) error {
	colour := isTerminal(env.Stdout) && env.Getenv("NO_COLOR") == ""
	for line := range strings.Lines(udiff.Unified(old.name, fresh.name, old.text, fresh.text)) {
		line = strings.TrimSuffix(line, "\n")
		// What is stored may hold what moves a terminal's cursor.
		line = protocol.Safe(strings.ReplaceAll(line, "\t", "    "), policy.MaxDocument, false)
		if code := map[byte]string{'+': "32", '-': "31", '@': "36"}[(line + " ")[0]]; colour && code != "" {
			line = "\x1b[" + code + "m" + line + "\x1b[0m"
		}
		if _, err := fmt.Fprintln(env.Stdout, line); err != nil {
			return fmt.Errorf("printing the difference: %w", err)
		}
	}
	return nil
}
