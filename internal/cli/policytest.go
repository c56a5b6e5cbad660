package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/policy"
)

// exitTestsFailed is the exit code where cases do not hold.
const exitTestsFailed = 4

func policyTest(env *Env) *cobra.Command {
	var policyPath string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test FILE…",
		Short: "Test a policy by cases: calls, and how each has to be decided",
		Long: `Runs files of cases offline: each case names a call and how the policy has to decide it.
A file is JSON with comments:

  {
    "policy": "policy.jsonc",
    "cases": [
      { "description": "a push asks", "call": "git push", "want": "ask" },
      { "description": "secrets stay secret", "call": { "tool": "read", "input": { "path": ".env" } },
        "want": "deny", "pattern": "*.env" },
    ],
  }

"policy" is a path from the file's own folder; --policy tests another one. A call is a shell
command, or tool and input with cwd, home, platform, agent_name, grants, paths and mcp_servers
as for policy eval. "pattern" and "reason" must be those of the rule that decides, "suggest"
the patterns that an approver would be offered for a grant. A call that does not say where it
runs is ruled in /repo, with the home /home/dev, on linux. The JSON Schema of such files:
assent policy schema --cases.

Exit 0: all cases hold. 4: some do not. 3: no gate would take a policy. 1: a file cannot be read.`,
		Example: "  assent policy test examples/policy.test.jsonc\n  assent policy test --policy new.jsonc tests/*.jsonc --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wrongArgs(cmd, "one FILE or more", args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var all []testedFile
			for _, path := range args {
				all = append(all, testFile(env, path, policyPath))
			}
			return reportTested(env, all, asJSON)
		},
	}
	cmd.Flags().StringVar(&policyPath, "policy", "", "policy file to test instead of those that the files name")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the results as one JSON object")
	return cmd
}

// tested is what `policy test --json` prints.
type tested struct {
	OK    bool         `json:"ok"`
	Files []testedFile `json:"files"`
}

type testedFile struct {
	File  string       `json:"file"`
	Held  int          `json:"held"`
	Error string       `json:"error"`
	Cases []testedCase `json:"cases"`

	err error
}

type testedCase struct {
	Description string    `json:"description"`
	Line        int       `json:"line"`
	Column      int       `json:"column"`
	OK          bool      `json:"ok"`
	Want        string    `json:"want"`
	Decision    string    `json:"decision"`
	Surface     string    `json:"surface"`
	Pattern     string    `json:"pattern"`
	Place       *placeOut `json:"place,omitempty"`
	Reason      string    `json:"reason"`
	Suggest     []string  `json:"suggest"`
	// Problems are empty for a case that holds.
	Problems []string `json:"problems"`

	decisive policy.Said
}

func testFile(env *Env, path, policyPath string) testedFile {
	out := testedFile{File: path, Cases: []testedCase{}}
	fail := func(err error) testedFile {
		out.err, out.Error = err, err.Error()
		return out
	}
	f, err := readCaseFile(path)
	if err != nil {
		return fail(err)
	}
	docs, err := f.documents(env, path, policyPath)
	if err != nil {
		return fail(err)
	}
	for i, c := range f.Cases {
		got := c.run(f.line(c), docs.snapshot(c.Call.AgentName))
		got.Line, got.Column = f.at[i].Line, f.at[i].Column
		if got.OK {
			out.Held++
		}
		out.Cases = append(out.Cases, got)
	}
	return out
}

// run rules one case and compares.
func (c testCase) run(l evalLine, s *policy.Snapshot) testedCase {
	out := testedCase{Description: c.Description, Want: c.Want, Suggest: []string{}, Problems: []string{}}
	grants, err := l.grants()
	if err != nil {
		out.Problems = append(out.Problems, err.Error())
		return out
	}
	x := s.Explain(l.policyCall(), grants)
	d := x.Decisive
	out.Decision, out.Surface, out.Pattern, out.Place, out.Reason = x.Action.String(), d.Surface, d.MatchedPattern, placeOutOf(d.Place), d.Reason
	out.Suggest = append(out.Suggest, x.Suggest...)
	out.decisive = policy.Said{Entry: d}
	if i := slices.IndexFunc(x.Said, func(s policy.Said) bool { return s.Entry == d }); i >= 0 {
		out.decisive = x.Said[i]
	}
	out.compare(c)
	return out
}

func (t *testedCase) compare(c testCase) {
	differs := func(what, want, got string) {
		if want != got {
			t.Problems = append(t.Problems, fmt.Sprintf("%swant %s, got %s", what, want, got))
		}
	}
	differs("", c.Want, t.Decision)
	if c.Pattern != nil {
		differs("pattern: ", fmt.Sprintf("%q", *c.Pattern), fmt.Sprintf("%q", t.Pattern))
	}
	if c.Reason != nil {
		differs("reason: ", fmt.Sprintf("%q", *c.Reason), fmt.Sprintf("%q", t.Reason))
	}
	if c.Suggest != nil {
		differs("suggest: ", fmt.Sprintf("%q", c.Suggest), fmt.Sprintf("%q", t.Suggest))
	}
	t.OK = len(t.Problems) == 0
}

// reportTested prints what was found and returns the exit code: what kept cases
// from being run counts more than cases that do not hold.
func reportTested(env *Env, all []testedFile, asJSON bool) error {
	out := tested{OK: true, Files: all}
	var failed error
	for _, f := range all {
		out.OK = out.OK && f.err == nil && f.Held == len(f.Cases)
		if failed == nil || exitOf(f.err) == exitBadPolicy {
			failed = firstError(f.err, failed)
		}
	}
	show := printTested
	if asJSON {
		show = func(env *Env, out tested) error { return printJSON(env, out) }
	}
	if err := show(env, out); err != nil {
		return err
	}
	switch {
	case failed != nil:
		return &exitError{code: exitOf(failed)}
	case !out.OK:
		return &exitError{code: exitTestsFailed}
	}
	return nil
}

func printTested(env *Env, out tested) error {
	t := newTree(env)
	for _, f := range out.Files {
		t.tested(f)
	}
	if _, err := t.w.Write([]byte(t.b.String())); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	for _, f := range out.Files {
		if f.err != nil {
			fmt.Fprintln(env.Stderr, "assent: "+f.Error)
		}
	}
	return nil
}

func firstError(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// exitOf is the exit code that an error brings.
func exitOf(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.code
	}
	return ExitFailure
}

// tested prints what does not hold of a file, each with the rule that decided.
func (t *tree) tested(f testedFile) {
	for _, c := range f.Cases {
		if c.OK {
			continue
		}
		t.linef("", "%s %s:%d:%d: %s: %s", t.mark(policy.Deny), safe(f.File), c.Line, c.Column, safe(c.Description), safe(strings.Join(c.Problems, "; ")))
		if c.Decision != "" {
			t.linef("    ", "%s %s", t.mark(c.decisive.Action), t.verdict(c.decisive))
		}
	}
	if f.err == nil {
		mark := policy.Allow
		if f.Held < len(f.Cases) {
			mark = policy.Deny
		}
		t.linef("", "%s %s: %d of %d cases hold", t.mark(mark), safe(f.File), f.Held, len(f.Cases))
	}
}
