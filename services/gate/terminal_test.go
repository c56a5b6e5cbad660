package gate

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

func humanPolicy(more string) string {
	return `{"permission":{"*":"ask","bash":{"*":"ask","rm *":{"action":"deny","reason":"Never."}}},"terminal":{"kind":"human"}` + more + `}`
}

func TestAPersonAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	person := r.person()
	r.gate("g1")
	a := r.agent("ci")
	for name, row := range map[string]struct {
		say     protocol.TerminalVerdict
		result  protocol.FinalChoice
		outcome protocol.Outcome
		edited  string
		reason  string
	}{
		"allow":                      {yes(), allow, protocol.AllowedByHuman, "", ""},
		"deny with a reason":         {no("not on a Friday"), deny, protocol.DeniedByHuman, "", "not on a Friday"},
		"deny, and stop":             {protocol.TerminalVerdict{Verdict: deny, Abort: true, Note: "stop"}, deny, protocol.DeniedByHuman, "", ""},
		"allow something else":       {edit(`{"command":"make test"}`), allow, protocol.AllowedByHuman, `{"command":"make test"}`, ""},
		"allow what says nothing":    {edit(`{"a":["rm"]}`), deny, protocol.DeniedByRule, `{"a":["rm"]}`, "The changed call does not say what it would do."},
		"allow what the rules never": {edit(`{"command":"rm -rf x"}`), deny, protocol.DeniedByRule, `{"command":"rm -rf x"}`, "Never."},
	} {
		t.Run(name, func(t *testing.T) {
			ask := a.bash("make")
			h := a.once(ask)
			if h.progress == nil || h.took > 5*time.Second || h.took < quick.patience {
				t.Fatalf("want Progress in time, got %+v", h)
			}
			if h.progress.Stage != "terminal:human" || h.progress.Since.IsZero() {
				t.Errorf("progress %+v", h.progress)
			}
			r.waiting(ask.ID)
			r.answer(ask.ID, row.say)
			d := a.decide(ask)
			want(t, d, row.result, row.outcome)
			if string(d.EditedInput) != row.edited || d.Reason != row.reason || d.Note != row.say.Note || d.Abort != row.say.Abort {
				t.Errorf("edited %s, reason %q, note %q, abort %v", d.EditedInput, d.Reason, d.Note, d.Abort)
			}
			if d.Approver != "oncall-1" {
				t.Errorf("the record does not say who answered: %q", d.Approver)
			}
			if row.outcome != protocol.DeniedByRule && (d.DecidedBy.Kind != protocol.DeciderHuman || d.DecidedBy.Name != "oncall-1") {
				t.Errorf("by %+v", d.DecidedBy)
			}
			if n := person.times(ask.ID); n != 1 {
				t.Errorf("the person was asked %d times", n)
			}
			r.settled(ask.ID)
			again := a.decide(ask) // behind the settlement: nobody is asked a second time
			r.settled(ask.ID)
			if n := len(r.decisions(ask.ID)); n != 1 || person.times(ask.ID) != 1 || !again.DecidedAt.Equal(d.DecidedAt) {
				t.Errorf("%d records, asked %d times", n, person.times(ask.ID))
			}
		})
	}
}

func edit(input string) protocol.TerminalVerdict {
	return protocol.TerminalVerdict{Verdict: allow, EditedInput: jsontext.Value(input)}
}

func TestADenyThatComesBeforeTheSettlementWins(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	r.person()
	g := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make")
	a.pend(ask)
	g.stop()
	r.answer(ask.ID, yes()) // accepted
	r.put(strings.Replace(humanPolicy(""), `"rm *"`, `"make":"deny","rm *"`, 1))
	r.gate("g2")
	d := a.decide(ask)
	want(t, d, deny, protocol.DeniedByRule)
	if d.DecidedBy.Kind != protocol.DeciderRule || len(d.EditedInput) != 0 {
		t.Errorf("by %+v", d.DecidedBy)
	}
	r.settled(ask.ID)
}

func TestATerminalThatDoesNotEndTheAskDenies(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	replies := map[string]func(id string) string{
		"defer":                  func(id string) string { return fmt.Sprintf(`{"v":1,"ask":%q,"verdict":"defer","outcome":"x"}`, id) },
		"junk":                   func(string) string { return "%%%" },
		"nothing in it":          func(string) string { return " " },
		"another ask's allow":    func(string) string { return humanAllow(protocol.NewAskID(), `"approver":"oncall-1"`) },
		"another ask's progress": func(string) string { return progressFor(protocol.NewAskID()) },
		"an allow by nobody":     func(id string) string { return humanAllow(id, `"approver":""`) },
		"an allow by a rule": func(id string) string {
			return strings.Replace(humanAllow(id, `"approver":"x"`), "by_human", "by_rule", 1)
		},
		"an allow that is a denial": func(id string) string {
			return strings.Replace(humanAllow(id, `"approver":"x"`), "allowed_by_human", "denied_by_human", 1)
		},
		"a link's allow": func(id string) string { return fmt.Sprintf(`{"v":1,"ask":%q,"verdict":"allow","reason":""}`, id) },
		"a decision": func(id string) string {
			return fmt.Sprintf(`{"v":1,"ask":%q,"result":"allow","outcome":"allowed_by_human"}`, id)
		},
		"a named person's allow": func(id string) string { return humanAllow(id, `"approver":"oncall-1"`) },
		"a denial at once": func(id string) string {
			return fmt.Sprintf(`{"v":1,"ask":%q,"verdict":"deny","outcome":"denied_by_human","approver":"oncall-1"}`, id)
		},
	}
	var script book[string]
	r.terminal(protocol.TerminalHuman, func(q protocol.TerminalRequest) string { return replies[script.get(q.Ask.ID)](q.Ask.ID) })
	r.gate("g1")
	a := r.agent("ci")
	for name := range replies {
		t.Run(name, func(t *testing.T) {
			ask := a.bash("make")
			script.put(ask.ID, name)
			d := a.decide(ask)
			switch name {
			case "a named person's allow":
				want(t, d, allow, protocol.AllowedByHuman)
			case "a denial at once":
				want(t, d, deny, protocol.DeniedByHuman)
			default:
				want(t, d, deny, protocol.Unavailable)
			}
		})
	}
}

func humanAllow(id, more string) string {
	return fmt.Sprintf(`{"v":1,"ask":%q,"verdict":"allow","outcome":"allowed_by_human",%s}`, id, more)
}

func TestTheDenyTerminalCannotAllow(t *testing.T) {
	t.Parallel()
	r := newRig(t, plainPolicy)
	r.terminal(protocol.TerminalDeny, func(q protocol.TerminalRequest) string { return humanAllow(q.Ask.ID, `"approver":"oncall-1"`) })
	r.gate("g1")
	a := r.agent("ci")
	want(t, a.decide(a.bash("make")), deny, protocol.Unavailable)
}

func TestNoTerminalIsTriedForAWhileAndThenDenied(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make")
	began := time.Now()
	d := a.decide(ask)
	want(t, d, deny, protocol.Unavailable)
	if took := time.Since(began); took < quick.terminal/2 {
		t.Errorf("given up after %s", took)
	}
	if err := has(r.events(ask.ID), protocol.EventGateError); err != nil {
		t.Error(err)
	}
}

func TestATerminalThatRestartsLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make")
	if h := a.once(ask); h.progress == nil {
		t.Fatalf("got %+v", h)
	}
	person := r.person() // only now
	r.waiting(ask.ID)
	r.answer(ask.ID, yes())
	want(t, a.decide(ask), allow, protocol.AllowedByHuman)
	if n := person.times(ask.ID); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestATerminalThatFailsForAMomentIsAskedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	var n atomic.Int32
	subject := must(r.Subjects.Terminal("human"))(t)
	must(r.term.Subscribe(subject, func(m *nats.Msg) {
		req := must(protocol.Read[protocol.TerminalRequest](m.Data))(t)
		reply := &nats.Msg{Subject: m.Reply, Data: []byte(humanAllow(req.Ask.ID, `"approver":"oncall-1"`))}
		if n.Add(1) < 3 {
			// An allow under an error header is none.
			reply.Header = nats.Header{protocol.HeaderErrorCode: {"unavailable"}}
		}
		_ = r.term.PublishMsg(reply)
	}))(t)
	flush(t, r.term)
	r.gate("g1")
	a := r.agent("ci")
	want(t, a.decide(a.bash("make")), allow, protocol.AllowedByHuman)
	if got := n.Load(); got != 3 {
		t.Errorf("asked %d times", got)
	}
}

func TestWhoEndsAnAsk(t *testing.T) {
	t.Parallel()
	auto := `{"permission":{"*":"ask"},"terminal":{"kind":"auto"}}`
	r := newRig(t, auto)
	person, denying := r.person(), r.denying()
	g := r.gate("g1")
	a := r.agent("ci")
	presence := must(r.js.KeyValue(context.Background(), protocol.BucketPresence))(t)

	t.Run("auto, and nobody is there: nobody", func(t *testing.T) {
		want(t, a.decide(a.bash("make")), deny, protocol.NoApprover)
		if denying.total.Load() != 1 || person.total.Load() != 0 {
			t.Error("the wrong terminal was asked")
		}
	})
	t.Run("auto at an interactive session: a person", func(t *testing.T) {
		ask := a.bash("make")
		ask.Session.Interactive = true
		a.pend(ask)
		r.answer(ask.ID, yes())
		want(t, a.decide(ask), allow, protocol.AllowedByHuman)
	})
	t.Run("auto with an approver present: a person, also at a gate just started", func(t *testing.T) {
		must(presence.Put(context.Background(), "oncall-1", []byte(`{"v":1}`)))(t)
		g.stop()
		g = r.gate("g2")
		ask := a.bash("make")
		a.pend(ask)
		r.answer(ask.ID, yes())
		want(t, a.decide(ask), allow, protocol.AllowedByHuman)
	})
	t.Run("auto when the approver has left: nobody", func(t *testing.T) {
		if err := presence.Delete(context.Background(), "oncall-1"); err != nil {
			t.Fatal(err)
		}
		until(t, "left", func() error {
			if g.presence.anyone(time.Now()) {
				return fmt.Errorf("still there")
			}
			return nil
		})
		want(t, a.decide(a.bash("make")), deny, protocol.NoApprover)
	})
	var leave func()
	t.Run("auto on a node with a parent: the parent", func(t *testing.T) {
		leave = r.hasParent("root", g)
		for name, row := range map[string]struct {
			ask  func(*protocol.Ask)
			role protocol.TerminalKind
		}{
			"a call nobody sits at":             {func(*protocol.Ask) {}, protocol.TerminalParent},
			"a subagent's":                      {func(q *protocol.Ask) { q.Session.Parent, q.Session.Root = "s0", "s0" }, protocol.TerminalParent},
			"relayed, from where a person sits": {func(q *protocol.Ask) { q.Session.Interactive, q.Hops = true, []string{"below"} }, protocol.TerminalParent},
			"where a person sits":               {func(q *protocol.Ask) { q.Session.Interactive = true }, protocol.TerminalHuman},
			"a subagent's, where a person sits": {func(q *protocol.Ask) {
				q.Session = protocol.Session{ID: "s2", Parent: "s1", Root: "s0", Interactive: true}
			}, protocol.TerminalHuman},
		} {
			ask := a.bash("make")
			row.ask(&ask)
			if got := g.role(ask, g.policy.current()); got != row.role {
				t.Errorf("%s: %s, want %s", name, got, row.role)
			}
		}
	})
	t.Run("auto with a parent and an approver here: a person", func(t *testing.T) {
		must(presence.Put(context.Background(), "oncall-1", []byte(`{"v":1}`)))(t)
		until(t, "there", func() error {
			if got := g.role(a.bash("make"), g.policy.current()); got != protocol.TerminalHuman {
				return fmt.Errorf("role %s", got)
			}
			return nil
		})
		leave()
	})
	t.Run("deny, though an approver is there", func(t *testing.T) {
		must(presence.Put(context.Background(), "oncall-1", []byte(`{"v":1}`)))(t)
		g.inForce(r.put(plainPolicy))
		ask := a.bash("make")
		ask.Session.Interactive = true
		want(t, a.decide(ask), deny, protocol.NoApprover)
	})
	t.Run("parent, on a node without one: unavailable, never a person", func(t *testing.T) {
		g.inForce(r.put(strings.Replace(auto, "auto", "parent", 1)))
		before := person.total.Load()
		want(t, a.decide(a.bash("make")), deny, protocol.Unavailable)
		if person.total.Load() != before {
			t.Error("a person was asked")
		}
	})
}
