package mutation

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestEachMutationFitsTheSource(t *testing.T) {
	t.Parallel()
	for _, m := range table {
		if _, err := m.apply(); err != nil {
			t.Errorf("%d, %s: %v", m.invariant, m.breaks, err)
		}
	}
}

// invariants is how many the contract has.
const invariants = 16

func TestEachInvariantHasAMutation(t *testing.T) {
	t.Parallel()
	have := map[int]bool{}
	for _, m := range table {
		have[m.invariant] = true
	}
	for n := 1; n <= invariants; n++ {
		if !have[n] {
			t.Errorf("nothing breaks invariant %d", n)
		}
	}
}

// TestEachMutationNamesATest: a pattern that matches no test would pass under
// every change.
func TestEachMutationNamesATest(t *testing.T) {
	t.Parallel()
	for _, m := range table {
		files, err := filepath.Glob(filepath.Join(root, m.pkg, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("package %s has no tests: %v", m.pkg, err)
		}
		found := false
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(b), "\nfunc "+m.run+"(t *testing.T) {")
		}
		if !found {
			t.Errorf("%d, %s: package %s has no %s", m.invariant, m.breaks, m.pkg, m.run)
		}
	}
}

// TestThePageNamesEachMutation holds docs/invariants.md against the table: a row
// names each of its mutations and the test that notices it.
func TestThePageNamesEachMutation(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(root, "docs/invariants.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range table {
		row := regexp.MustCompile(`(?m)^\| `+strconv.Itoa(m.invariant)+` \|.*$`).FindAllString(string(b), -1)
		text := strings.Join(row, "\n")
		for _, want := range []string{m.breaks, "`" + m.run + "`"} {
			if !strings.Contains(text, want) {
				t.Errorf("the rows of invariant %d do not name %s", m.invariant, want)
			}
		}
	}
}
