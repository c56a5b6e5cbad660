package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/commands.md anew")

// docs/commands.md is the help of every command on one page.
func TestTheCommandsPageIsTheHelp(t *testing.T) {
	env, _, _ := testEnv()
	var b bytes.Buffer
	b.WriteString("# Commands\n\nOne binary, `assent`. This page is the help of every command; a test keeps it so.\n\n" +
		"Exit codes: 0 done, 1 failed, 2 wrong usage, 3 denied (or an answer that does not stand, or a policy that no gate would\n" +
		"take), 4 cases of a policy that do not hold.\n" +
		"Commands that talk to a node find it by flags (`--nats`, `--creds`, `--node`, or `--store`), then by `ASSENT_NATS`,\n" +
		"`ASSENT_CREDS`, `ASSENT_NODE`, `ASSENT_STORE`, then by what `assent up` left in `~/.config/assent/local.json` (mode 0600, owner\n" +
		"checked). `assent hook` reads no variable at all: a project's settings can set the environment of a hook.\n")
	walk(newRoot(env, all), func(c *cobra.Command) { describe(&b, c) })
	const path = "../../docs/commands.md"
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, b.Bytes()) {
		t.Error("docs/commands.md is not what the commands say: run `go test ./internal/cli -run Commands -update`")
	}
}

func describe(b *bytes.Buffer, c *cobra.Command) {
	if c.HasSubCommands() && c.Example == "" {
		fmt.Fprintf(b, "\n## %s\n\n%s.\n", c.CommandPath(), c.Short)
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n", c.CommandPath(), firstOf(c.Long, c.Short+"."))
	fmt.Fprintf(b, "```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimSpace(c.Example), "\n  ", "\n"))
	rows := 0
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		if rows++; rows == 1 {
			b.WriteString("\n| flag | meaning |\n|---|---|\n")
		}
		fmt.Fprintf(b, "| `--%s` | %s |\n", f.Name, strings.ReplaceAll(f.Usage, "|", "\\|"))
	})
}
