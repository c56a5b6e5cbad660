package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// logDesk is a node and the environment of somebody who types commands at it.
type logDesk struct {
	node *nodetest.Node
	vars map[string]string
}

// newDesk starts a node; commands at it act as role.
func newDesk(t *testing.T, role protocol.Role) *logDesk {
	t.Helper()
	n := nodetest.Start(t)
	creds := filepath.Join(t.TempDir(), "creds")
	if err := os.WriteFile(creds, n.Creds(t, role, "someone"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &logDesk{node: n, vars: map[string]string{"ASSENT_NATS": n.ClientURL(), "ASSENT_CREDS": creds}}
}

// typed runs a command to its end.
func (d *logDesk) typed(t *testing.T, c Command, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(d.env(&out, &errs), args, c)
	return code, out.String(), errs.String()
}

func (d *logDesk) env(out, errs io.Writer) *Env {
	return &Env{Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Getenv: func(k string) string { return d.vars[k] }}
}

// record puts a decision into the stream as a gate does.
func (d *logDesk) record(t *testing.T, change func(*protocol.Decision)) protocol.Decision {
	t.Helper()
	dec := protocol.Decision{
		Ask: protocol.NewAskID(), Node: "main", Gate: "g1", Agent: "ci-42", Session: protocol.Session{ID: "s1"},
		Result: protocol.FinalDeny, Outcome: protocol.DeniedByLink, Reason: "wrong segment", Tool: "bash",
		Input: []byte(`{"command":"ls ../x/y"}`), Approver: "oncall-2",
		Surface: "external_directory", Value: "/x/y", MatchedPattern: "*", Origin: "fleet",
		DecidedBy: protocol.Decider{Kind: protocol.DeciderLink, Name: "model-judge", Node: "main"},
		Trail: []protocol.TrailEntry{
			{Link: "first", Verdict: protocol.ChoiceDefer, Failure: "timeout", MS: 8000},
			{Link: "wide", Verdict: protocol.ChoiceDefer, Capped: true, MS: 3},
			{Link: "model-judge", Verdict: protocol.ChoiceDeny, Reason: "wrong segment", MS: 412},
		},
		Policy:  protocol.PolicyRef{Revision: 12, Digest: "sha256:abc"},
		AskedAt: time.Unix(100, 0).UTC(), DecidedAt: time.Unix(101, 5e8).UTC(),
	}
	if change != nil {
		change(&dec)
	}
	body, err := protocol.Write(dec)
	if err != nil {
		t.Fatal(err)
	}
	subject, err := d.node.Subjects.Decision(dec.Ask, dec.Agent, dec.Surface, dec.Result)
	if err != nil {
		t.Fatal(err)
	}
	d.publish(t, subject, body)
	return dec
}

func (d *logDesk) publish(t *testing.T, subject string, body []byte) {
	t.Helper()
	js, err := bus.JetStream(d.node.Connect(t, protocol.RoleGate, "g1"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := js.Publish(ctx, subject, body); err != nil {
		t.Fatal(err)
	}
}

func allowed(d *protocol.Decision) {
	d.Result, d.Outcome, d.DecidedBy, d.Trail = protocol.FinalAllow, protocol.AllowedByHuman, protocol.Decider{Kind: protocol.DeciderHuman, Name: "oncall-1"}, nil
	d.Agent, d.Surface, d.Value = "laptop", "bash", "git push"
	d.Input, d.Approver = nil, "" // as an older record
}

func canary(d *protocol.Decision) {
	d.Tool, d.Surface, d.Agent, d.Outcome, d.Input = policy.ToolCanary, policy.ToolCanary, "prober", protocol.DeniedByRule, nil
}

// TestLogLines: one line a decision, the newest last, with what a person looks
// for; filters leave the others out.
func TestLogLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleAuditor)
	denied := d.record(t, nil)
	allow := d.record(t, allowed)
	d.record(t, canary)
	d.publish(t, "assent.v1.main.decision."+protocol.NewAskID()+".ci-42.bash.allow", []byte("junk"))
	rows := []struct {
		args string
		want [][]string
	}{
		{"log", [][]string{
			logHead,
			{"deny", "denied_by_link", "ci-42", "bash: ls ../x/y", "link model-judge", denied.Ask},
			{"allow", "allowed_by_human", "laptop", "bash: git push", "human oncall-1", allow.Ask},
			{"BROKEN", "ASSENT_DECISIONS 4", "malformed"},
		}},
		{"log --limit 1", [][]string{logHead, {"BROKEN"}}},
		{"log --limit 2", [][]string{logHead, {allow.Ask}, {"BROKEN"}}},
		{"log --agent laptop", [][]string{logHead, {allow.Ask}}},
		{"log --result deny --since 1h", [][]string{logHead, {denied.Ask}}},
		{"log --outcome allowed_by_human", [][]string{logHead, {allow.Ask}}},
		{"log --surface external_directory", [][]string{logHead, {denied.Ask}}},
		{"log --all --agent prober", [][]string{logHead, {policy.ToolCanary}}},
	}
	for _, row := range rows {
		t.Run(row.args, func(t *testing.T) {
			t.Parallel()
			code, out, errs := d.typed(t, Log, strings.Fields(row.args)...)
			if code != ExitOK || errs != "" {
				t.Fatalf("exit %d, %q", code, errs)
			}
			wantLines(t, out, row.want)
			if strings.Contains(out, "\x1b") {
				t.Error("colours though nobody sits at a terminal")
			}
		})
	}
	for args, want := range map[string]string{
		"log --agent nobody":               "no record matches",
		"log --agent prober":               "1 test call of the doctor: --all",
		"log --since 2999-01-01T00:00:00Z": "no record matches",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			if code, out, errs := d.typed(t, Log, strings.Fields(args)...); code != ExitOK || out != "" || !strings.Contains(errs, want) {
				t.Errorf("exit %d, %q, %q; want %q", code, out, errs, want)
			}
		})
	}
	t.Run("JSON hides nothing", func(t *testing.T) {
		t.Parallel()
		if _, out, _ := d.typed(t, Log, "log", "--json"); strings.Count(out, "\n") != 4 {
			t.Errorf("got\n%s", out)
		}
	})
}

var logHead = []string{"TIME", "RESULT", "OUTCOME", "AGENT", "CALL", "BY", "ASK"}

// An id may be typed in part, in either case, where it names one ask.
func TestLogTakesPartsOfIDs(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleAuditor)
	one := d.record(t, nil)
	two := d.record(t, allowed)
	for _, row := range []struct {
		id   string
		code int
		want string
	}{
		{strings.ToLower(one.Ask), ExitOK, one.Ask},
		{one.Ask[18:], ExitOK, one.Ask},
		{strings.ToLower(two.Ask[20:]), ExitOK, two.Ask},
		{one.Ask[:6], ExitUsage, two.Ask},
		{"ZZZZZZ", ExitFailure, "ZZZZZZ"},
		{one.Ask[21:], ExitUsage, "at least 6"},
		{one.Ask + "0", ExitUsage, "26 characters"},
		{"ILOILOILO", ExitUsage, "ULID"},
	} {
		code, out, errs := d.typed(t, Log, "log", row.id)
		if code != row.code || !strings.Contains(out+errs, row.want) || (code == ExitOK) != (errs == "") {
			t.Errorf("%s: exit %d, %q, %q; want exit %d with %q", row.id, code, out, errs, row.code, row.want)
		}
	}
}

// A line is no wider than the terminal, and still says what was called.
func TestSheetFitsTheTerminal(t *testing.T) {
	t.Parallel()
	d := protocol.Decision{Ask: protocol.NewAskID(), Agent: strings.Repeat("a", 40), Tool: "bash", Outcome: protocol.AllowedByHuman, Result: protocol.FinalAllow}
	for _, width := range []int{60, 80, 100, 119, 120, 139, 140, 160, 300} {
		var b strings.Builder
		s := &sheet{w: &b, width: width}
		cells := map[string]string{"TIME": "01-02 15:04:05", "RESULT": "allow", "OUTCOME": string(d.Outcome), "AGENT": d.Agent,
			"CALL": "bash: é" + strings.Repeat("x", 400), "BY": "human " + strings.Repeat("b", 40), "ASK": d.Ask, "ASK ENDS": d.Ask[18:]}
		if err := errors.Join(s.head(false), s.row(cells)); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if n := utf8.RuneCountInString(lines[1]); n > width {
			t.Errorf("width %d: %d columns: %s", width, n, lines[1])
		}
		if len(lines) != 2 || !strings.HasSuffix(lines[1], d.Ask[18:]) || !strings.Contains(lines[1], "bash: éx") {
			t.Errorf("width %d: %q", width, lines)
		}
	}
}

func wantLines(t *testing.T, out string, want [][]string) {
	t.Helper()
	var lines []string
	if out != "" {
		lines = strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), out)
	}
	for i, words := range want {
		for _, w := range words {
			if !strings.Contains(lines[i], w) {
				t.Errorf("line %d does not say %q: %s", i+1, w, lines[i])
			}
		}
	}
}

// TestLogShowsNothingThatRedraws: a value that an agent chose cannot move the
// cursor, hide text or fake a second line.
func TestLogShowsNothingThatRedraws(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleAuditor)
	evil := "x\x1b[2K\r\nallow \u202egnp.exe\u200b"
	dec := d.record(t, func(d *protocol.Decision) {
		d.Value, d.Reason, d.MatchedPattern, d.Trail[0].Reason = evil, evil, evil, evil
	})
	for _, args := range [][]string{{"log"}, {"log", dec.Ask}} {
		code, out, _ := d.typed(t, Log, args...)
		if code != ExitOK || strings.ContainsAny(out, "\x1b\r\u202e\u200b") || strings.Contains(out, "\nallow") {
			t.Errorf("%v: exit %d, %q", args, code, out)
		}
	}
}

// TestLogOfOneAsk: everything about it, in order, with its trail.
func TestLogOfOneAsk(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleAuditor)
	dec := protocol.NewAskID()
	d.publish(t, "assent.v1.main.review."+dec+".model_judge.decision",
		fmt.Appendf(nil, `{"v":1,"event":"model_judge.decision","ask":%q,"node":"main","at":"2026-01-01T00:00:00Z","link":"model-judge","fields":{"verdict":"deny"}}`, dec))
	d.record(t, func(d *protocol.Decision) { d.Ask = dec })
	d.record(t, nil)

	code, out, errs := d.typed(t, Log, "log", dec)
	if code != ExitOK {
		t.Fatalf("exit %d, %q", code, errs)
	}
	at := 0
	for _, w := range []string{
		"ask " + dec, "model_judge.decision", "link model-judge", `{"verdict":"deny"}`, "deny  denied_by_link, by link model-judge", "ci-42", `{"command":"ls ../x/y"}`, "/x/y",
		"wrong segment", "oncall-2", "revision 12", "1.5s", "first", "8000 ms  timeout", "wide", "outside the envelope", "model-judge", "412 ms",
	} {
		i := strings.Index(out[at:], w)
		if i < 0 {
			t.Fatalf("%q does not stand after what comes before it:\n%s", w, out)
		}
		at += i + len(w)
	}
	if n := strings.Count(out, dec); n != 1 {
		t.Errorf("the id stands there %d times:\n%s", n, out)
	}
}

// TestLogJSON: one object a line, the same as the auditor's file holds.
func TestLogJSON(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleAuditor)
	dec := d.record(t, nil)
	for _, args := range [][]string{{"log", "--json"}, {"log", dec.Ask, "--json"}} {
		code, out, errs := d.typed(t, Log, args...)
		var rec struct {
			Ask, Kind, Stream, Subject string
			Seq                        int
			Record                     protocol.Decision
		}
		if code != ExitOK || strings.Count(out, "\n") != 1 {
			t.Fatalf("exit %d, %q, %q", code, out, errs)
		}
		if err := json.Unmarshal([]byte(out), &rec); err != nil {
			t.Fatal(err)
		}
		if rec.Ask != dec.Ask || rec.Kind != "decision" || rec.Seq != 1 || rec.Stream != "ASSENT_DECISIONS" || rec.Record.Reason != "wrong segment" {
			t.Errorf("got %+v", rec)
		}
	}
}

func TestLogReview(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleAuditor)
	id := protocol.NewAskID()
	d.record(t, nil)
	cause := strings.Repeat("x", 400) // a pipe's reader gets it whole
	d.publish(t, "assent.v1.main.review."+id+".gate_error",
		fmt.Appendf(nil, `{"v":1,"event":"gate_error","ask":%q,"node":"main","at":"2026-01-01T00:00:00Z","gate":"g1","fields":{"error":%q}}`, id, cause))
	code, out, errs := d.typed(t, Log, "log", "--review")
	if code != ExitOK {
		t.Fatalf("exit %d, %q", code, errs)
	}
	wantLines(t, out, [][]string{{"TIME", "EVENT", "ASK"}, {"gate_error", "gate g1", id, `{"error":"` + cause + `"}`}})
	lines := strings.Split(out, "\n")
	if strings.Index(lines[0], "WHO") != strings.Index(lines[1], "gate g1") {
		t.Errorf("the columns do not stand below their heads:\n%s", out)
	}
	var b strings.Builder
	s := &sheet{w: &b, width: unknownWidth}
	if err := errors.Join(s.head(true), s.reviewRow("01-02 15:04:05", id, protocol.EventForwardCreated, "gate g1", "{}")); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(b.String(), "\n"); strings.Index(lines[0], "WHO") != strings.Index(lines[1], "gate g1") {
		t.Errorf("the gate's longest event moves the columns:\n%s", b.String())
	}
}

// TestLogFollow prints what comes, and an interrupt ends it without an error.
func TestLogFollow(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleAuditor)
	old := d.record(t, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	read, write := io.Pipe()
	cmd := Log(d.env(write, io.Discard))
	cmd.SetArgs([]string{"--follow", "--json"})
	done := make(chan error, 1)
	go func() { done <- errors.Join(execute(ctx, cmd), write.Close()) }()
	lines := bufio.NewScanner(read)
	for _, want := range []protocol.Decision{old, {}, {}} {
		if want.Ask == "" {
			want = d.record(t, allowed)
		}
		if !lines.Scan() || !strings.Contains(lines.Text(), want.Ask) {
			t.Fatalf("the next line is %q, want ask %s", lines.Text(), want.Ask)
		}
	}
	interrupt()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("interrupted: %v, want no error", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("an interrupt does not end it")
	}
}

func execute(ctx context.Context, cmd *cobra.Command) error { return cmd.ExecuteContext(ctx) }

// TestLogRefuses: what was typed wrong is said, with a way out, and is never
// answered as if nothing had been recorded.
func TestLogRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t, protocol.RoleAuditor)
	gone := protocol.NewAskID()
	rows := []struct {
		args string
		code int
		want string
	}{
		{"log --result maybe", ExitUsage, "allow, deny"},
		{"log --outcome denied", ExitUsage, "denied_by_rule"},
		{"log --since yesterday", ExitUsage, "15m"},
		{"log --since -1h", ExitUsage, "time span"},
		{"log --limit -1", ExitUsage, "--limit -1"},
		{"log --agent a.b", ExitUsage, "agent"},
		{"log --review --agent ci-42", ExitUsage, "review log"},
		{"log --nonsense", ExitUsage, "--help"},
		{"log 01ABC", ExitUsage, "ULID"},
		{"log " + gone + " --follow", ExitUsage, "everything about this ask"},
		{"log " + gone + " " + gone, ExitUsage, "at most one"},
		{"log " + gone, ExitFailure, "assent pending"},
		{"log --nats nats://127.0.0.1:1", ExitFailure, "assent up"},
	}
	for _, row := range rows {
		t.Run(row.args, func(t *testing.T) {
			t.Parallel()
			code, out, errs := d.typed(t, Log, strings.Fields(row.args)...)
			if code != row.code || out != "" || !strings.Contains(errs, row.want) {
				t.Errorf("exit %d, %q, %q; want exit %d and %q", code, out, errs, row.code, row.want)
			}
		})
	}
	t.Run("another role's credentials", func(t *testing.T) {
		t.Parallel()
		code, _, errs := newDesk(t, protocol.RoleApprover).typed(t, Log, "log")
		if code != ExitFailure || !strings.Contains(errs, "auditor") {
			t.Errorf("exit %d, %q; want a word on the role", code, errs)
		}
	})
}

func TestSheetColoursATerminalOnly(t *testing.T) {
	t.Parallel()
	for _, colour := range []bool{true, false} {
		s := &sheet{colour: colour}
		for _, r := range []protocol.FinalChoice{protocol.FinalAllow, protocol.FinalDeny} {
			if got := strings.Contains(s.result(r), "\x1b["); got != colour {
				t.Errorf("colour %v, %s: %q", colour, r, s.result(r))
			}
		}
	}
}
