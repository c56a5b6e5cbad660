package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	claudecode "github.com/assent-dev/assent/integrations/claude-code"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// hookProofTime bounds one run of the configured hook.
const hookProofTime = 20 * time.Second

var errNoVerdict = errors.New("the hook gave no explicit deny")

// checkClaude looks at Claude Code's settings and runs the command that they
// name with a call that must be denied. Only the gate's own words prove it: a
// hook that finds no gate denies too.
func (d *doctor) checkClaude(ctx context.Context) {
	path, err := d.hook.path()
	if err != nil {
		d.warn("claude-code", "name the settings with --settings", "%v", err)
		return
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		d.ok("claude-code", "not used here: there is no %s", path)
		return
	}
	file, err := openSettings(path)
	if err != nil {
		d.fail("claude-code", "Claude Code drops a settings file that it cannot read, hook included: mend it", "%v", err)
		return
	}
	command := file.parsed.Command()
	if command == "" {
		d.warn("claude-code", "assent install claude-code", "%s calls no hook of Assent: Claude Code asks no gate", path)
		return
	}
	if disabled := hooksDisabledIn(file, "."); disabled != "" {
		d.fail("claude-code-hooks", "take disableAllHooks out of it", "%s switches all hooks off: every call runs unasked", disabled)
	}
	if err := d.hook.checkVersion(ctx); err != nil {
		d.warn("claude-code-version", "see that it is "+claudecode.LeastVersion+" or newer: older ones ignore onFailure and run a call whose hook fails", "%v", err)
	}
	switch err := d.proveHook(ctx, command); {
	case err != nil && d.operator == nil:
		// The hook may be as it should: what is broken has been said.
		d.warn("claude-code", "mend the node first, then run `assent doctor` again", "the hook in %s is not checked until the node answers: every call is denied", path)
		return
	case err != nil:
		d.fail("claude-code", "run `assent install claude-code` again", "the hook in %s is not proven: %v", path, err)
		return
	}
	d.ok("claude-code", "the hook in %s denied a call that must be denied, in the gate's words", path)
	if d.guest {
		d.excuseNode()
	}
}

// excuseNode makes a doubt of a node that was not found: the hook's gate is
// elsewhere, and has just answered.
func (d *doctor) excuseNode() {
	for i, f := range d.findings {
		if f.Check == "node" && f.State == stateFail {
			d.findings[i] = diagnosis{f.Check, stateWarn, "the node is not looked at, only the hook below: " + f.Text,
				"have its operator run `assent doctor` there, or name the server and an operator's credentials"}
		}
	}
}

// hooksDisabledIn names the settings file that switches all hooks off, "" for
// none: the user's, or one of the project in dir.
func hooksDisabledIn(user *settingsFile, dir string) string {
	if user.parsed.HooksDisabled() {
		return user.path
	}
	for _, name := range []string{"settings.json", "settings.local.json"} {
		path := filepath.Join(dir, ".claude", name)
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if s, err := claudecode.ParseSettings(text); err == nil && s.HooksDisabled() {
			return path
		}
	}
	return ""
}

// proveHook runs command as Claude Code would, in a shell.
func (d *doctor) proveHook(ctx context.Context, command string) error {
	ctx, cancel := context.WithTimeout(ctx, hookProofTime)
	defer cancel()
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the working folder: %w", err)
	}
	input, err := json.Marshal(map[string]any{
		"session_id": "assent-doctor", "transcript_path": "", "cwd": cwd, "permission_mode": "default", "hook_event_name": "PreToolUse",
		"tool_name": policy.ToolCanary, "tool_input": map[string]any{}, "tool_use_id": "assent-doctor",
	})
	if err != nil {
		return fmt.Errorf("making the call: %w", err)
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.WaitDelay = time.Second
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%q: %w: %s", command, err, protocol.Safe(stderr.String(), 300, false))
	}
	return deniedByCanary(out)
}

// deniedByCanary wants an explicit deny with the words of the built-in rule.
func deniedByCanary(out []byte) error {
	var said struct {
		Out struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return fmt.Errorf("%w: %q", errNoVerdict, protocol.Safe(string(out), 200, false))
	}
	if said.Out.Decision != "deny" {
		return fmt.Errorf("%w, but %q", errNoVerdict, said.Out.Decision)
	}
	if !strings.Contains(said.Out.Reason, policy.CanaryReason) {
		return fmt.Errorf("it denied, but not in the gate's words: %s", protocol.Safe(said.Out.Reason, 400, false))
	}
	return nil
}
