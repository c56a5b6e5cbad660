//go:build tsc

package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// compiler is npm's TypeScript, which `npm ci` puts beside the link in TypeScript.
// Where it is absent the test is skipped, and with ASSENT_RUNTIMES=required it fails.
func compiler(t *testing.T) []string {
	t.Helper()
	node, err := exec.LookPath("node")
	path, _ := filepath.Abs("../../examples/link/typescript/node_modules/typescript/bin/tsc")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		if os.Getenv("ASSENT_RUNTIMES") == "required" {
			t.Fatal(err)
		}
		t.Skipf("run `npm ci` in examples/link/typescript first: %v", err)
	}
	return []string{node, path}
}

// tsc type-checks a folder by its tsconfig.json and returns what it finds wrong.
func tsc(t *testing.T, dir string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := compiler(t)
	out, err := exec.CommandContext(ctx, c[0], c[1], "--noEmit", "-p", dir).CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}

func TestTypes(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{
		"the library is what its types declare": "../module/sdk",
		"the examples":                          "../../examples/modules",
	} {
		if said := tsc(t, dir); said != "" {
			t.Errorf("%s:\n%s", name, said)
		}
	}
}

// What `assent module new` writes type-checks as it stands, and so do modules
// under the published name; what the library refuses, the types refuse.
func TestTypesOfANewModule(t *testing.T) {
	t.Parallel()
	const head = "import { block, matchCommand, matchTool, request, type PermissionsAPI } from \"@assent/permissions\";\nexport default (api: PermissionsAPI) => api.onToolUse({ name: \"n\", "
	for name, row := range map[string]struct{ module, want string }{
		"as it is written":            {"", ""},
		"under the published name":    {strings.Replace(head, "@assent/permissions", "@thurstonsand/pi-permissions", 1) + `description: "d", handler: (input) => matchTool(input.tool, { bash: matchCommand({ program: "git", onMatch: () => request() }) }) });`, ""},
		"an async handler":            {head + `description: "d", async handler({ tool }) { if (tool.toolName === "x") return block("r"); } });`, ""},
		"a custom tool's record":      {head + `description: "d", handler: ({ tool }) => matchTool(tool, { custom: { x: (t) => request({ guidance: String(t.input["a"]) }) } }) });`, ""},
		"allow":                       {head + `description: "d", handler: () => ({ decision: "allow" }) });`, `Type '"allow"' is not assignable`},
		"true":                        {head + `description: "d", handler: () => true });`, "is not assignable"},
		"no description":              {head + "handler() {} });", "Property 'description' is missing"},
		"a block without a reason":    {head + `description: "d", handler: () => block() });`, "Expected 1 arguments"},
		"a matcher that is a pattern": {head + `description: "d", matcher: /x/, handler() {} });`, "is not assignable"},
		"a label that is none":        {head + `description: "d", handler: () => request({ approve: "x" }) });`, "'approve' does not exist"},
		"a path that may be missing":  {head + `description: "d", handler: ({ tool }) => matchTool(tool, { read: (t) => (t.projectPath.startsWith("x") ? block("r") : undefined) }) });`, "possibly 'undefined'"},
		"Node":                        {"import { readFileSync } from \"node:fs\";\nreadFileSync(\"x\");\n" + head + `description: "d", handler() {} });`, "Cannot find module 'node:fs'"},
		"a timer":                     {head + `description: "d", handler() { setTimeout(() => {}, 1); } });`, "Cannot find name 'setTimeout'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if code, _, errs := runModule("", "new", "first", "--dir", dir); code != ExitOK {
				t.Fatal(errs)
			}
			if row.module != "" {
				if err := os.WriteFile(filepath.Join(dir, "m.ts"), []byte(row.module), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			said := tsc(t, dir)
			if row.want == "" && said != "" || !strings.Contains(said, row.want) {
				t.Errorf("tsc says %q, want %q", said, row.want)
			}
		})
	}
}
