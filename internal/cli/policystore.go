package cli

import (
	"context"
	"errors"
	"fmt"

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

// layerArg reads the name of a layer that was typed; the fleet's is meant where
// none is given.
func layerArg(name string) (policy.Layer, error) { return layerBy(policy.ParseLayer, name) }

// newLayerArg is layerArg for a layer that is about to be stored.
func newLayerArg(name string) (policy.Layer, error) { return layerBy(policy.ParseNewLayer, name) }

func layerBy(parse func(string) (policy.Layer, error), name string) (policy.Layer, error) {
	if name == "" {
		return policy.Fleet(), nil
	}
	layer, err := parse(name)
	if err != nil {
		return policy.Layer{}, usagef("%w", err)
	}
	return layer, nil
}

// atMostOne is an argument that may be left out.
func atMostOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return wrongArgs(cmd, "at most "+name, args)
		}
		return nil
	}
}

// changedLayer is what push and remove print as JSON.
type changedLayer struct {
	Node     string `json:"node"`
	Layer    string `json:"layer"`
	Revision uint64 `json:"revision"`
	// Digest is "" where the layer is removed.
	Digest string `json:"digest"`
	// Unchanged: a push of what was stored already.
	Unchanged bool `json:"unchanged,omitempty"`
}

func policyPush(env *Env) *cobra.Command {
	var t target
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "push FILE",
		Short: "Put a policy file in force at every gate of the node",
		Long: `Stores a policy file as a layer of the node, the fleet layer if no other is named. Every
gate takes it at once, without a restart. A file that does not compile is refused, and so
is a push that somebody else's has overtaken. Warnings are those of policy check. What is
stored is printed with its revision and digest, and a push of the same text says "unchanged".
"-" for FILE reads standard input.

Exit 3: the file has errors, and nothing was stored.

Layers below the fleet's only tighten, unless the fleet layer trusts them
("trustedProjects", "trustedAgentNames").`,
		Example: "  assent policy push policy.jsonc\n  assent policy push --layer agent/reviewer reviewer.jsonc",
		Args:    exactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			layer, err := newLayerArg(name)
			if err != nil {
				return err
			}
			path, doc, err := policyFile(env, args[0])
			if err != nil {
				return err
			}
			warnings, err := policyWarnings(layer, path, doc)
			if err != nil {
				return badPolicy(err)
			}
			printWarnings(env, warnings)
			return withLayers(cmd.Context(), env, t, func(store *layers.Store, p place) error {
				pushed, err := pushLayer(cmd.Context(), store, layer, doc)
				if err != nil {
					return err
				}
				pushed.Node = p.Node
				return printPushed(env, pushed, asJSON)
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().StringVar(&name, "layer", "", "layer to store: fleet (default), project/ID, agent/NAME or project-agent/ID/NAME")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printPushed(env *Env, c changedLayer, asJSON bool) error {
	if asJSON {
		return printJSON(env, c)
	}
	how := "is"
	if c.Unchanged {
		how = "is unchanged, still"
	}
	_, err := fmt.Fprintf(env.Stdout, "policy of node %s: layer %s %s revision %d, %s\n", c.Node, c.Layer, how, c.Revision, c.Digest)
	return err
}

// pushLayer stores doc over what the layer holds now.
func pushLayer(ctx context.Context, store *layers.Store, layer policy.Layer, doc []byte) (changedLayer, error) {
	read, err := policy.Read(layer, layer.String(), doc)
	if err != nil {
		return changedLayer{}, badPolicy(err)
	}
	over, err := store.Get(ctx, layer)
	if err != nil && !errors.Is(err, layers.ErrNone) {
		return changedLayer{}, err
	}
	revision, err := store.Put(ctx, layer, doc, over)
	if errors.Is(err, layers.ErrOvertaken) {
		return changedLayer{}, fmt.Errorf("%w: look at it (assent policy diff %s), and push again", err, layer)
	}
	return changedLayer{Layer: layer.String(), Revision: revision, Digest: read.Digest(), Unchanged: revision == over.Revision}, err
}

func policyRemove(env *Env) *cobra.Command {
	var t target
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "remove LAYER",
		Short: "Take a layer of the policy away",
		Long: `Removes a layer of the node's policy. Without the fleet layer everything asks. What was
removed stays in the history.`,
		Example: "  assent policy remove agent/reviewer",
		Args:    exactArgs("LAYER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			layer, err := layerArg(args[0])
			if err != nil {
				return err
			}
			return withLayers(cmd.Context(), env, t, func(store *layers.Store, p place) error {
				have, err := store.Get(cmd.Context(), layer)
				if err == nil {
					err = store.Remove(cmd.Context(), have)
				}
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(env, changedLayer{Node: p.Node, Layer: layer.String(), Revision: have.Revision})
				}
				_, err = fmt.Fprintf(env.Stdout, "policy of node %s: layer %s is removed; it was revision %d\n", p.Node, layer, have.Revision)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: the revision is the one that was removed")
	t.flags(cmd.Flags())
	return cmd
}
