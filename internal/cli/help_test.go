package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// all is the table of main.go, which a test there holds against this one.
var all = []Command{Up, Ask, Hook, Install, Uninstall, Pending, Answer, Freeze, Thaw, Log, Links, Doctor, Health, Policy, Module, Creds, Gate, Judge, Terminal, Auditor, Node, Bench}

func testEnv() (*Env, *bytes.Buffer, *bytes.Buffer) {
	var out, errs bytes.Buffer
	return &Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }}, &out, &errs
}

// Every command says in its help what it does, and shows an example that names
// it and uses flags that exist.
func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	env, _, _ := testEnv()
	walk(newRoot(env, all), func(c *cobra.Command) {
		if c.Short == "" {
			t.Errorf("%s has no short help", c.CommandPath())
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s: its example does not show it: %q", c.CommandPath(), c.Example)
		}
		for line := range strings.Lines(c.Example) {
			if slices.ContainsFunc(c.Commands(), func(sub *cobra.Command) bool { return strings.Contains(line, sub.CommandPath()) }) {
				continue // that command has the flags, and its own look at them
			}
			if strings.Contains(line, c.CommandPath()) {
				checkFlags(t, c, line)
			}
		}
	})
}

func checkFlags(t *testing.T, c *cobra.Command, line string) {
	t.Helper()
	for _, word := range strings.Fields(line) {
		name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if strings.HasPrefix(word, "--") && name != "" && c.Flags().Lookup(name) == nil {
			t.Errorf("%s: its example uses %s, which is no flag of it", c.CommandPath(), word)
		}
	}
}

func walk(c *cobra.Command, f func(*cobra.Command)) {
	if c.Name() == "help" || c.Name() == "completion" {
		return
	}
	if c.HasParent() {
		f(c)
	}
	for _, sub := range c.Commands() {
		walk(sub, f)
	}
}

func TestUsageErrorsExitTwoAndSayWhereToLook(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown command":            {"nonsense"},
		"an unknown command of a group": {"policy", "nonsense"},
		"an unknown flag":               {"pending", "--nonsense"},
		"a missing argument":            {"answer"},
		"an argument too many":          {"pending", "more"},
		"a missing required flag":       {"creds", "issue"},
		"a word that is no verdict":     {"answer", "01KBB2X0G6Y3N2M4P5Q6R7S8T9", "perhaps"},
		"a web desk that is not there":  {"up", "--web", "127.0.0.1:80"},
	} {
		t.Run(name, func(t *testing.T) {
			env, out, errs := testEnv()
			if code := Main(env, args, all...); code != ExitUsage {
				t.Errorf("exit %d, want %d", code, ExitUsage)
			}
			if !strings.HasPrefix(errs.String(), "assent: ") || out.Len() > 0 {
				t.Errorf("stderr %q, stdout %q", errs, out)
			}
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"policy"}, {"creds", "issue", "--help"}, {"--version"}} {
		env, out, errs := testEnv()
		if code := Main(env, args, all...); code != ExitOK || out.Len() == 0 || errs.Len() > 0 {
			t.Errorf("%v: exit %d, stderr %q", args, code, errs)
		}
	}
}

// A back quote in a flag's usage becomes the name of its value.
func TestFlagsNameTheirValues(t *testing.T) {
	env, _, _ := testEnv()
	walk(newRoot(env, all), func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "`") {
				t.Errorf("%s --%s: its help would call the value by what stands in back quotes: %s", c.CommandPath(), f.Name, f.Usage)
			}
		})
	})
}
