package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Freeze is `assent freeze`: stop an agent, a session tree or the fleet.
func Freeze(env *Env) *cobra.Command {
	var t target
	var who whom
	var reason string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "freeze",
		Short: "Stop an agent, a session tree or the whole fleet at once",
		Long: `From the next ask on nothing is allowed to whom you freeze: neither by rules nor by grants, yolo, judges
or people. Their calls are denied with your reason, and what waits for a person is closed with it.
What was allowed before has been allowed: a call that runs is not stopped.

--agent names a credential, or a child node with all that it relays. --session names a session and every
session below it; agents say themselves which session they are in, so freeze an agent that may lie.

The command returns when every gate that answers has confirmed: after that none of them records an
allow. One that does not is named, and the exit code is 1; the freeze stands all the same.
'assent thaw' lifts it, 'assent freeze list' shows what is frozen.`,
		Example: "  assent freeze --agent ci-42 --reason \"deletes branches; wait for word\"\n  assent freeze --all --reason \"incident 7\"",
		Args:    noUnknown,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := who.read()
			if err != nil {
				return err
			}
			if strings.TrimSpace(reason) == "" {
				return usagef("say why with --reason TEXT: it is what the agents are told")
			}
			return withFreezer(cmd.Context(), env, t, func(z *freezer) error {
				revision, err := z.store.Freeze(cmd.Context(), f, protocol.Freeze{Reason: reason, By: z.operator, At: time.Now().UTC()})
				if err != nil {
					return againIfOvertaken(err)
				}
				err = z.report(cmd.Context(), env, changedFreeze{Node: z.node, Whom: whomOf(f), Revision: revision, Reason: reason}, f, asJSON)
				if who.agent != "" && z.isUnheardOf(cmd.Context(), who.agent) {
					fmt.Fprintf(env.Stderr, "assent: no call of an agent %q is on the record of node %s: is the name right (see `assent log`)? One that has not asked yet, or a child node, is frozen all the same\n", who.agent, z.node)
				}
				return err
			})
		},
	}
	t.flags(cmd.Flags())
	who.flags(cmd.Flags())
	cmd.Flags().StringVar(&reason, "reason", "", "why: for the agents, the approvers and the record")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(freezeList(env))
	return cmd
}

// Thaw is `assent thaw`: lift a freeze.
func Thaw(env *Env) *cobra.Command {
	var t target
	var who whom
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "thaw",
		Short: "Lift a freeze",
		Long: `Lifts the freeze of an agent, a session or the fleet, as 'assent freeze list' shows it: each stands
for itself, and an agent that is frozen in two ways stays so until both are lifted. --key lifts one
whose key does not read. Calls that were denied meanwhile stay denied; agents make them anew.

Exit 1: a gate did not confirm in time; it goes on denying until it hears of the thaw.`,
		Example: "  assent thaw --agent ci-42\n  assent thaw --all",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := who.read()
			if err != nil {
				return err
			}
			return withFreezer(cmd.Context(), env, t, func(z *freezer) error {
				over, err := z.standing(cmd.Context(), f)
				if err != nil {
					return err
				}
				revision, err := z.store.Thaw(cmd.Context(), over)
				if err != nil {
					return againIfOvertaken(err)
				}
				return z.report(cmd.Context(), env, changedFreeze{Node: z.node, Whom: whomOf(f), Revision: revision, Thawed: true}, f, asJSON)
			})
		},
	}
	t.flags(cmd.Flags())
	who.flags(cmd.Flags())
	cmd.Flags().StringVar(&who.key, "key", "", "the key of a freeze that does not read")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func againIfOvertaken(err error) error {
	if errors.Is(err, layers.ErrOvertaken) {
		return fmt.Errorf("%w: look at it (assent freeze list), and try again", err)
	}
	return err
}

// whom are the flags that say who is meant.
type whom struct {
	agent, session, key string
	all                 bool
}

func (w *whom) flags(f *pflag.FlagSet) {
	f.StringVar(&w.agent, "agent", "", "an agent, by the name of its credentials; or a child node")
	f.StringVar(&w.session, "session", "", "a session by its id, with all sessions below it")
	f.BoolVar(&w.all, "all", false, "the whole fleet")
}

// read returns the one that is meant: neither none nor two.
func (w *whom) read() (layers.Frozen, error) {
	named := 0
	for _, given := range []bool{w.agent != "", w.session != "", w.all, w.key != ""} {
		if given {
			named++
		}
	}
	if named != 1 {
		return layers.Frozen{}, usagef("say who is meant with one of --agent NAME, --session ID or --all")
	}
	f, err := layers.Fleet(), error(nil)
	switch {
	case w.agent != "":
		f, err = layers.Agent(w.agent)
	case w.session != "":
		f, err = layers.Session(w.session)
	case w.key != "":
		one, ok := layers.ReadFreeze(w.key, nil, 0)
		if !ok {
			return layers.Frozen{}, usagef("--key: %q is no freeze's: see `assent freeze list`", w.key)
		}
		f = one.Frozen
	}
	if err != nil {
		return layers.Frozen{}, usagef("%w", err)
	}
	return f, nil
}

// frozenWhom is who is frozen, as JSON says it.
type frozenWhom struct {
	// Kind is all, agent, session or unread.
	Kind string `json:"kind"`
	Name string `json:"name"`
}

func whomOf(f layers.Frozen) frozenWhom {
	kind, name := f.Fields()
	return frozenWhom{kind, name}
}

// changedFreeze is what freeze and thaw print as JSON.
type changedFreeze struct {
	Node     string     `json:"node"`
	Whom     frozenWhom `json:"frozen"`
	Revision uint64     `json:"revision"`
	Reason   string     `json:"reason,omitempty"`
	Thawed   bool       `json:"thawed"`
	// Gates are those that answered discovery.
	Gates []gateConfirms `json:"gates"`
}

// gateConfirms says whether one gate acts by a freeze or a thaw.
type gateConfirms struct {
	Name      string `json:"name"`
	Confirmed bool   `json:"confirmed"`
	Error     string `json:"error,omitempty"`
}

// freezer is an operator's connection with what freezing needs.
type freezer struct {
	nc             *nats.Conn
	store          *layers.Store
	node, operator string
}

func withFreezer(ctx context.Context, env *Env, t target, use func(*freezer) error) error {
	return withConn(ctx, env, t, protocol.RoleOperator, func(nc *nats.Conn, p place) error {
		creds, err := bus.ReadCreds(p.Creds)
		if err != nil {
			return err
		}
		js, err := bus.JetStream(nc)
		if err != nil {
			return err
		}
		store, err := layers.Open(ctx, js)
		if err != nil {
			return unprepared(err)
		}
		return use(&freezer{nc, store, p.Node, creds.Name})
	})
}

// standing is the freeze in force of whom is meant.
func (z *freezer) standing(ctx context.Context, f layers.Frozen) (layers.Freeze, error) {
	all, err := z.store.Freezes(ctx)
	if err != nil {
		return layers.Freeze{}, err
	}
	for _, one := range all.Standing() {
		if one.Frozen == f {
			return one, nil
		}
	}
	return layers.Freeze{}, fmt.Errorf("%s is not frozen: see `assent freeze list`", f)
}

// report waits for the gates and says what has become of a freeze or a thaw that
// is stored.
func (z *freezer) report(ctx context.Context, env *Env, c changedFreeze, f layers.Frozen, asJSON bool) error {
	var err error
	if c.Gates, err = z.confirm(ctx, f.Key(), c.Revision); err != nil {
		return fmt.Errorf("it is stored as revision %d, but whether gates act by it is not known: %w", c.Revision, err)
	}
	var in, out []string
	for _, g := range c.Gates {
		if g.Confirmed {
			in = append(in, g.Name)
		} else {
			out = append(out, g.Name+" ("+g.Error+")")
		}
	}
	if asJSON {
		err = printJSON(env, c)
	} else {
		err = printFreeze(env.Stdout, c, f, in)
	}
	if err == nil && len(out) > 0 {
		err = &exitError{code: ExitFailure, err: fmt.Errorf("not confirmed by %s: it is stored and stands, but until these gates hear of it they act as before; see that they run and reach NATS, and say it again", strings.Join(out, ", "))}
	}
	return err
}

func printFreeze(w io.Writer, c changedFreeze, f layers.Frozen, gates []string) error {
	what := "frozen"
	if c.Thawed {
		what = "thawed"
	}
	line := fmt.Sprintf("%s: %s, on node %s, revision %d", what, f, c.Node, c.Revision)
	if c.Reason != "" {
		line += ": " + c.Reason
	}
	where := "no gate answers: each that starts, or comes back to NATS, reads it before it rules; see that one runs"
	if len(gates) > 0 {
		where = "in force at " + count(len(gates), "gate") + ": " + strings.Join(gates, ", ")
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n", protocol.Safe(line, 600, false), protocol.Safe(where, 2000, false))
	return err
}
