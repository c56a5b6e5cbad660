package gate

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/pkg/protocol"
)

// say is what a scripted link does with an ask, and what its trail then shows.
var says = map[string]struct {
	serve func(linkCall)
	trail string
}{
	"allow":    {func(c linkCall) { c.verdict("allow", "", "") }, "allow"},
	"deny":     {func(c linkCall) { c.verdict("deny", "no", "") }, "deny"},
	"defer":    {func(c linkCall) { c.verdict("defer", "", "") }, "defer"},
	"own word": {func(c linkCall) { c.verdict("defer", "", "over_budget") }, "defer/over_budget"},
	"junk":     {func(c linkCall) { c.reply(`{"verdict":"allow"}`) }, "defer/malformed"},
	"failed":   {func(c linkCall) { c.header(protocol.HeaderErrorCode, "500") }, "defer/error"},
	"absent":   {nil, "defer/unregistered"},
}

// model is the slow and obvious account of a chain: the first allow that is not
// capped, or the first deny, ends it; else nobody is there.
func model(chain []string, delegated bool) (outcome protocol.Outcome, trail string) {
	var out []string
	for i, say := range chain {
		word := says[say].trail
		if say == "allow" && !delegated {
			word = "defer*"
		}
		out = append(out, fmt.Sprintf("%s=%s", linkName(i, say), word))
		switch word {
		case "allow":
			return protocol.AllowedByLink, strings.Join(out, " ")
		case "deny":
			return protocol.DeniedByLink, strings.Join(out, " ")
		}
	}
	return protocol.NoApprover, strings.Join(out, " ")
}

func linkName(i int, say string) string {
	if say == "absent" {
		return fmt.Sprintf("gone%d", i)
	}
	return fmt.Sprintf("l%d", i)
}

func TestAChainEndsAsTheModelSays(t *testing.T) {
	t.Parallel()
	const links = 5
	r := newRig(t, chainPolicy())
	r.denying()
	g := r.gate("g1")
	var scripts book[[]string]
	judge := r.Connect(t, protocol.RoleJudge, "j")
	for i := range links {
		r.linkOn(judge, fmt.Sprintf("l%d", i), func(c linkCall) {
			says[scripts.get(c.Ask.ID)[i]].serve(c)
		})
	}
	a := r.agent("ci")
	words := []string{"allow", "deny", "defer", "own word", "junk", "failed", "absent"}
	rapid.Check(t, func(rt *rapid.T) {
		chain := rapid.SliceOfN(rapid.SampledFrom(words), 0, links).Draw(rt, "chain")
		delegated := rapid.Bool().Draw(rt, "delegated")
		names := make([]string, 0, links)
		for i, say := range chain {
			names = append(names, linkName(i, say))
		}
		doc := chainPolicy(names...)
		if !delegated {
			doc = strings.Replace(doc, `["bash"]`, `["read"]`, 1)
		}
		doc = strings.Replace(doc, `"permission"`, `"limits":{"asksPerSecond":100000},"permission"`, 1)
		g.inForce(r.put(doc))
		ask := a.bash("make")
		scripts.put(ask.ID, chain)
		d := a.decide(ask)
		outcome, trail := model(chain, delegated)
		if d.Outcome != outcome || said(d) != trail || d.Allowed() != (outcome == protocol.AllowedByLink) {
			rt.Fatalf("%v: %s with %q, want %s with %q", chain, d.Outcome, said(d), outcome, trail)
		}
	})
}
