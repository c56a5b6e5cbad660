package module

import (
	"fmt"
	"strings"
	"testing"
)

// What projects bring is remembered within bounds, whoever brings how many; what
// the fleet has loaded is not forgotten for it.
func TestWhatIsRememberedOfProjectsIsBounded(t *testing.T) {
	t.Parallel()
	e := engine(t, Config{Workers: 1})
	note := func(s Source) {
		t.Helper()
		id := identity{s.Level, s.Name, s.Root, s.Version()}
		m, err := e.newLoaded(&s, id)
		if err != nil {
			t.Fatal(err)
		}
		e.note(id, m)
	}
	fleet := module("ours", checkJS{name: "c"})
	note(fleet)
	large := strings.Repeat("x", MaxCode/2)
	for i := range 4 * maxBrought / (MaxCode / 2) {
		note(Source{Name: "p", Level: LevelProject, Root: "/repo", Code: fmt.Sprint(i, large)})
	}
	if n := e.brought.Len(); e.size > maxBrought || n == 0 || e.size < maxBrought/2 {
		t.Errorf("%d modules of %d bytes, want at most %d bytes", n, e.size, maxBrought)
	}
	for i := range 2 * maxKnown {
		note(Source{Name: "p", Level: LevelProject, Root: "/repo", Code: fmt.Sprint(i)})
		note(Source{Name: "p", Level: LevelProject, Root: "/repo", Code: fmt.Sprint(i)})
	}
	sum := 0
	for _, m := range e.brought.Values() {
		sum += m.size()
	}
	if n := e.brought.Len(); n > maxKnown || sum != e.size {
		t.Errorf("%d modules of %d bytes, counted as %d", n, sum, e.size)
	}
	if _, ok := e.find(identity{fleet.Level, fleet.Name, fleet.Root, fleet.Version()}); !ok {
		t.Error("the fleet's module is forgotten")
	}
}

// The tools that a module's checks name are bounded together, too.
func TestToolsOfAllChecksAreBounded(t *testing.T) {
	t.Parallel()
	named := func(checks int) string {
		var list []string
		for i := range checks {
			list = append(list, fmt.Sprintf(`{"name":"c%d","description":"d","tools":[%s"x"],"function":false}`, i, strings.Repeat(`"t",`, maxTools-1)))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	s := module("m")
	if _, err := readChecks(named(maxAllTools/maxTools), &s); err != nil {
		t.Error(err)
	}
	if _, err := readChecks(named(maxAllTools/maxTools+1), &s); err == nil {
		t.Error("one check too many is taken")
	}
}
