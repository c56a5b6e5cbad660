package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	claudecode "github.com/assent-dev/assent/integrations/claude-code"
	"github.com/assent-dev/assent/internal/local"
	"github.com/assent-dev/assent/pkg/protocol"
)

// versionTime bounds `claude --version`.
const versionTime = 20 * time.Second

// Install is the command that points an agent at the gate.
func Install(env *Env) *cobra.Command {
	c := &claudeInstall{env: env}
	cmd := &cobra.Command{
		Use:   "claude-code",
		Short: "Write the hook into Claude Code's settings",
		Long: "Writes a PreToolUse hook for every tool into Claude Code's own settings, and leaves everything else there as it is.\n" +
			"Shows the change first and asks; without a terminal it writes only with --yes.\n" +
			"Claude Code sessions that run already go on without the hook: start them again.",
		Example: "  assent install claude-code\n  assent install claude-code --yes --settings ~/.claude/settings.json",
		Args:    exactArgs(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.install(cmd.Context()) },
	}
	c.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&c.claude, "claude", "claude", "the claude binary whose version is checked")
	f.BoolVar(&c.anyVersion, "skip-version-check", false, "do not check the version: below "+claudecode.LeastVersion+" a failing hook lets the call run")
	f.StringVar(&c.local, "local", "", "file that `assent up` wrote (default: this user's)")
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
		RunE:    func(*cobra.Command, []string) error { return c.uninstall() },
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
	command    string
}

func (c *claudeInstall) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "write without asking")
	cmd.Flags().StringVar(&c.settings, "settings", "", "the settings file (default: settings.json in $CLAUDE_CONFIG_DIR or ~/.claude)")
}

func (c *claudeInstall) install(ctx context.Context) error {
	if err := c.checkVersion(ctx); err != nil {
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
	if err := c.agree(file, file.parsed.Text()); err != nil {
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
	fmt.Fprintf(c.env.Stdout, "Written: %s\nStart running Claude Code sessions again; then `assent doctor` proves the gate by a denied call.\nTo undo: assent uninstall claude-code\n", file.path)
	return nil
}

func (c *claudeInstall) uninstall() error {
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
	if err := c.agree(file, text); err != nil {
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

// checkVersion runs `claude --version`.
func (c *claudeInstall) checkVersion(ctx context.Context) error {
	if c.anyVersion {
		fmt.Fprintf(c.env.Stderr, "assent: the version of Claude Code is not checked: below %s it runs a call whose hook fails\n", claudecode.LeastVersion)
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, versionTime)
	defer stop()
	out, err := exec.CommandContext(ctx, c.claude, "--version").Output()
	if err != nil {
		return fmt.Errorf("asking %s for its version: %w: name the binary with --claude PATH; --skip-version-check goes on without, but versions below %s ignore onFailure and run a call whose hook fails", c.claude, err, claudecode.LeastVersion)
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
	file := c.local
	if file == "" {
		if file, err = local.Path(c.env.Getenv); err != nil {
			return "", err
		}
	}
	if file, err = filepath.Abs(file); err != nil {
		return "", fmt.Errorf("finding the local file: %w", err)
	}
	if _, err := local.Load(file); err != nil {
		fmt.Fprintf(c.env.Stderr, "assent: until this is mended, every call of Claude Code will be denied: %v\n", err)
	}
	return shellQuote(binary) + " hook claude-code --local " + shellQuote(file), nil
}

// binary is the absolute path of the assent to call. One that `go run` has
// built is gone when the hook needs it.
func (c *claudeInstall) binary() (string, error) {
	path, err := c.command, error(nil)
	if path == "" {
		if path, err = os.Executable(); err != nil {
			return "", fmt.Errorf("finding this binary: %w: name it with --command PATH", err)
		}
		if builtByGoRun(path) {
			return "", fmt.Errorf("%s was built by `go run` and will be gone: run `go install github.com/assent-dev/assent@latest` (or `go install .` in its folder) and that binary, or name one with --command PATH", path)
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", fmt.Errorf("finding the binary: %w", err)
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

func builtByGoRun(path string) bool {
	for _, part := range strings.Split(filepath.ToSlash(path), "/") {
		if strings.HasPrefix(part, "go-build") {
			return true
		}
	}
	return false
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
func (c *claudeInstall) agree(file *settingsFile, text []byte) error {
	fmt.Fprint(c.env.Stdout, changeOf(file.path, file.text, text))
	if c.yes {
		return nil
	}
	if !isTerminal(c.env.Stdin) || !isTerminal(c.env.Stdout) {
		return usagef("nothing is written: there is no terminal to ask at; run it again with --yes")
	}
	fmt.Fprint(c.env.Stdout, "Write this? [y/N] ")
	answer, err := bufio.NewReader(c.env.Stdin).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err != nil || word != "y" && word != "yes" {
		return errors.New("nothing is written: not confirmed")
	}
	return nil
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
