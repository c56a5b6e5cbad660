package cli

import (
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/module"
)

// ModuleWorker is `assent module-worker`: a process in which a gate runs
// permission modules. It stands in no list of commands; only an engine of
// modules starts it.
func ModuleWorker(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:     module.WorkerCommand,
		Short:   "Run permission modules for the gate that started it",
		Long:    "A process in which a gate runs permission modules, so that one that runs away can be ended. The gate starts it; it speaks\nframes of its own on standard input and output.",
		Example: "  assent module-worker < /dev/null     # ends at once: nobody gives it orders",
		Hidden:  true,
		Args:    exactArgs(),
		RunE:    func(*cobra.Command, []string) error { return module.Work(env.Stdin, env.Stdout) },
	}
}
