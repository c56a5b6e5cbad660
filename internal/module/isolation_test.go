package module

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Date and Math.random are the ask's: every gate hears the same, and a module
// learns nothing of the host.
func TestTimeAndChanceAreTheAsks(t *testing.T) {
	tells := module("tells", checkJS{name: "t", body: `return {block: [Date.now(), new Date().toISOString(), new Date(0).getTimezoneOffset(), Math.random(), Math.random()].join(" ")}`})
	first, second := engine(t, Config{Workers: 1}), engine(t, Config{Workers: 1})
	at := func(e *Engine, id string) string {
		c := bash("ls")
		c.Ask.ID = id
		return set(t, e, tells).Check(t.Context(), c).Reason
	}
	const a, b = "01JAAAAAAAAAAAAAAAAAAAAAAA", "01JAAAAAAAAAAAAAAAAAAAAAAB"
	if got, want := at(first, a), protocol.AskTime(a); !strings.HasPrefix(got, fmt.Sprint(want.UnixMilli(), " ", want.Format("2006-01-02T15:04:05.000Z"), " 0 0.")) {
		t.Errorf("got %q, want the ask's time %s, in UTC", got, want)
	}
	if x, y, z := at(first, a), at(first, a), at(second, a); x == "" || x != y || x != z {
		t.Errorf("one ask, three answers: %q, %q, %q", x, y, z)
	}
	x, y := strings.Fields(at(first, a)), strings.Fields(at(first, b))
	if x[0] != y[0] || x[3] == y[3] || x[3] == x[4] {
		t.Errorf("two asks of one millisecond: want the same time and other chances, got %v and %v", x, y)
	}
}

// What a module does to its own globals no other module sees, not even one with
// the same code under another root.
func TestModulesShareNothing(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	mark := checkJS{name: "m", body: `const before = globalThis.mark; globalThis.mark = input.permissionRoot; if (before && before !== input.permissionRoot) return {block: before}`}
	polluter := module("polluter", checkJS{name: "p"})
	polluter.Code = `Object.prototype.block = "polluted"; ` + polluter.Code
	here, there := module("twin", mark), module("twin", mark)
	there.Level, there.Root = LevelUser, "/elsewhere"
	s := set(t, e, polluter, here, there)
	for range 3 {
		if v := s.Check(t.Context(), bash("ls")); v.Decision != Pass {
			t.Fatalf("got %s by %s: %s %s", v.Decision, v.Check.ID(), v.Reason, v.Failure)
		}
	}
}

// worker1 is one worker process that ends with the test.
func worker1(t *testing.T) *process {
	t.Helper()
	argv, err := SelfCommand()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan *process)
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		p, err := start(argv, DefaultMemory)
		if err != nil {
			t.Error(err)
		}
		started <- p
		<-end
	})
	t.Cleanup(func() { close(end); wg.Wait() })
	p := <-started
	if p == nil {
		t.FailNow()
	}
	t.Cleanup(p.stop)
	return p
}

// A worker ends when its engine does, however that ends: its standard input ends
// with it.
func TestAWorkerEndsWithItsInput(t *testing.T) {
	p := worker1(t)
	p.to.Close()
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		t.Error("the worker goes on without an engine")
	}
}

// A worker that somebody else ends is noticed and replaced; the call is asked
// again where it was, once.
func TestAWorkerThatIsGone(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	s := set(t, e, module("a", checkJS{name: "no", body: `return {block: "no"}`}))
	if v := s.Check(t.Context(), bash("ls")); v.Decision != Block {
		t.Fatal(v)
	}
	for range 3 {
		e.pool.mu.Lock()
		for p := range e.pool.all {
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
		e.pool.mu.Unlock()
		if v := s.Check(t.Context(), bash("ls")); v.Decision != Block {
			t.Errorf("got %s (%s)", v.Decision, v.Failure)
		}
	}
}

// Where no worker starts, every call is a failure that says so, and none waits
// for long.
func TestNoWorkerStarts(t *testing.T) {
	e := engine(t, Config{Workers: 1, Command: []string{"/nonexistent/assent"}})
	began := time.Now()
	s, problems := e.Load(t.Context(), []Source{module("a", checkJS{name: "c"})})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "no such file") || len(s.Checks()) != 0 {
		t.Errorf("problems %v, want one that says what is missing", problems)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("it took %s", d)
	}
}

// What ends the time of a call is a failure, and so is a closed engine: never a
// pass.
func TestACallWhoseTimeIsOver(t *testing.T) {
	e, err := New(Config{Workers: 1, CallTime: callTime})
	if err != nil {
		t.Fatal(err)
	}
	s := set(t, e, module("a", checkJS{name: "c"}))
	if v := s.Check(t.Context(), bash("ls")); v.Decision != Pass {
		t.Fatal(v)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if v := s.Check(over, bash("ls")); v.Decision != Request || v.Failure == "" {
		t.Errorf("after its time: got %+v", v)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if v := s.Check(t.Context(), bash("ls")); v.Decision != Request || !strings.Contains(v.Failure, "closed") {
		t.Errorf("after Close: got %+v", v)
	}
	if _, problems := e.Load(t.Context(), []Source{module("b", checkJS{name: "c"})}); len(problems) != 1 {
		t.Errorf("a closed engine loads: %v", problems)
	}
	if err := e.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

// A call ends soon after its time does, however long its checks may take.
func TestACallWhoseTimeEndsUnderACheck(t *testing.T) {
	e := engine(t, Config{Workers: 1, CallTime: 10 * time.Second})
	s := set(t, e, module("a", checkJS{name: "c", body: `if (input.tool.command === "loop") for (;;); return {block: "no"}`}))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Millisecond, errors.New("the agent has gone"))
	defer cancel()
	v := s.Check(ctx, bash("loop"))
	if v.Decision != Request || !strings.Contains(v.Failure, "the agent has gone") || v.Took > 5*time.Second {
		t.Errorf("got %+v", v)
	}
	if v := s.Check(t.Context(), bash("ls")); v.Decision != Block {
		t.Errorf("the next: got %s (%s)", v.Decision, v.Failure)
	}
}

// Many callers at once, some of whose calls take their worker down, hear what
// their own call comes to.
func TestCallersDoNotHearEachOther(t *testing.T) {
	e := engine(t, Config{Workers: 2, CallTime: 20 * time.Millisecond})
	s := set(t, e, module("a", checkJS{name: "c", body: `
		if (input.tool.command === "loop") for (;;);
		if (input.tool.command !== "pass") return {block: input.tool.command}`}))
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 20 {
				command, want := fmt.Sprintf("c%d-%d", n, i), Block
				switch {
				case n == 0 && i%7 == 0:
					command, want = "loop", Request
				case i%3 == 0:
					command, want = "pass", Pass
				}
				c := bash(command)
				c.Ask.Agent = fmt.Sprint("agent-", i) // one that took down too many workers is not asked about
				v := s.Check(t.Context(), c)
				if v.Decision != want || want == Block && v.Reason != command || (v.Failure != "") != (want == Request) {
					t.Errorf("%s: got %s, reason %q, failure %q", command, v.Decision, v.Reason, v.Failure)
				}
			}
		})
	}
	wg.Wait()
}

// A set goes on as it was while another takes its place: a call is under the
// modules of one moment.
func TestASetIsNotChangedByTheNext(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	says := func(word string) *Set {
		return set(t, e, module("a", checkJS{name: "c", body: `return {block: "` + word + `"}`}))
	}
	old, now := says("old"), says("new")
	if old.Digest() == now.Digest() || old.Checks()[0].Version == now.Checks()[0].Version {
		t.Error("another code has the same digest")
	}
	for range 3 {
		if v := old.Check(t.Context(), bash("ls")); v.Reason != "old" {
			t.Errorf("the old set says %q", v.Reason)
		}
		if v := now.Check(t.Context(), bash("ls")); v.Reason != "new" || v.Check.Version != now.Checks()[0].Version {
			t.Errorf("the new set says %q", v.Reason)
		}
	}
}
