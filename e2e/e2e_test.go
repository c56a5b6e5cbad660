// Package e2e tells stories on the real binary: one file a story, in
// testdata/story. Every attack and every accident that was ever found stays as
// one of them.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assent-dev/assent/internal/node/nodetest"
)

// binary and natsServer are built once for all stories.
var binary, natsServer string

func TestMain(m *testing.M) {
	nodetest.Patient()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "assent-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary, natsServer = filepath.Join(dir, "assent"), filepath.Join(dir, "nats-server")
	for out, pkg := range map[string]string{binary: "..", natsServer: "github.com/nats-io/nats-server/v2"} {
		cmd := exec.Command("go", "build", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if b, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building %s: %v\n%s", pkg, err, b)
			return 1
		}
	}
	return m.Run()
}

func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/story",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"up":       cmdUp,
			"down":     cmdDown,
			"heard":    cmdHeard,
			"await":    cmdAwait,
			"model":    cmdModel,
			"link":     cmdLink,
			"setid":    cmdSetID,
			"expect":   cmdExpect,
			"occupy":   cmdOccupy,
			"hooks":    cmdHooks,
			"freeport": cmdFreePort,
			"bigjson":  cmdBigJSON,
		},
		Setup: setup,
	})
}

// setup gives a story a home of its own: nothing of the machine's user is read
// or written.
func setup(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	env.Vars = append(env.Vars,
		"HOME="+home,
		"PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"),
		"ROOT="+root,
		"EXAMPLES="+filepath.Join(root, "examples"),
		"ASSENT_STORE="+filepath.Join(env.WorkDir, "store"),
		"GOOS="+runtime.GOOS,
	)
	env.Values[storyKey{}] = &story{env: env}
	env.Defer(func() { env.Values[storyKey{}].(*story).end() })
	return nil
}
