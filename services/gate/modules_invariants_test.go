package gate

import (
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/protocol"
)

// moduleWords are what the modules of a world may say of an ask.
var moduleWords = []string{"", "block", "request", "fail"}

// wordedModules are modules that say of each ask what was written down for it.
type wordedModules struct {
	*moduleScript
	words sync.Map // ask id → word
}

func newWordedModules() *wordedModules {
	m := &wordedModules{moduleScript: newModules()}
	m.set(moduleState{digest: "sha256:one", say: func(c module.Call) module.Verdict {
		word, _ := m.words.Load(c.Ask.ID)
		check := scriptedCheck{name: "c"}.check()
		switch word {
		case "block":
			return module.Verdict{Decision: module.Block, Check: check, Reason: "no"}
		case "request":
			return module.Verdict{Decision: module.Request, Check: check}
		case "fail":
			return module.Verdict{Decision: module.Request, Check: check, Failure: "it threw"}
		}
		return module.Verdict{Decision: module.Pass}
	}})
	return m
}

// A module only tightens. What it blocks, or may not fail at, is denied, whoever
// allows it and however late that came; what it requests or fails at a person
// alone allows; of what it says nothing the rest decides as it would without it.
func TestInvariant01And07AModuleOnlyTightens(t *testing.T) {
	t.Parallel()
	m := newWordedModules()
	w := newWorldWith(t, m)
	w.giveGrant()
	rapid.Check(t, func(rt *rapid.T) {
		l, made := genLaw.Draw(rt, "law"), genDeed.Draw(rt, "call")
		l.kind, l.onFailure = "human", rapid.SampledFrom([]string{"ask", "ask", "deny"}).Draw(rt, "on failure")
		if rapid.Bool().Draw(rt, "wide envelope") { // what modules say has a surface, too
			l.delegates, l.allowed, l.excluded = true, append([]string{"teleport", "module"}, surfaces...), nil
		}
		says := rapid.SampledFrom(moduleWords).Draw(rt, "modules")
		then := says
		p := &play{links: genLinks("allow", "accepting", "defer").Draw(rt, "links"), person: rapid.SampledFrom([]string{"allow", "at once", "deny"}).Draw(rt, "person")}
		a, clear := w.ci, []string{}
		if rapid.Bool().Draw(rt, "granted") {
			a, clear, made = w.granted, []string{"bash"}, genCommand.Draw(rt, "granted call")
		}
		ask := made.by(a)
		m.words.Store(ask.ID, says)
		if rapid.Bool().Draw(rt, "meanwhile") {
			then = rapid.SampledFrom(moduleWords).Draw(rt, "modules then")
			p.meanwhile = func() { m.words.Store(ask.ID, then) }
		}
		w.rule(l)
		d := w.run(a, ask, p)
		asked, prompts, _ := p.saw()
		now := says
		if len(asked)+prompts > 0 {
			now = then
		}
		stops := func(word string) bool { return word == "block" || word == "fail" && l.onFailure == "deny" }
		asks := func(word string) bool { return word == "request" || word == "fail" }
		settled, _, _ := l.verdictOf(made, clear...)
		switch {
		case d.Allowed() && stops(now):
			rt.Fatalf("invariant 1: the modules say %q of %q, and it is %s", now, made.text(), d.Outcome)
		case d.Allowed() && d.Outcome != protocol.AllowedByHuman && asks(now):
			rt.Fatalf("invariant 7: the modules say %q of %q, and no person allowed it: %s", now, made.text(), d.Outcome)
		case settled == protocol.DeniedByRule:
			if d.Outcome != settled || len(asked)+prompts > 0 {
				rt.Fatalf("invariant 1: a rule denies %q, and it ended as %s after %v and %d prompts", made.text(), d.Outcome, asked, prompts)
			}
		case stops(says):
			want := map[string]protocol.Outcome{"block": protocol.DeniedByModule, "fail": protocol.Unavailable}[says]
			if d.Outcome != want || len(asked)+prompts > 0 || d.DecidedBy.Kind != protocol.DeciderModule {
				rt.Fatalf("invariant 1: the modules say %q of %q, and it ended as %s by %+v after %v and %d prompts", says, made.text(), d.Outcome, d.DecidedBy, asked, prompts)
			}
		case says == "" && settled != "":
			if d.Outcome != settled || len(asked)+prompts > 0 {
				rt.Fatalf("invariant 7: the modules say nothing of %q, and it ended as %s, want %s", made.text(), d.Outcome, settled)
			}
		case asks(says) && asks(now) && !stops(now):
			// A person has the word, and links none.
			if allowed := p.person != "deny"; d.Allowed() != allowed || prompts == 0 {
				rt.Fatalf("invariant 7: the modules say %q of %q, then %q; the person says %s, and it ended as %s after %d prompts", says, made.text(), now, p.person, d.Outcome, prompts)
			}
		}
	})
}
