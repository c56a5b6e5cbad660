package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Grants lists and revokes what approvers granted.
func Grants(env *Env) *cobra.Command {
	return group("grants", "List and revoke the approvals that are remembered", grantsList(env), grantsRevoke(env))
}

func grantsList(env *Env) *cobra.Command {
	var t target
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the approvals that are remembered",
		Long: `Lists the grants of the node, oldest first: which agent may do what without asking, in which scope,
how often and until when, and who gave it. A grant bears the id of the ask on which it was
given: 'assent log ID' tells its story.`,
		Example: "  assent grants list\n  assent grants list --json | jq -r .ask",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withGrants(cmd.Context(), env, t, func(s *grants.Store) error {
				all, err := s.All(cmd.Context())
				if len(all) == 0 && err != nil {
					return err
				}
				if err != nil {
					fmt.Fprintln(env.Stderr, "assent: "+err.Error())
				}
				return printGrants(env, all, asJSON)
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

func printGrants(env *Env, all []grants.Stored, asJSON bool) error {
	if asJSON {
		for _, g := range all {
			if err := printJSON(env, &protocol.StoredGrant{Grant: g.Grant}); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		fmt.Fprintln(env.Stdout, "nothing is granted")
		return nil
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "GRANT\tAGENT\tSCOPE\tSURFACE\tPATTERNS\tUNTIL\tUSES LEFT\tBY")
	for _, g := range all {
		uses := "no limit"
		if g.Uses > 0 {
			uses = fmt.Sprint(g.Uses)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", g.Ask, whose(g.Agent, g.Hops), scopeOf(g.Grant), protocol.Safe(g.Surface, 60, false),
			protocol.Safe(strings.Join(g.Patterns, " | "), 200, false), strings.TrimPrefix(untilText(g.Expires), "until "), uses, g.GrantedBy)
	}
	return w.Flush()
}

// scopeOf is a grant's scope, with what of the agent's it is bound to.
func scopeOf(g protocol.Grant) string {
	bound := map[protocol.Scope]string{protocol.ScopeSession: g.Session, protocol.ScopeTree: g.Root, protocol.ScopeProject: g.Project}[g.Scope]
	return protocol.Safe(strings.TrimSpace(string(g.Scope)+" "+bound), 80, false)
}

func grantsRevoke(env *Env) *cobra.Command {
	var t target
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Take a remembered approval back",
		Long: `Takes a grant back, at once and at every gate; what it allowed before stays on record.
ID is that of 'assent grants list', or at least six of its first or last characters.`,
		Example: "  assent grants revoke 01KBB2X0G6Y3N2M4P5Q6R7S8T9",
		Args:    exactArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := typedID(args[0])
			if err != nil {
				return usagef("%w: see `assent grants list`", err)
			}
			return withGrants(cmd.Context(), env, t, func(s *grants.Store) error {
				if id, err = grantID(cmd.Context(), s, id); err != nil {
					return err
				}
				g, err := s.Revoke(cmd.Context(), id)
				if errors.Is(err, grants.ErrGone) {
					return fmt.Errorf("%w, or it has ended: see `assent grants list`", err)
				}
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(env, &protocol.StoredGrant{Grant: g})
				}
				fmt.Fprintf(env.Stdout, "%s: revoked: agent %s asks again about %s\n", g.Ask, whose(g.Agent, g.Hops), protocol.Safe(g.Surface+" "+strings.Join(g.Patterns, ", "), 400, false))
				return nil
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the revoked grant as JSON")
	return cmd
}

// grantID completes the id of a grant that was typed in part.
func grantID(ctx context.Context, s *grants.Store, id string) (string, error) {
	if protocol.CheckAskID(id) == nil {
		return id, nil
	}
	all, err := s.All(ctx)
	if len(all) == 0 && err != nil {
		return "", err
	}
	ids := make([]string, len(all))
	for i, g := range all {
		ids[i] = g.Ask
	}
	return oneID(id, ids, "that of a grant (any more): see `assent grants list`")
}

func withGrants(ctx context.Context, env *Env, t target, use func(*grants.Store) error) error {
	return withConn(ctx, env, t, protocol.RoleOperator, func(nc *nats.Conn, _ place) error {
		s, err := grants.New(nc)
		if err != nil {
			return err
		}
		return use(s)
	})
}
