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

// crowd is a module of a project with as many checks as it may have.
func crowd(root string) module.Source {
	return module.Source{Name: "crowd", Level: module.LevelProject, Root: root, Code: fmt.Sprintf(`(() => ({
  checks: JSON.stringify(Array.from({length: %d}, (_, i) => ({name: "c" + i, description: "d", tools: ["deploy"], function: false}))),
  async ask() { return '{"decision":"none"}'; },
}))()`, module.MaxChecks-1)}
}

// TestSetsOfProjectsAreKeptWithinBounds: large ones push out large ones, the last
// one used is kept, and the host's checks do not count.
func TestSetsOfProjectsAreKeptWithinBounds(t *testing.T) {
	t.Parallel()
	l := newLevels(t, engine(t), module.LevelFleet)
	l.Put(module.LevelFleet, []module.Source{says("f", module.LevelFleet, "by f")}, nil)
	for i := range 6 {
		if v := l.In(t.Context(), []module.Source{crowd(fmt.Sprint("/repo", i))}).Check(t.Context(), call()); v.Reason != "by f" {
			t.Fatalf("%+v", v)
		}
	}
	for i := range 20 {
		s := silent("p", module.LevelProject)
		s.Root = fmt.Sprint("/small", i)
		l.In(t.Context(), []module.Source{s})
	}
	kept := map[int]int{}
	for _, p := range l.now.Load().projects.Values() {
		kept[p.state.set.Len()]++
	}
	if kept[2] != 20 || kept[module.MaxChecks] < 1 || kept[module.MaxChecks] > maxProjectChecks/(module.MaxChecks-1) {
		t.Errorf("kept %v, by checks", kept)
	}
}
