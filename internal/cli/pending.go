package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/desk"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Pending lists the open asks.
func Pending(env *Env) *cobra.Command {
	var t target
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "pending",
		Short:   "List the asks that are not decided yet",
		Long:    "Lists the open asks of the node, oldest first: those that wait for a person, and those\nthat are still with a link; with each what a grant for its session (without\none: for its agent) would cover. What a permission module asks a person for, and what is\nfrozen, stands below.",
		Example: "  assent pending\n  assent pending --json | jq -r .ask.id",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDesk(cmd, env, t, func(d *desk.Desk) error {
				items, err := d.Pending(cmd.Context())
				if len(items) == 0 && err != nil {
					return err
				}
				if err != nil {
					fmt.Fprintln(env.Stderr, "assent: "+err.Error())
				}
				if asJSON {
					for _, i := range items {
						if err := printJSON(env, &i.Pending); err != nil {
							return err
						}
					}
					return nil
				}
				if err := printPending(env, items, time.Now()); err != nil {
					return err
				}
				for _, line := range frozenLines(cmd.Context(), d) {
					fmt.Fprintln(env.Stdout, "FROZEN: "+line)
				}
				return nil
			})
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

// withDesk opens the desk of the approver whose credentials are found.
func withDesk(cmd *cobra.Command, env *Env, t target, use func(*desk.Desk) error) error {
	return withConn(cmd.Context(), env, t, protocol.RoleApprover, func(nc *nats.Conn, p place) error {
		creds, err := bus.ReadCreds(p.Creds)
		if err != nil {
			return err
		}
		d, err := desk.New(nc, p.Node, creds.Name)
		if err != nil {
			return err
		}
		return use(d)
	})
}

func printPending(env *Env, items []pending.Item, now time.Time) error {
	if len(items) == 0 {
		fmt.Fprintln(env.Stdout, "nothing is pending")
		return nil
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ASK\tAGENT\tSESSION\tSTAGE\tWAITS\tLEFT\tCALL\tSUGGESTED GRANT")
	for _, i := range items {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.Ask.ID, whose(i.Ask.Agent, i.Ask.Hops), inSession(i.Ask.Session), i.Stage, age(now.Sub(i.Since)), age(i.Deadline.Sub(now)), callLine(i.Pending, 80), suggested(i))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	printAuthorizations(env, items)
	here := slices.DeleteFunc(slices.Clone(items), atParent)
	fmt.Fprintln(env.Stdout)
	if len(here) > 0 {
		fmt.Fprintln(env.Stdout, "answer with: assent answer ASK allow|deny"+offered(here))
	}
	if len(here) < len(items) {
		fmt.Fprintln(env.Stdout, "what stands at terminal:parent is answered at the parent node, under the same id")
	}
	return nil
}

// printAuthorizations prints what permission modules ask a person for, ask by ask.
func printAuthorizations(env *Env, items []pending.Item) {
	styled := isTerminal(env.Stdout) && env.Getenv("NO_COLOR") == ""
	for _, i := range items {
		if _, asked := byModule(i.Pending); !asked {
			continue
		}
		fmt.Fprintf(env.Stdout, "\n%s\n", i.Ask.ID)
		for _, line := range (authorization{p: i.Pending, styled: styled}).lines() {
			fmt.Fprintln(env.Stdout, "  "+line)
		}
		if p := i.Prompt; p.ApproveLabel+p.EditLabel+p.RejectLabel != "" {
			fmt.Fprintln(env.Stdout, "  "+labelled("allow", p.ApproveLabel)+" · "+labelled("allow --input", p.EditLabel)+" · "+labelled("deny", p.RejectLabel))
		}
		if _, err := muteOf(i); err == nil && !atParent(i) {
			fmt.Fprintf(env.Stdout, "  assent answer %s allow --mute   allow, and don't ask again in this session\n", i.Ask.ID)
		}
	}
}

// atParent says that nobody of this node answers the ask.
func atParent(i pending.Item) bool { return i.Role == protocol.TerminalParent }

// inSession tells the subagents of one agent apart: the session, and for a
// subagent's the one that it belongs to.
func inSession(s protocol.Session) string {
	const width = 20
	if s.ID == "" {
		return "-"
	}
	text := protocol.Safe(s.ID, width, false)
	if of := cmp.Or(s.Parent, s.Root); of != "" && of != s.ID {
		text += " of " + protocol.Safe(of, width, false)
	}
	return text
}

// offered are the scopes in which something that is pending can be granted.
func offered(items []pending.Item) string {
	can := map[protocol.Scope]bool{}
	for _, i := range items {
		g, err := sessionGrant(i)
		if err != nil {
			continue
		}
		can[protocol.ScopeAgent] = true
		can[protocol.ScopeProject] = can[protocol.ScopeProject] || i.Ask.Project.ID != ""
		if g.Scope == protocol.ScopeSession {
			can[protocol.ScopeSession], can[protocol.ScopeTree] = true, true
		}
	}
	var scopes []string
	for _, scope := range []protocol.Scope{protocol.ScopeSession, protocol.ScopeTree, protocol.ScopeProject, protocol.ScopeAgent} {
		if can[scope] {
			scopes = append(scopes, string(scope))
		}
	}
	if len(scopes) == 0 {
		return ""
	}
	return " [--grant " + strings.Join(scopes, "|") + "]"
}

// suggested is the pattern that is offered for a grant, with its surface.
func suggested(i pending.Item) string {
	g, err := sessionGrant(i)
	if err != nil || atParent(i) {
		return "-"
	}
	text := g.Surface + ": " + strings.Join(g.Patterns, " | ")
	if g.Scope == protocol.ScopeAgent {
		text += " (--grant agent)"
	}
	return protocol.Safe(text, 100, false)
}

// callLine is a call in one line: the tool and what it would do, whole rather
// than the one piece that a rule left open.
func callLine(p protocol.Pending, limit int) string {
	return protocol.Safe(p.Ask.Tool.Name+": "+mainArgument(p.Ask.Tool.Name, p.Ask.Tool.Input), limit, false)
}

// mainArguments say most of a call, by tool. Of any other tool nobody can tell
// which argument matters, so all of them are shown.
var mainArguments = map[string][]string{
	"bash": {"command"}, "read": {"file_path", "path"}, "write": {"file_path", "path"}, "edit": {"file_path", "notebook_path", "path"},
	"grep": {"pattern"}, "glob": {"pattern"}, "ls": {"path"}, "webfetch": {"url"}, "websearch": {"query"},
}

// mainArgument is the one argument that says most of a call, else all of it.
func mainArgument(tool string, input jsontext.Value) string {
	var args map[string]jsontext.Value
	if json.Unmarshal(input, &args) == nil {
		for _, key := range mainArguments[tool] {
			var text string
			if json.Unmarshal(args[key], &text) == nil && text != "" {
				return text
			}
		}
	}
	return string(input)
}

// age is a duration as a person says it.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "over"
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}
