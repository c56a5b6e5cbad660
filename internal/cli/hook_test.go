package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/local"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

const hookInput = `{"session_id":"s1","cwd":"/home/dev/app","permission_mode":"bypassPermissions","hook_event_name":"PreToolUse",` +
	`"tool_name":"Bash","tool_input":{"command":"git push"},"tool_use_id":"t1"}`

// seat is a node and an agent's credentials for it.
type seat struct {
	node *nodetest.Node
	vars map[string]string
}

func newSeat(t *testing.T) *seat {
	t.Helper()
	n := nodetest.Start(t)
	creds := filepath.Join(t.TempDir(), "creds")
	if err := os.WriteFile(creds, n.Creds(t, protocol.RoleAgent, "someone"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &seat{node: n, vars: map[string]string{"ASSENT_NATS": n.ClientURL(), "ASSENT_CREDS": creds}}
}

func (d *seat) env(out, errs io.Writer) *Env {
	return &Env{Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Getenv: func(k string) string { return d.vars[k] }}
}

func (d *seat) typed(c Command, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(d.env(&out, &errs), args, c)
	return code, out.String(), errs.String()
}

// answers is a gate of the test's own on a real node: it decides on the bash
// command's first word, and keeps what it heard.
type answers struct {
	t         *testing.T
	asks      chan protocol.Ask
	withdrawn chan protocol.Cancel
	// uploads are the projects' policies that were uploaded.
	uploads chan protocol.ProjectUpload
	known   sync.Map // their digests
	// late makes a withdrawal come too late: the ask is allowed by then.
	late bool
}

func (d *seat) gate(t *testing.T) *answers {
	t.Helper()
	a := &answers{t: t, asks: make(chan protocol.Ask, 64), withdrawn: make(chan protocol.Cancel, 64), uploads: make(chan protocol.ProjectUpload, 64)}
	nc := d.node.Connect(t, protocol.RoleGate, "g-1")
	for kind, f := range map[protocol.Kind]func([]byte) ([]byte, error){protocol.KindAsk: a.ask, protocol.KindCancel: a.cancel, protocol.KindProject: a.upload} {
		if _, err := nc.QueueSubscribe(d.node.Subjects.All(kind), protocol.QueueGate, func(m *nats.Msg) {
			reply, err := f(m.Data)
			if err != nil {
				t.Errorf("the gate cannot read %s: %v", m.Data, err)
			}
			if err := m.Respond(reply); err != nil {
				t.Errorf("answering: %v", err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *answers) ask(data []byte) ([]byte, error) {
	ask, err := protocol.Read[protocol.Ask](data)
	if err != nil {
		return nil, err
	}
	if _, known := a.known.Load(ask.Project.Digest); ask.Project.Digest != "" && !known {
		return protocol.Write(protocol.ErrorReply{Ask: ask.ID, Error: protocol.Fault{Code: protocol.CodeNeedProject, Message: "unknown", Remedy: "upload it"}})
	}
	select {
	case a.asks <- ask:
	default:
	}
	d := protocol.Decision{
		Ask: ask.ID, Node: "main", Gate: "g-1", Agent: ask.Agent, Tool: ask.Tool.Name, Result: protocol.FinalAllow, Outcome: protocol.AllowedByRule,
		DecidedBy: protocol.Decider{Kind: protocol.DeciderRule, Name: "fleet", Node: "main"},
	}
	input := string(ask.Tool.Input)
	switch {
	case strings.Contains(input, "wait") && !a.late:
		return protocol.Write(protocol.Progress{Ask: ask.ID, Status: protocol.StatusPending, Stage: "terminal:human", Since: time.Now()})
	case strings.Contains(input, "junk"):
		return []byte("allow"), nil
	case strings.Contains(input, "conflict"):
		return protocol.Write(protocol.ErrorReply{Ask: ask.ID, Error: protocol.Fault{Code: protocol.CodeConflict, Message: "another call", Remedy: "a new id"}})
	case strings.Contains(input, "rm"):
		d.Result, d.Outcome, d.Reason = protocol.FinalDeny, protocol.DeniedByRule, "not here"
	}
	return protocol.Write(d)
}

func (a *answers) upload(data []byte) ([]byte, error) {
	up, err := protocol.Read[protocol.ProjectUpload](data)
	if err != nil {
		return nil, err
	}
	a.uploads <- up
	a.known.Store(up.Digest, true)
	return protocol.Write(protocol.ProjectReceipt{Digest: up.Digest})
}

func (a *answers) cancel(data []byte) ([]byte, error) {
	c, err := protocol.Read[protocol.Cancel](data)
	if err != nil {
		return nil, err
	}
	a.withdrawn <- c
	return protocol.Write(protocol.CancelReceipt{Ask: c.Ask, Cancelled: !a.late})
}

// hooked runs the hook with the desk's credentials and returns its exit code,
// its verdict and its reason. It fails the test where there is no explicit
// verdict, or where the environment was read.
func (d *seat) hooked(t *testing.T, ctx context.Context, stdin io.Reader, args ...string) (code int, verdict, reason string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := &Env{Stdin: stdin, Stdout: &out, Stderr: &errs, Getenv: func(k string) string {
		t.Errorf("the hook reads %s", k)
		return ""
	}}
	root := newRoot(env, []Command{Hook})
	root.SetArgs(append([]string{"hook", "claude-code"}, args...))
	if cmd, err := root.ExecuteContextC(ctx); err != nil {
		code = report(env, cmd, err)
	}
	verdict, reason = verdictOf(t, out.Bytes())
	return code, verdict, reason
}

func verdictOf(t *testing.T, out []byte) (verdict, reason string) {
	t.Helper()
	var v struct {
		Out struct {
			Event  string `json:"hookEventName"`
			Word   string `json:"permissionDecision"`
			Reason string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("stdout is no JSON: %v: %s", err, out)
	}
	if v.Out.Event != "PreToolUse" || v.Out.Word != "allow" && v.Out.Word != "deny" || v.Out.Reason == "" {
		t.Fatalf("no explicit verdict: %s", out)
	}
	return v.Out.Word, v.Out.Reason
}

func (d *seat) flags() []string {
	return []string{"--nats", d.vars["ASSENT_NATS"], "--creds", d.vars["ASSENT_CREDS"]}
}

func command(word string) io.Reader {
	return strings.NewReader(strings.Replace(hookInput, "git push", word, 1))
}

func TestHookSaysWhatTheGateDecides(t *testing.T) {
	t.Parallel()
	d := newSeat(t)
	g := d.gate(t)
	for _, row := range []struct{ command, verdict, reason string }{
		{"git push", "allow", "Allowed by a rule"},
		{"rm x", "deny", "not here"},
		{"junk", "deny", "bad reply"},
		{"conflict", "deny", "another call"},
	} {
		code, verdict, reason := d.hooked(t, t.Context(), command(row.command), d.flags()...)
		if code != 0 || verdict != row.verdict || !strings.Contains(reason, row.reason) {
			t.Errorf("%s: exit %d, %s (%s); want %s (%s)", row.command, code, verdict, reason, row.verdict, row.reason)
		}
	}
	ask := <-g.asks
	if ask.Agent != "someone" || ask.Session.ID != "s1" || ask.Tool.Name != "bash" || ask.Tool.CallID != "t1" || ask.Cwd != "/home/dev/app" || !filepath.IsAbs(ask.Home) {
		t.Errorf("the facts got lost: %+v", ask)
	}
	if least, most := (hookDeadline - time.Minute).Milliseconds(), hookDeadline.Milliseconds(); ask.MaxWaitMS < least || ask.MaxWaitMS >= most {
		t.Errorf("the gate may take %d ms, the hook waits %d ms", ask.MaxWaitMS, most)
	}
}

func TestHookFindsTheLocalNode(t *testing.T) {
	t.Parallel()
	d := newSeat(t)
	d.gate(t)
	file := d.localFile(t, 0o600)
	if code, verdict, reason := d.hooked(t, t.Context(), command("git push"), "--local", file); code != 0 || verdict != "allow" {
		t.Errorf("exit %d, %s (%s); want allow", code, verdict, reason)
	}
	open := d.localFile(t, 0o644)
	for name, args := range map[string][]string{
		"a file that others may read": {"--local", open},
		"a file that is not there":    {"--local", file + ".gone"},
		"a file in the project":       {"--local", "local.json"},
		"credentials in the project":  {"--local", file, "--creds", "x.creds"},
		"two places":                  {"--local", file, "--nats", d.vars["ASSENT_NATS"]},
		"credentials that are gone":   {"--local", file, "--creds", file + ".gone"},
		"another node":                {"--local", file, "--node", "other"},
		"no node at all":              {"--local", file, "--node", "a.b"},
	} {
		code, verdict, reason := d.hooked(t, t.Context(), command("git push"), args...)
		if code != 0 || verdict != "deny" {
			t.Errorf("%s: exit %d, %s (%s); want deny", name, code, verdict, reason)
		}
	}
}

func (d *seat) localFile(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, local.FileName)
	def := local.Default{NATS: d.vars["ASSENT_NATS"], Node: "main", Store: dir, Creds: map[protocol.Role]string{protocol.RoleAgent: d.vars["ASSENT_CREDS"]}}
	if err := errors.Join(def.Save(file), os.Chmod(file, mode)); err != nil {
		t.Fatal(err)
	}
	return file
}

// Whatever is handed to it, the hook answers deny, in Claude Code's own form.
func TestHookDeniesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	d := newSeat(t)
	g := d.gate(t)
	for name, stdin := range map[string]string{
		"nothing":          "",
		"plain text":       "please allow",
		"a word":           `"allow"`,
		"an empty object":  "{}",
		"cut short":        hookInput[:60],
		"another event":    strings.Replace(hookInput, "PreToolUse", "PostToolUse", 1),
		"no event":         strings.Replace(hookInput, "hook_event_name", "x", 1),
		"two tools":        strings.Replace(hookInput, `"tool_name":"Bash"`, `"tool_name":"Bash","tool_name":"Read"`, 1),
		"more than a MiB":  strings.Replace(hookInput, "git push", strings.Repeat("x", maxHookInput), 1),
		"an ask too large": strings.Replace(hookInput, "git push", strings.Repeat("x", protocol.DefaultMaxBytes), 1),
		"a path with NUL":  strings.Replace(hookInput, `"command":`, `"path":"a\u0000b","command":`, 1),
	} {
		code, verdict, reason := d.hooked(t, t.Context(), strings.NewReader(stdin), d.flags()...)
		if code != 0 || verdict != "deny" {
			t.Errorf("%s: exit %d, %s (%s); want deny", name, code, verdict, reason)
		}
	}
	if len(g.asks) != 0 {
		t.Errorf("the gate was asked about it: %+v", <-g.asks)
	}
}

func TestHookDeniesWithoutAGate(t *testing.T) {
	t.Parallel()
	d := newSeat(t)
	auditor := filepath.Join(t.TempDir(), "auditor")
	if err := os.WriteFile(auditor, d.node.Creds(t, protocol.RoleAuditor, "a"), 0o600); err != nil {
		t.Fatal(err)
	}
	stranger := newSeat(t)
	for name, row := range map[string]struct {
		args   []string
		reason string
	}{
		"no gate":                  {d.flags(), "assent up"},
		"no server":                {[]string{"--nats", "nats://127.0.0.1:1", "--creds", d.vars["ASSENT_CREDS"]}, "assent up"},
		"credentials of a role":    {[]string{"--nats", d.vars["ASSENT_NATS"], "--creds", auditor}, "agent"},
		"credentials of elsewhere": {[]string{"--nats", d.vars["ASSENT_NATS"], "--creds", stranger.vars["ASSENT_CREDS"]}, "refused"},
		"an address that is none":  {[]string{"--nats", "::", "--creds", d.vars["ASSENT_CREDS"]}, "::"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, verdict, reason := d.hooked(t, t.Context(), command("git push"), row.args...)
			if code != 0 || verdict != "deny" || !strings.Contains(reason, row.reason) {
				t.Errorf("exit %d, %s (%s); want deny that names %q", code, verdict, reason, row.reason)
			}
		})
	}
}

func TestHookWithdrawsWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	d := newSeat(t)
	g := d.gate(t)
	code, verdict, reason := d.hooked(t, t.Context(), command("wait"), append(d.flags(), "--deadline", "700ms")...)
	if code != 0 || verdict != "deny" || !strings.Contains(reason, "nobody answered in time") {
		t.Errorf("exit %d, %s (%s); want deny: expired", code, verdict, reason)
	}
	ask, cancel := <-g.asks, <-g.withdrawn
	if cancel.Ask != ask.ID || !strings.Contains(cancel.Reason, "time is over") {
		t.Errorf("withdrew %+v, asked %s", cancel, ask.ID)
	}
}

func TestHookWithdrawsWhenInterrupted(t *testing.T) {
	t.Parallel()
	d := newSeat(t)
	g := d.gate(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		g.asks <- <-g.asks
		cancel()
	}()
	code, verdict, reason := d.hooked(t, ctx, command("wait"), d.flags()...)
	if code != 0 || verdict != "deny" || !strings.Contains(reason, "withdrawn") {
		t.Errorf("exit %d, %s (%s); want deny: withdrawn", code, verdict, reason)
	}
	if c := <-g.withdrawn; !strings.Contains(c.Reason, "interrupted") {
		t.Errorf("withdrew because %q", c.Reason)
	}
}

// A decision that falls in the moment of the withdrawal is on the record, so
// the agent must hear the same.
func TestHookHearsTheDecisionThatCameFirst(t *testing.T) {
	t.Parallel()
	d := newSeat(t)
	g := d.gate(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	at := place{NATS: d.vars["ASSENT_NATS"], Creds: d.vars["ASSENT_CREDS"], Node: "main"}
	a, err := dialAgent(t.Context(), at, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	g.late = true
	h := newClaudeHook(&Env{})
	h.at = at
	ask := protocol.Ask{ID: protocol.NewAskID(), Tool: protocol.Tool{Name: "bash", Input: []byte(`{"command":"wait"}`)}}
	dec, err := a.ask(ctx, ask)
	if err != nil || !dec.Allowed() || dec.Ask != ask.ID {
		t.Errorf("got %+v, %v; want the decision that was recorded", dec, err)
	}
}

// A pipe that nobody closes must not hold the call until the hook is killed.
func TestHookDoesNotWaitForStdinForEver(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close()
	h := newClaudeHook(&Env{Stdin: r})
	h.deadline, h.readTime = time.Minute, 50*time.Millisecond
	if verdict, reason := verdictOf(t, h.answer(t.Context())); verdict != "deny" || !strings.Contains(reason, "stdin") {
		t.Errorf("%s (%s); want deny because of stdin", verdict, reason)
	}
}

func TestHookDeniesWhenItCrashes(t *testing.T) {
	t.Parallel()
	h := newClaudeHook(nil)
	h.deadline = time.Minute
	if verdict, reason := verdictOf(t, h.answer(t.Context())); verdict != "deny" || !strings.Contains(reason, "crashed") {
		t.Errorf("%s (%s); want deny because of the crash", verdict, reason)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// What cannot print a verdict must not end with exit 0 or 1: the call would run.
func TestHookBlocksByExitCode(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for name, row := range map[string]struct {
		args []string
		out  io.Writer
	}{
		"stdout was closed":    {[]string{"hook", "claude-code"}, null},
		"stdout is full":       {[]string{"hook", "claude-code", "--local", "/nowhere/local.json"}, brokenPipe{}},
		"no agent":             {[]string{"hook"}, io.Discard},
		"an unknown agent":     {[]string{"hook", "emacs"}, io.Discard},
		"an unknown flag":      {[]string{"hook", "claude-code", "--yes"}, io.Discard},
		"an argument":          {[]string{"hook", "claude-code", "x"}, io.Discard},
		"a deadline too long":  {[]string{"hook", "claude-code", "--deadline", "11m"}, io.Discard},
		"a deadline of naught": {[]string{"hook", "claude-code", "--deadline", "0s"}, io.Discard},
	} {
		var errs bytes.Buffer
		env := &Env{Stdin: command("git push"), Stdout: row.out, Stderr: &errs, Getenv: func(string) string { return "" }}
		if code := Main(env, row.args, Hook); code != exitBlock || errs.Len() == 0 {
			t.Errorf("%s: exit %d, stderr %q; want exit %d and a text", name, code, errs.String(), exitBlock)
		}
	}
}
