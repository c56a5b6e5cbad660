package gate

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/protocol"
)

// TestModulesThatAProjectBringsReachEveryGate: with the place that they stand in,
// and with what is wrong with those that could not be bundled.
func TestModulesThatAProjectBringsReachEveryGate(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	g1, g2 := r.gate("g1"), r.gate("g2")
	a := r.agent("ci")
	modules := []protocol.ProjectModule{
		{Name: "zeta", Code: strings.Repeat("z", protocol.MaxProjectCode-1)}, {Name: "my check", Error: "bad\x1b[31m name"}, {Name: "alpha", Code: "a"},
	}
	up := protocol.ProjectUpload{Project: shop, Policy: noMake, Modules: modules, Digest: protocol.ProjectDigest(noMake, modules...)}
	if receipt, fault := a.uploadRaw(must(protocol.Write(up))(t)); fault != nil || receipt.Digest != up.Digest || receipt.Error != "" {
		t.Fatalf("%+v %v", receipt, fault)
	}
	ask := a.under("git status", shop, shopRoot, noMake)
	ask.Project.Digest = up.Digest
	for _, g := range []*served{g1, g2} {
		for _, root := range []string{shopRoot, "/elsewhere"} { // one upload, wherever it lies
			ask.Project.Root = root
			file := must(g.files.of(context.Background(), ask))(t)
			var names []string
			for _, m := range file.modules {
				names = append(names, m.Name)
				if m.Level != module.LevelProject || m.Root != root+"/.assent/permissions" {
					t.Errorf("%s: level %s, root %s", m.Name, m.Level, m.Root)
				}
			}
			if !slices.Equal(names, []string{"zeta", "alpha"}) || file.document == nil {
				t.Errorf("modules %q, document %v", names, file.document)
			}
			if len(file.problems) != 1 || file.problems[0].Module != "my check" || strings.Contains(file.problems[0].Message, "\x1b") {
				t.Errorf("problems %q", file.problems)
			}
		}
	}
	// Renewed, they are still there.
	g1.files.now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	if file := must(g1.files.of(context.Background(), ask))(t); len(file.modules) != 2 {
		t.Errorf("renewed with %d modules", len(file.modules))
	}
	// And the policy beside them holds.
	if d := a.decide(ask); d.Result != protocol.FinalAllow {
		t.Errorf("git status: %+v", d)
	}
}
