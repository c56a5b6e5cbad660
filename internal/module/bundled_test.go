package module_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/bundle"
	"github.com/assent-dev/assent/pkg/protocol"
)

// bundled are the modules of a folder with these files, as a gate gets them.
func bundled(t testing.TB, files map[string]string) []module.Source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sources, problems, err := bundle.Dir(dir, module.LevelUser)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	return sources
}

func loaded(t testing.TB, e *module.Engine, sources []module.Source) *module.Set {
	t.Helper()
	s, problems := e.Load(t.Context(), sources)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return s
}

func newEngine(t testing.TB, cfg module.Config) *module.Engine {
	t.Helper()
	if cfg.CallTime == 0 {
		cfg.CallTime = time.Second // these are not about time, and the race detector takes much of it
	}
	e, err := module.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func ask(tool, input string) module.Call {
	return module.Call{Ask: protocol.Ask{V: 1, ID: "01JZZZZZZZZZZZZZZZZZZZZZZZ", Agent: "ci-42",
		Tool: protocol.Tool{Name: tool, Input: []byte(input)}, Cwd: "/repo", Home: "/home/dev", Platform: "linux"}}
}

const pushes = `import { block, matchCommand, matchTool, request, type PermissionsAPI } from "@assent/permissions";
export default function (api: PermissionsAPI) {
  api.onToolUse({ name: "no force", description: "a forced push rewrites what others have", matcher: "bash",
    handler: ({ tool }) => matchTool(tool, { bash: matchCommand({ program: "git", subcommands: ["push"],
      where: (c) => c.hasFlag("--force"), onMatch: () => block("push without --force") }) }) });
  api.onToolUse({ name: "release", description: "asks before a tag is pushed", matcher: "bash",
    handler: ({ tool }) => tool.detail.includes("--tags")
      ? request({ guidance: "Is the version right?", highlight: "--tags", approveLabel: "Release" }) : undefined });
}`

const corpus = `import type { PermissionsAPI } from "@assent/permissions";
import { tooLarge } from "sizes";
export default async function (api: PermissionsAPI) {
  api.onToolUse({ name: "corpus", description: "the corpus is too large to read",
    matcher: ({ tool }) => tool.toolName === "read",
    handler: async ({ tool }) => { if ("projectPath" in tool && tooLarge(tool.projectPath)) return { decision: "block", reason: "search it instead" } } });
}`

// TypeScript, bundled with what it imports, says in a worker what its author
// wrote.
func TestModulesInTypeScript(t *testing.T) {
	s := loaded(t, newEngine(t, module.Config{Workers: 1}), bundled(t, map[string]string{
		"pushes.ts":                              pushes,
		"corpus/package.json":                    `{"name":"corpus","assent":{"permissions":["main.ts"]}}`,
		"corpus/main.ts":                         corpus,
		"corpus/node_modules/sizes/package.json": `{"name":"sizes","version":"1.0.0","main":"index.js"}`,
		"corpus/node_modules/sizes/index.js":     `exports.tooLarge = (p) => typeof p === "string" && p.startsWith("corpus/")`,
	}))
	for _, row := range []struct {
		does, tool, input string
		decision          module.Decision
		check             string
	}{
		{"a forced push", "Bash", `{"command":"cd x && git push --force"}`, module.Block, "no force"},
		{"a forced push behind a wrapper", "bash", `{"command":"sudo git push --force origin"}`, module.Block, "no force"},
		{"a release", "bash", `{"command":"git push --tags"}`, module.Request, "release"},
		{"a file of the corpus", "Read", `{"file_path":"/repo/corpus/a.txt"}`, module.Block, "corpus"},
		{"a push", "bash", `{"command":"git push origin main"}`, module.Pass, ""},
		{"words about a forced push", "bash", `{"command":"echo 'git push --force'"}`, module.Pass, ""},
		{"another file", "read", `{"path":"README.md"}`, module.Pass, ""},
		{"another tool", "write", `{"path":"corpus/a.txt"}`, module.Pass, ""},
	} {
		v := s.Check(t.Context(), ask(row.tool, row.input))
		if v.Decision != row.decision || v.Check.Name != row.check || v.Failure != "" {
			t.Errorf("%s: got %s by %q, %q, want %s by %q", row.does, v.Decision, v.Check.Name, v.Failure, row.decision, row.check)
		}
		if p := v.Prompt; row.check == "release" && (p.Guidance != "Is the version right?" || p.ApproveLabel != "Release" || p.Description == "" || len(p.Highlight) != 1 || p.Highlight[0] != protocol.Span{Start: 9, End: 15}) {
			t.Errorf("%s: its prompt is %+v", row.does, p)
		}
	}
}

// Ten modules in TypeScript, all of which read a shell command with the library:
// calls a second of two workers.
func BenchmarkTenBundledModules(b *testing.B) {
	files := map[string]string{}
	for n := range 10 {
		files[fmt.Sprintf("m%d.ts", n)] = strings.ReplaceAll(pushes, `program: "git"`, fmt.Sprintf(`program: "git%d"`, n))
	}
	manyBundled(b, files)
}

// Ten in TypeScript that look at the text of every command.
func BenchmarkTenBundledTexts(b *testing.B) {
	files := map[string]string{}
	for n := range 10 {
		matcher := ""
		if n%2 == 1 {
			matcher = `matcher: "bash",`
		}
		files[fmt.Sprintf("m%d.ts", n)] = fmt.Sprintf(`import { block, type PermissionsAPI } from "@assent/permissions";
export default function (api: PermissionsAPI) {
  api.onToolUse({ name: "c", description: "about c", %s
    handler: ({ tool }) => "command" in tool && /^git\s+push\b.*--force-%d/.test(String(tool.command)) ? block("no") : undefined });
}`, matcher, n)
	}
	manyBundled(b, files)
}

func manyBundled(b *testing.B, files map[string]string) {
	s := loaded(b, newEngine(b, module.Config{Workers: 2}), bundled(b, files))
	c := ask("bash", `{"command":"git push origin main"}`)
	var failed atomic.Int64
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if v := s.Check(b.Context(), c); v.Decision != module.Pass {
				failed.Add(1)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(failed.Load()), "failed")
}
