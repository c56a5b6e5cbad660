//go:build docker

package e2e

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCompose builds the image, starts the node of compose.yaml as separate
// services and lets it decide: what a rule allows is allowed, what a rule denies
// is denied with its reason, and both stand in the record and in the auditor's
// files, also after everything was stopped and started again.
func TestCompose(t *testing.T) {
	c := newComposed(t)
	c.up(t)
	c.hardened(t)

	allow := c.ask(t, `{"command":"git status"}`, 0)
	deny := c.ask(t, `{"command":"npm install"}`, 3)
	if allow.Result != "allow" || allow.Outcome != "allowed_by_rule" || allow.Agent != "agent-1" {
		t.Errorf("git status: %+v, want it allowed by a rule", allow)
	}
	if deny.Result != "deny" || deny.Outcome != "denied_by_rule" || !strings.Contains(deny.Reason, "pnpm") {
		t.Errorf("npm install: %+v, want it denied by a rule with its reason", deny)
	}
	want := map[string]string{allow.Ask: "allow", deny.Ask: "deny"}
	c.recorded(t, want)
	c.kept(t, want)

	c.compose(t, "down")
	c.up(t)
	again := c.ask(t, `{"command":"git status"}`, 0)
	want[again.Ask] = "allow"
	c.recorded(t, want)
	c.kept(t, want)
}

// answer is what `assent ask --json` prints.
type answer struct{ Ask, Agent, Result, Outcome, Reason string }

// composed is a project of docker-compose that ends with its test.
type composed struct {
	root, project string
	program       []string
	env           []string
}

func newComposed(t *testing.T) *composed {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	c := &composed{root: root, project: fmt.Sprintf("assent-e2e-%d", os.Getpid()), program: []string{"docker-compose"}}
	if _, err := exec.LookPath("docker-compose"); err != nil {
		c.program = []string{"docker", "compose"}
	}
	image := c.project + ":test"
	c.env = append(os.Environ(), "ASSENT_IMAGE="+image, "ASSENT_PORT="+freePort(t), "ANTHROPIC_API_KEY=", "ASSENT_POLICY=", "ASSENT_JUDGES=")
	// Set before anything is made: also half of it has to go.
	t.Cleanup(func() {
		if t.Failed() {
			out, err := c.run(context.Background(), append(c.program, "-p", c.project, "logs", "--no-color", "--tail", "40")...)
			t.Logf("logs: %v\n%s", err, out)
		}
		_, err := c.run(context.Background(), append(c.program, "-p", c.project, "down", "--volumes", "--remove-orphans", "--timeout", "5")...)
		_, ierr := c.run(context.Background(), "docker", "image", "rm", "--force", image)
		if err := errors.Join(err, ierr); err != nil {
			t.Errorf("taking it down: %v", err)
		}
	})
	if out, err := c.run(t.Context(), filepath.Join(root, "deploy", "build.sh")); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return c
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// run runs a program in the repository and returns what it printed to stdout;
// stderr stands in the error.
func (c *composed) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 6*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.root, c.env, &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

func (c *composed) compose(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.run(t.Context(), slices.Concat(c.program, []string{"-p", c.project}, args)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var services = []string{"nats", "gate", "judge", "terminal", "auditor"}

// up starts everything and waits until each service says that it is healthy.
func (c *composed) up(t *testing.T) {
	t.Helper()
	c.compose(t, "up", "-d")
	waitFor(t, 2*time.Minute, func() error {
		for _, s := range services {
			out, err := c.run(t.Context(), "docker", "inspect", "--format", "{{.State.Status}} {{.State.Health.Status}} {{.RestartCount}}", c.id(t, s))
			if err != nil {
				return err
			}
			if state := strings.TrimSpace(out); state != "running healthy 0" {
				return fmt.Errorf("%s is %s, want it running and healthy, without a restart", s, state)
			}
		}
		return nil
	})
}

func (c *composed) id(t *testing.T, service string) string {
	t.Helper()
	return strings.TrimSpace(c.compose(t, "ps", "-q", service))
}

// hardened: no service can write outside its volumes, gain rights, or be
// reached from elsewhere than this machine.
func (c *composed) hardened(t *testing.T) {
	t.Helper()
	for _, s := range services {
		out, err := c.run(t.Context(), "docker", "inspect", c.id(t, s))
		if err != nil {
			t.Fatal(err)
		}
		var got []struct {
			Config     struct{ User string }
			HostConfig struct {
				ReadonlyRootfs       bool
				CapDrop, SecurityOpt []string
				PortBindings         map[string][]struct{ HostIP string }
			}
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 1 {
			t.Fatalf("%s: %v", s, err)
		}
		h := got[0].HostConfig
		if got[0].Config.User != "65532:65532" || !h.ReadonlyRootfs || !slices.Contains(h.CapDrop, "ALL") || !slices.Contains(h.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s is not confined: %+v", s, got[0])
		}
		for port, bindings := range h.PortBindings {
			for _, b := range bindings {
				if b.HostIP != "127.0.0.1" {
					t.Errorf("%s: port %s is open on %q", s, port, b.HostIP)
				}
			}
		}
	}
}

// ask asks as the agent of the project and wants the exit code.
func (c *composed) ask(t *testing.T, input string, code int) answer {
	t.Helper()
	args := slices.Concat(c.program, []string{"-p", c.project, "run", "--rm", "-T", "agent", "ask", "--tool", "bash", "--input", input, "--json"})
	out, err := c.run(t.Context(), args...)
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	}
	var a answer
	if jerr := json.Unmarshal([]byte(out), &a); jerr != nil || got != code {
		t.Fatalf("asking: exit %d, want %d; %v; %q; %v", got, code, jerr, out, err)
	}
	return a
}

// recorded looks into the streams, as `assent log` does.
func (c *composed) recorded(t *testing.T, want map[string]string) {
	t.Helper()
	lines := c.compose(t, "exec", "-T", "auditor", "assent", "log", "--json")
	sameRecords(t, "the stream", decisions(t, []byte(lines)), want)
}

// kept looks into the auditor's files.
func (c *composed) kept(t *testing.T, want map[string]string) {
	t.Helper()
	waitFor(t, 30*time.Second, func() error {
		archive, err := c.run(t.Context(), "docker", "cp", c.id(t, "auditor")+":/var/lib/assent/review", "-")
		if err != nil {
			return err
		}
		if got := decisions(t, reviewFiles(t, archive)); len(got) < len(want) {
			return fmt.Errorf("the review log holds %d decisions, want %d", len(got), len(want))
		} else {
			sameRecords(t, "the review log", got, want)
		}
		return nil
	})
}

// reviewFiles takes the log's lines out of an archive of its folder.
func reviewFiles(t *testing.T, archive string) []byte {
	t.Helper()
	var all []byte
	r := tar.NewReader(strings.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(h.Name, ".jsonl") {
			continue
		}
		if mode := h.FileInfo().Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %04o, want 0600", h.Name, mode)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
}

// decisions are the results by ask id in lines of records.
func decisions(t *testing.T, lines []byte) map[string]string {
	t.Helper()
	got := map[string]string{}
	for sc := bufio.NewScanner(bytes.NewReader(lines)); sc.Scan(); {
		var rec struct {
			Ask, Kind, Broken string
			Record            struct{ Result string }
		}
		if err := json.Unmarshal(sc.Bytes(), &rec); err != nil {
			t.Fatalf("%v: %q", err, sc.Text())
		}
		if rec.Broken != "" {
			t.Errorf("a broken record: %s", sc.Text())
		}
		if rec.Kind == "decision" {
			got[rec.Ask] = rec.Record.Result
		}
	}
	return got
}

func sameRecords(t *testing.T, where string, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s holds %v, want %v", where, got, want)
	}
	for ask, result := range want {
		if got[ask] != result {
			t.Errorf("%s: ask %s is %q, want %q", where, ask, got[ask], result)
		}
	}
}

// waitFor tries until f returns nil, and fails with its last error after limit.
func waitFor(t *testing.T, limit time.Duration, f func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatalf("not within %s: %v", limit, err)
}
