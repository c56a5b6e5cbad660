package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/bench"
	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// benchCommand is `assent bench`.
type benchCommand struct {
	env       *Env
	target    target
	callers   []int
	rounds    int
	sample    time.Duration
	inProcess bool
	noSync    bool
	noChain   bool
	tool      string
	input     string
	rate      int
	json      bool
}

// Bench measures what an ask costs beside what NATS alone costs.
func Bench(env *Env) *cobra.Command {
	c := &benchCommand{env: env}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what an ask costs, beside what NATS alone costs in the same moments",
		Long: `Without an address: starts a node of its own in this process, in a folder that goes with it, and
measures there, in rounds that take turns: a raw request and reply; the bare "ask, record, answer",
by a gate that neither reads nor rules; an ask that a rule decides; and asks that the 1st, 2nd, 3rd
and 5th link of a chain decide, whose links answer at once, each beside the bare chain: as many round
trips to links, by a gate that does nothing else, and the record; and beside the same by a gate that
also looks up and tells what each gate must. The disk is synced at every record, as 'assent up' does. All callers share one connection, as the agents of one machine may. Ratios hold on a busy
machine, single figures do not. Below the figures stand those that Assent is held to
(docs/performance.md): NOT KEPT says that one is over its limit, and changes no exit code.

With an address or a store (--nats, --creds, --node, --store): asks at that node, as the agent whose
credentials they are, about one call that its rules must decide. Each such ask is recorded there like
any other. It keeps to --rate, since a node denies an agent that asks faster than its policy allows.

Exit 1: an operation failed; a call that the rules leave open is withdrawn.`,
		Example: "  assent bench\n" +
			"  assent bench --in-process --callers 1,64 --rounds 20 --json\n" +
			"  assent bench --store /tmp/assent --tool bash --input '{\"command\":\"git status\"}'",
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.IntSliceVar(&c.callers, "callers", []int{1, 64}, "how many ask at once; each number is measured")
	f.IntVar(&c.rounds, "rounds", 5, "how often everything is measured; the result is the median")
	c.sample = 400 * time.Millisecond
	span(f, &c.sample, "sample", "how long each measurement takes, as 400ms or 2s")
	f.BoolVar(&c.inProcess, "in-process", false, "connect without sockets, as the services of 'assent up' do (own node only)")
	f.BoolVar(&c.noSync, "no-sync", false, "leave it to the system when the disk syncs; 'assent up' syncs at every record (own node only)")
	f.BoolVar(&c.noChain, "no-chain", false, "leave the chains out (own node only)")
	f.StringVar(&c.tool, "tool", "bash", "tool of the call that is asked about (at a node of yours)")
	f.StringVar(&c.input, "input", string(bench.RuleInput), "its input, a JSON object; '@FILE' reads it (at a node of yours)")
	f.IntVar(&c.rate, "rate", 40, "most asks a second, all callers together; 0 is no limit (at a node of yours)")
	f.BoolVar(&c.json, "json", false, "print JSON")
	c.target.flags(f)
	return cmd
}

func (c *benchCommand) run(ctx context.Context) error {
	plan := bench.Plan{Rounds: c.rounds, Warm: c.sample / 4, Sample: c.sample, Callers: c.callers}
	if err := plan.Check(); err != nil {
		return usagef("%w", err)
	}
	if c.rate < 0 {
		return usagef("--rate %d: want 0 or more", c.rate)
	}
	measure := c.ownNode
	if c.target != (target{}) {
		measure = c.thatNode
	}
	report, err := measure(ctx, plan)
	c.clear()
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.env, report.JSON())
	}
	return printBench(c.env.Stdout, report)
}

// thatNode measures at a node that runs: only what its agents may do.
func (c *benchCommand) thatNode(ctx context.Context, plan bench.Plan) (r bench.Report, err error) {
	input, err := objectFlag("--input", c.input)
	if err != nil {
		return r, err
	}
	err = withConn(ctx, c.env, c.target, protocol.RoleAgent, func(nc *nats.Conn, p place) error {
		call, err := benchCall(nc, p, c.tool, input)
		if err != nil {
			return err
		}
		if _, err := call.Allowed(ctx); err != nil {
			return fmt.Errorf("%w: name a call that the rules allow, with --tool and --input", err)
		}
		ask := bench.Paced(call.Work(bench.Ask), c.rate)
		r, err = bench.Run(ctx, plan, []bench.Work{bench.PingWork(nc), ask}, c.progress)
		return err
	})
	return r, err
}

// progress draws one line on a person's terminal.
func (c *benchCommand) progress(s bench.Step) {
	if !isTerminal(c.env.Stderr) {
		return
	}
	bar(c.env.Stderr, s.Done, s.Of, fmt.Sprintf("%s, %s", s.Work, count(s.Callers, "caller")))
}

// bar draws how far something has come over the line that a terminal shows.
func bar(out io.Writer, done, of int, what string) {
	const width = 24
	full := width * done / of
	fmt.Fprintf(out, "\r\x1b[K%s%s %3d%%  %s", strings.Repeat("█", full), strings.Repeat("░", width-full), 100*done/of, what)
}

func (c *benchCommand) clear() {
	if isTerminal(c.env.Stderr) {
		fmt.Fprint(c.env.Stderr, "\r\x1b[K")
	}
}

func printBench(out io.Writer, r bench.Report) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "callers\tper second\tp50 µs\tp90 µs\tp99 µs\tcpu µs\t× raw\t× bare\t  ")
	for _, row := range r.Rows() {
		fmt.Fprintf(w, "%d\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t%s\t  %s\n", row.Callers, row.PerSecond, row.P50, row.P90, row.P99, row.CPU, times(row.Raw), times(row.Bare), row.Work)
	}
	if bars := r.Bars(); len(bars) > 0 {
		fmt.Fprintln(w, "\t\t\t\t\t\t\t\t")
		fmt.Fprintln(w, "callers\tis\tlimit\t\t\t\t\t\t  ")
		for _, b := range bars {
			verdict := "kept"
			if !b.Met {
				verdict = "NOT KEPT"
			}
			fmt.Fprintf(w, "%d\t%.2f\t%.2f\t\t\t\t\t%s\t  %s\n", b.Callers, b.Is, b.Limit, verdict, b.What)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}

func times(ratio float64) string {
	if ratio == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", ratio)
}

func benchCall(nc *nats.Conn, p place, tool string, input []byte) (bench.Call, error) {
	subjects, err := protocol.NewSubjects(p.Node)
	if err != nil {
		return bench.Call{}, err
	}
	who, err := bus.ReadCreds(p.Creds)
	if err != nil {
		return bench.Call{}, err
	}
	asker, err := bench.NewAsker(nc, subjects, who.Name)
	if err != nil {
		return bench.Call{}, err
	}
	return asker.Call(tool, input)
}
