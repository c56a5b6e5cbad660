package levels

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/module"
)

// counted counts the loads of projects that run at once, each of which takes as
// long as it is given.
type counted struct {
	Loader
	now, most, all atomic.Int32
}

func (c *counted) Load(ctx context.Context, sources []module.Source) (*module.Set, []module.Problem) {
	if sources[0].Level == module.LevelProject {
		c.all.Add(1)
		for n := c.now.Add(1); ; {
			if most := c.most.Load(); n <= most || c.most.CompareAndSwap(most, n) {
				break
			}
		}
		defer c.now.Add(-1)
		<-ctx.Done()
	}
	return c.Loader.Load(ctx, sources)
}

// TestAProjectsLoadsAreOneAtATime: an agent that brings ever other modules, none of
// which loads in time, has one worker busy with them and no more; nobody's calls
// pass for it, and those of no project do not wait.
func TestAProjectsLoadsAreOneAtATime(t *testing.T) {
	t.Parallel()
	c := &counted{Loader: engine(t)}
	l := newLevels(t, c, module.LevelFleet)
	l.Put(module.LevelFleet, []module.Source{silent("f", module.LevelFleet)}, nil)
	began := time.Now()
	for i := range 50 {
		s := says("p", module.LevelProject, fmt.Sprint(i))
		s.Root = fmt.Sprint("/repo", i%5)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		v := l.In(ctx, []module.Source{s}).Check(t.Context(), call())
		cancel()
		if v.Decision != module.Request || v.Failure == "" {
			t.Fatalf("a call under modules that do not load: %+v", v)
		}
		if v := l.In(t.Context(), nil).Check(t.Context(), call()); v.Decision != module.Pass {
			t.Fatalf("a call of no project: %+v", v)
		}
	}
	if took, all := time.Since(began), c.all.Load(); took < projectTime && (all != 1 || c.most.Load() != 1) {
		t.Errorf("%d loads in %s, %d of them at once, want one", all, took, c.most.Load())
	}
}

// short is a loader under which a module of the host does not load beside a project's.
type short struct{ Loader }

func (s short) Load(ctx context.Context, sources []module.Source) (*module.Set, []module.Problem) {
	if sources[0].Level != module.LevelProject {
		return s.Loader.Load(ctx, sources)
	}
	set, _ := s.Loader.Load(ctx, sources[:1])
	return set, []module.Problem{{Level: module.LevelFleet, Module: "f", Message: "no room"}}
}

// TestBesideAProjectNobodyIsMissing: what is in force without a project's modules
// is asked with them, whatever came of their loading.
func TestBesideAProjectNobodyIsMissing(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		does   string
		fleet  module.Source
		given  []module.Problem
		want   module.Decision
		failed bool
	}{
		{"a block of the host's", says("f", module.LevelFleet, "by f"), nil, module.Block, false},
		{"what the host would pass", silent("f", module.LevelFleet), nil, module.Request, true},
		{"what is missing without it, too", silent("g", module.LevelFleet), []module.Problem{{Level: module.LevelFleet, Module: "f", Message: "cannot be read"}}, module.Pass, false},
	} {
		l := newLevels(t, short{engine(t)}, module.LevelFleet)
		l.Put(module.LevelFleet, []module.Source{row.fleet}, row.given)
		v := l.In(t.Context(), []module.Source{silent("p", module.LevelProject)}).Check(t.Context(), call())
		if v.Decision != row.want || (v.Failure != "") != row.failed {
			t.Errorf("%s: %+v", row.does, v)
		}
	}
}
