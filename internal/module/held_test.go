package module

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// holding is a module that holds so many MiB as soon as it loads.
func holding(name string, n int, ask string) Source {
	m := asks(name, ask)
	m.Level = LevelProject
	m.Code = fmt.Sprintf(`var held = []; for (let i = 0; i < %d; i++) held.push(new Uint8Array(%d)); `, n, mib) + m.Code
	return m
}

const saysNothing = `() => '{"decision":"none"}'`

// What a module that ended badly held is free again: the next are not told that
// they take more than a worker may.
func TestWhatAFailedModuleHeldIsFree(t *testing.T) {
	e := engine(t, Config{Workers: 1, CallTime: 5 * time.Second})
	for i := range 12 {
		bad := holding(fmt.Sprint("bad", i), 60, `() => { throw new Error("bad") }`)
		if v := set(t, e, bad).Check(t.Context(), bash("ls")); !strings.Contains(v.Failure, "Error: bad") {
			t.Fatalf("%s: %s (%s)", bad.Name, v.Decision, v.Failure)
		}
	}
}

// Modules that hold more together than a worker may, each of which loads, do not
// keep another from loading, and no worker from standing ready.
func TestModulesThatHoldMoreThanAWorkerMay(t *testing.T) {
	e := engine(t, Config{Workers: 1, CallTime: 5 * time.Second})
	for i := range 8 {
		set(t, e, holding(fmt.Sprint("big", i), 80, saysNothing))
	}
	s := set(t, e, module("fleet", checkJS{name: "no", body: `return {block: "no"}`}), holding("last", 100, saysNothing))
	if v := s.Check(t.Context(), bash("ls")); v.Decision != Block || v.Reason != "no" {
		t.Errorf("got %s (%s)", v.Decision, v.Failure)
	}
	settled, since := processes(e), time.Now()
	for deadline := time.Now().Add(20 * time.Second); time.Since(since) < time.Second; time.Sleep(20 * time.Millisecond) {
		if now := processes(e); now != settled {
			settled, since = now, time.Now()
		}
		if time.Now().After(deadline) {
			t.Fatalf("workers are started for ever: %s", settled)
		}
	}
}

// A check has the memory of a worker, whatever other modules hold in there: a
// project's would else make a question of a block of the fleet's.
func TestACheckHasTheMemoryOfAWorker(t *testing.T) {
	for _, row := range []struct {
		does  string
		takes int // MiB
		want  Decision
	}{
		{"what a worker has", 150, Block},
		{"more than a worker has", 4000, Request},
	} {
		t.Run(row.does, func(t *testing.T) {
			e := engine(t, Config{Workers: 1, CallTime: 5 * time.Second})
			takes := module("fleet", checkJS{name: "no", body: fmt.Sprintf(`const held = []; for (let i = 0; i < %d; i++) held.push(new Uint8Array(%d)); return {block: "no"}`, row.takes, mib)})
			var both []Source
			for i := range 5 {
				both = append(both, holding(fmt.Sprint("big", i), 80, saysNothing))
			}
			together, single := set(t, e, append(both, takes)...), set(t, e, takes)
			for _, s := range []*Set{single, together, single} {
				if v := s.Check(t.Context(), bash("ls")); v.Decision != row.want || (v.Failure != "") != (row.want == Request) {
					t.Errorf("among %d: got %s by %s (%s)", s.Len(), v.Decision, v.Check.ID(), v.Failure)
				}
			}
		})
	}
}

// processes are which processes an engine has.
func processes(e *Engine) string {
	e.pool.mu.Lock()
	defer e.pool.mu.Unlock()
	sum := 0
	for p := range e.pool.all {
		sum += p.cmd.Process.Pid
	}
	return fmt.Sprint(len(e.pool.all), " of which the numbers come to ", sum)
}
