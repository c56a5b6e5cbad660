package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/client/project"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Policy is the group of commands on policy.
func Policy(env *Env) *cobra.Command {
	return group("policy", "Check, test and explain a policy, and put it in force", policyCheck(env), policyEval(env), policyExplain(env), policyTest(env), policySchema(env), policyPush(env), policyShow(env), policyHistory(env), policyDiff(env), policyRemove(env))
}

func policyCheck(env *Env) *cobra.Command {
	var asJSON, strict bool
	var layer string
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Find errors in a policy file, and warn of what looks wrong in it",
		Long: `Reads a policy file as a gate would: each error comes with file, line and column, and what
was expected. A file without errors may still hold rules that can never match, names that
look misspelt, or rules that leave more open than it seems: those are warnings. To see what
the policy does with a call, use policy explain and policy test. "-" for FILE reads standard
input.

--layer says which layer the file is for: a project's or an agent's layer may hold less than
the fleet's, which is the default. --strict fails on warnings too: for a pipeline, where
nobody reads them.

Exit 0: a gate would take it (there may be warnings). Exit 3: it would not, or there are
warnings under --strict.`,
		Example: "  assent policy check policy.jsonc\n  assent policy check --strict policy.jsonc   # in a pipeline\n  assent policy check - < policy.jsonc\n" +
			"  assent policy check --layer project/shop .assent/policy.jsonc",
		Args: exactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := policy.ParseNewLayer(layer)
			if err != nil {
				return usagef("--layer: %w", err)
			}
			if !cmd.Flags().Changed("layer") && strings.HasSuffix(filepath.ToSlash(args[0]), project.PolicyFile) {
				fmt.Fprintln(env.Stderr, "assent: checked as the fleet layer; where this is a project's own policy, add --layer project/ID: it may hold less")
			}
			return checkPolicy(env, at, args[0], asJSON, strict)
		},
	}
	cmd.Flags().StringVar(&layer, "layer", policy.LayerFleet, "layer of the file: fleet, project/ID, agent/NAME or project-agent/ID/NAME")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as one JSON object")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit 3 where there are warnings")
	return cmd
}

// exitBadPolicy is the exit code for a policy that no gate would take.
const exitBadPolicy = 3

// badPolicy gives the errors of a policy their exit code.
func badPolicy(err error) error {
	if errors.Is(err, policy.ErrPolicy) {
		return &exitError{code: exitBadPolicy, err: err}
	}
	return err
}

// finding is one thing that is wrong or looks wrong.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
}

// checked is what `policy check --json` prints.
type checked struct {
	OK       bool      `json:"ok"`
	Digest   string    `json:"digest,omitempty"`
	Errors   []finding `json:"errors"`
	Warnings []finding `json:"warnings"`
}

func checkPolicy(env *Env, layer policy.Layer, path string, asJSON, strict bool) error {
	path, doc, err := policyFile(env, path)
	if err != nil {
		return err
	}
	result := checked{Errors: []finding{}, Warnings: []finding{}}
	read, err := policy.Read(layer, path, doc)
	var errs policy.Errors
	switch {
	case errors.As(err, &errs):
		for _, e := range errs {
			result.Errors = append(result.Errors, finding{e.File, e.Line, e.Column, e.Message})
		}
	case err != nil:
		return err
	default:
		result.OK, result.Digest = true, read.Digest()
		if result.Warnings, err = policyWarnings(layer, path, doc); err != nil {
			return err
		}
	}
	if err := printChecked(env, path, result, asJSON); err != nil {
		return err
	}
	if strict && len(result.Warnings) > 0 {
		return &exitError{code: exitBadPolicy}
	}
	return nil
}

// policyFile reads the policy at path, "-" for standard input; name is what it
// is called in findings.
func policyFile(env *Env, path string) (name string, doc []byte, err error) {
	if path == "-" {
		// One byte more than is accepted, so that what is too long says so.
		doc, err := io.ReadAll(io.LimitReader(env.Stdin, policy.MaxDocument+1))
		if err != nil {
			return "", nil, fmt.Errorf("reading policy from standard input: %w", err)
		}
		return "<stdin>", doc, nil
	}
	doc, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("reading policy: %w; name an existing policy file; examples/policy.jsonc is one to start from", err)
	}
	if err != nil {
		return "", nil, fmt.Errorf("reading policy: %w", err)
	}
	return path, doc, nil
}

// policyWarnings is what looks wrong in a policy that a gate would take.
func policyWarnings(layer policy.Layer, path string, doc []byte) ([]finding, error) {
	warnings, err := policy.LintLayer(layer, path, doc)
	if err != nil {
		return nil, err
	}
	out := []finding{}
	for _, w := range warnings {
		out = append(out, finding{w.File, w.Line, w.Column, w.Message})
	}
	return out, nil
}

// warnPolicy says on standard error what looks wrong in a policy that is about
// to be put in force; the policy's own errors are returned.
func warnPolicy(env *Env, path string, doc []byte) error {
	warnings, err := policyWarnings(policy.Fleet(), path, doc)
	if err != nil {
		return err
	}
	printWarnings(env, warnings)
	return nil
}

func printWarnings(env *Env, warnings []finding) {
	for _, f := range warnings {
		fmt.Fprintln(env.Stderr, f.String()+" (warning)")
	}
}

func printChecked(env *Env, path string, result checked, asJSON bool) error {
	if asJSON {
		if err := printJSON(env, result); err != nil {
			return err
		}
	} else {
		for _, f := range result.Errors {
			fmt.Fprintln(env.Stderr, f)
		}
		printWarnings(env, result.Warnings)
	}
	if !result.OK {
		return &exitError{code: exitBadPolicy}
	}
	if !asJSON {
		fmt.Fprintf(env.Stdout, "%s: ok, %s, %s\n", path, counted(len(result.Warnings), "warning"), result.Digest)
	}
	return nil
}

// counted is a number of things, in plain English.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// withConn connects as role and calls use.
func withConn(ctx context.Context, env *Env, t target, role protocol.Role, use func(*nats.Conn, place) error) error {
	p, err := t.resolve(env, role)
	if err != nil {
		return err
	}
	nc, err := bus.Connect(ctx, bus.Config{URL: p.NATS, Creds: p.Creds, Role: role, Logger: quietLog()})
	if err != nil {
		return err
	}
	defer nc.Close()
	return use(nc, p)
}

// printJSON prints v as one line.
func printJSON(env *Env, v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	_, err = fmt.Fprintf(env.Stdout, "%s\n", b)
	return err
}
