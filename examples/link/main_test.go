package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// TestServed runs the link as main does and asks it as a gate does.
func TestServed(t *testing.T) {
	n := nodetest.Start(t)
	creds := filepath.Join(t.TempDir(), name+".creds")
	if err := os.WriteFile(creds, n.Creds(t, protocol.RoleJudge, name, node.IssueOptions{Links: []string{name}}), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, n.ClientURL(), creds) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}()

	gate := n.Connect(t, protocol.RoleGate, "g1")
	logs, _ := n.Subjects.Logs("g1")
	if _, err := gate.Subscribe(logs, func(m *nats.Msg) { receipt(t, m) }); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]protocol.Choice{
		"git push --force": protocol.ChoiceDeny, "git push origin main --force": protocol.ChoiceDeny,
		"git push": protocol.ChoiceDefer, "git push --force-with-lease": protocol.ChoiceDefer, "rm --force push.txt": protocol.ChoiceDefer,
	} {
		var v protocol.Verdict
		nodetest.CheckFor(t, 5*time.Second, 5*time.Millisecond, func() (err error) {
			v, err = ask(n, gate, command)
			return err
		})
		if v.Verdict != want || want == protocol.ChoiceDeny && v.Reason == "" {
			t.Errorf("%s: %+v, want %s", command, v, want)
		}
	}
}

func ask(n *nodetest.Node, gate *nats.Conn, command string) (protocol.Verdict, error) {
	return askFor(n, gate, command, 5*time.Second)
}

// askFor asks with a deadline in patience.
func askFor(n *nodetest.Node, gate *nats.Conn, command string, patience time.Duration) (protocol.Verdict, error) {
	id := protocol.NewAskID()
	subject, _ := n.Subjects.Link(name)
	query, _ := n.Subjects.Query("g1", id)
	log, _ := n.Subjects.Log("g1", id)
	data, err := protocol.Write(protocol.LinkRequest{
		Link:     name,
		Ask:      protocol.Ask{V: 1, ID: id, Agent: "ci-42", Tool: protocol.Tool{Name: "bash", Input: []byte(`{}`)}},
		Asks:     []protocol.Entry{{Surface: "bash", Value: command, MatchedPattern: "*", Origin: "fleet"}},
		Deadline: time.Now().Add(patience), Query: query, Log: log,
	})
	if err != nil {
		return protocol.Verdict{}, err
	}
	m, err := gate.Request(subject, data, 5*time.Second)
	if err != nil {
		return protocol.Verdict{}, err
	}
	return protocol.ReadVerdictFor(id, m.Data)
}

// receipt answers the log record with which a link takes an ask up. The
// capability token of this test is the ask's id.
func receipt(t *testing.T, m *nats.Msg) {
	subject, err := protocol.ParseSubject(m.Subject)
	if err != nil {
		t.Error(err)
		return
	}
	data, err := protocol.Write(protocol.LogReceipt{Ask: subject.Tokens[1]})
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestToldToLeaveItEndsInOrder: a supervisor says SIGTERM, and what is being judged
// is answered first.
func TestToldToLeaveItEndsInOrder(t *testing.T) {
	n := nodetest.Start(t)
	dir := t.TempDir()
	binary, creds := filepath.Join(dir, "link"), filepath.Join(dir, "link.creds")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(creds, n.Creds(t, protocol.RoleJudge, name, node.IssueOptions{Links: []string{name}}), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), "ASSENT_NATS="+n.ClientURL(), "ASSENT_CREDS="+creds)
	said, err := cmd.StderrPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if line, err := bufio.NewReader(said).ReadString('\n'); !strings.Contains(line, "serves") {
		t.Fatalf("it says %q, %v", line, err)
	}
	if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
		t.Errorf("told to leave: %v", err)
	}
}

// TestDocumentShowsThisCode keeps the code in docs/links.md what is here.
func TestDocumentShowsThisCode(t *testing.T) {
	doc, err := os.ReadFile("../../docs/links.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		language, file string
		pieces         int
	}{{"go", "main.go", 2}, {"python", "python/no_force_push.py", 2}, {"ts", "typescript/no_force_push.ts", 2}} {
		code, err := os.ReadFile(row.file)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(doc), "```"+row.language+"\n")[1:]
		if len(blocks) < row.pieces {
			t.Errorf("the document shows %d pieces of %s, want %d", len(blocks), row.file, row.pieces)
		}
		for _, block := range blocks {
			shown, _, _ := strings.Cut(block, "```")
			if !strings.Contains(string(code), shown) {
				t.Errorf("not in %s:\n%s", row.file, shown)
			}
		}
	}
}
