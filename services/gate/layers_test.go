package gate

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	shop     = "github.com/acme/shop"
	shopRoot = "/srv/shop"
)

// layeredFleet trusts the shop's layers for ci alone, and the name reviewer for
// agents of review.
const layeredFleet = `{
  "permission": { "*": "ask", "bash": { "*": "ask", "git status": "allow", "npm *": "deny" } },
  "trustedProjects": [{ "id": "` + shop + `", "root": "` + shopRoot + `", "agents": ["ci"] }],
  "trustedAgentNames": { "reviewer": ["review-*"] },
  "terminal": { "kind": "deny" }
}`

// layer stores a document of a layer and returns its revision.
func (r *rig) layer(name, doc string) uint64 {
	r.t.Helper()
	kv := must(r.js.KeyValue(context.Background(), protocol.BucketPolicy))(r.t)
	return must(kv.Put(context.Background(), must(policy.ParseLayer(name))(r.t).Key(), []byte(doc)))(r.t)
}

// remove takes a layer away and returns the revision of that.
func (r *rig) remove(name string) uint64 {
	r.t.Helper()
	ctx := context.Background()
	kv := must(r.js.KeyValue(ctx, protocol.BucketPolicy))(r.t)
	if err := kv.Delete(ctx, must(policy.ParseLayer(name))(r.t).Key()); err != nil {
		r.t.Fatal(err)
	}
	return must(r.js.Stream(ctx, "KV_"+protocol.BucketPolicy))(r.t).CachedInfo().State.LastSeq
}

// in says where a call is made, and by what kind of agent.
func in(ask protocol.Ask, project, root, name string) protocol.Ask {
	ask.ID = protocol.NewAskID()
	ask.Project, ask.AgentName = protocol.Project{ID: project, Root: root}, name
	return ask
}

// ruling is everything that a gate would record of a ruling, as one line.
func (g *served) ruling(ask protocol.Ask) string {
	g.t.Helper()
	r := must(g.rule(context.Background(), ask))(g.t)
	return fmt.Sprintf("%v %+v %+v chain %v", r.ruling.Action, r.ruling.Entries, r.ref(), r.snapshot.Chain())
}

func TestLayersLoosenWhereTheyAreTrustedAndTightenEverywhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	r.denying()
	g := r.gate("g1")
	r.layer("project/"+shop, `{"permission":{"bash":{"make *":"allow","git status":"deny","npm *":"allow"}}}`)
	r.layer("agent/reviewer", `{"permission":{"bash":{"gh pr *":"allow","git *":"deny"}}}`)
	g.inForce(r.layer("project-agent/"+shop+"/reviewer", `{"permission":{"bash":{"cat *":"allow"}}}`))
	ci, other, review := r.agent("ci"), r.agent("ci-2"), r.agent("review-1")
	for _, row := range []struct {
		name          string
		a             *agent
		command       string
		project, root string
		agentName     string
		result        protocol.FinalChoice
		outcome       protocol.Outcome
		origin        string
	}{
		{"nobody of whom no layer speaks is touched", ci, "git status", "", "", "", allow, protocol.AllowedByRule, "fleet"},
		{"another project is not touched", ci, "git status", "github.com/acme/other", shopRoot, "", allow, protocol.AllowedByRule, "fleet"},
		{"a trusted project allows", ci, "make x", shop, shopRoot, "", allow, protocol.AllowedByRule, "project/" + shop},
		{"a trusted project denies", ci, "git status", shop, shopRoot, "", deny, protocol.DeniedByRule, "project/" + shop},
		{"a trusted project lifts no deny of the fleet's", ci, "npm ci", shop, shopRoot, "", deny, protocol.DeniedByRule, "fleet"},
		{"from another root it only tightens: an allow asks", ci, "make x", shop, "/tmp/shop", "", deny, protocol.NoApprover, "fleet"},
		{"from another root it only tightens: a deny stands", ci, "git status", shop, "/tmp/shop", "", deny, protocol.DeniedByRule, "project/" + shop},
		{"for another agent it only tightens: an allow asks", other, "make x", shop, shopRoot, "", deny, protocol.NoApprover, "fleet"},
		{"for another agent it only tightens: a deny stands", other, "git status", shop, shopRoot, "", deny, protocol.DeniedByRule, "project/" + shop},
		{"a name that its wearer may wear allows", review, "gh pr view", "", "", "reviewer", allow, protocol.AllowedByRule, "agent/reviewer"},
		{"a name that its wearer may not wear asks", ci, "gh pr view", "", "", "reviewer", deny, protocol.NoApprover, "fleet"},
		{"a name that its wearer may not wear denies", ci, "git status", "", "", "reviewer", deny, protocol.DeniedByRule, "agent/reviewer"},
		{"both have to be trusted: the name alone is not enough", review, "cat x", shop, shopRoot, "reviewer", deny, protocol.NoApprover, "fleet"},
		{"both have to be trusted: the project alone is not enough", ci, "cat x", shop, shopRoot, "reviewer", deny, protocol.NoApprover, "fleet"},
		{"a name without a layer changes nothing", ci, "git status", "", "", "builder", allow, protocol.AllowedByRule, "fleet"},
	} {
		t.Run(row.name, func(t *testing.T) {
			ask := in(row.a.bash(row.command), row.project, row.root, row.agentName)
			d := row.a.decide(ask)
			want(t, d, row.result, row.outcome)
			if d.Origin != row.origin {
				t.Errorf("origin %q, want %q", d.Origin, row.origin)
			}
		})
	}
}

// TestTwoGatesRuleAlikeUnderLayers: whatever was stored and removed, and
// whenever a gate began, the same call has the same ruling and the same revision.
func TestTwoGatesRuleAlikeUnderLayers(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	g1 := r.gate("g1")
	ci, review := r.agent("ci"), r.agent("review-1")
	var asks []protocol.Ask
	for _, command := range []string{"git status", "make x", "npm ci", "gh pr view", "rm -rf /"} {
		for _, who := range [][3]string{{"", "", ""}, {shop, shopRoot, ""}, {shop, "/tmp", "reviewer"}, {shop, shopRoot, "reviewer"}} {
			asks = append(asks, in(ci.bash(command), who[0], who[1], who[2]), in(review.bash(command), who[0], who[1], who[2]))
		}
	}
	put := func(name, doc string) func() uint64 { return func() uint64 { return r.layer(name, doc) } }
	for i, step := range []struct {
		name   string
		change func() uint64
	}{
		{"a project's layer", put("project/"+shop, `{"permission":{"bash":{"make *":"allow"}}}`)},
		{"a name's layer", put("agent/reviewer", `{"permission":{"bash":"deny"}}`)},
		{"a layer of both", put("project-agent/"+shop+"/reviewer", `{"permission":{"bash":{"rm *":"deny"}}}`)},
		{"a layer changed", put("agent/reviewer", `{"permission":{"bash":{"gh *":"allow"}}}`)},
		{"a layer broken", put("project/"+shop, `{"permission":`)},
		{"another broken", put("agent/builder", `{"authorizerChain":["x"]}`)},
		{"the first mended", put("project/"+shop, `{"yoloMode":false}`)},
		{"the other removed", func() uint64 { return r.remove("agent/builder") }},
		{"a layer removed", func() uint64 { return r.remove("agent/reviewer") }},
		{"the fleet's changed", put("fleet", `{"permission":{"bash":"allow"},"terminal":{"kind":"deny"}}`)},
		{"the fleet's removed", func() uint64 { return r.remove("fleet") }},
	} {
		revision := step.change()
		g1.inForce(revision)
		g2 := r.gate(fmt.Sprintf("late-%d", i))
		g2.inForce(revision)
		for _, ask := range asks {
			if one, two := g1.ruling(ask), g2.ruling(ask); one != two {
				t.Errorf("%s: %s as %q in %q of %s:\n one that saw it: %s\n one that began later: %s", step.name, ask.Tool.Input, ask.AgentName, ask.Project.ID, ask.Agent, one, two)
			}
		}
		g2.stop()
	}
}

func TestABrokenLayerClampsEverybody(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	r.denying()
	r.layer("project/"+shop, `{"permission":{"bash":{"make deploy":"deny"}}}`)
	g := r.gate("g1")
	a := r.agent("ci")
	status, deploy := func() protocol.Ask { return a.bash("git status") }, func() protocol.Ask { return in(a.bash("make deploy"), shop, shopRoot, "") }
	want(t, a.decide(status()), allow, protocol.AllowedByRule)
	for name, row := range map[string]struct{ layer, doc string }{
		"a project's, cut off":            {"project/" + shop, `{"permission"`},
		"a project's that names links":    {"project/" + shop, `{"authorizerChain":["x"]}`},
		"an agent's that turns yolo on":   {"agent/reviewer", `{"yoloMode":true}`},
		"one of both that trusts itself":  {"project-agent/" + shop + "/reviewer", `{"trustedProjects":[]}`},
		"one of a project nobody asks in": {"project/elsewhere", `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			g.inForce(r.layer(row.layer, row.doc))
			want(t, a.decide(status()), deny, protocol.NoApprover)
			want(t, a.decide(deploy()), deny, protocol.DeniedByRule) // what stood before still denies
			if row.layer != "project/"+shop {
				g.inForce(r.remove(row.layer))
			} else {
				g.inForce(r.layer(row.layer, `{"permission":{"bash":{"make deploy":"deny"}}}`))
			}
			want(t, a.decide(status()), allow, protocol.AllowedByRule)
		})
	}
	t.Run("a key that names no layer", func(t *testing.T) {
		kv := must(r.js.KeyValue(context.Background(), protocol.BucketPolicy))(t)
		g.inForce(must(kv.Put(context.Background(), "fleet2", []byte(`{}`)))(t))
		want(t, a.decide(status()), deny, protocol.NoApprover)
		if err := kv.Purge(context.Background(), "fleet2"); err != nil {
			t.Fatal(err)
		}
		until(t, "mended", func() error {
			if why := g.policy.current().Clamped(); why != "" {
				return fmt.Errorf("clamped: %s", why)
			}
			return nil
		})
		want(t, a.decide(status()), allow, protocol.AllowedByRule)
	})
	t.Run("removed, it denies no more", func(t *testing.T) {
		g.inForce(r.remove("project/" + shop))
		want(t, a.decide(deploy()), deny, protocol.NoApprover)
	})
}

// TestAnAllowIsRuledAgainUnderTheLayersOfThatMoment: a deny that a layer gained
// while an answer was on its way stands.
func TestAnAllowIsRuledAgainUnderTheLayersOfThatMoment(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"terminal":{"kind":"human"}}`)
	r.person()
	g := r.gate("g")
	a := r.agent("ci")
	for i, row := range []struct {
		name, layer     string
		project, wears  string
		result          protocol.FinalChoice
		outcome         protocol.Outcome
		removedMeantime bool
	}{
		{"of its project", "project/" + shop, shop, "", deny, protocol.DeniedByRule, false},
		{"of its name", "agent/reviewer", "", "reviewer", deny, protocol.DeniedByRule, false},
		{"of another project", "project/other", shop, "", allow, protocol.AllowedByHuman, false},
		{"of another name", "agent/builder", "", "reviewer", allow, protocol.AllowedByHuman, false},
		{"of its project, removed again", "project/" + shop, shop, "", allow, protocol.AllowedByHuman, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			ask := in(a.bash("make release"), row.project, shopRoot, row.wears)
			a.pend(ask)
			g.stop()
			r.answer(ask.ID, protocol.TerminalVerdict{Verdict: allow}) // and no gate to settle it
			r.layer(row.layer, `{"permission":{"bash":"deny"}}`)
			if row.removedMeantime {
				r.remove(row.layer)
			}
			g = r.gate(fmt.Sprintf("g%d", i))
			want(t, a.decide(ask), row.result, row.outcome)
			if !row.removedMeantime {
				g.inForce(r.remove(row.layer))
			}
		})
	}
}

// TestAGateThatBeginsLateKnowsWhatABrokenLayerDenied: however often something
// broken was stored since.
func TestAGateThatBeginsLateKnowsWhatABrokenLayerDenied(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	r.denying()
	g := r.gate("g1")
	a := r.agent("ci")
	r.layer("agent/reviewer", `{"permission":{"bash":{"git log":"deny"}}}`)
	kv := must(r.js.KeyValue(context.Background(), protocol.BucketPolicy))(t)
	for range 5 {
		g.inForce(must(kv.Put(context.Background(), "agent.reviewer", []byte(`{`)))(t))
	}
	want(t, a.decide(in(a.bash("git log"), "", "", "reviewer")), deny, protocol.DeniedByRule)
	g2 := r.gate("g2")
	g.stop()
	want(t, a.decide(in(a.bash("git log"), "", "", "reviewer")), deny, protocol.DeniedByRule)
	// Denies that go with the layer are gone at this gate too.
	if err := kv.Delete(context.Background(), "agent.reviewer", jetstream.LastRevision(g2.policy.current().Revision())); err != nil {
		t.Fatal(err)
	}
	until(t, "removed", func() error {
		if g2.policy.current().Clamped() != "" {
			return fmt.Errorf("still clamped")
		}
		return nil
	})
	want(t, a.decide(in(a.bash("git log"), "", "", "reviewer")), deny, protocol.NoApprover)
}
