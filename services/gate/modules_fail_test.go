package gate

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

var oneProblem = []module.Problem{{Module: "broken", Level: module.LevelFleet, Message: "broken.ts:1:9: Expected \";\""}}

// TestModulesThatDoNotLoad: the others run; where the policy is strict nothing is
// allowed, and nobody is asked for nothing. It is told once.
func TestModulesThatDoNotLoad(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		settings []string
		command  string
		outcome  protocol.Outcome
	}{
		"a rule's allow":                   {nil, "git log", protocol.AllowedByRule},
		"the others run":                   {nil, "git tag", protocol.DeniedByModule},
		"what is asked":                    {nil, "make", protocol.NoApprover},
		"a rule's allow, strictly":         {[]string{strictOn}, "git log", protocol.Unavailable},
		"what is asked, strictly":          {[]string{strictOn}, "make", protocol.Unavailable},
		"yolo, strictly":                   {[]string{strictOn, yoloOn}, "make", protocol.Unavailable},
		"what a rule denies, and strictly": {[]string{strictOn}, "rm x", protocol.DeniedByRule},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, modulesPolicy(row.settings...))
			r.denying()
			m := newModules()
			m.set(moduleState{digest: "sha256:one", checks: []scriptedCheck{checkOf("git tag", "block")}, problems: oneProblem})
			g := r.checking("g1", m)
			a := r.agent("ci")
			for range 3 {
				d := a.decide(a.bash(row.command))
				want(t, d, map[bool]protocol.FinalChoice{true: allow, false: deny}[row.outcome.Allows()], row.outcome)
				if row.outcome == protocol.Unavailable && (d.Origin != "module:fleet:broken@" || !strings.Contains(d.Reason, `broken.ts:1:9: Expected ";"`)) {
					t.Errorf("%q by %s", d.Reason, d.Origin)
				}
			}
			if n := g.counted("module"); n != 1 && row.outcome != protocol.DeniedByRule {
				t.Errorf("counted %v times", n)
			}
		})
	}
}

// TestModulesThatCannotBeAsked: nonsense, a panic or an engine that is gone is no
// pass, and the gate goes on.
func TestModulesThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	broken := map[string]func(module.Call) module.Verdict{
		"a verdict that nobody set":     func(module.Call) module.Verdict { return module.Verdict{} },
		"a decision of a later version": func(module.Call) module.Verdict { return module.Verdict{Decision: 99} },
		"a pass with a failure":         func(module.Call) module.Verdict { return module.Verdict{Decision: module.Pass, Failure: "closed"} },
		"a block with a failure":        func(module.Call) module.Verdict { return module.Verdict{Decision: module.Block, Failure: "closed"} },
		"a panic":                       func(module.Call) module.Verdict { panic("boom") },
	}
	for _, settings := range []struct {
		what    string
		text    []string
		outcome protocol.Outcome
	}{{"ask", nil, protocol.NoApprover}, {"deny", []string{failDeny}, protocol.Unavailable}} {
		r := newRig(t, modulesPolicy(settings.text...))
		r.denying()
		m := newModules()
		g := r.checking("g1", m)
		a := r.agent("ci")
		for name, say := range broken {
			m.set(moduleState{digest: "sha256:one", say: say})
			before := g.counted("module")
			ask := a.bash("git log")
			want(t, a.decide(ask), deny, settings.outcome)
			if g.counted("module") <= before {
				t.Errorf("%s, to %s: it is not counted", name, settings.what)
			}
			until(t, "told", func() error { return has(r.events(ask.ID), protocol.EventGateError) })
			want(t, a.decide(a.bash("rm x")), deny, protocol.DeniedByRule)
			m.set(moduleState{digest: "sha256:one"})
			want(t, a.decide(a.bash("git log")), allow, protocol.AllowedByRule)
		}
	}
}

// TestWhatAProjectCouldNotBundleCounts where nothing else is in force, too.
func TestWhatAProjectCouldNotBundleCounts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		settings []string
		brought  brought
		outcome  protocol.Outcome
	}{
		"nothing brought, strictly": {[]string{strictOn}, brought{}, ""},
		"a problem":                 {nil, brought{problems: oneProblem}, ""},
		"a problem, strictly":       {[]string{strictOn}, brought{problems: oneProblem}, protocol.Unavailable},
	} {
		r := newRig(t, modulesPolicy(row.settings...))
		m := newModules()
		m.set(moduleState{})
		g := r.checking("g1", m)
		ask := r.agent("ci").bash("git tag")
		s := g.policy.current()
		got := g.moduled(context.Background(), ask, row.brought, ruled{ruling: s.Rule(grants.Call(ask)), snapshot: s})
		if got.checked.outcome != row.outcome || (got.ruling.Action == policy.Allow) != (row.outcome == "") {
			t.Errorf("%s: %s, %v", name, got.checked.outcome, got.ruling.Action)
		}
	}
}

// TestTheModulesAreGivenThePolicysTime for a call.
func TestTheModulesAreGivenThePolicysTime(t *testing.T) {
	t.Parallel()
	var given atomic.Int64
	r := newRig(t, modulesPolicy(`"modules":{"callTime":"25ms"}`))
	m := newModules()
	m.set(moduleState{digest: "sha256:one", say: func(c module.Call) module.Verdict {
		given.Store(int64(c.Time))
		return module.Verdict{Decision: module.Pass}
	}})
	g := r.checking("g1", m)
	a := r.agent("ci")
	want(t, a.decide(a.bash("git log")), allow, protocol.AllowedByRule)
	if given.Load() != int64(25*time.Millisecond) {
		t.Errorf("given %s", time.Duration(given.Load()))
	}
	g.inForce(r.put(modulesPolicy()))
	want(t, a.decide(a.bash("git log")), allow, protocol.AllowedByRule)
	if given.Load() != int64(policy.DefaultModuleTime) {
		t.Errorf("where the policy says nothing, given %s", time.Duration(given.Load()))
	}
}

// TestAFailureIsToldOnce: on the log for a check, and in the review for an ask, how
// often it is ruled; each is counted.
func TestAFailureIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, human(modulesPolicy()))
	r.person()
	var log countingLog
	r.log = slog.New(&log)
	m := newModules(checkOf("git log", "fail"))
	g := r.checking("g1", m)
	a := r.agent("ci")
	asks := []protocol.Ask{a.bash("git log"), a.bash("git log")}
	for _, ask := range asks {
		a.pend(ask)
	}
	before := g.counted("module")
	for i := range 3 {
		m.set(moduleState{digest: fmt.Sprint("sha256:", i), checks: []scriptedCheck{checkOf("git log", "fail")}})
	}
	until(t, "ruled again", func() error {
		if n := g.counted("module"); n < before+2 {
			return fmt.Errorf("counted %v", n)
		}
		return nil
	})
	for _, ask := range asks {
		if n := r.count(ask.ID, protocol.EventGateError); n != 1 {
			t.Errorf("%d records", n)
		}
	}
	if n := log.n.Load(); n != 1 {
		t.Errorf("%d lines on the log", n)
	}
}

// countingLog counts what is said of failing checks.
type countingLog struct {
	slog.Handler
	n atomic.Int64
}

func (l *countingLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *countingLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *countingLog) WithGroup(string) slog.Handler            { return l }
func (l *countingLog) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "permission check failed") {
		l.n.Add(1)
	}
	return nil
}
