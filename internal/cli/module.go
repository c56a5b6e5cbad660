package cli

import (
	"github.com/spf13/cobra"
)

// Module is `assent module`.
func Module(env *Env) *cobra.Command {
	return group("module", "Permission modules: checks of calls, written in TypeScript",
		moduleNew(env), moduleTest(env),
		modulePush(env), moduleList(env), moduleSwitch(env, "enable"), moduleSwitch(env, "disable"), moduleRemove(env))
}
