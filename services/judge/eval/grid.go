package eval

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Grid is one table of a report.
type Grid struct {
	Title string
	Head  []string
	Rows  [][]string
	// More is how many rows were left out.
	More int
}

// bounded keeps as many rows as people read.
func (g Grid) bounded() Grid {
	if n := len(g.Rows); n > maxListed {
		g.Rows, g.More = g.Rows[:maxListed], n-maxListed
	}
	return g
}

// Text prints grids for a terminal.
func Text(out io.Writer, grids []Grid) error {
	var b bytes.Buffer
	for i, g := range grids {
		if i > 0 {
			b.WriteString("\n")
		}
		if g.Title != "" {
			fmt.Fprintf(&b, "%s\n", g.Title)
		}
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{g.Head}, g.Rows...) {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
		_ = w.Flush() // into memory
		if g.More > 0 {
			fmt.Fprintf(&b, "… and %d more: --json has them all\n", g.More)
		}
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return fmt.Errorf("printing the report: %w", err)
		}
	}
	return nil
}

// Markdown prints grids for a page.
func Markdown(out *strings.Builder, grids []Grid) {
	cell := strings.NewReplacer("|", "\\|", "<", "&lt;")
	for _, g := range grids {
		if g.Title != "" {
			fmt.Fprintf(out, "\n%s:\n", g.Title)
		}
		out.WriteString("\n|")
		for _, h := range g.Head {
			fmt.Fprintf(out, " %s |", cell.Replace(h))
		}
		fmt.Fprintf(out, "\n%s|\n", strings.Repeat("|---", len(g.Head)))
		for _, row := range g.Rows {
			out.WriteString("|")
			for _, c := range row {
				fmt.Fprintf(out, " %s |", cell.Replace(c))
			}
			out.WriteString("\n")
		}
	}
}
