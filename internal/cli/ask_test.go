package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/assent-dev/assent/pkg/protocol"
)

func TestAskSaysTheDecision(t *testing.T) {
	t.Parallel()
	d := newSeat(t)
	g := d.gate(t)
	for _, row := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"allowed", []string{"--input", `{"command":"git push"}`}, ExitOK, "allowed  Allowed by a rule.", ""},
		{"denied", []string{"--input", `{"command":"rm x"}`}, ExitDenied, `denied   Denied by a rule of the policy. Reason: "not here"`, ""},
		{"as JSON", []string{"--input", `{"command":"rm x"}`, "--json"}, ExitDenied, `"outcome":"denied_by_rule"`, ""},
		{"junk", []string{"--input", `{"command":"junk"}`}, ExitFailure, "", "bad reply"},
		{"a fault", []string{"--input", `{"command":"conflict"}`}, ExitFailure, "", "a new id"},
		{"no decision in time", []string{"--input", `{"command":"wait"}`, "--timeout", "700ms"}, ExitFailure, "", "no decision in time: the ask was still waiting for a person and is withdrawn"},
		{"who waits", []string{"--input", `{"command":"wait"}`, "--timeout", "700ms"}, ExitFailure, "", "waiting for a person: assent answer 01"},
	} {
		code, stdout, stderr := d.typed(Ask, append([]string{"ask", "--tool", "bash"}, row.args...)...)
		if code != row.code || !strings.Contains(stdout, row.stdout) || !strings.Contains(stderr, row.stderr) || (row.stdout == "") != (stdout == "") {
			t.Errorf("%s: exit %d\nstdout %s\nstderr %s", row.name, code, stdout, stderr)
		}
	}
	if len(g.withdrawn) != 3 {
		t.Errorf("%d asks withdrawn, want those of junk, 2 timeouts and no other", len(g.withdrawn))
	}
}

func TestAskSendsTheFacts(t *testing.T) {
	t.Parallel()
	d := newSeat(t)
	g := d.gate(t)
	id := protocol.NewAskID()
	code, _, stderr := d.typed(Ask, "ask", "--tool", "read", "--input", `{"path":"a/../.env"}`, "--cwd", "/nowhere/app", "--id", id, "--session", "s1", "--agent-name", "reviewer")
	if code != ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if !strings.Contains(stderr, "/nowhere/app is no folder here") {
		t.Errorf("a folder that is not there: %q", stderr)
	}
	ask := <-g.asks
	if ask.ID != id || ask.Session.ID != "s1" || ask.AgentName != "reviewer" || ask.Cwd != "/nowhere/app" || ask.Agent != "someone" ||
		len(ask.Paths) != 1 || ask.Paths[0] != (protocol.Path{Raw: "a/../.env", Resolved: "/nowhere/app/.env"}) {
		t.Errorf("the facts got lost: %+v", ask)
	}
}

func TestAskWithdrawsWhenInterrupted(t *testing.T) {
	t.Parallel()
	d := newSeat(t)
	g := d.gate(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-g.asks
		<-g.asks // it has heard where the ask stands, and asks on
		cancel()
	}()
	var out, errs bytes.Buffer
	root := newRoot(d.env(&out, &errs), []Command{Ask})
	root.SetArgs([]string{"ask", "--tool", "bash", "--input", `{"command":"wait"}`})
	if err := root.ExecuteContext(ctx); err == nil || out.Len() != 0 || !strings.Contains(err.Error(), "still waiting for a person") {
		t.Errorf("error %v, stdout %q; want an error alone", err, out.String())
	}
	if c := <-g.withdrawn; !strings.Contains(c.Reason, "interrupted") {
		t.Errorf("withdrew because %q", c.Reason)
	}
}

func TestAskRefuses(t *testing.T) {
	t.Parallel()
	d := newSeat(t)
	for name, row := range map[string]struct {
		args []string
		code int
	}{
		"no tool":           {[]string{"ask"}, ExitUsage},
		"an argument":       {[]string{"ask", "--tool", "bash", "ls"}, ExitUsage},
		"a text as input":   {[]string{"ask", "--tool", "bash", "--input", "ls"}, ExitUsage},
		"a list as input":   {[]string{"ask", "--tool", "bash", "--input", "[]"}, ExitUsage},
		"two keys":          {[]string{"ask", "--tool", "bash", "--input", `{"a":1,"a":2}`}, ExitUsage},
		"an id that is not": {[]string{"ask", "--tool", "bash", "--id", "1"}, ExitUsage},
		"no file":           {[]string{"ask", "--tool", "bash", "--input", "@nope"}, ExitUsage},
		"no command":        {[]string{"ask", "--tool", "bash"}, ExitUsage},
		"a list as command": {[]string{"ask", "--tool", "bash", "--input", `{"command":["ls"]}`}, ExitUsage},
		"no time":           {[]string{"ask", "--tool", "ls", "--timeout", "0s"}, ExitUsage},
		"days":              {[]string{"ask", "--tool", "ls", "--timeout", "1d"}, ExitUsage},
		"no gate":           {[]string{"ask", "--tool", "ls"}, ExitFailure},
		"no server":         {[]string{"ask", "--tool", "ls", "--nats", "nats://127.0.0.1:1"}, ExitFailure},
	} {
		code, stdout, stderr := d.typed(Ask, row.args...)
		if code != row.code || stdout != "" || stderr == "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q; want exit %d", name, code, stdout, stderr, row.code)
		}
	}
}

func TestWhoIsWaitedForIsSaidInWords(t *testing.T) {
	t.Parallel()
	for stage, want := range map[string]string{
		"terminal:human":   "a person",
		"terminal:parent":  "the parent node",
		"terminal:deny":    "the terminal (deny)",
		"link:model-judge": "judge model-judge",
	} {
		if got := stageForPeople(stage); got != want {
			t.Errorf("%s: %q, want %q", stage, got, want)
		}
	}
}
