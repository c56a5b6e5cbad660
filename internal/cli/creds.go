package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/internal/local"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Creds is the group of commands on credentials.
func Creds(env *Env) *cobra.Command {
	return group("creds", "Issue, list and revoke NATS credentials, by role",
		credsInit(env), credsIssue(env), credsRevoke(env), credsList(env))
}

// authorityFlags find the store that holds the keys.
type authorityFlags struct{ store string }

func (a *authorityFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.store, "store", "", "store folder that holds the keys (default: ASSENT_STORE, then the local default, then the store of node main)")
}

// dir is the store: where `creds init` and `assent up` would make one, when
// nothing says otherwise.
func (a *authorityFlags) dir(env *Env) (string, error) {
	if dir := firstOf(a.store, env.Getenv("ASSENT_STORE")); dir != "" {
		return filepath.Abs(dir)
	}
	path, err := local.Path(env.Getenv)
	if err != nil {
		return "", err
	}
	d, err := local.Load(path)
	switch {
	case errors.Is(err, local.ErrNone):
		return storeDir(env, "", firstOf(env.Getenv("ASSENT_NODE"), defaultNode))
	case err != nil:
		return "", fmt.Errorf("no store was named: %w", err)
	case d.Store == "":
		return "", fmt.Errorf("no store was named, and the local default %s names none: name one with --store", path)
	}
	return d.Store, nil
}

func (a *authorityFlags) open(env *Env) (*node.Authority, error) {
	dir, err := a.dir(env)
	if err != nil {
		return nil, err
	}
	return node.OpenAuthority(dir, "")
}

func credsInit(env *Env) *cobra.Command {
	var a authorityFlags
	var name string
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "Make the keys of a node in a store folder",
		Long:    "Makes the keys from which all credentials of a node come. `assent up` does it by itself;\nthis is for a node whose NATS runs elsewhere. Keys that are there are kept.",
		Example: "  assent creds init --store ./keys --node main",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			dir, err := storeDir(env, a.store, name)
			if err != nil {
				return err
			}
			auth, err := node.OpenAuthority(dir, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(env.Stdout, "keys of node %s are in %s: keep that folder private and backed up\n", auth.Node(), dir)
			return nil
		},
	}
	a.flags(cmd)
	cmd.Flags().StringVar(&name, "node", defaultNode, "name of the node")
	return cmd
}

// issueFlags are the flags of `creds issue`.
type issueFlags struct {
	authority       authorityFlags
	role, name, out string
	links           []string
	expires         time.Duration
	again, ensure   bool
}

func credsIssue(env *Env) *cobra.Command {
	var f issueFlags
	cmd := &cobra.Command{
		Use:   "issue --role ROLE --name NAME --out FILE",
		Short: "Issue credentials for a role and name",
		Long: `Issues a NATS credentials file (JWT and seed, mode 0600). The server takes it at once,
without a restart. Roles: ` + roleWords() + `.
An agent's name is who it is in every record; a judge is bound to its links.`,
		Example: `  assent creds issue --role agent --name ci-42 --out ci-42.creds
  assent creds issue --role judge --name gpu-1 --link model-judge --out judge.creds
  assent creds issue --role approver --name oncall-1 --expires 720h --out oncall.creds`,
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error { return issueCreds(env, f) },
	}
	f.authority.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.role, "role", "", "role: "+roleWords())
	fl.StringVar(&f.name, "name", "", "name of the holder: letters, digits, '_' and '-'")
	fl.StringVar(&f.out, "out", "", "file to write, must not exist")
	fl.StringSliceVar(&f.links, "link", nil, "link that a judge may serve, may be repeated; '*' is every link (default: the judge's name)")
	span(fl, &f.expires, "expires", "how long the server takes them, as 24h or 720h (default: until revoked)")
	fl.BoolVar(&f.ensure, "ensure", false, "keep the file if it holds live ones with this role, name and links")
	fl.BoolVar(&f.again, "again", false, "issue although live ones with this role and name exist")
	for _, name := range []string{"role", "name", "out"} {
		cmd.MarkFlagRequired(name) //nolint:errcheck // the flags are those above
	}
	return cmd
}

func issueCreds(env *Env, f issueFlags) error {
	role, err := protocol.ParseRole(f.role)
	if err != nil {
		return usagef("--role: %w", err)
	}
	opts := node.IssueOptions{Links: f.links, Again: f.again}
	if role == protocol.RoleJudge && len(opts.Links) == 0 {
		opts.Links = []string{f.name}
	}
	if f.expires < 0 {
		return usagef("--expires is negative")
	}
	if f.expires > 0 {
		opts.Expires = time.Now().Add(f.expires)
	}
	a, err := f.authority.open(env)
	if err != nil {
		return err
	}
	if f.ensure {
		if err := a.Ensure(f.out, role, f.name, opts); err != nil {
			return fmt.Errorf("issuing credentials: %w", err)
		}
		fmt.Fprintf(env.Stdout, "%s: credentials of %s %s on node %s\n", f.out, role, f.name, a.Node())
		return nil
	}
	// The file is there before the credentials are: none are issued that nobody
	// can have.
	out, err := os.OpenFile(f.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing credentials: %w: name another file with --out", err)
	}
	b, err := a.Issue(role, f.name, opts)
	if err == nil {
		_, err = out.Write(b)
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(f.out)
		if errors.Is(err, node.ErrExists) {
			return fmt.Errorf("issuing credentials: %w: that is `assent creds revoke --role %s --name %s`, or --again", err, role, f.name)
		}
		return fmt.Errorf("issuing credentials: %w", err)
	}
	fmt.Fprintf(env.Stdout, "%s: credentials of %s %s on node %s\n", f.out, role, f.name, a.Node())
	return nil
}

func credsRevoke(env *Env) *cobra.Command {
	var a authorityFlags
	var sel node.Selector
	var role, url string
	cmd := &cobra.Command{
		Use:   "revoke",
		Short: "Revoke credentials at once, without a restart",
		Long: `Withdraws credentials for good: the server cuts their connections and refuses new ones.
Name them by --key (see ` + "`assent creds list`" + `), or all live ones of a role and name.

A node that runs on the store is told by itself; one elsewhere needs --nats or ASSENT_NATS.
Exit 0: every server that was named or found has confirmed. Exit 1: one has not, or there was
none; the revocation is recorded then, but a running server still takes the credentials.
Run it again with the right address: what is revoked already is told again.`,
		Example: "  assent creds revoke --role agent --name ci-42\n  assent creds revoke --key UDXU4… --nats nats://nats.example:4222",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sel.Key == "" && (role == "" || sel.Name == "") {
				return usagef("name what to revoke: --key KEY, or --role ROLE and --name NAME")
			}
			if role != "" {
				r, err := protocol.ParseRole(role)
				if err != nil {
					return usagef("--role: %w", err)
				}
				sel.Role = r
			}
			return revokeCreds(cmd.Context(), env, a, sel, firstOf(url, env.Getenv("ASSENT_NATS")))
		},
	}
	a.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&sel.Key, "key", "", "public key of the credential")
	fl.StringVar(&role, "role", "", "role: "+roleWords())
	fl.StringVar(&sel.Name, "name", "", "name of the holder")
	fl.StringVar(&url, "nats", "", "address of a NATS server to tell that does not run on the store (default: ASSENT_NATS)")
	return cmd
}

func revokeCreds(ctx context.Context, env *Env, f authorityFlags, sel node.Selector, url string) error {
	a, err := f.open(env)
	if err != nil {
		return err
	}
	w, err := a.Withdraw(sel)
	if err != nil {
		return err
	}
	told, err := a.Tell(ctx, url)
	// Nothing is said to be revoked while a server may still take it.
	switch {
	case err != nil && len(told) > 0:
		return fmt.Errorf("%s: recorded, and %s was told, but not every server: %w: it still takes them; run this again with the right --nats", whatOf(w), strings.Join(told, ", "), err)
	case err != nil:
		return fmt.Errorf("%s: recorded, but no server was told: %w: it still takes them; run this again with the right --nats", whatOf(w), err)
	case len(told) == 0:
		return fmt.Errorf("%s: recorded, but no server was told: none runs on this store, and one elsewhere still takes them: run this again with --nats URL", whatOf(w))
	}
	for _, c := range w.Now {
		fmt.Fprintf(env.Stdout, "revoked %s %s (%s)\n", c.Role, c.Name, c.Key)
	}
	for _, c := range w.Before {
		fmt.Fprintf(env.Stdout, "revoked already, at %s: %s %s (%s)\n", moment(c.Revoked), c.Role, c.Name, c.Key)
	}
	fmt.Fprintf(env.Stdout, "told %s\n", strings.Join(told, ", "))
	return nil
}

// whatOf names the credentials of a withdrawal in few words.
func whatOf(w node.Withdrawal) string {
	all := append(slices.Clone(w.Now), w.Before...)
	text := fmt.Sprintf("%s %s", all[0].Role, all[0].Name)
	if len(all) > 1 {
		text += fmt.Sprintf(" (%d credentials)", len(all))
	}
	return text
}

// span adds a flag that takes a time span.
func span(f *pflag.FlagSet, d *time.Duration, name, usage string) {
	f.Var((*spanValue)(d), name, usage)
}

type spanValue time.Duration

func (v *spanValue) String() string {
	if *v == 0 {
		return ""
	}
	return time.Duration(*v).String()
}

func (v *spanValue) Type() string { return "duration" }

func (v *spanValue) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("want a time span as 90s, 15m or 24h (a day is 24h)")
	}
	*v = spanValue(d)
	return nil
}

// credRow is what `creds list --json` prints, one a line.
type credRow struct {
	Key     string        `json:"key"`
	Role    protocol.Role `json:"role"`
	Name    string        `json:"name"`
	Links   []string      `json:"links,omitempty"`
	Issued  time.Time     `json:"issued"`
	Expires time.Time     `json:"expires,omitzero"`
	Revoked time.Time     `json:"revoked,omitzero"`
	Live    bool          `json:"live"`
}

func credsList(env *Env) *cobra.Command {
	var a authorityFlags
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the credentials that were issued",
		Example: "  assent creds list\n  assent creds list --all --json",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			auth, err := a.open(env)
			if err != nil {
				return err
			}
			issued, err := auth.List()
			if err != nil {
				return err
			}
			var rows []credRow
			for _, c := range issued {
				row := credRow{c.Key, c.Role, c.Name, c.Links, c.Issued, c.Expires, c.Revoked, c.Live(time.Now())}
				if row.Live || all {
					rows = append(rows, row)
				}
			}
			return printCreds(env, rows, asJSON)
		},
	}
	a.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	cmd.Flags().BoolVar(&all, "all", false, "also those revoked or expired")
	return cmd
}

func printCreds(env *Env, rows []credRow, asJSON bool) error {
	if asJSON {
		for _, r := range rows {
			if err := printJSON(env, r); err != nil {
				return err
			}
		}
		return nil
	}
	return table(env.Stdout, func(w io.Writer) {
		fmt.Fprintf(w, "ROLE\tNAME\tLINKS\t%s\tSTATE\tKEY\n", heading("ISSUED"))
		for _, r := range rows {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Role, r.Name, strings.Join(r.Links, ","), cell(r.Issued), r.state(), r.Key)
		}
	})
}

func (r credRow) state() string {
	switch {
	case !r.Revoked.IsZero():
		return "revoked"
	case !r.Live:
		return "expired"
	case !r.Expires.IsZero():
		return "until " + moment(r.Expires)
	default:
		return "live"
	}
}

func roleWords() string {
	words := make([]string, len(protocol.Roles))
	for i, r := range protocol.Roles {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}
