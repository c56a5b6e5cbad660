package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/local"
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
	env    *Env
	target target
	// agent and auditor are the credentials files of the two other roles that
	// the proof needs.
	agent, auditor string
	hook           claudeInstall
	findings       []diagnosis
	operator       *nats.Conn // nil while there is no connection
	node           string
	// guest: nobody has named a node, and no operator's credentials are here, as
	// on a machine that has no more than agents whose hook asks a gate elsewhere.
	guest bool
}

// Doctor is `assent doctor`: what is wrong with a set-up, and how to mend it.
func Doctor(env *Env) *cobra.Command {
	d := &doctor{env: env, hook: claudeInstall{env: env}}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with this set-up and how to mend it",
		Long: `Looks at the node, its services, its parent, the policy, the permission modules, the chain and the record, and proves the gate
by a live call that must be denied. Where Claude Code's settings call the hook, that very
command is run with such a call too: hooks fail in silence, so only a denied call counts.

It acts in three roles: --creds is the operator's, --agent-creds an agent's, --auditor-creds an
auditor's. On the machine of a local node all three are found by themselves; else what a missing
one would prove is not checked, and it says so.

Exit 0: nothing is broken (there may be warnings). Exit 1: something is.`,
		Example: "  assent doctor\n  assent doctor --json\n" +
			"  assent doctor --nats nats://nats.example:4222 --creds operator.creds --agent-creds ci-42.creds --auditor-creds auditor.creds",
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), doctorTime)
			defer cancel()
			d.examine(ctx)
			return d.report(asJSON)
		},
	}
	d.target.flags(cmd.Flags())
	cmd.Flags().Lookup("creds").Usage = "the operator's credentials file (default: ASSENT_CREDS, then the local one)"
	cmd.Flags().StringVar(&d.agent, "agent-creds", "", "an agent's credentials file, to prove the gate (default: the local one)")
	cmd.Flags().StringVar(&d.auditor, "auditor-creds", "", "an auditor's credentials file, to prove the record (default: the local one)")
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
		d.checkFreezes(ctx)
		d.checkModules(ctx)
		d.checkProject(ctx)
		d.checkServices(ctx)
		d.checkParent(ctx)
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
		d.guest = d.target == target{} && (errors.Is(err, local.ErrNone) || errors.Is(err, errNoCreds))
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

// as finds credentials for a role other than the operator's: those of the flag
// or the local ones. --creds and ASSENT_CREDS are the operator's. Without any
// it says what is not checked, and the answer is false.
func (d *doctor) as(role protocol.Role, file, check string) (place, bool) {
	t := d.target
	t.creds, t.node = file, d.node
	env := *d.env
	env.Getenv = func(name string) string {
		if name == "ASSENT_CREDS" {
			return ""
		}
		return d.env.Getenv(name)
	}
	p, err := t.resolve(&env, role)
	if err == nil {
		return p, true
	}
	remedy := fmt.Sprintf("name some with --%s-creds FILE (`assent creds issue --role %s --name doctor --out FILE` makes them)", role, role)
	if errors.Is(err, local.ErrUntrusted) {
		d.warn(check, remedy, "not checked: %v", err)
	} else {
		d.warn(check, remedy, "not checked: no credentials of role %s for this node are known here", role)
	}
	return place{}, false
}

// report prints the findings; broken says so by the exit code.
func (d *doctor) report(asJSON bool) error {
	broken, doubtful := 0, 0
	for _, f := range d.findings {
		switch f.State {
		case stateFail:
			broken++
		case stateWarn:
			doubtful++
		}
		if asJSON {
			if err := printJSON(d.env, f); err != nil {
				return err
			}
			continue
		}
		printDiagnosis(d.env.Stdout, f, isTerminal(d.env.Stdout) && d.env.Getenv("NO_COLOR") == "")
	}
	warnings := ""
	if doubtful > 0 {
		warnings = ", " + count(doubtful, "warning")
	}
	if broken > 0 {
		return &exitError{code: ExitFailure, err: fmt.Errorf("doctor: %s found something broken%s", count(broken, "check"), warnings)}
	}
	if !asJSON {
		fmt.Fprintf(d.env.Stdout, "\nnothing is broken%s\n", warnings)
	}
	return nil
}

func printDiagnosis(w io.Writer, f diagnosis, colour bool) {
	state := fmt.Sprintf("%-4s", f.State)
	if colour {
		state = map[string]string{stateOK: "\x1b[32m", stateWarn: "\x1b[33m", stateFail: "\x1b[31m"}[f.State] + state + "\x1b[0m"
	}
	fmt.Fprintf(w, "%s  %-19s  %s\n", state, f.Check, protocol.Safe(f.Text, 1000, false))
	if f.Remedy != "" {
		fmt.Fprintf(w, "      %-19s  → %s\n", "", protocol.Safe(f.Remedy, 1000, false))
	}
}
