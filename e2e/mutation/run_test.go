//go:build mutation

package mutation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// runTime bounds one run of go test, building included.
const runTime = 4 * time.Minute

// atOnce is how many changes are tried at a time. Tests that wait for one
// another's processor could fail for no reason of the change's.
const atOnce = 2

// tries is how often a changed test may pass before the change counts as not
// noticed: properties draw at random.
const tries = 3

// TestEachMutationIsNoticed runs the named tests unchanged, where they must
// pass, and then under each change, where they must fail: by what they say, and
// not because something does not compile.
func TestEachMutationIsNoticed(t *testing.T) {
	for pkg, tests := range byPackage() {
		if out, err := goTest(t, pkg, "^("+strings.Join(tests, "|")+")$", ""); err != nil {
			t.Fatalf("%s fails unchanged, so its failing proves nothing: %v\n%s", pkg, err, out)
		}
	}
	slots := make(chan struct{}, atOnce)
	for i, m := range table {
		t.Run(fmt.Sprintf("%d %s", m.invariant, m.breaks), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			changed := overlay(t, i, m)
			out, err := goTest(t, m.pkg, "^"+m.run+"$", changed)
			for try := 1; err == nil && try < tries; try++ {
				out, err = goTest(t, m.pkg, "^"+m.run+"$", changed)
			}
			switch {
			case err == nil:
				t.Fatalf("%s passes although invariant %d is broken", m.run, m.invariant)
			case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
				t.Fatalf("the change does not compile, which proves nothing:\n%s", out)
			case !strings.Contains(out, "--- FAIL: "+m.run):
				t.Fatalf("%s did not fail by itself: %v\n%s", m.run, err, out)
			case !strings.Contains(out, m.says):
				t.Fatalf("%s fails, but does not say %q:\n%s", m.run, m.says, out)
			}
		})
	}
}

func byPackage() map[string][]string {
	out := map[string][]string{}
	for _, m := range table {
		if !slices.Contains(out[m.pkg], m.run) {
			out[m.pkg] = append(out[m.pkg], m.run)
		}
	}
	return out
}

// overlay writes the changed files and the list of them for go test -overlay.
func overlay(t *testing.T, i int, m mutation) string {
	t.Helper()
	changed, err := m.apply()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for file, text := range changed {
		real, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, fmt.Sprintf("%d_%d_%s", i, len(replace), filepath.Base(file)))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[real] = path
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// goTest runs tests of one package. The overlay stands in GOFLAGS too, for the
// tests that build something themselves.
func goTest(t *testing.T, pkg, run, overlay string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	args := []string{"test", "-count", "1", "-vet", "off", "-failfast", "-timeout", "3m", "-run", run}
	env := os.Environ()
	if overlay != "" {
		args = append(args, "-overlay", overlay)
		env = append(env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	args = append(args, "./"+pkg)
	if usesRapid(t, pkg) {
		// What fails on purpose is neither kept nor made smaller.
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime", "0s")
		if overlay != "" {
			// It ends at the first draw that notices: chance must not hide the change.
			args = append(args, "-rapid.checks", "400")
		}
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = root, env, 10*time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// usesRapid says whether the tests of pkg know rapid's flags.
func usesRapid(t *testing.T, pkg string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(f string) bool {
		b, err := os.ReadFile(f)
		return err == nil && strings.Contains(string(b), `"pgregory.net/rapid"`)
	})
}
