package levels

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/protocol"
)

// The test binary is the engine's worker, as the real one is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == module.WorkerCommand {
		if err := module.Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// says is a bundled module with one check that blocks every call, with reason.
func says(name string, level module.Level, reason string) module.Source {
	return module.Source{Name: name, Level: level, Root: "/" + name, Code: fmt.Sprintf(`(() => ({
  checks: JSON.stringify([{name: "check", description: "d", tools: null, function: false}]),
  async ask(order, text) { return JSON.stringify({decision: "block", check: 0, reason: %q, failures: []}); },
}))()`, reason)}
}

// silent is one that says nothing.
func silent(name string, level module.Level) module.Source {
	s := says(name, level, "")
	s.Code = strings.Replace(s.Code, `{decision: "block", check: 0, reason: "", failures: []}`, `{decision: "none", failures: []}`, 1)
	return s
}

func call() module.Call {
	return module.Call{Ask: protocol.Ask{V: 1, ID: protocol.NewAskID(), Agent: "ci", Tool: protocol.Tool{Name: "bash", Input: []byte(`{"command":"ls"}`)}, Cwd: "/repo"}}
}

func engine(t testing.TB) *module.Engine {
	t.Helper()
	e, err := module.New(module.Config{CallTime: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func newLevels(t testing.TB, e Loader, wait ...module.Level) *Levels {
	t.Helper()
	l := New(e, wait...)
	t.Cleanup(l.Close)
	return l
}

// in are the modules whose checks are in force, in order.
func in(s *State) (out []string) {
	for _, c := range s.Checks() {
		out = append(out, c.ID())
	}
	return out
}

func TestTheProjectGoesFirstThenTheFleetThenTheUser(t *testing.T) {
	t.Parallel()
	l := newLevels(t, engine(t), module.LevelFleet, module.LevelUser)
	user, fleet, project := says("u", module.LevelUser, "by u"), silent("f", module.LevelFleet), says("p", module.LevelProject, "by p")
	l.Put(module.LevelUser, []module.Source{user}, nil)
	select {
	case <-l.Ready():
		t.Fatal("ready without the fleet's")
	default:
	}
	l.Put(module.LevelFleet, []module.Source{fleet}, nil)
	<-l.Ready()
	for _, row := range []struct {
		name    string
		project []module.Source
		want    []string
		reason  string
	}{
		{"no project", nil, []string{"fleet:f/check", "user:u/check"}, "by u"},
		{"a project", []module.Source{project}, []string{"project:p/check", "fleet:f/check", "user:u/check"}, "by p"},
		{"the same again", []module.Source{project}, []string{"project:p/check", "fleet:f/check", "user:u/check"}, "by p"},
		{"other code under its name", []module.Source{silent("p", module.LevelProject)}, []string{"project:p/check", "fleet:f/check", "user:u/check"}, "by u"},
		{"and the first again", []module.Source{project}, []string{"project:p/check", "fleet:f/check", "user:u/check"}, "by p"},
	} {
		s := l.In(t.Context(), row.project)
		if v := s.Check(t.Context(), call()); !slices.Equal(in(s), row.want) || v.Decision != module.Block || v.Reason != row.reason || len(s.Problems()) > 0 {
			t.Errorf("%s: %q, %+v, problems %q", row.name, in(s), v, s.Problems())
		}
	}
}

func TestWhatDoesNotLoadIsToldAndTheOthersRun(t *testing.T) {
	t.Parallel()
	l := newLevels(t, engine(t), module.LevelFleet)
	var told atomic.Int32
	l.Changed(func() { told.Add(1) })
	broken := module.Source{Name: "broken", Level: module.LevelFleet, Code: "nonsense("}
	given := []module.Problem{{Module: "gone", Level: module.LevelFleet, Message: "cannot be read"}}
	l.Put(module.LevelFleet, []module.Source{broken, says("f", module.LevelFleet, "no")}, given)
	s := l.In(t.Context(), []module.Source{{Name: "pb", Level: module.LevelProject, Root: "/p", Code: "nonsense("}, says("p", module.LevelProject, "by p")})
	var names []string
	for _, p := range s.Problems() {
		names = append(names, p.Module)
	}
	slices.Sort(names)
	if want := []string{"broken", "gone", "pb"}; !slices.Equal(names, want) {
		t.Errorf("problems %q, want %q", names, want)
	}
	if v := s.Check(t.Context(), call()); v.Decision != module.Block || v.Reason != "by p" {
		t.Errorf("%+v", v)
	}
	before := told.Load()
	l.Put(module.LevelFleet, []module.Source{broken, says("f", module.LevelFleet, "no")}, given)
	l.Again()
	if told.Load() != before || before == 0 {
		t.Errorf("told %d times, then %d", before, told.Load())
	}
}

// slow loads what it is told to wait for only when it is let.
type slow struct {
	Loader
	name string
	let  chan struct{}
}

func (s slow) Load(ctx context.Context, sources []module.Source) (*module.Set, []module.Problem) {
	if slices.ContainsFunc(sources, func(m module.Source) bool { return m.Name == s.name }) {
		select {
		case <-s.let:
		case <-ctx.Done():
		}
	}
	return s.Loader.Load(ctx, sources)
}

// TestAnAskThatCannotWaitForAProjectIsNotPassed: the others' blocks stand, and what
// they would pass is a failure; nobody who comes later waits again.
func TestAnAskThatCannotWaitForAProjectIsNotPassed(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	l := newLevels(t, slow{engine(t), "p", let}, module.LevelFleet)
	project := []module.Source{says("p", module.LevelProject, "by p")}
	for _, row := range []struct {
		fleet module.Source
		want  module.Decision
	}{{silent("f", module.LevelFleet), module.Request}, {says("f", module.LevelFleet, "by f"), module.Block}} {
		l.Put(module.LevelFleet, []module.Source{row.fleet}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		s := l.In(ctx, project)
		cancel()
		v := s.Check(t.Context(), call())
		if v.Decision != row.want || (v.Failure != "") != (row.want == module.Request) || len(s.Problems()) != 1 {
			t.Errorf("%+v, problems %q", v, s.Problems())
		}
		if other := l.In(t.Context(), nil).Check(t.Context(), call()); other.Failure != "" {
			t.Errorf("an ask of no project waits too: %+v", other)
		}
	}
	close(let)
	if v := l.In(t.Context(), project).Check(t.Context(), call()); v.Decision != module.Block || v.Reason != "by p" {
		t.Errorf("loaded: %+v", v)
	}
}

// TestAReloadUnderLoadChangesBetweenTwoAsksAndNeverWithinOne: two modules that are
// always pushed together, each of which says its generation; no ask sees two, and
// none sees an older one than an ask that ended before it began.
func TestAReloadUnderLoadChangesBetweenTwoAsksAndNeverWithinOne(t *testing.T) {
	t.Parallel()
	l := newLevels(t, engine(t), module.LevelFleet)
	generation := func(n int) []module.Source {
		a, b := silent("a", module.LevelFleet), says("b", module.LevelFleet, fmt.Sprint(n))
		a.Code += fmt.Sprintf("// %d", n)
		return []module.Source{a, b}
	}
	versions := map[string]string{} // of b by that of a
	const generations = 12
	for n := range generations {
		pair := generation(n)
		versions[pair[0].Version()] = pair[1].Version()
	}
	l.Put(module.LevelFleet, generation(0), nil)
	var ended atomic.Int64
	var asked atomic.Int64
	over := make(chan struct{})
	var askers sync.WaitGroup
	for range 4 {
		askers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				oldest := ended.Load()
				s := l.In(t.Context(), nil)
				checks := s.Checks()
				for range 3 { // one ruling may ask more than once
					v := s.Check(t.Context(), call())
					var n int64
					if _, err := fmt.Sscan(v.Reason, &n); err != nil || v.Decision != module.Block {
						t.Errorf("%+v", v)
						return
					}
					if len(checks) != 2 || versions[checks[0].Version] != v.Check.Version || v.Check.Version != checks[1].Version {
						t.Errorf("two generations in one: %+v and %+v", checks, v.Check)
						return
					}
					if v.Check.Module != "b" || v.Check.Name != "check" || n < oldest {
						t.Errorf("generation %d after %d: %+v", n, oldest, v.Check)
						return
					}
					asked.Add(1)
				}
			}
		})
	}
	for n := range generations {
		l.Put(module.LevelFleet, generation(n), nil)
		ended.Store(int64(n))
		if v := l.In(t.Context(), nil).Check(t.Context(), call()); v.Reason != fmt.Sprint(n) {
			t.Errorf("after generation %d was put: %+v", n, v)
		}
	}
	close(over)
	askers.Wait()
	if asked.Load() < generations {
		t.Errorf("only %d asks", asked.Load())
	}
}

func TestAFolderIsFollowed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "permissions")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A bundler that bundles nothing: each file is a module.
	read := func(dir string, level module.Level) (out []module.Source, problems []module.Problem, err error) {
		entries, err := os.ReadDir(dir)
		if os.IsNotExist(err) {
			return nil, nil, nil
		}
		for _, e := range entries {
			b, rerr := os.ReadFile(filepath.Join(dir, e.Name()))
			if rerr != nil {
				continue
			}
			out = append(out, module.Source{Name: e.Name(), Level: level, Code: string(b)})
		}
		return out, nil, err
	}
	type taken struct {
		sources  []module.Source
		problems []module.Problem
	}
	takes := make(chan taken, 16)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Folder(ctx, dir, module.LevelUser, read, func(s []module.Source, p []module.Problem) { takes <- taken{s, p} })
	}()
	sees := func(want ...string) {
		t.Helper()
		deadline := time.After(20 * time.Second)
		for {
			select {
			case got := <-takes:
				var have []string
				for _, s := range got.sources {
					have = append(have, s.Name+"="+s.Code)
				}
				if slices.Equal(have, want) {
					return
				}
			case <-deadline:
				t.Fatalf("not seen: %q", want)
			}
		}
	}
	sees() // a folder that is not there holds none
	write("a.ts", "1")
	sees("a.ts=1")
	write("b.ts", "2")
	sees("a.ts=1", "b.ts=2")
	write("a.ts", "three")
	sees("a.ts=three", "b.ts=2")
	if err := os.Remove(filepath.Join(dir, "b.ts")); err != nil {
		t.Fatal(err)
	}
	sees("a.ts=three")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // no folder any more
		t.Fatal(err)
	}
	select {
	case got := <-takes:
		for len(got.problems) == 0 { // it was away for a moment
			got = <-takes
		}
		if !strings.Contains(got.problems[0].Message, "cannot be read") {
			t.Errorf("%+v", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is said of a folder that is none")
	}
	cancel()
	<-done
}
