package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/desk"
	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/pkg/protocol"
)

// listedFreeze is a freeze as list prints it as JSON.
type listedFreeze struct {
	Whom     frozenWhom `json:"frozen"`
	Key      string     `json:"key"`
	Revision uint64     `json:"revision"`
	Reason   string     `json:"reason"`
	By       string     `json:"by"`
	At       time.Time  `json:"at,omitzero"`
	// State is in force, replaced or thawed.
	State string `json:"state"`
	// Error is what is wrong with one that does not read: it holds all the same.
	Error string `json:"error,omitempty"`
}

func listedAs(f layers.Freeze, state string) listedFreeze {
	out := listedFreeze{Whom: whomOf(f.Frozen), Key: f.Key(), Revision: f.Revision, Reason: f.Word.Reason, By: f.Word.By, At: f.Word.At, State: state}
	if f.Err != nil {
		out.Error = protocol.Safe(f.Err.Error(), 1000, false)
	}
	return out
}

func freezeList(env *Env) *cobra.Command {
	var t target
	var asJSON, history bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List what is frozen",
		Long:    "Lists the freezes in force, by whom and why. --history lists every one that is kept, newest first,\nwith those that were lifted or said anew.",
		Example: "  assent freeze list\n  assent freeze list --history --json",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withFreezer(cmd.Context(), env, t, func(z *freezer) error {
				rows, err := z.rows(cmd.Context(), history)
				switch {
				case err != nil:
					return err
				case asJSON:
					return printJSON(env, rows)
				}
				return printFreezes(env, rows)
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&history, "history", false, "those too that are lifted or were said anew")
	return cmd
}

func (z *freezer) rows(ctx context.Context, history bool) ([]listedFreeze, error) {
	rows := []listedFreeze{}
	if history {
		all, err := z.store.FreezeHistory(ctx)
		seen := map[layers.Frozen]bool{}
		for _, f := range all {
			state := "in force"
			switch {
			case f.Removed:
				state = "thawed"
			case seen[f.Frozen]:
				state = "replaced"
			}
			seen[f.Frozen] = true
			rows = append(rows, listedAs(f, state))
		}
		return rows, err
	}
	all, err := z.store.Freezes(ctx)
	for _, f := range all.Standing() {
		rows = append(rows, listedAs(f, "in force"))
	}
	return rows, err
}

func printFreezes(env *Env, rows []listedFreeze) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(env.Stdout, "nothing is frozen")
		return err
	}
	return table(env.Stdout, func(w io.Writer) {
		fmt.Fprintf(w, "FROZEN\t%s\tBY\tSTATE\tREASON\n", heading("SINCE"))
		for _, r := range rows {
			since, who := "-", r.Whom.Kind+" "+r.Whom.Name
			if !r.At.IsZero() {
				since = cell(r.At)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", protocol.Safe(who, 80, false), since, firstOf(r.By, "-"), r.State, protocol.Safe(firstOf(r.Reason, r.Error, "-"), 300, false))
		}
	})
}

// frozenLines are the freezes in force, one a line, for those who look at asks;
// no more than a few. What cannot be read is said, never left out.
func frozenLines(ctx context.Context, d *desk.Desk) []string {
	all, err := d.Freezes(ctx)
	if err != nil {
		return []string{protocol.Safe("what is frozen is not known: "+err.Error(), 300, false)}
	}
	const shown = 5
	var lines []string
	for i, f := range all {
		if i == shown {
			return append(lines, fmt.Sprintf("and %d more: assent freeze list", len(all)-shown))
		}
		lines = append(lines, f.Line())
	}
	return lines
}
