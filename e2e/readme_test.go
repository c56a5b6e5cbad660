//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// readmeCommands is every command of README.md and how it must end here. A
// command that is not in the table fails the test, and so does one that is in
// it and not in README.
var readmeCommands = map[string]struct {
	exit int
	// skip says why the command is not run by this test.
	skip string
	// background: it waits for a person, whom a later command plays.
	background bool
	// serves: it runs until it is stopped.
	serves bool
	want   string
}{
	`go run . up`:   {serves: true},
	`go test ./...`: {skip: "this test is part of it"},
	`go install .`:  {skip: "the binary under test is built by the same compiler into a folder of the test's"},
	`assent up --policy examples/policy.jsonc`:                               {serves: true},
	`assent up --policy examples/chain.jsonc --judges examples/judges.jsonc`: {serves: true},
	`assent ask --tool bash --input '{"command":"git status"}'`:              {want: "allowed"},
	`assent ask --tool bash --input '{"command":"npm install"}'`:             {exit: 3, want: "Use pnpm instead"},
	`assent ask --tool bash --input '{"command":"make deploy"}'`:             {background: true},
	`assent pending`:             {want: "make deploy"},
	`assent answer ASK-ID allow`: {want: "allowed_by_human"},
	`assent answer ASK-ID deny --reason "not before the release"`: {exit: 3, want: "decided already"},
	`assent log`:        {want: "allowed_by_human"},
	`assent log ASK-ID`: {want: "permission_request.approved"},
	`assent policy explain --policy examples/policy.jsonc 'go test ./... && git push --force'`: {want: "to be allowed:"},
	`assent policy test examples/policy.test.jsonc`:                                            {want: "cases hold"},
	`assent policy check examples/policy.jsonc`:                                                {want: "ok, 0 warnings"},
	`assent install claude-code`:                                                               {exit: 2, want: "onFailure"}, // no terminal here: it shows the change and writes nothing
	`assent doctor`:                                                                            {want: "a call that must be denied was denied"},
	`assent module new release --dir ~/.config/assent/permissions`:                             {want: "See what it says"},
	`assent module test ~/.config/assent/permissions/release.ts --call '{"tool":"bash","input":{"command":"sudo git push"}}'`: {want: "Authorization required"},
	`assent links`: {want: "model-judge"},
}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestReadmeCommandsRun runs every command of README.md, in its order, as a
// newcomer would.
func TestReadmeCommandsRun(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t)
	seen := map[string]bool{}
	for _, block := range shellBlock.FindAllSubmatch(text, -1) {
		for line := range strings.Lines(string(block[1])) {
			command, _, _ := strings.Cut(line, "  #")
			if command = strings.TrimSpace(command); command == "" {
				continue
			}
			if seen[command] {
				continue
			}
			seen[command] = true
			want, known := readmeCommands[command]
			if !known {
				t.Errorf("README.md has a command that this test does not know: %s", command)
				continue
			}
			switch {
			case want.skip != "":
			case want.serves:
				r.serve(command)
			case want.background:
				r.begin(command)
			default:
				r.run(command, want.exit, want.want)
			}
		}
	}
	for command := range readmeCommands {
		if !seen[command] {
			t.Errorf("README.md no longer has this command: %s", command)
		}
	}
}

// reader is a newcomer who types what README says.
type reader struct {
	t    *testing.T
	env  []string
	root string
	up   *exec.Cmd
	id   string
}

func newReader(t *testing.T) *reader {
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "claude"), []byte("#!/bin/sh\necho '2.1.332 (Claude Code)'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "PATH=" + strings.Join([]string{filepath.Dir(binary), bin, os.Getenv("PATH")}, string(os.PathListSeparator)), "ANTHROPIC_API_KEY=none"}
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "GO") {
			env = append(env, kv)
		}
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(out)))
	}
	r := &reader{t: t, env: env, root: root}
	t.Cleanup(r.stop)
	return r
}

func (r *reader) command(line string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(line, "ASK-ID", r.id))
	cmd.Dir, cmd.Env = r.root, r.env
	return cmd
}

// serve runs a node in the place of the one before, on a port of its own.
func (r *reader) serve(line string) {
	r.t.Helper()
	r.stop()
	ready := &lockedBuffer{}
	log := &lockedBuffer{}
	r.up = r.command("exec " + strings.Replace(line, "exec ", "", 1) + " --json --listen 127.0.0.1:0")
	r.up.Stdout, r.up.Stderr = ready, log
	r.up.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.up.WaitDelay = time.Second
	if err := r.up.Start(); err != nil {
		r.t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if json.Valid(bytes.TrimSpace(ready.Bytes())) {
			return
		}
	}
	r.t.Fatalf("%s does not serve\n%s", line, log.Bytes())
}

func (r *reader) stop() {
	if r.up == nil {
		return
	}
	// As Ctrl-C does: `go run` itself takes no notice, the program it built does.
	syscall.Kill(-r.up.Process.Pid, syscall.SIGINT) //nolint:errcheck // it may have ended
	r.up.Wait()                                     //nolint:errcheck // how it ends is another test's
	r.up = nil
}

// begin starts a command that waits for a person, and waits until it does.
func (r *reader) begin(line string) {
	r.t.Helper()
	cmd := r.command(line)
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() }) //nolint:errcheck // it has its answer by then
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		out, _ := r.command("assent pending --json").Output()
		var p struct{ Ask struct{ ID string } }
		if json.Unmarshal(bytes.TrimSpace(out), &p) == nil && p.Ask.ID != "" {
			r.id = p.Ask.ID
			return
		}
	}
	r.t.Fatalf("%s does not wait for a person", line)
}

func (r *reader) run(line string, exit int, want string) {
	r.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		out, err := r.command(line).CombinedOutput()
		code := 0
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			code = ended.ExitCode()
		} else if err != nil {
			r.t.Fatalf("%s: %v", line, err)
		}
		if code == exit && strings.Contains(string(out), want) {
			return
		}
		// The ask may not be before the person yet, nor the record be read.
		if time.Now().After(deadline) {
			r.t.Errorf("%s: exit %d, want %d with %q:\n%s", line, code, exit, want, out)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
