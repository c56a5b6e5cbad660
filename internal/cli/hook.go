package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	claudecode "github.com/assent-dev/assent/integrations/claude-code"
	"github.com/assent-dev/assent/internal/local"
	"github.com/assent-dev/assent/pkg/client/project"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Bounds of a hook.
const (
	maxHookInput = 1 << 20
	// hookReadTime is how long stdin may stay open: a pipe that nobody closes
	// must not hold the call until the agent kills the hook, and then runs it.
	hookReadTime = 10 * time.Second
	// hookDeadline is below the 600 s after which Claude Code kills a hook.
	hookDeadline    = 9 * time.Minute
	maxHookDeadline = 590 * time.Second
	// hookMargin is how much sooner the gate is told to end the ask: its own
	// "expired" is on the record and comes before ours.
	hookMargin = 2 * time.Second
	// hookGrace is how long the answer may take once the deadline or a signal
	// has ended the ask: withdrawing and hearing a late decision.
	hookGrace = withdrawTime + lateTime + closeTime
)

// exitBlock is how a hook stops the call when it cannot even write its answer:
// every known agent takes exit 2 with a text on stderr for a deny.
const exitBlock = 2

// Hook is the command that an agent's own configuration calls.
func Hook(env *Env) *cobra.Command {
	h := newClaudeHook(env)
	cmd := &cobra.Command{
		Use:   "hook AGENT",
		Short: "Adapter: an agent's hook input on stdin, its answer on stdout",
		Long: "Adapter between an agent and the gate: the agent's hook JSON on stdin, its answer on stdout.\n" +
			"`assent install AGENT` writes the agent's configuration that calls it.",
		Example: "  assent hook claude-code < input.json",
		// A help text with exit 0 would be no answer, and the agent would run the call.
		Args: func(cmd *cobra.Command, args []string) error {
			return usagef("name the agent, as in `%s claude-code`, got %q", cmd.CommandPath(), args)
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(h.command())
	return cmd
}

// claudeHook asks for one tool call of Claude Code. Whatever goes wrong, it
// prints a deny: silence, a crash or junk would let the call run.
type claudeHook struct {
	env      *Env
	began    time.Time
	local    string
	at       place
	deadline time.Duration
	readTime time.Duration
}

func newClaudeHook(env *Env) *claudeHook {
	return &claudeHook{env: env, began: time.Now(), readTime: hookReadTime}
}

func (h *claudeHook) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "claude-code",
		Short: "PreToolUse hook of Claude Code",
		Long: "PreToolUse hook of Claude Code: reads its JSON on stdin and prints an explicit allow or deny.\n" +
			"On every failure the answer is deny, with the cause and the remedy.\n\n" +
			"It reads no environment variable: a project's settings can set a hook's environment, and a false gate\n" +
			"allows everything. Without flags it finds the gate that `assent up` runs for this user.\n" +
			"It asks as the agent that the credentials name.",
		Example: "  assent hook claude-code < input.json\n" +
			"  assent hook claude-code --nats nats://gate.example:4222 --creds /etc/assent/laptop.creds --node main",
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return h.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&h.local, "local", "", "absolute path of the file that assent up wrote (default: this user's)")
	f.StringVar(&h.at.NATS, "nats", "", "address of the NATS server, with --creds")
	f.StringVar(&h.at.Creds, "creds", "", "absolute path of the agent's credentials file")
	f.StringVar(&h.at.Node, "node", "", "name of the node (default: that of the local file, or main)")
	f.DurationVar(&h.deadline, "deadline", hookDeadline, "how long to wait for a decision, from the start of the process")
	return cmd
}

func (h *claudeHook) run(ctx context.Context) error {
	if h.deadline <= 0 || h.deadline > maxHookDeadline {
		return usagef("--deadline %s: want more than 0 and at most %s: Claude Code kills a hook after 600 s and then runs the call", h.deadline, maxHookDeadline)
	}
	if isNull(h.env.Stdout) {
		return &exitError{code: exitBlock, err: errors.New("the call may not run: stdout is closed, so Claude Code cannot read the answer")}
	}
	// A reader that is gone must end in exit 2, not in a death by signal.
	signal.Ignore(syscall.SIGPIPE)
	out := h.answer(ctx)
	if _, err := h.env.Stdout.Write(out); err != nil {
		return &exitError{code: exitBlock, err: fmt.Errorf("the call may not run: writing the answer to Claude Code: %w", err)}
	}
	return nil
}

// isNull says whether w leads nowhere: a process that is started with a closed
// stdout gets the null device in its place, and silence would let the call run.
func isNull(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	null, nerr := os.Stat(os.DevNull)
	info, err := f.Stat()
	return err != nil || nerr == nil && os.SameFile(null, info)
}

// answer is always an explicit verdict. The work runs beside a clock of its
// own: a file system that hangs must not turn into silence. Work that is given
// up ends with the process.
func (h *claudeHook) answer(ctx context.Context) []byte {
	ctx, stop := context.WithDeadline(ctx, h.began.Add(h.deadline))
	defer stop()
	done := make(chan []byte, 1)
	go func() { done <- h.work(ctx) }()
	select {
	case out := <-done:
		return out
	case <-ctx.Done():
	}
	select {
	case out := <-done:
		return out
	case <-time.After(hookGrace):
		return claudecode.Refuse(sayFailed("", errors.New("the hook itself hung")))
	}
}

func (h *claudeHook) work(ctx context.Context) (out []byte) {
	var in claudecode.Input
	defer func() {
		if p := recover(); p != nil {
			out = in.Refuse(sayFailed("", fmt.Errorf("the hook crashed: %v: please report it", p)))
		}
	}()
	data, err := readHookInput(ctx, h.env.Stdin, h.readTime)
	if err == nil {
		in, err = claudecode.ReadInput(data)
	}
	if err != nil {
		return in.Refuse(sayUnread(err))
	}
	d, id, err := h.decide(ctx, in)
	if err != nil {
		return in.Refuse(sayFailed(id, err))
	}
	return in.Output(d)
}

func (h *claudeHook) decide(ctx context.Context, in claudecode.Input) (protocol.Decision, string, error) {
	at, err := h.place()
	if err != nil {
		return protocol.Decision{}, "", err
	}
	home, err := local.SystemHome()
	if err != nil {
		return protocol.Decision{}, "", err
	}
	works, err := project.Find(in.Cwd)
	if err != nil {
		return protocol.Decision{}, "", err
	}
	bringModules(&works, h.env.Stderr)
	ask := in.Ask(claudecode.Host{Home: home, Platform: runtime.GOOS, Project: works.Facts()})
	ask.ID = protocol.NewAskID()
	ask.MaxWaitMS = max(1, (h.deadline - time.Since(h.began) - hookMargin).Milliseconds())
	a, err := dialAgent(ctx, at, "hook", carrying(works)...)
	if err != nil {
		return protocol.Decision{}, ask.ID, interrupted(ctx, err)
	}
	defer a.close()
	d, err := a.ask(ctx, ask)
	return d, ask.ID, interrupted(ctx, err)
}

// interrupted marks the failure of an ask that a signal ended.
func interrupted(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%w: %w", errInterrupted, err)
	}
	return err
}

// place finds the gate without a look at the environment. Relative paths are
// refused: they lead into the project's folder, where the agent writes.
func (h *claudeHook) place() (place, error) {
	if h.local != "" && h.at.NATS != "" {
		return place{}, errors.New("--local and --nats both say where the gate is: keep one")
	}
	for flag, path := range map[string]string{"--local": h.local, "--creds": h.at.Creds} {
		if path != "" && !filepath.IsAbs(path) {
			return place{}, fmt.Errorf("%s %s: want an absolute path: run `assent install claude-code` again", flag, path)
		}
	}
	// Roots of trust are not the project's to set either.
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if err := os.Unsetenv(name); err != nil {
			return place{}, fmt.Errorf("clearing %s: %w", name, err)
		}
	}
	blind := &Env{Getenv: func(string) string { return "" }}
	if h.local == "" {
		return target{nats: h.at.NATS, creds: h.at.Creds, node: h.at.Node}.resolve(blind, protocol.RoleAgent)
	}
	d, err := local.Load(h.local)
	if err != nil {
		return place{}, err
	}
	at := place{NATS: d.NATS, Node: firstOf(h.at.Node, d.Node), Creds: firstOf(h.at.Creds, d.Creds[protocol.RoleAgent])}
	if at.Creds == "" {
		return place{}, fmt.Errorf("%s holds no credentials for role %s: start `assent up` again", h.local, protocol.RoleAgent)
	}
	return at, nil
}

// errStdin: nothing could be read of what the agent says.
var errStdin = errors.New("reading stdin")

// readHookInput reads all of r, bounded in size and time. The reader of a pipe
// that stays open is left behind: it ends with the process.
func readHookInput(ctx context.Context, r io.Reader, within time.Duration) ([]byte, error) {
	if isTerminal(r) {
		return nil, fmt.Errorf("%w: it is a terminal: this command is for Claude Code to run; try `assent ask`", errStdin)
	}
	type result struct {
		data []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(r, maxHookInput+1))
		read <- result{data, err}
	}()
	select {
	case got := <-read:
		switch {
		case got.err != nil:
			return nil, fmt.Errorf("%w: %w", errStdin, got.err)
		case len(got.data) > maxHookInput:
			return nil, fmt.Errorf("%w: more than %d bytes: make the tool's input smaller", errStdin, maxHookInput)
		}
		return got.data, nil
	case <-time.After(within):
		return nil, fmt.Errorf("%w: it stayed open for %s", errStdin, within)
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errStdin, context.Cause(ctx))
	}
}

// sayUnread is the deny of an input that never became an ask.
func sayUnread(err error) string {
	remedy := "Check that Claude Code runs this hook on PreToolUse: `assent install claude-code` writes it so."
	return "Not allowed: Assent could not read what Claude Code handed its hook (" + protocol.Safe(err.Error(), 600, false) + "). This is a fault, not a refusal. " + remedy
}
