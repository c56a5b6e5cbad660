package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	claudecode "github.com/assent-dev/assent/integrations/claude-code"
	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/local"
	"github.com/assent-dev/assent/pkg/protocol"
)

// versionTime bounds `claude --version`.
const versionTime = 5 * time.Second

// Install is the command that points an agent at the gate.
func Install(env *Env) *cobra.Command {
	c := &claudeInstall{env: env}
	cmd := &cobra.Command{
		Use:   "claude-code",
		Short: "Write the hook into Claude Code's settings",
		Long: "Writes a PreToolUse hook for every tool into Claude Code's own settings, and leaves everything else there as it is.\n" +
			"Shows the change first and asks; without a terminal it writes only with --yes.\n\n" +
			"The hook asks one gate, which the settings name for good: that of the local node which this user's\n" +
			"commands find now, that of another local node with --local, or a remote one with --nats and --creds.\n" +
			"Claude Code sessions that run already go on without the hook: restart them.",
		Example: "  assent install claude-code\n  assent install claude-code --yes --settings ~/.claude/settings.json\n" +
			"  assent install claude-code --nats nats://gate.example:4222 --creds laptop.creds --node main",
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.install(cmd.Context()) },
	}
	c.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&c.claude, "claude", "claude", "the claude binary whose version is checked")
	f.BoolVar(&c.anyVersion, "skip-version-check", false, "do not check the version: below "+claudecode.LeastVersion+" a failing hook lets the call run")
	f.StringVar(&c.local, "local", "", "local.json in the store of an assent up (default: of the one that this user's commands find)")
	f.StringVar(&c.at.NATS, "nats", "", "address of a remote NATS server, with --creds")
	f.StringVar(&c.at.Creds, "creds", "", "the agent's credentials file for the remote server")
	f.StringVar(&c.at.Node, "node", "", "name of the remote node (default: main)")
	f.StringVar(&c.command, "command", "", "the assent binary that the hook calls (default: this one)")
	return group("install", "Point an agent at the gate", cmd)
}

// Uninstall is the command that takes the hook out again.
func Uninstall(env *Env) *cobra.Command {
	c := &claudeInstall{env: env}
	cmd := &cobra.Command{
		Use:     "claude-code",
		Short:   "Take the hook out of Claude Code's settings",
		Long:    "Takes exactly Assent's own hook out of Claude Code's settings. If nothing else has changed since, the file is as it was before.",
		Example: "  assent uninstall claude-code",
		Args:    exactArgs(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.uninstall(cmd.Context()) },
	}
	c.flags(cmd)
	return group("uninstall", "Stop pointing an agent at the gate", cmd)
}

// claudeInstall changes one settings file of Claude Code.
type claudeInstall struct {
	env        *Env
	yes        bool
	settings   string
	claude     string
	anyVersion bool
	local      string
	// at is the remote gate; its zero value means a local one.
	at      place
	command string
}

func (c *claudeInstall) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "write without asking")
	cmd.Flags().StringVar(&c.settings, "settings", "", "the settings file (default: settings.json in $CLAUDE_CONFIG_DIR or ~/.claude)")
}

func (c *claudeInstall) install(ctx context.Context) error {
	switch err := c.checkVersion(ctx); {
	case errors.Is(err, errVersionUnknown):
		return fmt.Errorf("%w; --skip-version-check goes on without, but versions below %s ignore onFailure and run a call whose hook fails", err, claudecode.LeastVersion)
	case err != nil:
		return err
	}
	command, err := c.hookCommand()
	if err != nil {
		return err
	}
	file, err := c.open()
	if err != nil {
		return err
	}
	c.warnDisabled(file)
	fresh := !file.parsed.Installed()
	if !file.parsed.Install(command) {
		fmt.Fprintf(c.env.Stdout, "The hook is in %s already.\n", file.path)
		return nil
	}
	if err := c.agree(ctx, file, file.parsed.Text()); err != nil {
		return err
	}
	if fresh {
		if err := file.keep(); err != nil {
			return err
		}
	}
	if err := file.write(file.parsed.Text()); err != nil {
		return err
	}
	fmt.Fprintf(c.env.Stdout, "Written: %s\nRestart running Claude Code sessions; then `assent doctor%s` proves the gate by a denied call.\nTo undo: assent uninstall claude-code%s\n",
		file.path, c.settingsFlag(), c.settingsFlag())
	return nil
}

// settingsFlag is what another command needs to find the same settings.
func (c *claudeInstall) settingsFlag() string {
	if c.settings == "" {
		return ""
	}
	return " --settings " + shellQuote(c.settings)
}

func (c *claudeInstall) uninstall(ctx context.Context) error {
	file, err := c.open()
	if err != nil {
		return err
	}
	command := file.parsed.Command()
	if !file.parsed.Uninstall() {
		fmt.Fprintf(c.env.Stdout, "There is no hook of Assent in %s.\n", file.path)
		return nil
	}
	text, existed := file.former(command)
	if err := c.agree(ctx, file, text); err != nil {
		return err
	}
	if existed {
		err = file.write(text)
	} else {
		err = file.delete()
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.env.Stdout, "Taken out of %s. Sessions that run already keep the hook until they end.\n", file.path)
	return file.forget()
}

// open reads the settings file that the flags name.
func (c *claudeInstall) open() (*settingsFile, error) {
	path, err := c.path()
	if err != nil {
		return nil, err
	}
	return openSettings(path)
}

func (c *claudeInstall) path() (string, error) {
	if c.settings != "" {
		return filepath.Abs(c.settings)
	}
	if dir := c.env.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return filepath.Abs(filepath.Join(dir, "settings.json"))
	}
	home, err := c.home()
	return filepath.Join(home, ".claude", "settings.json"), err
}

func (c *claudeInstall) home() (string, error) {
	if home := c.env.Getenv("HOME"); filepath.IsAbs(home) {
		return home, nil
	}
	return local.SystemHome()
}

var errVersionUnknown = errors.New("it did not say")

// checkVersion runs `claude --version`; errVersionUnknown where that says nothing.
func (c *claudeInstall) checkVersion(ctx context.Context) error {
	if c.anyVersion {
		fmt.Fprintf(c.env.Stderr, "assent: the version of Claude Code is not checked: below %s it runs a call whose hook fails\n", claudecode.LeastVersion)
		return nil
	}
	limited, stop := context.WithTimeout(ctx, versionTime)
	defer stop()
	cmd := exec.CommandContext(limited, c.claude, "--version")
	// A child of its own may hold the pipe open after it was killed.
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("asking %s for its version: %w", c.claude, context.Cause(ctx))
	case limited.Err() != nil:
		err = fmt.Errorf("it did not answer within %s", versionTime)
	}
	if err != nil {
		return fmt.Errorf("asking %s for its version: %w: %w: name the binary with --claude PATH", c.claude, errVersionUnknown, err)
	}
	if err := claudecode.CheckVersion(string(out)); err != nil {
		return fmt.Errorf("%s: %w", c.claude, err)
	}
	return nil
}

// hookCommand is the command line that Claude Code hands to a shell.
func (c *claudeInstall) hookCommand() (string, error) {
	binary, err := c.binary()
	if err != nil {
		return "", err
	}
	flags, err := c.gateFlags()
	if err != nil {
		return "", err
	}
	return shellQuote(binary) + " hook claude-code " + flags, nil
}

// gateFlags say to the hook which gate to ask. The choice is made once: what
// becomes this user's default later must not take the hook over.
func (c *claudeInstall) gateFlags() (string, error) {
	if c.at != (place{}) {
		return c.remoteFlags()
	}
	file := c.local
	if file == "" {
		path, err := local.Path(c.env.Getenv)
		if err != nil {
			return "", err
		}
		d, err := local.Load(path)
		if err != nil {
			return "", fmt.Errorf("no gate was named: %w", err)
		}
		file = filepath.Join(d.Store, local.FileName)
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("finding the local file: %w", err)
	}
	if _, err := local.Load(file); err != nil {
		c.warnDenied(err)
	}
	return "--local " + shellQuote(file), nil
}

// remoteFlags name a gate that is not on this machine.
func (c *claudeInstall) remoteFlags() (string, error) {
	switch {
	case c.local != "":
		return "", usagef("--local names a local gate, --nats, --creds and --node a remote one: keep one")
	case c.at.NATS == "" || c.at.Creds == "":
		return "", usagef("a remote gate needs both --nats URL and --creds FILE")
	}
	for _, address := range strings.Split(c.at.NATS, ",") {
		if u, err := url.Parse(address); err != nil || u.Scheme == "" || u.Host == "" {
			return "", usagef("--nats %s: want nats://host:port or tls://host:port", protocol.Safe(c.at.NATS, 200, false))
		}
	}
	node := firstOf(c.at.Node, defaultNode)
	if err := protocol.CheckToken("node", node); err != nil {
		return "", usagef("--node: %w", err)
	}
	file, err := filepath.Abs(c.at.Creds)
	if err != nil {
		return "", fmt.Errorf("finding the credentials: %w", err)
	}
	switch creds, err := bus.ReadCreds(file); {
	case err != nil:
		c.warnDenied(err)
	case creds.Role != protocol.RoleAgent:
		return "", usagef("--creds %s is of role %s: the hook asks as an agent (`assent creds issue --role agent --name NAME --out FILE`)", file, creds.Role)
	}
	return "--nats " + shellQuote(c.at.NATS) + " --creds " + shellQuote(file) + " --node " + node, nil
}

func (c *claudeInstall) warnDenied(err error) {
	fmt.Fprintf(c.env.Stderr, "assent: until this is mended, every call of Claude Code will be denied: %v\n", err)
}

// binary is the absolute path of the assent to call. One that `go run` has
// built is gone when the hook needs it.
func (c *claudeInstall) binary() (string, error) {
	path, err := c.command, error(nil)
	if path == "" {
		if path, err = os.Executable(); err != nil {
			return "", fmt.Errorf("finding this binary: %w: name it with --command PATH", err)
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", fmt.Errorf("finding the binary: %w", err)
	}
	if c.builtByGoRun(path) {
		return "", fmt.Errorf("%s is in Go's build cache and will be gone: run `go install github.com/assent-dev/assent@latest` (or `go install .` in its folder) and that binary, or name one with --command PATH", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("looking at the binary that the hook calls: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("%s is no executable file: name one with --command PATH", path)
	}
	return path, nil
}

// cachedBinary is the folder in which `go run` keeps a binary of its cache.
var cachedBinary = regexp.MustCompile(`^[0-9a-f]{64}-d$`)

// builtByGoRun says whether path is where `go run` leaves what it has built: a
// folder for the moment, or its cache, which is cleaned by age.
func (c *claudeInstall) builtByGoRun(path string) bool {
	for _, part := range strings.Split(filepath.ToSlash(path), "/") {
		if strings.HasPrefix(part, "go-build") || cachedBinary.MatchString(part) {
			return true
		}
	}
	cache := c.env.Getenv("GOCACHE")
	return filepath.IsAbs(cache) && strings.HasPrefix(path, filepath.Clean(cache)+string(filepath.Separator))
}

// shellQuote writes s as one word for a POSIX shell.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%,", r)
	}
	if s != "" && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// warnDisabled says loudly where all hooks are switched off: nothing else would.
func (c *claudeInstall) warnDisabled(file *settingsFile) {
	warn := func(path string) {
		fmt.Fprintf(c.env.Stderr, "assent: WARNING: %s holds \"disableAllHooks\": Claude Code will run every call without asking, whatever is installed. Take it out.\n", path)
	}
	if file.parsed.HooksDisabled() {
		warn(file.path)
	}
	for _, name := range []string{"settings.json", "settings.local.json"} {
		path := filepath.Join(".claude", name)
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		s, perr := claudecode.ParseSettings(text)
		if err := errors.Join(err, perr); err != nil {
			fmt.Fprintf(c.env.Stderr, "assent: cannot tell whether %s switches hooks off: %v\n", path, err)
			continue
		}
		if s.HooksDisabled() {
			warn(path)
		}
	}
}

// agree shows the change and asks for it.
func (c *claudeInstall) agree(ctx context.Context, file *settingsFile, text []byte) error {
	fmt.Fprint(c.env.Stdout, changeOf(file.path, file.text, text))
	if c.yes {
		return nil
	}
	if !isTerminal(c.env.Stdin) || !isTerminal(c.env.Stdout) {
		return usagef("nothing is written: there is no terminal to ask at; run it again with --yes")
	}
	fmt.Fprint(c.env.Stdout, "Write this? [y/N] ")
	if word, err := readLine(ctx, c.env.Stdin); err != nil || word != "y" && word != "yes" {
		return errors.New("nothing is written: not confirmed")
	}
	return nil
}

// readLine reads one line, in lower case, until ctx ends. The reader of a line
// that nobody types is left behind: it ends with the process.
func readLine(ctx context.Context, r io.Reader) (string, error) {
	type result struct {
		text string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := bufio.NewReader(r).ReadString('\n')
		read <- result{text, err}
	}()
	select {
	case got := <-read:
		return strings.ToLower(strings.TrimSpace(got.text)), got.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// changeOf shows what differs between two texts of a file: one stretch of lines,
// with some lines around it.
func changeOf(path string, from, to []byte) string {
	const around = 3
	a, b := linesOf(from), linesOf(to)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out strings.Builder
	show := func(mark string, lines []string) {
		for _, l := range lines {
			out.WriteString(mark + protocol.Safe(l, 500, false) + "\n")
		}
	}
	fmt.Fprintf(&out, "%s, from line %d:\n", path, max(0, head-around)+1)
	show("  ", a[max(0, head-around):head])
	show("- ", a[head:len(a)-tail])
	show("+ ", b[head:len(b)-tail])
	show("  ", a[len(a)-tail:min(len(a), len(a)-tail+around)])
	return out.String()
}

func linesOf(text []byte) []string {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
