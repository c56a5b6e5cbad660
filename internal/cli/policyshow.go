package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// storedLayer is a layer as show and history print it.
type storedLayer struct {
	Layer    string    `json:"layer"`
	Revision uint64    `json:"revision"`
	At       time.Time `json:"at"`
	Digest   string    `json:"digest"`
	State    string    `json:"state"`
	// Error is what is wrong with a layer that is broken.
	Error string `json:"error,omitempty"`
	Text  string `json:"text,omitempty"`
}

func storedAs(e layers.Entry, text bool) storedLayer {
	out := storedLayer{Layer: e.Name(), Revision: e.Revision, At: e.At.UTC(), State: "in force"}
	switch {
	case e.Removed:
		out.State = "removed"
	case e.Broken():
		out.State, out.Error = "broken: every allow is clamped to ask", protocol.Safe(e.Err.Error(), 2000, true)
	default:
		out.Digest = e.Document.Digest()
	}
	if text {
		// JSON holds no text that is not UTF-8, and neither does a policy that reads.
		out.Text = strings.ToValidUTF8(string(e.Text), "\uFFFD")
	}
	return out
}

func (l storedLayer) row() string {
	return fmt.Sprintf("%-32s %8d  %s  %-20.20s %s", protocol.Safe(l.Layer, 64, false), l.Revision, cell(l.At), l.Digest, l.State)
}

func layerHeading() string {
	return fmt.Sprintf("%-32s %8s  %-19s  %-20s %s", "LAYER", "REVISION", heading("AT"), "DIGEST", "STATE")
}

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
		Args:    atMostOne("LAYER"),
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
				return printText(env, e)
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().Uint64Var(&revision, "revision", 0, "the text at this revision (default: the newest)")
	return cmd
}

// printText prints the text of a layer: as it is, or, to a person, without what
// moves a terminal's cursor.
func printText(env *Env, e layers.Entry) error {
	text := string(e.Text)
	if isTerminal(env.Stdout) {
		text = protocol.Safe(strings.ReplaceAll(text, "\t", "    "), 4*policy.MaxDocument, true)
	}
	if _, err := io.WriteString(env.Stdout, text); err != nil {
		return fmt.Errorf("printing layer %s: %w", e.Name(), err)
	}
	return nil
}

// listLayers prints entries, one a line; where standing, those alone that are
// not removed, and what stands beside them.
func listLayers(ctx context.Context, env *Env, read func(context.Context) ([]layers.Entry, error), asJSON, standing bool) error {
	entries, err := read(ctx)
	if err != nil {
		return err
	}
	out := []storedLayer{}
	seen := map[policy.Layer]bool{}
	for _, e := range entries {
		if standing && e.Removed {
			continue
		}
		l := storedAs(e, false)
		if seen[e.Layer] && !e.Removed { // a newer revision stands before it
			l.State = "replaced"
		}
		seen[e.Layer] = true
		out = append(out, l)
	}
	if asJSON {
		return printJSON(env, out)
	}
	if len(out) == 0 {
		fmt.Fprintln(env.Stdout, "no policy is stored: everything asks; assent policy push FILE stores one")
		return nil
	}
	fmt.Fprintln(env.Stdout, layerHeading())
	for _, l := range out {
		fmt.Fprintln(env.Stdout, l.row())
		if l.Error != "" {
			fmt.Fprintln(env.Stdout, "  "+strings.ReplaceAll(l.Error, "\n", "\n  "))
		}
	}
	if standing {
		fmt.Fprintf(env.Stdout, "\nBeside them stand %s: assent policy show %s\n", count(len(policy.BuiltinRules()), "built-in rule"), policy.OriginBuiltin)
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
	layer, err := layerArg(name)
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
		Use:   "history [LAYER]",
		Short: "List the revisions of the policy, newest first",
		Long: `Lists every revision that is kept, of all layers or of one, newest first. Of each layer
only the newest can be in force; the others are replaced.`,
		Example: "  assent policy history\n  assent policy history agent/reviewer --json",
		Args:    atMostOne("LAYER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			only := policy.Layer{}
			if len(args) == 1 {
				var err error
				if only, err = layerArg(args[0]); err != nil {
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
