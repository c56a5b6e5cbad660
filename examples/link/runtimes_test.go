//go:build runtimes

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Every test here needs a runtime; where it is absent the test is skipped, and
// with ASSENT_RUNTIMES=required it fails.
func absent(t *testing.T, format string, what ...any) {
	t.Helper()
	if os.Getenv("ASSENT_RUNTIMES") == "required" {
		t.Fatalf(format, what...)
	}
	t.Skipf(format, what...)
}

// python is how to start the link in Python.
func python(t *testing.T) []string {
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(p, "-c", "import cryptography, sys; sys.exit(sys.version_info < (3, 10))").Run() == nil {
			return []string{p, "python/no_force_push.py"}
		}
	}
	absent(t, "no Python 3.10 with the package cryptography is here")
	return nil
}

// typescript compiles the link and is how to start it.
func typescript(t *testing.T) []string {
	node, err := exec.LookPath("node")
	if err != nil {
		absent(t, "no Node.js is here: %v", err)
	}
	compiler, err := filepath.Abs("typescript/node_modules/typescript/bin/tsc")
	if err == nil {
		_, err = os.Stat(compiler)
	}
	if err != nil {
		absent(t, "run `npm ci` in examples/link/typescript first: %v", err)
	}
	out := t.TempDir()
	modules, _ := filepath.Abs("typescript/node_modules")
	manifest, err := os.ReadFile("typescript/package.json")
	if err := errors.Join(err, os.WriteFile(filepath.Join(out, "package.json"), manifest, 0o600), os.Symlink(modules, filepath.Join(out, "node_modules"))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if said, err := exec.CommandContext(ctx, node, compiler, "-p", "typescript", "--outDir", out).CombinedOutput(); err != nil {
		t.Fatalf("tsc: %v\n%s", err, said)
	}
	return []string{node, filepath.Join(out, "no_force_push.js")}
}

// start runs a link as its author would, and waits until it says that it serves.
// The function that it returns tells it to leave and waits for it.
func start(t *testing.T, n *nodetest.Node, command []string) (leave func() error) {
	t.Helper()
	creds := filepath.Join(t.TempDir(), name+".creds")
	if err := os.WriteFile(creds, n.Creds(t, protocol.RoleJudge, "j1", node.IssueOptions{Links: []string{name}}), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "ASSENT_NATS="+n.ClientURL(), "ASSENT_CREDS="+creds, "ASSENT_NODE="+n.Name(), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	said := make(chan string, 1)
	go func() { // ends with the process
		line, _ := bufio.NewReader(out).ReadString('\n')
		said <- line
	}()
	select {
	case line := <-said:
		if !strings.Contains(line, "link "+name+" serves") {
			t.Fatalf("it says %q", line)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it does not say that it serves")
	}
	return func() error {
		late := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		return errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	}
}

// TestOtherLanguages: the same link in other languages, as docs/links.md shows it,
// answers as the one in Go does.
func TestOtherLanguages(t *testing.T) {
	t.Parallel()
	for language, command := range map[string]func(*testing.T) []string{"python": python, "typescript": typescript} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			runs := command(t)
			n := nodetest.Start(t)
			gate := n.Connect(t, protocol.RoleGate, "g1")
			accepted := make(chan string, 64)
			logs, _ := n.Subjects.Logs("g1")
			if _, err := gate.Subscribe(logs, func(m *nats.Msg) {
				if r, err := protocol.Read[protocol.LogRecord](m.Data); err != nil || r.Event != protocol.EventAccepted {
					t.Errorf("its first act is %q, %v", m.Data, err)
				}
				accepted <- m.Subject
				receipt(t, m)
			}); err != nil {
				t.Fatal(err)
			}
			leave := start(t, n, runs)
			verdicts(t, n, gate)
			if len(accepted) != 5 {
				t.Errorf("it accepted %d asks, want 5", len(accepted))
			}
			refusals(t, n, gate)
			announced(t, n)
			if err := leave(); err != nil {
				t.Errorf("told to leave: %v", err)
			}
			if _, err := ask(n, gate, "git push"); !errors.Is(err, nats.ErrNoResponders) {
				t.Errorf("after it left: %v", err)
			}
		})
	}
}

func verdicts(t *testing.T, n *nodetest.Node, gate *nats.Conn) {
	t.Helper()
	for command, want := range map[string]protocol.Choice{
		"git push --force": protocol.ChoiceDeny, "git push origin main --force": protocol.ChoiceDeny,
		"git push": protocol.ChoiceDefer, "git push --force-with-lease": protocol.ChoiceDefer, "rm --force push.txt": protocol.ChoiceDefer,
	} {
		v, err := ask(n, gate, command)
		if err != nil || v.Verdict != want || v.Failure != "" || want == protocol.ChoiceDeny && v.Reason == "" {
			t.Errorf("%s: %+v, %v, want %s", command, v, err, want)
		}
	}
}

// refusals: what is asked too late is deferred, and what is no request of a gate gets no verdict.
func refusals(t *testing.T, n *nodetest.Node, gate *nats.Conn) {
	t.Helper()
	if v, err := askFor(n, gate, "git push --force", -time.Second); err != nil || v.Verdict != protocol.ChoiceDefer || v.Failure != protocol.FailureExpired {
		t.Errorf("after its deadline: %+v, %v", v, err)
	}
	subject, _ := n.Subjects.Link(name)
	for _, body := range []string{"junk", "{}", `{"v":1,"link":"other"}`, "\xff"} {
		m, err := gate.Request(subject, []byte(body), 5*time.Second)
		if err != nil || m.Header.Get(protocol.HeaderErrorCode) != string(protocol.CodeInvalid) {
			t.Errorf("%q: %v, %+v", body, err, m)
			continue
		}
		if _, err := protocol.Read[protocol.ErrorReply](m.Data); err != nil {
			t.Errorf("%q: %s: %v", body, m.Data, err)
		}
	}
	// A gate may not publish with such a reply subject in earnest, but a link must
	// not rest on it.
	elsewhere, err := gate.SubscribeSync("assent.v1." + n.Name() + ".log.g1.x")
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.PublishMsg(&nats.Msg{Subject: subject, Reply: elsewhere.Subject, Data: []byte("junk")}); err != nil {
		t.Fatal(err)
	}
	if _, err := gate.Request(subject, []byte("junk"), 5*time.Second); err != nil { // behind it
		t.Fatal(err)
	}
	if m, err := elsewhere.NextMsg(200 * time.Millisecond); err == nil {
		t.Errorf("it answered where the sender pointed: %s", m.Data)
	}
}

// announced: people who list running links see it.
func announced(t *testing.T, n *nodetest.Node) {
	t.Helper()
	subject, _ := micro.ControlSubject(micro.InfoVerb, protocol.ServiceLink, "")
	nodetest.CheckFor(t, 5*time.Second, 50*time.Millisecond, func() error {
		m, err := n.Connect(t, protocol.RoleOperator, "op").Request(subject, nil, time.Second)
		if err != nil {
			return err
		}
		var info micro.Info
		if err := json.Unmarshal(m.Data, &info); err != nil {
			return err
		}
		if md := info.Metadata; info.Name != protocol.ServiceLink || md["link"] != name || md["node"] != n.Name() || md["health"] != "ok" || md["version"] != info.Version {
			return fmt.Errorf("announced as %+v", info)
		}
		return nil
	})
}

// TestOtherLanguagesEndWhereTheyMayNotServe: one that says that it serves and is
// asked nothing would be found by the asks that it missed.
func TestOtherLanguagesEndWhereTheyMayNotServe(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	creds := filepath.Join(t.TempDir(), "other.creds")
	if err := os.WriteFile(creds, n.Creds(t, protocol.RoleJudge, "j2", node.IssueOptions{Links: []string{"another-link"}}), 0o600); err != nil {
		t.Fatal(err)
	}
	for language, command := range map[string]func(*testing.T) []string{"python": python, "typescript": typescript} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			runs := command(t)
			for _, row := range []struct{ name, creds, says string }{
				{"credentials for another link", creds, "issue the credential for this link"},
				{"no credentials", "", "set ASSENT_NATS"},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				cmd := exec.CommandContext(ctx, runs[0], runs[1:]...)
				cmd.Env = append(os.Environ(), "ASSENT_NATS="+n.ClientURL(), "ASSENT_CREDS="+row.creds, "ASSENT_NODE="+n.Name(), "PYTHONDONTWRITEBYTECODE=1")
				said, err := cmd.CombinedOutput()
				var ended *exec.ExitError
				if !errors.As(err, &ended) || ended.ExitCode() != 1 || !strings.Contains(string(said), row.says) || strings.Contains(string(said), " serves") {
					t.Errorf("%s: %v, %s", row.name, err, said)
				}
			}
		})
	}
}
