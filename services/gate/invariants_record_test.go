package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// try is one use of a capability.
type try struct {
	what  string // query, log, or the subject of the one with the token of the other
	late  bool   // after the verdict
	other bool   // by another worker
	event string
}

var genTry = rapid.Custom(func(t *rapid.T) try {
	return try{
		what: rapid.SampledFrom([]string{"query", "log", "query by log", "log by query", "guessed"}).Draw(t, "what"),
		late: rapid.Bool().Draw(t, "late"), other: rapid.Bool().Draw(t, "other"),
		event: rapid.SampledFrom([]string{"l0.looked", protocol.EventRequestApproved, "Authorizer-Chain.resolved", "gate_error"}).Draw(t, "event"),
	}
})

// A link sees only what it is handed: its capability answers to the worker that
// first used it, on its own subjects, while the link is asked, and the gate's own
// events are nobody else's to write.
func TestInvariant08ALinkSeesOnlyWhatItIsHanded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stranger := w.Connect(t, protocol.RoleJudge, "stranger")
	rapid.Check(t, func(rt *rapid.T) {
		l := genLaw.Draw(rt, "law")
		l.base, l.rules["bash"], l.yolo, l.chain = "ask", []article{{"*", "ask"}, {"beta *", "deny"}}, false, []string{"l0"}
		tries := rapid.SliceOfN(genTry, 1, 6).Draw(rt, "tries")
		var handed linkCall
		var wrong []string
		owner := ""
		attempt := func(late bool) {
			for _, one := range tries {
				if one.late != late {
					continue
				}
				nc, who := w.judge, "j"
				if one.other {
					nc, who = stranger, "stranger"
				}
				got, want := one.at(t, nc, handed), protocol.CodeForbidden
				// The first to use it in time is whose it is from then on.
				if valid := !late && (one.what == "query" || one.what == "log"); valid {
					if owner == "" {
						owner = who
					}
					if owner == who && (one.what == "query" || one.event == "l0.looked") {
						want = none
					}
				}
				if got != want {
					wrong = append(wrong, fmt.Sprintf("%+v by %s, owner %q: %q, want %q", one, who, owner, got, want))
				}
			}
		}
		p := &play{links: map[string]string{"l0": "deny"}, probe: func(c linkCall) { handed = c; attempt(false) }}
		w.rule(l)
		ask := command("alpha one").by(w.ci)
		d := w.run(w.ci, ask, p)
		attempt(true)
		if len(wrong) > 0 {
			rt.Fatalf("invariant 8: %s", strings.Join(wrong, "; "))
		}
		if handed.Ask.ID != ask.ID || handed.LinkRequest.Link != "l0" || d.Outcome != protocol.DeniedByLink {
			rt.Fatalf("invariant 8: handed %+v, which ended as %s", handed.LinkRequest, d.Outcome)
		}
		for _, rec := range w.reviews(ask.ID) {
			if (rec.Link != "") != (rec.Event == "l0.looked") {
				rt.Fatalf("invariant 8: the record holds %s of link %q", rec.Event, rec.Link)
			}
		}
	})
}

// none is code's word for no refusal.
const none = protocol.Code("none")

// at uses the capability of c and returns the code of the refusal, or none.
func (o try) at(t testing.TB, nc *nats.Conn, c linkCall) protocol.Code {
	swap := func(to, token string) string {
		return to[:strings.LastIndex(to, ".")] + token[strings.LastIndex(token, "."):]
	}
	query := func(subject string) protocol.Code {
		check, fault := queryTo(t, nc, subject, `{"v":1,"surface":"bash","value":"beta one"}`)
		if fault == nil && check != nil && check.State != protocol.ActionDeny {
			return "not as the gate rules"
		}
		return code(fault)
	}
	log := func(subject string) protocol.Code {
		_, fault := logTo(t, nc, subject, "review", o.event)
		return code(fault)
	}
	switch o.what {
	case "query":
		return query(c.Query)
	case "log":
		return log(c.Log)
	case "query by log":
		return query(swap(c.Query, c.Log))
	case "log by query":
		return log(swap(c.Log, c.Query))
	default:
		return query(swap(c.Query, "."+strings.Repeat("0", 32)))
	}
}

// A model's allow is never remembered: what a link allowed once is asked again,
// whatever the link wrote beside its verdict, and nothing is kept of it.
func TestInvariant09AModelsAllowIsNotRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := must(grants.New(w.op))(t)
	rapid.Check(t, func(rt *rapid.T) {
		l := law{base: "ask", kind: rapid.SampledFrom([]string{"human", "deny"}).Draw(rt, "terminal"), chain: []string{"l0"}, delegates: true, allowed: []string{"bash", "read"}}
		w.rule(l)
		calls := []deed{command("alpha one"), deedsOf[0]}
		for range rapid.IntRange(2, 5).Draw(rt, "asks") {
			made := rapid.SampledFrom(calls).Draw(rt, "call")
			p := &play{links: genLinks("allow", "grants", "defer", "junk").Draw(rt, "links"), person: "deny"}
			want, _, _ := l.walk(made, p.links)
			if d := w.run(w.ci, made.by(w.ci), p); d.Allowed() != (want == protocol.AllowedByLink) || d.Grant != nil {
				rt.Fatalf("invariant 9: %q ended as %s although the link said %s this time; grant %+v", made.text(), d.Outcome, p.links["l0"], d.Grant)
			}
		}
		if kept := must(store.All(context.Background()))(t); len(kept) > 0 {
			rt.Fatalf("invariant 9: a grant is kept that nobody gave: %+v", kept)
		}
	})
}

// One chain, one role: who ends an ask is fixed before its first link, whatever
// the policy and the presence of approvers become while it is asked about; and a
// node that relays it asks none of its own links.
func TestInvariant10TheRoleIsFixedBeforeTheFirstLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kinds := rapid.SampledFrom([]string{"human", "deny", "auto", "parent"})
	rapid.Check(t, func(rt *rapid.T) {
		l := law{base: "ask", kind: kinds.Draw(rt, "terminal"), chain: []string{"l0"}}
		then := l
		then.kind = kinds.Draw(rt, "terminal then")
		then.chain = rapid.SampledFrom([][]string{{"l0"}, {}, {"l1", "l0"}}).Draw(rt, "chain then")
		here, leaves := rapid.Bool().Draw(rt, "approver present"), rapid.Bool().Draw(rt, "leaves or comes")
		w.rule(l)
		w.present(here)
		p := &play{links: genLinks("defer", "junk").Draw(rt, "links"), person: "deny", meanwhile: func() {
			w.rule(then)
			w.present(here != leaves)
		}}
		ask := command("alpha one").by(w.ci)
		ask.Session.Interactive = rapid.Bool().Draw(rt, "interactive")
		d := w.run(w.ci, ask, p)
		want, links := "nobody", []string{"l0"}
		switch {
		case l.kind == "parent":
			want, links = "the parent", []string{}
		case l.kind == "human" || l.kind == "auto" && (here || ask.Session.Interactive):
			want = "people"
		}
		asked, prompts, refused := p.saw()
		for who, n := range map[string]int{"people": prompts, "nobody": refused, "the parent": p.relays()} {
			// A parent is asked until it has decided, and told what ended otherwise.
			if (n > 0) != (who == want) || n > 1 && who != "the parent" {
				rt.Fatalf("invariant 10: %s, approver %v, then %s, approver %v: %s was asked %d times, and it ended as %s; want %s", l.kind, here, then.kind, here != leaves, who, n, d.Outcome, want)
			}
		}
		if !slices.Equal(asked, links) {
			rt.Fatalf("invariant 10: terminal %s, the chain was %v, then %v, and %v were asked", l.kind, l.chain, then.chain, asked)
		}
		if delegated := w.count(ask.ID, protocol.EventChainDelegated); (delegated == 1) != (want == "the parent") {
			rt.Fatalf("invariant 10: terminal %s, and %d records say that the chain is delegated", l.kind, delegated)
		}
	})
}

// One decision per ask id: of retries, of other calls and agents under the same
// id, at any gate and at the same moment, one decision comes, and nobody hears
// another.
func TestInvariant11OneDecisionPerAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.rig.agent("other")
	rapid.Check(t, func(rt *rapid.T) {
		l := genLaw.Draw(rt, "law")
		first := genCommand.Draw(rt, "call").by(w.ci)
		p := &play{links: genLinks("allow", "deny", "defer").Draw(rt, "links"), person: rapid.SampledFrom([]string{"allow", "deny"}).Draw(rt, "person")}
		w.plays.Store(first.ID, p)
		defer w.plays.Delete(first.ID)
		w.rule(l)
		ways := rapid.SliceOfN(rapid.SampledFrom([]string{"again", "again", "another call", "another agent"}), 2, 5).Draw(rt, "requests")
		heard, faults := make([]protocol.Decision, len(ways)), make([]error, len(ways))
		var wg sync.WaitGroup
		for i, way := range ways {
			a, ask := w.ci, first
			switch way {
			case "another call":
				ask.Tool.Input = []byte(`{"command":"delta two"}`)
			case "another agent":
				a, ask.Agent = other, other.name
			}
			wg.Go(func() { heard[i], faults[i] = a.follow(ask) })
		}
		wg.Wait()
		w.settled(first.ID)
		kept := w.decisions(first.ID)
		if len(kept) != 1 {
			rt.Fatalf("invariant 11: %d decisions are on record after %v", len(kept), ways)
		}
		for i, err := range faults {
			var fault *protocol.Fault
			switch {
			case errors.As(err, &fault) && fault.Code == protocol.CodeConflict:
			case err != nil:
				t.Fatal(err)
			case heard[i].CallDigest != kept[0].CallDigest || heard[i].Outcome != kept[0].Outcome || heard[i].Gate != kept[0].Gate || !heard[i].DecidedAt.Equal(kept[0].DecidedAt):
				rt.Fatalf("invariant 11: %s heard %s of %s, the record says %s of %s", ways[i], heard[i].Outcome, heard[i].Gate, kept[0].Outcome, kept[0].Gate)
			}
		}
		if _, prompts, _ := p.saw(); prompts > 1 {
			rt.Fatalf("invariant 11: a person was asked %d times", prompts)
		}
		if err := w.store(first.ID, &protocol.TerminalVerdict{Verdict: allow, Outcome: protocol.AllowedByHuman, Approver: "late"}); !errors.Is(err, pending.ErrGone) {
			rt.Fatalf("invariant 11: a late answer is stored: %v", err)
		}
	})
}

// No allow without a record: whatever the stream refuses and when, an allow that
// was heard stands in it, and what stands in it is what was heard.
func TestInvariant12NoAllowWithoutARecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	full := func(yes bool) {
		if yes {
			w.bound(protocol.StreamDecisions, 1)
		} else {
			w.bound(protocol.StreamDecisions, -1)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		defer full(false)
		l := law{base: "ask", kind: "human", rules: map[string][]article{"bash": {{"*", "ask"}, {"alpha *", "allow"}, {"beta *", "deny"}}}, chain: []string{"l0"}, delegates: true, allowed: []string{"bash"}}
		made := genCommand.Draw(rt, "call")
		p := &play{links: genLinks("allow", "deny", "defer").Draw(rt, "links"), person: rapid.SampledFrom([]string{"allow", "deny"}).Draw(rt, "person")}
		settled, _, _ := l.verdictOf(made)
		refuses := rapid.Bool().Draw(rt, "refuses")
		if settled == "" {
			refuses = refuses && seldom(rt, "slow") // it is tried again once a lease
			p.meanwhile = func() { full(refuses) }
		}
		w.rule(l)
		full(refuses && settled != "")
		ask := made.by(w.ci)
		w.plays.Store(ask.ID, p)
		defer w.plays.Delete(ask.ID)
		h := w.ci.once(ask)
		kept := w.decisions(ask.ID)
		if refuses && len(kept) > 0 {
			t.Fatal("the stream did not refuse")
		}
		if h.decision.Allowed() && len(kept) != 1 {
			rt.Fatalf("invariant 12: %s is heard and %d decisions are on record", h.decision.Outcome, len(kept))
		}
		full(false)
		d := w.ci.decide(ask)
		w.settled(ask.ID)
		kept = w.decisions(ask.ID)
		if len(kept) != 1 || kept[0].Outcome != d.Outcome || kept[0].Result != d.Result || !kept[0].DecidedAt.Equal(d.DecidedAt) {
			rt.Fatalf("invariant 12: heard %s, on record are %d decisions", d.Outcome, len(kept))
		}
		if settled == "" {
			if outcome, _, _ := l.walk(made, p.links); outcome != "" {
				settled = outcome
			} else {
				settled = persons[p.person]
			}
		}
		if d.Outcome != settled {
			rt.Fatalf("invariant 12: once there is room it is %s, want %s", d.Outcome, settled)
		}
	})
}
