package gate

import (
	"context"
	"testing"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/policy"
)

// sitting are modules of which a project's take all the time there is, with or
// without an answer of their own; the fleet's blocks what it is asked in time.
type sitting struct{ says module.Verdict }

func (sitting) Changed(func())                                   {}
func (s sitting) In(_ context.Context, _ []module.Source) Checks { return s }
func (sitting) Digest() string                                   { return "sha256:sitting" }
func (sitting) Problems() []module.Problem                       { return nil }
func (s sitting) Check(ctx context.Context, c module.Call) module.Verdict {
	fleet := module.Check{Level: module.LevelFleet, Module: "f", Name: "f"}
	if c.Off == nil || !c.Off(module.Check{Level: module.LevelProject}) {
		<-ctx.Done()
		return s.says
	}
	if ctx.Err() != nil {
		return module.Verdict{Decision: module.Request, Failure: "the time was over", Check: fleet}
	}
	return module.Verdict{Decision: module.Block, Check: fleet, Reason: "no"}
}

// TestAProjectSitsOutNoBlock: the time that a project's modules take is their own.
func TestAProjectSitsOutNoBlock(t *testing.T) {
	t.Parallel()
	failed := func(l module.Level) module.Verdict {
		return module.Verdict{Decision: module.Request, Failure: "the time was over", Check: module.Check{Level: l, Module: "m", Name: "c"}}
	}
	brings := brought{modules: []module.Source{{Name: "p", Level: module.LevelProject}}}
	for name, row := range map[string]struct {
		says    module.Verdict
		brought brought
		want    policy.Action
	}{
		"under a check of its own":                 {failed(module.LevelProject), brings, policy.Deny},
		"so that one of the fleet's is not asked":  {failed(module.LevelFleet), brings, policy.Deny},
		"and then asks":                            {module.Verdict{Decision: module.Request, Check: module.Check{Level: module.LevelProject, Module: "m", Name: "c"}}, brings, policy.Deny},
		"no project, and the fleet's is not asked": {failed(module.LevelFleet), brought{}, policy.Ask},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, modulesPolicy())
			g := r.checking("g1", sitting{row.says})
			a := r.agent("ci")
			ask := a.bash("git tag")
			g.modules = nil
			plain := must(g.rule(context.Background(), ask))(t)
			g.modules = sitting{row.says}
			if got := g.moduled(context.Background(), ask, row.brought, plain).ruling; got.Action != row.want {
				t.Errorf("%s by %+v, want %s", got.Action, got.Decisive, row.want)
			}
		})
	}
}
