package gate

import (
	"sync/atomic"
	"testing"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/protocol"
)

// TestOtherModulesSettleWhatWaits: when other modules come into force, what waits
// for a person is ruled under them.
func TestOtherModulesSettleWhatWaits(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		level   module.Level
		then    moduleState
		outcome protocol.Outcome // "": it waits on
	}{
		"none that asks any more":            {module.LevelFleet, moduleState{digest: "sha256:two"}, protocol.AllowedByRule},
		"none at all":                        {module.LevelFleet, moduleState{}, protocol.AllowedByRule},
		"a project's that is gone":           {module.LevelProject, moduleState{digest: "sha256:two"}, protocol.AllowedByRule},
		"one that blocks":                    {module.LevelFleet, moduleState{digest: "sha256:two", checks: []scriptedCheck{checkOf("git tag", "block")}}, protocol.DeniedByModule},
		"one that blocks what a user's asks": {module.LevelUser, moduleState{digest: "sha256:two", checks: []scriptedCheck{checkOf("git tag", "block")}}, protocol.DeniedByModule},
		"one that asks, too":                 {module.LevelFleet, moduleState{digest: "sha256:two", checks: []scriptedCheck{checkOf("git tag", "request")}}, ""},
		"a user's that is not here":          {module.LevelUser, moduleState{digest: "sha256:two"}, ""},
		"a user's where there are none":      {module.LevelUser, moduleState{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, human(modulesPolicy()))
			r.person()
			c := checkOf("git tag", "request")
			c.level = row.level
			m := newModules(c)
			g := r.checking("g1", m)
			a := r.agent("ci")
			ask := a.bash("git tag")
			a.pend(ask)
			m.set(row.then)
			if row.outcome == "" {
				r.stays(g, ask.ID)
				r.answer(ask.ID, yes())
				want(t, a.decide(ask), allow, protocol.AllowedByHuman)
				return
			}
			d := a.decide(ask)
			if d.Outcome != row.outcome || d.Approver != "" || d.Policy.Modules != row.then.digest {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestWhatAUsersModuleAskedNoOtherGateWaves: a gate without that module takes the
// ask over, and a person answers it all the same.
func TestWhatAUsersModuleAskedNoOtherGateWaves(t *testing.T) {
	t.Parallel()
	r := newRig(t, human(modulesPolicy(linkAllows)))
	r.person()
	r.denying()
	var alone atomic.Bool
	asked := make(chan struct{}, 8)
	r.link("l0", func(c linkCall) {
		c.accept()
		if asked <- struct{}{}; alone.Load() {
			c.verdict("allow", "fine", "")
		}
	})
	g1 := r.checking("g1", newModules(checkOf("git tag", "request")))
	a := r.agent("ci")
	ask := a.bash("git tag")
	if h := a.once(ask); h.progress == nil {
		t.Fatalf("want Progress, got %+v", h)
	}
	receive(t, asked)
	r.checking("g2", nil)
	alone.Store(true)
	g1.kill()
	r.waiting(ask.ID) // the link was asked once more, by the other gate
	r.answer(ask.ID, yes())
	d := a.decide(ask)
	want(t, d, allow, protocol.AllowedByHuman)
	if d.Gate != "g2" || len(d.Trail) != 1 || !d.Trail[0].Capped {
		t.Errorf("by gate %s after %+v", d.Gate, d.Trail)
	}
}
