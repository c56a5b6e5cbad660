// Command assent is the one binary of Assent. This is the table of its
// subcommands; each stands in internal/cli, in a file of its name.
package main

import (
	"os"

	"github.com/assent-dev/assent/internal/cli"
)

func main() {
	os.Exit(cli.Main(cli.OSEnv(), os.Args[1:],
		cli.Up,
		cli.Ask, cli.Hook, cli.Install, cli.Uninstall,
		cli.Pending, cli.Answer, cli.Grants, cli.Freeze, cli.Thaw,
		cli.Log, cli.Links, cli.Doctor, cli.Health, cli.Policy, cli.Module, cli.Creds,
		cli.Gate, cli.Judge, cli.Terminal, cli.Auditor, cli.Node,
		cli.Bench, cli.ModuleWorker,
	))
}
