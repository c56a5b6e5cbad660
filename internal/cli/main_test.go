package cli

import (
	"fmt"
	"os"
	"testing"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/node/nodetest"
)

// The test binary is its own worker of modules, as the real one is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == module.WorkerCommand {
		if err := module.Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	nodetest.Patient()
	os.Exit(m.Run())
}
