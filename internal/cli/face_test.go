package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/client"
	"github.com/assent-dev/assent/pkg/protocol"
)

// desktop is a whole node, an agent on it, and a person at the face of
// `assent up`.
type desktop struct {
	node  *nodetest.Node
	creds credentials
	agent *client.Client
	typed *io.PipeWriter
	shown *screen
}

// screen is what a face has printed so far.
type screen struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newDesktop(t *testing.T, policyText string) *desktop { return newDesktopWith(t, policyText, "") }

// newDesktopWith is a desktop with the permission modules of a folder.
func newDesktopWith(t *testing.T, policyText, modules string) *desktop {
	t.Helper()
	n := nodetest.Start(t, nodetest.Quiet())
	creds, err := localCreds(n.Authority(), nodetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	if _, err := putPolicy(t.Context(), n.Node, creds, filePutIn(t.TempDir()), []byte(policyText), log); err != nil {
		t.Fatal(err)
	}
	services, err := nodeServices(n.Node, creds, filepath.Join(nodetest.Dir(t), "store"), modules, nil, nil, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	serving, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- runServices(ctx, log, services, func(context.Context) error { close(serving); return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the services ended with %v", err)
		}
	})
	select {
	case <-serving:
	case err := <-ended:
		ended <- nil
		t.Fatalf("the services do not start: %v", err)
	}
	return startFace(t, n, creds)
}

func startFace(t *testing.T, n *nodetest.Node, creds credentials) *desktop {
	t.Helper()
	connect := func(role protocol.Role) *nats.Conn {
		nc, err := bus.Connect(t.Context(), bus.Config{InProcess: n, Creds: creds[role].file, Role: role, Logger: quietLog()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	agent, err := client.New(connect(protocol.RoleAgent), n.Name(), creds[protocol.RoleAgent].name)
	if err != nil {
		t.Fatal(err)
	}
	stdin, typed := io.Pipe()
	d := &desktop{node: n, creds: creds, agent: agent, typed: typed, shown: &screen{}}
	env := &Env{Stdin: stdin, Stdout: d.shown, Stderr: d.shown, Getenv: func(string) string { return "" }}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	approver := connect(protocol.RoleApprover)
	go func() { ended <- runFace(ctx, env, approver, n.Name(), creds[protocol.RoleApprover].name) }()
	t.Cleanup(func() {
		cancel()
		typed.Close()
		if err := <-ended; err != nil {
			t.Errorf("the face ended with %v", err)
		}
	})
	return d
}

// asks starts an ask and returns where its decision comes.
func (d *desktop) asks(t *testing.T, command string) <-chan protocol.Decision {
	t.Helper()
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	decided := make(chan protocol.Decision, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		dec, err := d.agent.Ask(ctx, protocol.Ask{ID: protocol.NewAskID(), Source: protocol.SourceToolCall, Cwd: "/repo", Home: "/home/dev",
			Session: protocol.Session{ID: "s1"}, Tool: protocol.Tool{Name: "bash", Input: input}})
		if err != nil {
			t.Errorf("asking: %v", err)
		}
		decided <- dec
	}()
	return decided
}

func (d *desktop) waitFor(t *testing.T, text string) {
	t.Helper()
	nodetest.CheckFor(t, 20*time.Second, 20*time.Millisecond, func() error {
		if !strings.Contains(d.shown.String(), text) {
			return fmt.Errorf("the face does not show %q:\n%s", text, d.shown)
		}
		return nil
	})
}

func (d *desktop) types(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(d.typed, line); err != nil {
		t.Fatal(err)
	}
}

// Its policy is auto: that the asks wait at all proves that the face counts as
// an approver who is present.
func TestTheFaceShowsAnAskAndTakesTheAnswer(t *testing.T) {
	d := newDesktop(t, `{"permission":{"*":"ask"},"terminal":{"kind":"auto"}}`)
	d.waitFor(t, "You are the approver")
	for _, row := range []struct {
		name, command, line string
		outcome             protocol.Outcome
		reason              string
	}{
		{"a allows this once", "make one", "a 1", protocol.AllowedByHuman, ""},
		{"allow is a", "make two", "allow 2", protocol.AllowedByHuman, ""},
		{"d denies", "make three", "d 3", protocol.DeniedByHuman, ""},
		{"d with words denies with a reason", "make four", "d 4 not before the release", protocol.DeniedByHuman, "not before the release"},
	} {
		t.Run(row.name, func(t *testing.T) {
			decided := d.asks(t, row.command)
			d.waitFor(t, row.command)
			d.types(t, "yes please") // no word of the face: nothing happens
			d.types(t, "a")          // of which one? nothing happens
			d.types(t, "a 99")
			d.types(t, row.line)
			if got := <-decided; got.Outcome != row.outcome || got.Reason != row.reason {
				t.Errorf("got %s with %q, want %s with %q", got.Outcome, got.Reason, row.outcome, row.reason)
			}
		})
	}
	if !strings.Contains(d.shown.String(), "please say") {
		t.Error("a word that is none of the face's was not refused aloud")
	}
}

// What g grants is on the screen before it is pressed, and where nothing can be
// granted nothing is answered.
func TestTheFaceGrantsWhatItShows(t *testing.T) {
	d := newDesktop(t, `{"permission":{"*":"ask","bash":{"*":"ask","deploy *":{"action":"ask","humanOnly":true}}},"terminal":{"kind":"human"}}`)
	first := d.asks(t, "git push origin main")
	d.waitFor(t, `grant   bash "git push *", for this session of the agent, until `)
	d.types(t, "g 1")
	if got := <-first; got.Outcome != protocol.AllowedByHuman || got.Grant == nil || got.Grant.Scope != protocol.ScopeSession || got.Grant.Expires == "" {
		t.Fatalf("got %s with grant %+v", got.Outcome, got.Grant)
	}
	d.waitFor(t, `1: granting bash "git push *"`)
	if got := <-d.asks(t, "git push origin dev"); got.Outcome != protocol.AllowedByGrant || got.Approver == "" {
		t.Errorf("the like of it: %s by %q", got.Outcome, got.Approver)
	}
	second := d.asks(t, "deploy x")
	d.waitFor(t, "── ask 2 ──")
	d.types(t, "g 2")
	d.waitFor(t, "nothing is answered: no grant can be given")
	d.types(t, "d 2")
	if got := <-second; got.Outcome != protocol.DeniedByHuman {
		t.Errorf("what only a person answers: %s", got.Outcome)
	}
}

// An answer that was typed for one ask must not fall on the next one.
func TestAnAnswerNamesItsAsk(t *testing.T) {
	d := newDesktop(t, `{"permission":{"*":"ask"},"terminal":{"kind":"human"}}`)
	first := d.asks(t, "make harmless")
	d.waitFor(t, "── ask 1 ──")
	d.types(t, "d 1")
	if got := <-first; got.Outcome != protocol.DeniedByHuman {
		t.Fatalf("got %s", got.Outcome)
	}
	second := d.asks(t, "rm -rf /")
	d.waitFor(t, "── ask 2 ──")
	d.types(t, "a 1") // meant for the first, which is over
	d.types(t, "a")
	d.types(t, "") // Enter in the wrong window
	d.types(t, "d 2 no")
	if got := <-second; got.Outcome != protocol.DeniedByHuman || got.Reason != "no" {
		t.Errorf("got %s with %q", got.Outcome, got.Reason)
	}
	if !strings.Contains(d.shown.String(), "which one?") {
		t.Error("an answer to an ask that is over was not refused aloud")
	}
}

func TestTheFaceCannotBeRedrawnByAnAgent(t *testing.T) {
	d := newDesktop(t, `{"permission":{"*":"ask"},"terminal":{"kind":"human"}}`)
	decided := d.asks(t, "make \x1b[2J\x1b[Hallowed \u202eevil")
	d.waitFor(t, "── ask 1 ──")
	d.types(t, "d 1")
	<-decided
	if shown := d.shown.String(); strings.ContainsAny(shown, "\x1b\u202e") {
		t.Errorf("control characters of the agent reach the screen: %q", shown)
	}
}
