package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// doctorTime bounds the whole examination.
const doctorTime = 60 * time.Second

// The states of a finding.
const (
	stateOK   = "ok"
	stateWarn = "warn"
	stateFail = "fail"
)

// diagnosis is one thing that the doctor looked at.
type diagnosis struct {
	Check  string `json:"check"`
	State  string `json:"state"`
	Text   string `json:"text"`
	Remedy string `json:"remedy"`
}

// doctor examines a set-up; what it finds goes into findings, in order.
type doctor struct {
	env      *Env
	target   target
	hook     claudeInstall
	findings []diagnosis
	operator *nats.Conn // nil while there is no connection
	node     string
}

// Doctor is `assent doctor`: what is wrong with a set-up, and how to mend it.
func Doctor(env *Env) *cobra.Command {
	d := &doctor{env: env, hook: claudeInstall{env: env}}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with this set-up and how to mend it",
		Long: `Looks at the node, its services, the policy, the chain and the record, and proves the gate
by a live call that must be denied. Where Claude Code's settings call the hook, that very
command is run with such a call too: hooks fail in silence, so only a denied call counts.

Exit 0: nothing is broken (there may be warnings). Exit 1: something is.`,
		Example: "  assent doctor\n  assent doctor --json",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), doctorTime)
			defer cancel()
			d.examine(ctx)
			return d.report(asJSON)
		},
	}
	d.target.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a finding")
	cmd.Flags().StringVar(&d.hook.settings, "settings", "", "settings file of Claude Code (default: settings.json in $CLAUDE_CONFIG_DIR or ~/.claude)")
	cmd.Flags().StringVar(&d.hook.claude, "claude", "claude", "the Claude Code binary")
	return cmd
}

// examine makes every check that can be made. A check that needs what an
// earlier one found missing is left out: one cause, one finding.
func (d *doctor) examine(ctx context.Context) {
	defer func() {
		if d.operator != nil {
			d.operator.Close()
		}
	}()
	if d.connect(ctx) {
		d.checkStreams(ctx)
		d.checkPolicy(ctx)
		d.checkServices(ctx)
		d.checkLinks(ctx)
		d.checkGate(ctx)
	}
	d.checkClaude(ctx)
}

func (d *doctor) ok(check, format string, args ...any) {
	d.findings = append(d.findings, diagnosis{check, stateOK, fmt.Sprintf(format, args...), ""})
}

func (d *doctor) warn(check, remedy, format string, args ...any) {
	d.findings = append(d.findings, diagnosis{check, stateWarn, fmt.Sprintf(format, args...), remedy})
}

func (d *doctor) fail(check, remedy, format string, args ...any) {
	d.findings = append(d.findings, diagnosis{check, stateFail, fmt.Sprintf(format, args...), remedy})
}

// connect finds the node and connects as its operator.
func (d *doctor) connect(ctx context.Context) bool {
	p, err := d.target.resolve(d.env, protocol.RoleOperator)
	if err != nil {
		d.fail("node", "start `assent up`, or name the server and an operator's credentials", "%v", err)
		return false
	}
	nc, err := bus.Connect(ctx, bus.Config{URL: p.NATS, Creds: p.Creds, Role: protocol.RoleOperator, Logger: quietLog()})
	if err != nil {
		d.fail("node", "", "%v", err)
		return false
	}
	d.operator, d.node = nc, p.Node
	d.ok("node", "%s answers at %s", p.Node, p.NATS)
	return true
}

// report prints the findings; broken says so by the exit code.
func (d *doctor) report(asJSON bool) error {
	broken := 0
	for _, f := range d.findings {
		if f.State == stateFail {
			broken++
		}
		if asJSON {
			if err := printJSON(d.env, f); err != nil {
				return err
			}
			continue
		}
		printDiagnosis(d.env.Stdout, f, isTerminal(d.env.Stdout) && d.env.Getenv("NO_COLOR") == "")
	}
	if broken > 0 {
		return &exitError{code: ExitFailure, err: fmt.Errorf("doctor: %d of %d checks found something broken", broken, len(d.findings))}
	}
	return nil
}

func printDiagnosis(w io.Writer, f diagnosis, colour bool) {
	state := fmt.Sprintf("%-4s", f.State)
	if colour {
		state = map[string]string{stateOK: "\x1b[32m", stateWarn: "\x1b[33m", stateFail: "\x1b[31m"}[f.State] + state + "\x1b[0m"
	}
	fmt.Fprintf(w, "%s  %-12s %s\n", state, f.Check, protocol.Safe(f.Text, 1000, false))
	if f.Remedy != "" {
		fmt.Fprintf(w, "      %-12s → %s\n", "", protocol.Safe(f.Remedy, 1000, false))
	}
}
