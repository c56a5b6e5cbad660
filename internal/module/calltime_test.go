package module

import (
	"strings"
	"testing"
	"time"
)

// The time for a check is the engine's unless the call says another: a policy may
// change it while the engine runs.
func TestACallSaysHowLongItsChecksMayTake(t *testing.T) {
	long := checkJS{name: "long", body: `let x = 0; for (let i = 0; i < 3e6; i++) x += i; return {block: "done"}`}
	ever := checkJS{name: "ever", body: `for (;;);`}
	for _, row := range []struct {
		does   string
		engine time.Duration
		call   time.Duration
		check  checkJS
		want   Decision
		says   string
	}{
		{"the engine's where the call says nothing", 10 * time.Second, 0, long, Block, ""},
		{"the call's where it is longer", time.Millisecond, 10 * time.Second, long, Block, ""},
		{"the engine's bounds a check without end", 30 * time.Millisecond, 0, ever, Request, "30ms"},
		{"the call's where it is shorter", 10 * time.Second, 40 * time.Millisecond, ever, Request, "40ms"},
	} {
		t.Run(row.does, func(t *testing.T) {
			e := engine(t, Config{Workers: 1, CallTime: row.engine})
			s := set(t, e, module("m", row.check))
			call := bash("git push")
			call.Time = row.call
			v := s.Check(t.Context(), call)
			if v.Decision != row.want || (v.Failure != "") != (row.want == Request) || !strings.Contains(v.Failure, row.says) {
				t.Errorf("%s, %q", v.Decision, v.Failure)
			}
		})
	}
}
