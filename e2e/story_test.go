package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

type storyKey struct{}

// patience bounds every wait of a story.
const patience = 30 * time.Second

// story is what a running story owns and ends.
type story struct {
	env   *testscript.Env
	ups   map[string]*upProcess
	ends  []func()
	calls *modelCalls
}

// upProcess is one running `assent up`.
type upProcess struct {
	cmd  *exec.Cmd
	log  *lockedBuffer
	done chan struct{}
	err  error
}

func storyOf(ts *testscript.TestScript) *story { return ts.Value(storyKey{}).(*story) }

func (s *story) end() {
	for _, u := range s.ups {
		u.cmd.Process.Kill() //nolint:errcheck // it may have ended by itself
		<-u.done
	}
	for _, f := range s.ends {
		f()
	}
}

// cmdUp starts `assent up --json ARGS…` and waits until it serves: then NATS,
// CREDS_<ROLE> and LOCAL are set. "! up ARGS…" wants it to fail and leaves its
// stderr in the file up.err.
func cmdUp(ts *testscript.TestScript, neg bool, args []string) {
	s := storyOf(ts)
	u := &upProcess{log: &lockedBuffer{}, done: make(chan struct{})}
	all := append([]string{"up", "--json", "--no-default"}, args...)
	if !strings.Contains(strings.Join(args, " "), "--listen") {
		all = append(all, "--listen", "127.0.0.1:0")
	}
	u.cmd = exec.Command(binary, all...)
	u.cmd.Dir, u.cmd.Env, u.cmd.Stderr = ts.Getenv("WORK"), environ(ts), u.log
	if d := ts.Getenv("PWD"); d != "" {
		u.cmd.Dir = d
	}
	out, err := u.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(u.cmd.Start())
	line := make(chan string, 1)
	go func() {
		sc := bufio.NewScanner(out)
		if sc.Scan() {
			line <- sc.Text()
		}
		io.Copy(io.Discard, out) //nolint:errcheck // nothing more is expected
		u.err = u.cmd.Wait()
		close(u.done)
	}()
	select {
	case text := <-line:
		if neg {
			u.cmd.Process.Kill() //nolint:errcheck // the story fails anyway
			ts.Fatalf("assent up serves, and should not: %s", text)
		}
		s.serves(ts, u, text)
	case <-u.done:
		ts.Check(os.WriteFile(ts.MkAbs("up.err"), u.log.Bytes(), 0o600))
		if !neg {
			ts.Fatalf("assent up ended: %v\n%s", u.err, u.log.Bytes())
		}
	case <-time.After(patience):
		ts.Fatalf("assent up does not serve after %s\n%s", patience, u.log.Bytes())
	}
}

// serves takes in the ready line.
func (s *story) serves(ts *testscript.TestScript, u *upProcess, text string) {
	var ready struct {
		NATS, Node, Web string
		Creds           map[string]string
	}
	if err := json.Unmarshal([]byte(text), &ready); err != nil || ready.NATS == "" {
		ts.Fatalf("the ready line is not JSON with an address: %q: %v", text, err)
	}
	ts.Setenv("NATS", ready.NATS)
	ts.Setenv("ADDR", strings.TrimPrefix(ready.NATS, "nats://"))
	for role, file := range ready.Creds {
		ts.Setenv("CREDS_"+strings.ToUpper(role), file)
	}
	ts.Setenv("LOCAL", filepath.Join(ts.Getenv("ASSENT_STORE"), "local.json"))
	if s.ups == nil {
		s.ups = map[string]*upProcess{}
	}
	s.ups[ts.Getenv("ASSENT_STORE")] = u
}

// cmdHeard waits until the node that is up has logged a text.
func cmdHeard(ts *testscript.TestScript, neg bool, args []string) {
	u := storyOf(ts).ups[ts.Getenv("ASSENT_STORE")]
	if neg || u == nil || len(args) != 1 {
		ts.Fatalf("usage: heard TEXT, with a node that is up")
	}
	for end := time.Now().Add(patience); !bytes.Contains(u.log.Bytes(), []byte(args[0])); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("the node has not logged %q after %s\n%s", args[0], patience, u.log.Bytes())
		}
	}
}

// cmdDown ends `assent up` on the current store: "down kill" without a word of
// warning, "down" by SIGTERM, and then it must leave cleanly. Its log is in the
// file up.log afterwards.
func cmdDown(ts *testscript.TestScript, neg bool, args []string) {
	s := storyOf(ts)
	store := ts.Getenv("ASSENT_STORE")
	u := s.ups[store]
	if u == nil || neg {
		ts.Fatalf("usage: down [kill], with a node that is up")
	}
	delete(s.ups, store)
	kill := len(args) == 1 && args[0] == "kill"
	if kill {
		ts.Check(u.cmd.Process.Kill())
	} else {
		ts.Check(u.cmd.Process.Signal(syscall.SIGTERM))
	}
	select {
	case <-u.done:
	case <-time.After(patience):
		u.cmd.Process.Kill() //nolint:errcheck // the story fails anyway
		<-u.done
		ts.Fatalf("assent up does not end\n%s", u.log.Bytes())
	}
	ts.Check(os.WriteFile(ts.MkAbs("up.log"), u.log.Bytes(), 0o600))
	if !kill && u.err != nil {
		ts.Fatalf("assent up ended with %v\n%s", u.err, u.log.Bytes())
	}
}

// cmdAwait runs an assent command again and again until its output matches:
// "await PATTERN COMMAND…".
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: await PATTERN COMMAND...")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	var out []byte
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		cmd := exec.Command(program(args[1]), args[2:]...)
		cmd.Dir, cmd.Env = ts.Getenv("WORK"), environ(ts)
		out, _ = cmd.CombinedOutput()
		if want.Match(out) {
			return
		}
	}
	ts.Fatalf("%q did not appear in %v; last:\n%s", args[0], args[1:], out)
}

// program is the path of a program that a story names.
func program(name string) string {
	if name == "assent" {
		return binary
	}
	return name
}

// cmdSetID puts the id of the one ask that waits into a variable: "setid VAR
// [STAGE]". It waits until there is exactly one.
func cmdSetID(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || len(args) > 2 || neg {
		ts.Fatalf("usage: setid VAR [STAGE]")
	}
	stage := "terminal:human"
	if len(args) == 2 {
		stage = args[1]
	}
	var out []byte
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		cmd := exec.Command(binary, "pending", "--json")
		cmd.Env = environ(ts)
		out, _ = cmd.Output()
		var ids []string
		for line := range bytes.Lines(out) {
			var p struct {
				Ask   struct{ ID string }
				Stage string
			}
			if json.Unmarshal(line, &p) == nil && p.Stage == stage {
				ids = append(ids, p.Ask.ID)
			}
		}
		if len(ids) == 1 {
			ts.Setenv(args[0], ids[0])
			return
		}
	}
	ts.Fatalf("no single ask waits at %s; last:\n%s", stage, out)
}

// cmdExpect wants a field of the JSON in a file to be a value: "expect FILE
// PATH VALUE", PATH with dots. "! expect" wants it to differ.
func cmdExpect(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: expect FILE PATH VALUE")
	}
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &v); err != nil {
		ts.Fatalf("%s is not JSON: %v: %q", args[0], err, ts.ReadFile(args[0]))
	}
	for _, key := range strings.Split(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(at) {
				ts.Fatalf("%s: no element %q", args[1], key)
			}
			v = at[i]
		default:
			ts.Fatalf("%s: nothing at %q", args[1], key)
		}
	}
	if got := fmt.Sprint(v); (got == args[2]) == neg {
		ts.Fatalf("%s: got %q, want %q (not: %v) in %s", args[1], got, args[2], neg, ts.ReadFile(args[0]))
	}
}

// cmdHooks pipes every recorded input of Claude Code into the hook and wants an
// explicit verdict that matches: "hooks PATTERN".
func cmdHooks(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: hooks PATTERN")
	}
	want, err := regexp.Compile("^(" + args[0] + ")$")
	ts.Check(err)
	files, err := filepath.Glob(filepath.Join(ts.Getenv("ROOT"), "integrations/claude-code/testdata/input/*.json"))
	ts.Check(err)
	if len(files) < 5 {
		ts.Fatalf("only %d recorded inputs", len(files))
	}
	for _, file := range files {
		in, err := os.ReadFile(file)
		ts.Check(err)
		if !bytes.Contains(in, []byte(`"PreToolUse"`)) {
			continue // another event's answer has another form
		}
		cmd := exec.Command(binary, "hook", "claude-code", "--local", ts.Getenv("LOCAL"))
		cmd.Stdin, cmd.Env = bytes.NewReader(in), environ(ts)
		out, err := cmd.Output()
		if err != nil {
			ts.Fatalf("%s: %v", file, err)
		}
		var said struct {
			HookSpecificOutput struct{ HookEventName, PermissionDecision, PermissionDecisionReason string }
		}
		if err := json.Unmarshal(out, &said); err != nil {
			ts.Fatalf("%s: the answer is not JSON: %q", file, out)
		}
		v := said.HookSpecificOutput
		if v.HookEventName != "PreToolUse" || !want.MatchString(v.PermissionDecision) || v.PermissionDecisionReason == "" {
			ts.Fatalf("%s: no explicit verdict that matches %q: %s", file, args[0], out)
		}
	}
}

// cmdOccupy takes a port of its own and puts its address into a variable.
func cmdOccupy(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: occupy VAR")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	s := storyOf(ts)
	s.ends = append(s.ends, func() { l.Close() })
	ts.Setenv(args[0], l.Addr().String())
}

// cmdFreePort puts a port into a variable that nobody had a moment ago.
func cmdFreePort(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: freeport VAR")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	ts.Check(err)
	ts.Check(l.Close())
	ts.Setenv(args[0], port)
}

// cmdBigJSON writes a JSON object of about that many bytes: "bigjson FILE N".
func cmdBigJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: bigjson FILE N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(`{"file_path":"/repo/big","content":"`+strings.Repeat("x", n)+`"}`), 0o600))
}

// environ is the story's environment for a process.
func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "GO") || name == "TMPDIR" {
			env = append(env, kv)
		}
	}
	for _, name := range []string{"HOME", "PATH", "ASSENT_STORE", "ASSENT_NATS", "ASSENT_CREDS", "ASSENT_NODE", "ANTHROPIC_API_KEY"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// lockedBuffer is a buffer that a process writes and a story reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.b.Bytes())
}
