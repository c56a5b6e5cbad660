package module

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// What does not fit into a set is a problem of the module that is too much; the
// modules before and after it are in the set.
func TestASetHasBounds(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	many := func(name string, checks int) Source {
		return Source{Name: name, Level: LevelFleet, Code: fmt.Sprintf(
			`({checks: JSON.stringify(Array.from({length: %d}, (_, i) => ({name: "c" + i, tools: null}))), ask: async () => '{"decision":"none"}'})`, checks)}
	}
	named := func(level Level, name, code string) Source { return Source{Name: name, Level: level, Code: code} }
	const empty = `({checks: "[]", ask: async () => '{"decision":"none"}'})`
	var crowd []Source
	for n := range MaxSources + 2 {
		crowd = append(crowd, named(LevelFleet, fmt.Sprint("m", n), empty))
	}
	for _, row := range []struct {
		does     string
		sources  []Source
		problems []string // of which module: what its message holds
		checks   int
	}{
		{"as many checks as there may be", []Source{many("a", MaxChecks)}, nil, MaxChecks},
		{"a module with too many", []Source{many("a", MaxChecks+1), many("b", 1)}, []string{"a: limit"}, 1},
		{"modules with too many together", []Source{many("a", MaxChecks-1), many("b", 2), many("c", 1)}, []string{"b: more than"}, MaxChecks},
		{"the same name at two levels", []Source{named(LevelFleet, "a", empty), named(LevelUser, "a", empty)}, nil, 0},
		{"the same name twice at one", []Source{many("a", 1), many("a", 2)}, []string{"a: same name"}, 1},
		{"a name that is none", []Source{named(LevelFleet, "../a", empty), many("b", 1)}, []string{"../a: no name"}, 1},
		{"a level that is none", []Source{named("root", "a", empty)}, []string{"a: no level"}, 0},
		{"code that is too long", []Source{named(LevelFleet, "a", empty+strings.Repeat(" ", MaxCode))}, []string{"a: limit"}, 0},
		{"too many modules", crowd, []string{"m256: too many", "m257: too many"}, 0},
	} {
		t.Run(row.does, func(t *testing.T) {
			s, problems := e.Load(t.Context(), row.sources)
			if len(problems) != len(row.problems) || len(s.Checks()) != row.checks {
				t.Fatalf("problems %v, %d checks; want %v, %d", problems, len(s.Checks()), row.problems, row.checks)
			}
			for i, want := range row.problems {
				name, message, _ := strings.Cut(want, ": ")
				if p := problems[i]; p.Module != name || !strings.Contains(p.Message, message) {
					t.Errorf("problem %v, want %q", p, want)
				}
			}
		})
	}
}

// A digest says which code stands under which names at which levels, in order.
func TestADigestIsOfWhatDecides(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	a, b := module("a", checkJS{name: "c"}), module("b", checkJS{name: "c"})
	user, other := a, a
	user.Level = LevelUser
	other.Code += " "
	seen := map[string]string{"": "nothing"}
	for does, sources := range map[string][]Source{
		"one": {a}, "another name": {b}, "another level": {user}, "another code": {other}, "two": {a, b}, "the other way round": {b, a},
	} {
		d := set(t, e, sources...).Digest()
		if was, twice := seen[d]; twice {
			t.Errorf("%s has the digest of %s", does, was)
		}
		seen[d] = does
	}
	if again := set(t, e, a, b).Digest(); seen[again] != "two" {
		t.Errorf("the same set has another digest: %s", again)
	}
	if d := set(t, e).Digest(); d != "" {
		t.Errorf("no modules have the digest %s", d)
	}
	var none *Set
	if none.Digest() != "" || none.Checks() != nil || none.Check(t.Context(), bash("ls")).Decision != Pass {
		t.Error("no set is not a set without checks")
	}
}

// A load that is called off ends soon, and calls go on meanwhile.
func TestALoadThatIsCalledOff(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	s := set(t, e, module("a", checkJS{name: "no", body: `return {block: "no"}`}))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	loading := make(chan []Problem, 1)
	go func() {
		_, problems := e.Load(ctx, []Source{{Name: "slow", Level: LevelFleet, Code: `for (;;);`}})
		loading <- problems
	}()
	for range 5 {
		if v := s.Check(t.Context(), bash("ls")); v.Decision != Block {
			t.Errorf("a call meanwhile: got %s (%s)", v.Decision, v.Failure)
		}
	}
	problems := <-loading
	if len(problems) != 1 || !strings.Contains(problems[0].Message, context.DeadlineExceeded.Error()) {
		t.Errorf("problems %v, want that it was called off", problems)
	}
	// What comes after it in the list takes no worker down with it.
	before := full(t, e)
	if _, problems := e.Load(ctx, []Source{module("b"), module("c")}); len(problems) != 2 {
		t.Errorf("after the time: %v, want two problems", problems)
	}
	for p := range full(t, e) {
		if !before[p] {
			t.Error("a load that is over takes a worker down")
		}
	}
}

func TestAnEngineThatIsConfiguredWrongDoesNotStart(t *testing.T) {
	for _, row := range []struct {
		does string
		cfg  Config
		ok   bool
	}{
		{"the defaults", Config{}, true},
		{"a wide time and much memory", Config{Workers: 2, CallTime: time.Second, Memory: 1 << 30}, true},
		{"no time at all", Config{CallTime: time.Nanosecond}, false},
		{"a time that no gate waits for", Config{CallTime: time.Hour}, false},
		{"less memory than a worker begins with", Config{Memory: 1 << 20}, false},
		{"workers below none", Config{Workers: -1}, false},
		{"workers without end", Config{Workers: 1 << 20}, false},
	} {
		e, err := New(row.cfg)
		if (err == nil) != row.ok {
			t.Errorf("%s: %v", row.does, err)
		}
		if err == nil {
			if err := e.Close(); err != nil {
				t.Errorf("%s, closing: %v", row.does, err)
			}
		}
	}
}
