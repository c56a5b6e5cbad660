package cli

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

func policyDiff(env *Env) *cobra.Command {
	var t target
	var from, to uint64
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff [LAYER]",
		Short: "Show what changed in a layer, or what a file would change",
		Long: `Compares the text of a layer (fleet if none is named) with its revision before, with two
revisions of your choice, or with a file that you are about to push. Prints nothing where
they are the same.`,
		Example: "  assent policy diff\n  assent policy diff agent/reviewer --from 3 --to 7\n  assent policy diff --file policy.jsonc",
		Args:    atMostOne("LAYER"),
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
				if asJSON {
					return printJSON(env, comparison{layer.String(), old.name, fresh.name, old.text != fresh.text, unified(old, fresh)})
				}
				return printDiff(env, old, fresh)
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().Uint64Var(&from, "from", 0, "older revision (default: the one before)")
	cmd.Flags().Uint64Var(&to, "to", 0, "newer revision (default: the newest)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&file, "file", "", "compare the newest revision with this file, - for standard input")
	return cmd
}

// comparison is what diff prints as JSON.
type comparison struct {
	Layer   string `json:"layer"`
	From    string `json:"from"`
	To      string `json:"to"`
	Changed bool   `json:"changed"`
	Diff    string `json:"diff"`
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

// unified is the difference of two texts as a unified diff, "" for none.
func unified(old, fresh side) string {
	diff := udiff.Unified(old.name, fresh.name, old.text, fresh.text)
	return strings.ToValidUTF8(diff, "\uFFFD") // what is stored may be anything
}

// printDiff prints a unified diff, coloured for a person.
func printDiff(env *Env, old, fresh side) error {
	colour := isTerminal(env.Stdout) && env.Getenv("NO_COLOR") == ""
	for line := range strings.Lines(unified(old, fresh)) {
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
