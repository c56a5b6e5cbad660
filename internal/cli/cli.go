// Package cli holds the commands of the one binary, one file a command.
// main.go lists them.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/assent-dev/assent/internal/version"
)

// Exit codes of every command; a command's own stand in its help.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 2
	ExitDenied  = 3
)

// Env is what a command may touch of the world outside it.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
}

// OSEnv is the environment of a real process.
func OSEnv() *Env {
	return &Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
}

// Command makes one subcommand.
type Command func(*Env) *cobra.Command

// exitError carries an exit code of its own; its cause may be nil when the
// command has said all there is to say.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usagef is an error in how a command was called: exit 2.
func usagef(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

// Main runs the command line args and returns the exit code. SIGINT and SIGTERM
// end the command's context; a second one ends the process.
func Main(env *Env, args []string, commands ...Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := newRoot(env, commands)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	return report(env, cmd, err)
}

func newRoot(env *Env, commands []Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "assent",
		Short: "One permission gate for every tool call of every AI agent",
		Long: "Assent decides, for a whole fleet of AI agents, whether each tool call may run.\n" +
			"Rules settle most calls at once; what they leave open goes to judges and then to a person.\n" +
			"Every decision is recorded before the agent hears it.",
		Example:       "  assent up --policy policy.jsonc      # everything in one process\n  assent install claude-code           # point an agent at it\n  assent pending                       # what waits for a person",
		Version:       version.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noUnknown,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w: see `%s --help`", err, cmd.CommandPath())
	})
	for _, c := range commands {
		root.AddCommand(c(env))
	}
	return root
}

// noUnknown is for commands that only hold others: a word that names none of
// them is a usage error, not a silent help text.
func noUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	msg := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		msg += ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("%s: see `%s --help`", msg, cmd.CommandPath())
}

// group is a command that only holds others. Its example is the first line of each
// of theirs.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	var examples []string
	for _, c := range commands {
		first, _, _ := strings.Cut(c.Example, "\n")
		examples = append(examples, first)
	}
	g := &cobra.Command{Use: use, Short: short, Args: noUnknown, Example: strings.Join(examples, "\n"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	g.AddCommand(commands...)
	return g
}

// exactArgs is cobra.ExactArgs as a usage error that names what is missing.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return wrongArgs(cmd, orNothing(names), args)
		}
		return nil
	}
}

// wrongArgs says what cmd takes instead of args.
func wrongArgs(cmd *cobra.Command, takes string, args []string) error {
	return usagef("`%s` takes %s, got %s: see `%s --help`", cmd.CommandPath(), takes, count(len(args), "argument"), cmd.CommandPath())
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "no arguments"
	}
	return strings.Join(names, " and ")
}

// count is a number of things, as a person says it.
func count(n int, thing string) string {
	switch n {
	case 0:
		return "no " + thing + "s"
	case 1:
		return "1 " + thing
	default:
		return fmt.Sprintf("%d %ss", n, thing)
	}
}

// report prints err once, on stderr, and returns the exit code.
func report(env *Env, cmd *cobra.Command, err error) int {
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.err != nil {
			fmt.Fprintln(env.Stderr, "assent: "+exit.err.Error())
		}
		return exit.code
	}
	if strings.HasPrefix(err.Error(), "required flag") {
		fmt.Fprintf(env.Stderr, "assent: %v: see `%s --help`\n", err, cmd.CommandPath())
		return ExitUsage
	}
	fmt.Fprintln(env.Stderr, "assent: "+err.Error())
	return ExitFailure
}

// isTerminal says whether w is a person's terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
