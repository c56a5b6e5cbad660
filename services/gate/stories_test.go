package gate

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

func TestTwoCallsWithOneCallIdAreTwoAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	person := r.person()
	r.gate("g1")
	a := r.agent("ci")
	first, second := a.bash("make a"), a.bash("make b")
	first.Tool.CallID, second.Tool.CallID, second.Session.ID = "call-1", "call-1", "s2"
	a.pend(first)
	a.pend(second)
	r.answer(first.ID, yes())
	want(t, a.decide(first), allow, protocol.AllowedByHuman)
	if h := a.once(second); h.progress == nil || person.times(second.ID) != 1 || len(r.decisions(second.ID)) != 0 {
		t.Fatalf("the second: %+v", h)
	}
	r.answer(second.ID, no("not b"))
	want(t, a.decide(second), deny, protocol.DeniedByHuman)
}

func TestTwoCallsThatLookAlikeAreTwoPrompts(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	person := r.person()
	r.gate("g1")
	a := r.agent("ci")
	asks := []protocol.Ask{
		a.bash("cat <<'A'\none\nA"), a.bash("cat <<'B'\ntwo\nB"), // alike
		a.bash("make"), a.bash("make"), // the same, asked twice
	}
	for _, ask := range asks {
		a.pend(ask)
	}
	for i, ask := range asks {
		if person.times(ask.ID) != 1 {
			t.Errorf("call %d was put to a person %d times", i, person.times(ask.ID))
		}
	}
	r.answer(asks[2].ID, yes())
	want(t, a.decide(asks[2]), allow, protocol.AllowedByHuman)
	if h := a.once(asks[3]); h.progress == nil {
		t.Errorf("an answer for this once counted twice: %+v", h)
	}
}

// Whatever asks, a rule, a second rule and a link: one prompt lists it all.
func TestACallWithSeveralReasonsIsOnePrompt(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask","path":"allow","bash":{"*":"allow","make *":"ask","cargo *":"ask"},"external_directory":"ask"},"authorizerChain":["hook"],"terminal":{"kind":"human"}}`)
	shown := make(chan protocol.TerminalRequest, 8)
	person := r.terminal(protocol.TerminalHuman, func(q protocol.TerminalRequest) string {
		must(r.open.Update(context.Background(), q.Ask.ID, func(p *protocol.Pending) error { p.Taken = time.Now().UTC(); return nil }))(t)
		shown <- q
		return progressFor(q.Ask.ID)
	})
	r.link("hook", always("defer", "the hook would rather ask"))
	r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make deploy && cargo build && ls /srv/other")
	go a.follow(ask) //nolint:errcheck // the record counts
	q := receive(t, shown)
	r.waiting(ask.ID)
	var values []string
	for _, e := range q.Asks {
		values = append(values, e.Surface+" "+e.Value)
	}
	for _, reason := range []string{"bash make deploy", "bash cargo build", "external_directory /srv/other"} {
		if !slices.Contains(values, reason) {
			t.Errorf("the prompt lacks %q: %q", reason, values)
		}
	}
	if len(q.Trail) != 1 || q.Trail[0].Link != "hook" || q.Trail[0].Reason != "the hook would rather ask" {
		t.Errorf("the prompt shows of the link %+v", q.Trail)
	}
	if h := a.once(ask); h.progress == nil || person.times(ask.ID) != 1 {
		t.Errorf("put %d times, %+v", person.times(ask.ID), h)
	}
	r.answer(ask.ID, yes())
	want(t, r.ended(ask.ID), allow, protocol.AllowedByHuman)
}

func TestALinksDeferReachesThePersonAndIsNoDeny(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]struct {
		serve           func(linkCall)
		reason, failure string
	}{
		"a defer of its own":       {always("defer", "I cannot tell"), "I cannot tell", ""},
		"a word of its own for it": {func(c linkCall) { c.verdict("defer", "", "breaker_open") }, "", "breaker_open"},
		"no answer in time":        {func(c linkCall) { c.accept() }, "", protocol.FailureTimeout},
		"nothing that is readable": {func(c linkCall) { c.reply("}{") }, "", protocol.FailureMalformed},
		"a word that is near one":  {func(c linkCall) { c.verdict("DISAPPROVE", "", "") }, "", protocol.FailureMalformed},
		"a crash":                  {func(c linkCall) { c.header(protocol.HeaderErrorCode, "500") }, "", protocol.FailureError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, humanPolicy(`,"authorizerChain":["judge"],"linkTimeout":"700ms"`))
			r.person()
			r.link("judge", link.serve)
			r.gate("g1")
			a := r.agent("ci")
			ask := a.bash("make deploy")
			go a.follow(ask) //nolint:errcheck // the record counts
			r.waiting(ask.ID)
			trail := must(r.open.Get(context.Background(), ask.ID))(t).Trail
			if len(trail) != 1 || trail[0].Verdict != protocol.ChoiceDefer || trail[0].Reason != link.reason || trail[0].Failure != link.failure {
				t.Errorf("the person sees %+v", trail)
			}
			r.answer(ask.ID, yes())
			want(t, r.ended(ask.ID), allow, protocol.AllowedByHuman)
		})
	}
}

// The operator's rules are read first: nothing that looks like routine, and no
// switch, comes before what they want a person to see.
func TestNoShortcutStandsBeforeAReviewRule(t *testing.T) {
	t.Parallel()
	const rules = `{"permission":{"*":"allow","mcp":{"*":"allow","browser/*":"ask","browser/pay":{"action":"ask","humanOnly":true}}},"terminal":{"kind":"human"}YOLO}`
	r := newRig(t, strings.Replace(rules, "YOLO", "", 1))
	person := r.person()
	g := r.gate("g1")
	a := r.agent("ci")
	call := func(tool string) protocol.Ask {
		return a.call("mcp__"+tool, `{"url":"http://example.invalid"}`)
	}
	visit := call("browser__navigate")
	a.pend(visit)
	r.answer(visit.ID, no("not there"))
	want(t, a.decide(visit), deny, protocol.DeniedByHuman)
	want(t, a.decide(call("mail__list")), allow, protocol.AllowedByRule)
	g.inForce(r.put(strings.Replace(rules, "YOLO", `,"yoloMode":true`, 1)))
	want(t, a.decide(call("browser__navigate")), allow, protocol.AllowedByYolo)
	pay := call("browser__pay")
	a.pend(pay)
	r.answer(pay.ID, no("no money"))
	want(t, a.decide(pay), deny, protocol.DeniedByHuman)
	if person.total.Load() != 2 {
		t.Errorf("a person was asked %d times", person.total.Load())
	}
}

func TestAHeadlessRunEndsAtOnceAndSaysWhichRuleAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"allow","bash":{"*":"allow","gh issue create *":"ask"}},"terminal":{"kind":"auto"}}`)
	r.denying()
	r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("gh issue create --title t --body b")
	began := time.Now()
	d := a.decide(ask)
	want(t, d, deny, protocol.NoApprover)
	if took := time.Since(began); took > time.Second {
		t.Errorf("answered after %s", took)
	}
	if d.Surface != "bash" || d.MatchedPattern != "gh issue create *" || d.Origin != "fleet" || d.Reason == "" || len(d.Asks) != 1 {
		t.Errorf("on record is %+v", d)
	}
	want(t, a.decide(a.bash("gh issue list")), allow, protocol.AllowedByRule)
	t.Run("and the whole tree of sessions with it", func(t *testing.T) {
		child := a.bash("gh issue create --title t --body c")
		child.Session = protocol.Session{ID: "s1.b.c", Parent: "s1.b", Root: "s1"}
		want(t, a.decide(child), deny, protocol.NoApprover)
	})
}

// What one person declined and another approved are two records, each made
// before its agent hears, and neither looks like a rule's.
func TestWhatIsDeclinedIsOnRecordLikeWhatIsApproved(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(`,"authorizerChain":["judge"],"modelDelegation":{"allowedSurfaces":["bash"]}`))
	r.person()
	r.gate("g1")
	var say book[string]
	r.link("judge", func(c linkCall) { c.verdict(say.get(c.Ask.ID), "", "") })
	a := r.agent("ci")
	for _, row := range []struct {
		judge, command string
		person         *protocol.TerminalVerdict
		kind           protocol.DeciderKind
		name           string
		outcome        protocol.Outcome
	}{
		{"defer", "make a", &protocol.TerminalVerdict{Verdict: deny, Reason: "no"}, protocol.DeciderHuman, "oncall-1", protocol.DeniedByHuman},
		{"defer", "make b", &protocol.TerminalVerdict{Verdict: allow}, protocol.DeciderHuman, "oncall-1", protocol.AllowedByHuman},
		{"allow", "make c", nil, protocol.DeciderLink, "judge", protocol.AllowedByLink},
		{"", "rm -rf x", nil, protocol.DeciderRule, "bash", protocol.DeniedByRule},
	} {
		ask := a.bash(row.command)
		say.put(ask.ID, row.judge)
		if row.person != nil {
			go a.follow(ask) //nolint:errcheck // the record counts
			r.waiting(ask.ID)
			r.answer(ask.ID, *row.person)
		}
		d := a.decide(ask)
		r.settled(ask.ID)
		all := r.decisions(ask.ID)
		if len(all) != 1 || all[0].Outcome != row.outcome || all[0].DecidedBy.Kind != row.kind || all[0].DecidedBy.Name != row.name || !all[0].DecidedAt.Equal(d.DecidedAt) {
			t.Errorf("%s: heard %+v, on record %+v", row.command, d, all)
		}
		if d.Policy.Revision == 0 || d.DecidedBy.Node == "" || d.AskedAt.IsZero() || d.CallDigest == "" {
			t.Errorf("%s: the record lacks who, when or under what: %+v", row.command, d)
		}
	}
}

func TestAPendingAskOutlivesEveryGate(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	person := r.person()
	g1 := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make deploy")
	a.pend(ask)
	g1.kill()
	if item := must(r.open.Get(context.Background(), ask.ID))(t); !item.AtTerminal() || item.Verdict != nil {
		t.Fatalf("listed as %+v", item)
	}
	r.gate("g2")
	if h := a.once(ask); h.progress == nil {
		t.Fatalf("its agent hears %+v", h)
	}
	r.answer(ask.ID, yes())
	want(t, a.decide(ask), allow, protocol.AllowedByHuman)
	if person.times(ask.ID) != 1 {
		t.Errorf("put to a person %d times", person.times(ask.ID))
	}
}
