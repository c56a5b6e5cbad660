package module

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// full waits until all processes of an engine have started and none is in use.
func full(t *testing.T, e *Engine) map[*process]bool {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		e.pool.mu.Lock()
		idle := map[*process]bool{}
		for _, p := range e.pool.idle {
			idle[p] = true
		}
		want, ready := e.pool.want, true
		for _, p := range e.pool.idle {
			ready = ready && p.version == e.pool.version.Load()
		}
		e.pool.mu.Unlock()
		if len(idle) == want && ready {
			return idle
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d workers", len(idle), want)
		}
	}
}

// The call after one that took its worker down is served by a process that stood
// in reserve with the modules in it: it waits neither for a start nor for a load.
func TestAReserveStandsInForAWorkerThatIsKilled(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	pass, loop := checkJS{name: "p"}, checkJS{name: "l", body: `if (input.tool.command === "loop") for (;;); return {block: "no"}`}
	for _, row := range []struct {
		does    string
		modules []Source
		killed  int
	}{
		{"one check", []Source{module("a", loop)}, 1},
		{"two checks, the second of which runs away", []Source{module("b", pass, loop)}, 2},
		{"two modules, the second of which does", []Source{module("c", pass), module("d", loop)}, 2},
		{"the same once more: it is known which", []Source{module("c", pass), module("d", loop)}, 1},
	} {
		s := set(t, e, row.modules...)
		before := full(t, e)
		if v := s.Check(t.Context(), bash("loop")); v.Failure == "" || v.Check.Name != "l" {
			t.Fatalf("%s: got %+v", row.does, v)
		}
		if v := s.Check(t.Context(), bash("ls")); v.Decision != Block {
			t.Fatalf("%s, the next: got %s (%s)", row.does, v.Decision, v.Failure)
		}
		stayed := 0
		for p := range full(t, e) {
			if before[p] {
				stayed++
			}
			for _, at := range s.places {
				if !p.modules.has(at.module) {
					t.Errorf("%s: a worker stands ready without module %s", row.does, at.module.name)
				}
			}
		}
		if stayed != 1+reserve-row.killed {
			t.Errorf("%s: %d of the workers from before are left, want %d", row.does, stayed, 1+reserve-row.killed)
		}
	}
}

// A worker holds no more code than its memory is meant for; what it had to forget
// it loads again.
func TestAWorkerForgetsWhatItUsedLongAgo(t *testing.T) {
	e := engine(t, Config{Workers: 1, Memory: minMemory}) // room for 2 MiB of code
	var sources []Source
	for _, name := range []string{"a", "b", "c", "d"} {
		m := module(name, checkJS{name: "c", tools: `["` + name + `"]`, body: `return {block: input.tool.toolName}`})
		m.Code = "/*" + strings.Repeat("x", 800<<10) + "*/" + m.Code
		sources = append(sources, m)
	}
	s := set(t, e, sources...)
	for range 2 {
		for _, name := range []string{"a", "b", "c", "d", "a"} {
			if v := s.Check(t.Context(), call(name, `{}`)); v.Decision != Block || v.Reason != name {
				t.Errorf("%s: got %s, %q (%s)", name, v.Decision, v.Reason, v.Failure)
			}
		}
	}
	for p := range full(t, e) {
		if p.modules.bytes > e.codeLimit() || len(p.modules.list) > 2 {
			t.Errorf("a worker holds %d modules, %d bytes", len(p.modules.list), p.modules.bytes)
		}
	}
}

// One call cannot take down workers without end, whatever its checks do.
func TestACallTakesDownSoManyWorkersAndNoMore(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	var checks []checkJS
	for _, n := range strings.Split("abcdefghijklmnopqrst", "") {
		checks = append(checks, checkJS{name: n, body: `for (;;);`})
	}
	v := set(t, e, module("m", checks...)).Check(t.Context(), bash("ls"))
	if v.Decision != Request || v.Check.Name != "a" || !strings.Contains(v.Failure, "out of time") {
		t.Errorf("got %+v", v)
	}
	if n := testutil.ToFloat64(e.metrics.workers.WithLabelValues("time")); n > maxCrashes {
		t.Errorf("%v workers were taken down, want at most %d", n, maxCrashes)
	}
}

// What the checks say, and how they fail, is counted under words of our own.
func TestWhatModulesSayIsCounted(t *testing.T) {
	r := prometheus.NewRegistry()
	e := engine(t, Config{Workers: 1, Metrics: r})
	s := set(t, e, module("m", checkJS{name: "c", body: `
		switch (input.tool.command) {
		case "block": return {block: "no"}
		case "request": return {request: {}}
		case "throw": throw new Error(input.tool.command)
		case "loop": for (;;);
		case "grow": "x".repeat(1 << 30) }`}))
	for _, command := range []string{"block", "request", "request", "throw", "loop", "grow", "pass"} {
		s.Check(t.Context(), bash(command))
	}
	e.Load(t.Context(), []Source{{Name: "bad", Level: LevelFleet, Code: "("}, {Name: "bad", Level: "odd", Code: "1"}})
	want := `
# HELP assent_module_failures_total Checks that could say nothing.
# TYPE assent_module_failures_total counter
assent_module_failures_total{reason="died"} 1
assent_module_failures_total{reason="error"} 1
assent_module_failures_total{reason="time"} 1
# HELP assent_module_load_failures_total Modules that did not load.
# TYPE assent_module_load_failures_total counter
assent_module_load_failures_total{level="fleet"} 1
assent_module_load_failures_total{level="unknown"} 1
# HELP assent_module_verdicts_total What the checks of permission modules said of calls.
# TYPE assent_module_verdicts_total counter
assent_module_verdicts_total{verdict="block"} 1
assent_module_verdicts_total{verdict="failure"} 3
assent_module_verdicts_total{verdict="pass"} 1
assent_module_verdicts_total{verdict="request"} 2
# HELP assent_module_workers_ended_total Worker processes that ended under a check.
# TYPE assent_module_workers_ended_total counter
assent_module_workers_ended_total{reason="died"} 2
assent_module_workers_ended_total{reason="time"} 1
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "assent_module_failures_total", "assent_module_load_failures_total", "assent_module_verdicts_total", "assent_module_workers_ended_total"); err != nil {
		t.Error(err)
	}
}

// An agent that knows how to make a check run away takes down a few workers with
// it, not all that the host can start; another agent's calls are asked.
func TestACheckThatRunsAwayAgainAndAgainRests(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	s := set(t, e, module("m", checkJS{name: "a", body: `if (input.tool.command === "loop") for (;;); return {block: "no"}`}),
		module("n", checkJS{name: "b", body: `if (input.tool.command === "bad") return {block: "bad"}`}))
	for range 10 {
		if v := s.Check(t.Context(), bash("loop")); v.Decision != Request || v.Failure == "" {
			t.Fatalf("got %+v", v)
		}
	}
	if n := testutil.ToFloat64(e.metrics.workers.WithLabelValues("time")); n > restAfter+1 { // the first time under two checks at once
		t.Errorf("%v workers were taken down, want at most %d", n, restAfter+1)
	}
	if v := s.Check(t.Context(), bash("ls")); v.Decision != Request || !strings.Contains(v.Failure, "is not asked") {
		t.Errorf("the agent's next: got %+v, want the failure", v)
	}
	if v := s.Check(t.Context(), bash("bad")); v.Decision != Block || v.Check.Name != "b" {
		t.Errorf("another check on the agent's call: got %+v, want its block", v)
	}
	other := bash("ls")
	other.Ask.Agent = "somebody"
	if v := s.Check(t.Context(), other); v.Decision != Block || v.Check.Name != "a" {
		t.Errorf("another agent's: got %+v, want the block", v)
	}
}

// A rest ends, and crashes far apart are none.
func TestARestEnds(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	now, k := time.Now(), restKey{agent: "a"}
	for i := range restAfter {
		if err := e.rests.over(k, now); err != nil {
			t.Errorf("after %d: %v", i, err)
		}
		e.rests.note(k, now)
	}
	if e.rests.over(k, now) == nil || e.rests.over(k, now.Add(restTime)) == nil || e.rests.over(k, now.Add(restTime+1)) != nil {
		t.Error("it does not rest for its time")
	}
	far := restKey{agent: "b"}
	for i := range 2 * restAfter {
		e.rests.note(far, now.Add(time.Duration(i)*(restTime+1)))
	}
	if err := e.rests.over(far, now.Add(2*restAfter*restTime)); err != nil {
		t.Errorf("crashes far apart: %v", err)
	}
}
