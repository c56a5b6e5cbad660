package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// ward is a node whose operator runs the doctor, far from any local default.
type ward struct{ *logDesk }

func newWard(t *testing.T) ward {
	t.Helper()
	d := newDesk(t, protocol.RoleOperator)
	d.vars["HOME"] = t.TempDir()
	return ward{d}
}

// creds is a file with new credentials.
func (w ward) creds(t *testing.T, role protocol.Role, opts ...node.IssueOptions) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), string(role)+".creds")
	if err := os.WriteFile(path, w.node.Creds(t, role, "doctor", opts...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// gate runs a real gate until the test is over.
func (w ward) gate(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	up, done := make(chan struct{}), make(chan error, 1)
	nc := w.node.Connect(t, protocol.RoleGate, "g-1")
	go func() {
		done <- gateService("main", "g-1", gateModules{}, nil, slog.New(slog.DiscardHandler)).run(ctx, nc, func() { close(up) })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the gate: %v", err)
		}
	})
	<-up
}

// examines returns the findings by check.
func (w ward) examines(t *testing.T, args ...string) (int, map[string]diagnosis) {
	t.Helper()
	code, out, _ := w.typed(t, Doctor, append([]string{"doctor", "--json"}, args...)...)
	found := map[string]diagnosis{}
	for line := range strings.Lines(out) {
		var f diagnosis
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if old, twice := found[f.Check]; twice && f.Check != "chain" {
			t.Errorf("two findings are called %s: %q and %q", f.Check, old.Text, f.Text)
		}
		found[f.Check] = f
	}
	return code, found
}

func wantFinding(t *testing.T, found map[string]diagnosis, check, state, text string) {
	t.Helper()
	f := found[check]
	if f.State != state || !strings.Contains(f.Text+" → "+f.Remedy, text) {
		t.Errorf("%s: %+v; want %s with %q", check, f, state, text)
	}
}

func TestDoctorActsInThreeRoles(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.policyIs(t, `{}`)
	w.gate(t)
	_, found := w.examines(t)
	wantFinding(t, found, "node", stateOK, "answers")
	wantFinding(t, found, "gate", stateOK, "1 running")
	wantFinding(t, found, "gate-call", stateWarn, "--agent-creds")
	wantFinding(t, found, "chain", stateOK, "the chain is empty")

	agent := w.creds(t, protocol.RoleAgent)
	_, found = w.examines(t, "--agent-creds", agent)
	wantFinding(t, found, "gate-call", stateOK, "was denied")
	wantFinding(t, found, "record-call", stateWarn, "--auditor-creds")

	_, found = w.examines(t, "--agent-creds", agent, "--auditor-creds", w.creds(t, protocol.RoleAuditor))
	wantFinding(t, found, "record-call", stateOK, "on the record")
	wantFinding(t, found, "record", stateOK, "ASSENT_DECISIONS holds 1 record")

	_, found = w.examines(t, "--agent-creds", w.creds(t, protocol.RoleTerminal))
	wantFinding(t, found, "gate-call", stateFail, "agent")
}

func TestDoctorShowsLinksThatCannotWork(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.policyIs(t, `{"authorizerChain": ["alpha"]}`)
	w.serve(t, "alpha", "1.0.0", "main", "the environment variable KEY is not set")
	_, found := w.examines(t)
	wantFinding(t, found, "chain", stateWarn, "link alpha cannot work: the environment variable KEY is not set")
}

func TestDoctorSaysWhatToDoAboutALink(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, chain, runs, want, remedy string }{
		{"named and away", `"alpha"`, "", "link alpha named, but does not run", "take it out of the policy's authorizerChain"},
		{"there and not named", "", "alpha", "link alpha runs, but is not named", "name it in the policy's authorizerChain"},
		{"as it should be", `"alpha"`, "alpha", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWard(t)
			w.policyIs(t, `{"authorizerChain": [`+row.chain+`]}`)
			if row.runs != "" {
				w.serve(t, row.runs, "1.0.0", "main")
			}
			state, text := stateWarn, row.want
			if row.want == "" {
				state, text = stateOK, "all running"
			}
			var found map[string]diagnosis
			// A busy machine may answer discovery too late to be heard, as any link may.
			nodetest.CheckFor(t, 30*time.Second, time.Millisecond, func() error {
				_, found = w.examines(t)
				if f := found["chain"]; f.State != state || !strings.Contains(f.Text, text) {
					return fmt.Errorf("%+v; want %s with %q", f, state, text)
				}
				return nil
			})
			if !strings.Contains(found["chain"].Remedy, row.remedy) {
				t.Errorf("the remedy is %q, want %q", found["chain"].Remedy, row.remedy)
			}
		})
	}
}

func TestDoctorSaysHowToMakeABucketThatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	js, err := jetstream.New(w.node.Connect(t, protocol.RoleOperator, "breaks"))
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteKeyValue(t.Context(), protocol.BucketPresence); err != nil {
		t.Fatal(err)
	}
	_, found := w.examines(t)
	wantFinding(t, found, "parent", stateFail, protocol.BucketPresence)
	if remedy := found["parent"].Remedy; !strings.Contains(remedy, "assent node prepare") {
		t.Errorf("the remedy is %q", remedy)
	}
}

// A hook that denies because no gate answers is not to blame.
func TestDoctorBlamesNoHookForANodeThatIsAway(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	settings := filepath.Join(t.TempDir(), "settings.json")
	text := `{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"/bin/echo assent hook claude-code","timeout":600,"onFailure":"block"}]}]}}`
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--settings", settings, "--claude", "testdata/claude/current"}
	code, found := w.examines(t, append(args, "--nats", "nats://127.0.0.1:1")...)
	wantFinding(t, found, "node", stateFail, "127.0.0.1:1")
	if f := found["claude-code"]; code != ExitFailure || f.State != stateWarn || !strings.Contains(f.Text, "not checked until the node answers") || strings.Contains(f.Remedy, "install") {
		t.Errorf("exit %d, %+v", code, f)
	}
	_, found = w.examines(t, args...)
	wantFinding(t, found, "claude-code", stateFail, "install")
}

func TestDoctorCountsInWords(t *testing.T) {
	t.Parallel()
	for n, want := range []string{"no warnings", "1 warning", "2 warnings"} {
		if got := count(n, "warning"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	env, out, _ := testEnv()
	d := &doctor{env: env}
	d.ok("node", "answers")
	d.warn("policy", "push one", "none")
	if err := d.report(false); err != nil || !strings.HasSuffix(out.String(), "nothing is broken, 1 warning\n") {
		t.Errorf("%v, %q", err, out)
	}
}

func TestDoctorSaysWhetherTheParentAnswers(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	operator := w.creds(t, protocol.RoleOperator)
	sign := func(t *testing.T, s protocol.ParentSign) {
		t.Helper()
		if err := signParent(t.Context(), w.node.Connect(t, protocol.RoleTerminal, "t1"), "t1", s); err != nil {
			t.Fatal(err)
		}
	}
	examine := func(t *testing.T) map[string]diagnosis {
		t.Helper()
		_, found := w.examines(t, "--nats", w.node.ClientURL(), "--creds", operator, "--node", "main")
		return found
	}
	if f, ok := examine(t)["parent"]; ok {
		t.Errorf("a node without a parent: %+v", f)
	}
	w.policyIs(t, `{"terminal":{"kind":"parent"}}`)
	wantFinding(t, examine(t), "parent", stateFail, "--parent-creds")
	sign(t, protocol.ParentSign{Parent: "root", Answers: true, Release: "1.4.0"})
	wantFinding(t, examine(t), "parent", stateOK, "node root answers terminal t1 (version 1.4.0)")
	sign(t, protocol.ParentSign{Parent: "root", Reason: "its NATS is there, but no gate serves it"})
	wantFinding(t, examine(t), "parent", stateFail, "no gate serves it")
}

func TestDoctorSaysWhereOpenAsksEndUnheard(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	operator := w.creds(t, protocol.RoleOperator)
	put := func(t *testing.T, key string, body string) {
		t.Helper()
		nc := w.node.Connect(t, protocol.RoleTerminal, "t1")
		if !strings.HasPrefix(key, protocol.PresenceParent) {
			nc = w.node.Connect(t, protocol.RoleApprover, key)
		}
		if err := nc.Publish("$KV."+protocol.BucketPresence+"."+key, []byte(body)); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	const auto, human = `{"terminal":{"kind":"auto"}}`, `{"terminal":{"kind":"human"}}`
	relay := func(t *testing.T) { put(t, protocol.PresenceParent+"t1", `{"v":1,"parent":"root","answers":true}`) }
	sit := func(t *testing.T) { put(t, "ann", `{"v":1}`) }
	gone := func(t *testing.T, key string) {
		t.Helper()
		js, err := jetstream.New(w.node.Connect(t, protocol.RoleOperator, "cleaner"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := js.Stream(t.Context(), "KV_"+protocol.BucketPresence)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Purge(t.Context(), jetstream.WithPurgeSubject("$KV."+protocol.BucketPresence+"."+key)); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name, policy string
		there        func(*testing.T)
		want         string
	}{
		{"auto and nobody at all", auto, func(*testing.T) {}, "denied as no_approver"},
		{"a person is waited for", human, func(*testing.T) {}, ""},
		{"auto and an approver", auto, sit, ""},
		{"auto and a parent", auto, relay, ""},
		{"a person is waited for beside a parent", human, relay, "none goes to its parent"},
		{"the parent is named", `{"terminal":{"kind":"parent"}}`, relay, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			w.policyIs(t, row.policy)
			row.there(t)
			defer gone(t, protocol.PresenceParent+"t1")
			defer gone(t, "ann")
			code, found := w.examines(t, "--nats", w.node.ClientURL(), "--creds", operator, "--node", "main")
			if _, is := found["open-asks"]; !is && row.want != "" || is && row.want == "" {
				t.Fatalf("exit %d, findings %+v", code, found)
			}
			if row.want != "" {
				wantFinding(t, found, "open-asks", stateWarn, row.want)
			}
		})
	}
}

func TestDoctorHoldsTheClockAgainstTheServers(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		after, server time.Duration // from the moment of the request
		state, text   string
	}{
		"the same":                 {0, 0, "", ""},
		"a slow answer":            {4 * time.Second, time.Second, "", ""},
		"a moment behind":          {0, clockWarns - 1, "", ""},
		"behind":                   {0, 3 * time.Second, stateWarn, "3s behind the NATS server's"},
		"ahead":                    {0, -3 * time.Second, stateWarn, "3s ahead of the NATS server's"},
		"far behind":               {time.Second, time.Minute, stateFail, "59s behind"},
		"far ahead":                {0, -clockFails, stateFail, "ahead of"},
		"ahead, and a slow answer": {9 * time.Second, -4 * time.Second, stateWarn, "4s ahead of"},
	} {
		d := &doctor{}
		d.judgeClock(at, at.Add(row.after), at.Add(row.server))
		switch {
		case row.state == "" && len(d.findings) > 0:
			t.Errorf("%s: %v", name, d.findings)
		case row.state != "" && (len(d.findings) != 1 || d.findings[0].State != row.state || !strings.Contains(d.findings[0].Text, row.text)):
			t.Errorf("%s: %v, want %s %q", name, d.findings, row.state, row.text)
		}
	}
}
