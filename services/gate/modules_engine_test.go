package gate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/bundle"
	"github.com/assent-dev/assent/internal/module/levels"
	"github.com/assent-dev/assent/pkg/protocol"
)

// engineModules are modules in TypeScript in the real engine.
type engineModules struct{ *levels.Levels }

func (m engineModules) In(ctx context.Context, project []module.Source) Checks {
	return m.Levels.In(ctx, project)
}

// typescript is a gate's modules of the user's level, bundled from files.
func (r *rig) typescript(files map[string]string) (m engineModules, put func(files map[string]string)) {
	r.t.Helper()
	e := must(module.New(module.Config{Workers: 2}))(r.t)
	l := levels.New(e, module.LevelUser)
	r.t.Cleanup(func() {
		l.Close()
		if err := e.Close(); err != nil {
			r.t.Error(err)
		}
	})
	put = func(files map[string]string) {
		dir := r.t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				r.t.Fatal(err)
			}
		}
		sources, problems, err := bundle.Dir(dir, module.LevelUser)
		if err != nil {
			r.t.Fatal(err)
		}
		l.Put(module.LevelUser, sources, problems)
	}
	put(files)
	return engineModules{l}, put
}

const releaseModule = `import { block, matchCommand, matchTool, request, type PermissionsAPI } from "@assent/permissions";
export default function (api: PermissionsAPI) {
  api.onToolUse({
    name: "release", description: "Releases are for good.",
    handler: ({ tool }) => matchTool(tool, { bash: matchCommand({ program: "git", subcommands: ["tag"],
      onMatch: () => request({ guidance: "Look at the number.", highlight: "v2", approveLabel: "Release" }) }) }),
  });
  api.onToolUse({
    name: "no gc", description: "Not here.", matcher: "bash",
    handler: (input) => /git\s+gc/.test((input.tool as { command?: string }).command ?? "") ? block("The repository is large.") : undefined,
  });
}`

const brokenModule = `import type { PermissionsAPI } from "@assent/permissions";
export default function (api: PermissionsAPI) {
  const bad = (name: string, act: () => void) => api.onToolUse({ name, description: "Goes wrong.", matcher: "bash",
    handler: (input) => { if ((input.tool as { command?: string }).command === "git " + name) { act(); } return undefined; } });
  bad("throws", () => { throw new Error("no tag"); });
  bad("loops", () => { for (;;); });
  bad("eats", () => { const a: string[] = []; for (;;) a.push("x".repeat(1 << 20) + a.length); });
  bad("pollutes", () => { (Object.prototype as any).decision = "none"; (Array.prototype as any).push = () => 0; throw new Error("done"); });
}`

// TestModulesInTypeScript: what real modules say of a call is what becomes of it,
// and one that runs away costs its own call alone.
func TestModulesInTypeScript(t *testing.T) {
	t.Parallel()
	r := newRig(t, human(modulesPolicy(`"modules":{"callTime":"300ms"}`)))
	r.person()
	m, put := r.typescript(map[string]string{"release.ts": releaseModule, "z-broken.ts": brokenModule})
	g := r.checking("g1", m)
	a := r.agent("ci")
	settled := func(t *testing.T) {
		t.Helper()
		want(t, a.decide(a.bash("git log")), allow, protocol.AllowedByRule)
		d := a.decide(a.bash("git gc"))
		want(t, d, deny, protocol.DeniedByModule)
		if d.Reason != "The repository is large." || d.DecidedBy.Name != "release/no gc" || !strings.HasPrefix(d.Origin, "module:user:release@") || d.Policy.Modules == "" {
			t.Errorf("%+v", d)
		}
	}
	t.Run("a block, and nothing said", settled)
	t.Run("a request", func(t *testing.T) {
		ask := a.bash("cd x && git tag v2")
		a.pend(ask)
		p := must(r.open.Get(context.Background(), ask.ID))(t).Prompt
		if p.Name != "release" || p.Description != "Releases are for good." || p.Guidance != "Look at the number." || p.ApproveLabel != "Release" || p.Check != "user:release/release" ||
			fmt.Sprint(p.Highlight) != "[{16 18}]" {
			t.Errorf("%+v", p)
		}
		r.answer(ask.ID, muting(p.Check))
		want(t, a.decide(ask), allow, protocol.AllowedByHuman)
		r.settled(ask.ID)
		d := a.decide(a.bash("git tag v2"))
		want(t, d, allow, protocol.AllowedByRule)
	})
	for _, name := range []string{"throws", "loops", "eats", "pollutes"} {
		t.Run(name, func(t *testing.T) {
			ask := a.bash("git " + name)
			began := time.Now()
			a.pend(ask)
			p := must(r.open.Get(context.Background(), ask.ID))(t).Prompt
			if p.Name != name || !strings.Contains(p.Description, `The permission check "`+name+`" failed`) || p.Check != "" {
				t.Errorf("after %s: %+v", time.Since(began), p)
			}
			settled(t)
			r.answer(ask.ID, no("no"))
			want(t, a.decide(ask), deny, protocol.DeniedByHuman)
		})
	}
	t.Run("others come into force between two asks", func(t *testing.T) {
		before := a.decide(a.bash("git gc"))
		put(map[string]string{"release.ts": strings.Replace(releaseModule, "The repository is large.", "Not on Fridays.", 1), "bad.ts": "import fs from \"node:fs\";\nexport default () => fs;"})
		d := a.decide(a.bash("git gc"))
		want(t, d, deny, protocol.DeniedByModule)
		if d.Reason != "Not on Fridays." || d.Policy.Modules == before.Policy.Modules || d.Origin == before.Origin {
			t.Errorf("%s by %s", d.Reason, d.Origin)
		}
		want(t, a.decide(a.bash("git log")), allow, protocol.AllowedByRule)
	})
	t.Run("strictly, what does not load lets nothing pass", func(t *testing.T) {
		g.inForce(r.put(modulesPolicy(strictOn)))
		d := a.decide(a.bash("git log"))
		want(t, d, deny, protocol.Unavailable)
		if !strings.Contains(d.Reason, "bad") || !strings.Contains(d.Reason, "node:fs") || d.DecidedBy.Kind != protocol.DeciderModule {
			t.Errorf("%q by %+v", d.Reason, d.DecidedBy)
		}
	})
}

// TestModulesAreReloadedUnderLoad: other modules come into force between two asks
// and never within one, with none in between: each decision names the version whose
// word it is.
func TestModulesAreReloadedUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRig(t, modulesPolicy(`"modules":{"callTime":"300ms"}`, `"limits":{"asksPerSecond":100000,"pending":1000}`))
	reason := func(word string) map[string]string {
		return map[string]string{"release.ts": strings.Replace(releaseModule, "The repository is large.", word, 1)}
	}
	m, put := r.typescript(reason("word 0"))
	r.checking("g1", m)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	versions, asked := map[string]map[string]bool{}, 0 // origin → reasons
	for i := range 4 {
		a := r.agent(fmt.Sprint("ci-", i))
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				d, err := a.follow(a.bash("git gc"))
				if err != nil || d.Outcome != protocol.DeniedByModule {
					t.Errorf("%v: %s (%s)", err, d.Outcome, d.Reason)
					return
				}
				mu.Lock()
				if versions[d.Origin+" "+d.Policy.Modules] == nil {
					versions[d.Origin+" "+d.Policy.Modules] = map[string]bool{}
				}
				versions[d.Origin+" "+d.Policy.Modules][d.Reason] = true
				asked++
				mu.Unlock()
			}
		})
	}
	seen := func(n int) {
		t.Helper()
		until(t, "asked under each", func() error {
			mu.Lock()
			defer mu.Unlock()
			if len(versions) < n {
				return fmt.Errorf("%d versions of %d, %d asks", len(versions), n, asked)
			}
			return nil
		})
	}
	const reloads = 6
	for i := 1; i <= reloads; i++ {
		seen(i)
		put(reason(fmt.Sprint("word ", i)))
	}
	seen(reloads + 1)
	close(stop)
	wg.Wait()
	for version, reasons := range versions {
		if len(reasons) != 1 {
			t.Errorf("%s has said %v", version, reasons)
		}
	}
	if len(versions) != reloads+1 {
		t.Errorf("%d versions, want %d", len(versions), reloads+1)
	}
}
