package module

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/assent-dev/assent/internal/policy"
)

// maxPaths is for how many of the files that one call names its checks are asked.
const maxPaths = 64

// walks asks the checks about a call: once for each file, where it names several.
// A check that looks at the path would else see none, and an agent that names a
// second one beside it would pass it by. The strictest that is said stands.
func (s *Set) walks(ctx context.Context, call *Call, f policy.ToolFields, steps []planned, began time.Time) Verdict {
	paths := f.Paths
	if len(paths) == 0 {
		paths = []string{""}
	}
	var said Verdict
	crashes := 0
	for _, path := range paths[:min(len(paths), maxPaths)] {
		w := walk{ctx: ctx, set: s, steps: steps, began: began, time: cmp.Or(call.Time, s.engine.cfg.CallTime), crashes: crashes}
		v := w.run(call, f, path)
		crashes = w.crashes
		if said.Decision == None || v.weight() > said.weight() {
			said = v
		}
		if said.Decision == Block {
			return said
		}
	}
	if over := len(paths) - maxPaths; over > 0 && said.Decision == Pass {
		first := steps[0]
		return *failedCheck(first.module.checks[first.checks[0]], fmt.Errorf("the call names %d files, and checks are asked about %d of them", len(paths), maxPaths))
	}
	return said
}

// weight orders verdicts by what they keep a call from: a person's word on a
// failure is less than one on what a check says.
func (v *Verdict) weight() int {
	switch {
	case v.Decision == Pass:
		return 0
	case v.Decision == Request && v.Failure == "":
		return 2
	case v.Decision == Block:
		return 3
	default:
		return 1
	}
}
