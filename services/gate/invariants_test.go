package gate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/pkg/protocol"
)

// The invariants of docs/invariants.md as properties: policies, calls, links,
// terminals and people are drawn, played on a real node, and held against the
// oracle. e2e/mutation breaks each invariant in the source and demands that its
// property fails; what a property says begins with "invariant N".

// A static deny is final: whatever links, people, grants and yolo say, and
// however late the deny came, what ran is never what a rule denied.
func TestInvariant01AStaticDenyIsFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.giveGrant()
	willing := genLinks("allow", "accepting", "defer", "twice")
	rapid.Check(t, func(rt *rapid.T) {
		l, made := genLaw.Draw(rt, "law"), genDeed.Draw(rt, "call")
		l.kind = "human"
		now, edit := l, made
		p := &play{links: willing.Draw(rt, "links"), person: rapid.SampledFrom([]string{"allow", "grant", "edit", "at once"}).Draw(rt, "person")}
		if p.person == "grant" && made.tool != "bash" || p.person == "edit" && made.tool != "bash" {
			p.person = "allow" // grants and edits of these scenes speak of commands
		}
		if rapid.Bool().Draw(rt, "meanwhile") {
			now = genLaw.Draw(rt, "law then")
			p.meanwhile = func() { w.rule(now) }
		}
		if p.person == "edit" {
			edit = genCommand.Draw(rt, "edited")
			p.edit = edit.text()
		}
		a := w.ci
		if rapid.Bool().Draw(rt, "granted") {
			a, made = w.granted, genCommand.Draw(rt, "granted call")
		}
		w.rule(l)
		d := w.run(a, made.by(a), p)
		asked, prompts, _ := p.saw()
		if l.denies(made) && (d.Outcome != protocol.DeniedByRule || len(asked)+prompts > 0) {
			rt.Fatalf("invariant 1: a rule denies %q, and it ended as %s after %v and %d prompts", made.text(), d.Outcome, asked, prompts)
		}
		ran := made
		if len(d.EditedInput) > 0 && d.EditedInput.Kind() == '{' {
			ran = edit
		}
		if len(asked)+prompts == 0 {
			now = l // nothing changed
		}
		if d.Result != deny && now.denies(ran) {
			rt.Fatalf("invariant 1: %q was allowed (%s) though a rule of that moment denies it: %s", ran.text(), d.Outcome, policyOf(now))
		}
	})
}

// No answer is never yes: of links and terminals that answer nothing, or nothing
// that reads, nothing is allowed; each failure stands in the trail under its own
// name and is counted.
func TestInvariant02NoAnswerIsNeverYes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var broken []string
	for word, m := range manners {
		if strings.HasPrefix(m.trail, "defer") && word != "silent" {
			broken = append(broken, word)
		}
	}
	slices.Sort(broken)
	rapid.Check(t, func(rt *rapid.T) {
		l := genLaw.Draw(rt, "law")
		l.base, l.rules, l.yolo = "ask", nil, false
		l.delegates, l.allowed, l.excluded = true, append([]string{"teleport"}, surfaces...), nil
		p := &play{links: genLinks(broken...).Draw(rt, "links")}
		p.person = rapid.SampledFrom([]string{"junk", "defer", "nobody", "other id", "as a rule", "stored by nobody"}).Draw(rt, "terminal")
		if seldom(rt, "slow") {
			l.linkTimeout = "600ms"
			p.links["l0"] = "silent"
		}
		made := genDeed.Draw(rt, "call")
		_, trail, asked := l.walk(made, p.links)
		w.rule(l)
		before := w.counted("link")
		d := w.run(w.ci, made.by(w.ci), p)
		if d.Result != deny || d.Allowed() {
			rt.Fatalf("invariant 2: nobody allowed %q, and it is allowed: %s after %s", made.text(), d.Outcome, said(d))
		}
		if said(d) != trail {
			rt.Fatalf("invariant 2: the trail says %q, want %q", said(d), trail)
		}
		failures := float64(strings.Count(trail, "/"))
		if got := w.counted("link") - before; got != failures {
			rt.Fatalf("invariant 2: %v failures of links were counted, of %v: %s after %v", got, failures, trail, asked)
		}
		want := protocol.NoApprover
		if l.kind == "human" {
			want = persons[p.person]
		}
		if d.Outcome != want {
			rt.Fatalf("invariant 2: a terminal that said %q ended it as %s, want %s", p.person, d.Outcome, want)
		}
	})
}

// The terminal cannot defer: whatever it says, the ask ends, and as an allow only
// where a person is named who allowed. The types are the other half.
func TestInvariant03TheTerminalEndsTheAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	words := slices.Sorted(maps.Keys(persons))
	words = slices.DeleteFunc(words, func(s string) bool { return s == "edit" || s == "cancelled" || s == "expired" })
	rapid.Check(t, func(rt *rapid.T) {
		l := law{base: "ask", kind: rapid.SampledFrom([]string{"human", "deny"}).Draw(rt, "terminal"), chain: []string{"l0"}}
		p := &play{links: genLinks("defer", "junk").Draw(rt, "links"), person: rapid.SampledFrom(words).Draw(rt, "person")}
		made := command("alpha one", "beta one", "gamma one", "delta one")
		w.rule(l)
		d := w.run(w.ci, made.by(w.ci), p)
		want := protocol.NoApprover
		if l.kind == "human" {
			want = persons[p.person]
		}
		// A grant reaches the calls behind it: none of these may be one.
		if p.person == "grant" && d.Grant != nil {
			w.revoke(d.Grant.Ask)
		}
		if d.Outcome != want || d.Allowed() != want.Allows() {
			rt.Fatalf("invariant 3: terminal %s said %q, and it ended as %s (%s), want %s", l.kind, p.person, d.Result, d.Outcome, want)
		}
	})
}

// Config order wins: links are asked in the order of the chain, each once, up to
// the one that decides.
func TestInvariant04ConfigOrderWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		l, made := genLaw.Draw(rt, "law"), genDeed.Draw(rt, "call")
		l.base, l.rules, l.yolo = "ask", nil, false
		p := &play{links: genLinks(quickManners...).Draw(rt, "links"), person: "deny"}
		_, trail, order := l.walk(made, p.links)
		w.rule(l)
		d := w.run(w.ci, made.by(w.ci), p)
		if asked, _, _ := p.saw(); !slices.Equal(asked, order) || said(d) != trail {
			rt.Fatalf("invariant 4: of the chain %v were asked %v, want %v; trail %q, want %q", l.chain, asked, order, said(d), trail)
		}
	})
}

// Registration grants nothing: a link that runs and is not named is not asked.
func TestInvariant05RegistrationGrantsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, l := range worldLinks {
		w.announce(w.judge, l, w.gates[0])
		w.announce(w.judge, l, w.gates[1])
	}
	rapid.Check(t, func(rt *rapid.T) {
		l := genLaw.Draw(rt, "law")
		l.base, l.rules, l.yolo = "ask", nil, false
		l.delegates, l.allowed, l.excluded = true, append([]string{"teleport"}, surfaces...), nil
		p := &play{links: genLinks("allow", "deny", "defer").Draw(rt, "links"), person: "deny"}
		made := genDeed.Draw(rt, "call")
		w.rule(l)
		d := w.run(w.ci, made.by(w.ci), p)
		asked, _, _ := p.saw()
		for _, name := range asked {
			if !slices.Contains(l.chain, name) {
				rt.Fatalf("invariant 5: %s was asked, the chain is %v", name, l.chain)
			}
		}
		if d.DecidedBy.Kind == protocol.DeciderLink && !slices.Contains(l.chain, d.DecidedBy.Name) {
			rt.Fatalf("invariant 5: %s decided, the chain is %v", d.DecidedBy.Name, l.chain)
		}
		if outcome, _, _ := l.walk(made, p.links); outcome == "" && d.Allowed() {
			rt.Fatalf("invariant 5: nobody of the chain %v allowed, and it is allowed: %s", l.chain, d.Outcome)
		}
	})
}

// A missing link is skipped: it stands in the trail and on the record, once for
// each that was come to, and the ask goes on to the terminal.
func TestInvariant06AMissingLinkIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		l, made := genLaw.Draw(rt, "law"), genDeed.Draw(rt, "call")
		l.base, l.rules, l.yolo = "ask", nil, false
		p := &play{links: genLinks("defer", "allow", "deny").Draw(rt, "links"), person: "allow"}
		outcome, trail, _ := l.walk(made, p.links)
		w.rule(l)
		ask := made.by(w.ci)
		d := w.run(w.ci, ask, p)
		if said(d) != trail {
			rt.Fatalf("invariant 6: trail %q, want %q", said(d), trail)
		}
		if missing := strings.Count(trail, "unregistered"); w.count(ask.ID, protocol.EventChainUnregistered) != missing {
			rt.Fatalf("invariant 6: %v on the record, %d links are missing: %s", w.events(ask.ID), missing, trail)
		}
		if _, prompts, refused := p.saw(); outcome == "" && prompts+refused != 1 {
			rt.Fatalf("invariant 6: after %s the terminal was asked %d times", trail, prompts+refused)
		}
	})
}

// The envelope is the gate's: a link's allow stands only where every open entry
// is delegated and nothing looks like a secret, under the policy of that moment;
// else it is a defer, recorded as capped. What only a person answers nobody else
// allows. Deny and defer are never capped.
func TestInvariant07TheEnvelopeIsTheGates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.giveGrant()
	rapid.Check(t, func(rt *rapid.T) {
		l, made := genLaw.Draw(rt, "law"), genDeed.Draw(rt, "call")
		p := &play{links: genLinks("allow", "allow", "accepting", "defer", "deny", "junk").Draw(rt, "links"), person: "deny"}
		a, clear := w.ci, []string{}
		if rapid.Bool().Draw(rt, "granted") {
			a, clear = w.granted, []string{"bash"}
		}
		w.rule(l)
		d := w.run(a, made.by(a), p)
		settled, _, human := l.verdictOf(made, clear...)
		if human && d.Allowed() {
			rt.Fatalf("invariant 7: only a person may allow %q, and it is %s", made.text(), d.Outcome)
		}
		if settled != "" {
			if d.Outcome != settled {
				rt.Fatalf("invariant 7: %q is settled as %s, want %s under %s", made.text(), d.Outcome, settled, policyOf(l))
			}
			return
		}
		outcome, trail, _ := l.walk(made, p.links)
		if said(d) != trail || (outcome == protocol.AllowedByLink) != d.Allowed() {
			rt.Fatalf("invariant 7: %q ended as %s with %q, want %q under %s", made.text(), d.Outcome, said(d), trail, policyOf(l))
		}
	})
}
