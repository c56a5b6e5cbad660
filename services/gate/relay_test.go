package gate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// treePolicy has something of each: allowed, denied, open.
const treePolicy = `{"permission":{"*":"ask","bash":{"*":"ask","git status":"allow","rm *":{"action":"deny","reason":"Never."}}},"terminal":{"kind":"human"}`

func TestARelayedAskIsRuledAtTheParent(t *testing.T) {
	t.Parallel()
	r := newRig(t, treePolicy+`}`)
	person := r.person()
	r.gate("g1")
	c := r.child("child1")
	for name, row := range map[string]struct {
		command string
		below   []string
		say     *protocol.TerminalVerdict
		result  protocol.FinalChoice
		outcome protocol.Outcome
	}{
		"allowed by a rule":          {command: "git status", result: allow, outcome: protocol.AllowedByRule},
		"from two levels below":      {command: "git status", below: []string{"low"}, result: allow, outcome: protocol.AllowedByRule},
		"allowed by a person":        {command: "make", say: new(yes()), result: allow, outcome: protocol.AllowedByHuman},
		"from below, by a person":    {command: "make", below: []string{"low"}, say: new(yes()), result: allow, outcome: protocol.AllowedByHuman},
		"denied by a rule":           {command: "rm -rf x", result: deny, outcome: protocol.DeniedByRule},
		"denied by a rule, from low": {command: "rm -rf x", below: []string{"low"}, result: deny, outcome: protocol.DeniedByRule},
		"denied by a person":         {command: "make", say: new(no("not now")), result: deny, outcome: protocol.DeniedByHuman},
		"edited into what is denied": {command: "make", say: new(edit(`{"command":"rm -rf x"}`)), result: deny, outcome: protocol.DeniedByRule},
	} {
		t.Run(name, func(t *testing.T) {
			ask := c.bash("ci-42", row.command, row.below...)
			if row.say != nil {
				c.pend(ask)
				if p := r.stored(ask.ID); p.Via != "child1" || !slices.Equal(p.Ask.Hops, ask.Hops) || p.Requester.User == "" {
					t.Errorf("the entry says via %q, hops %v, requester %+v", p.Via, p.Ask.Hops, p.Requester)
				}
				r.answer(ask.ID, *row.say)
			}
			d := c.decide(ask)
			want(t, d, row.result, row.outcome)
			if d.Via != "child1" || d.Agent != "ci-42" || d.Node != nodetest.Name || d.Requester.User == "" {
				t.Errorf("via %q, agent %q, node %q, requester %+v", d.Via, d.Agent, d.Node, d.Requester)
			}
			if got := r.decisions(ask.ID); len(got) != 1 || got[0].Via != "child1" {
				t.Errorf("records %+v", got)
			}
			prompted := 0
			if row.say != nil {
				prompted = 1
				r.settled(ask.ID)
			}
			if n := r.count(ask.ID, protocol.EventForwardPrompted); n != prompted || person.times(ask.ID) != prompted {
				t.Errorf("a person was asked %d times, on record %d times, want %d", person.times(ask.ID), n, prompted)
			}
			if again := c.decide(ask); again.DecidedAt != d.DecidedAt {
				t.Errorf("asked again, it is decided anew at %s", again.DecidedAt)
			}
		})
	}
}

func TestAReviewRecordSaysWhoseTheAskIs(t *testing.T) {
	t.Parallel()
	r := newRig(t, treePolicy+`}`)
	r.person()
	r.gate("g1")
	c, a := r.child("child1"), r.agent("ci")
	below, here := c.bash("ci", "make", "low"), a.bash("make")
	c.pend(below)
	a.pend(here)
	for _, id := range []string{below.ID, here.ID} {
		r.answer(id, no(""))
		r.settled(id)
	}
	for _, rec := range r.reviews(below.ID) {
		if fields := string(rec.Fields); !strings.Contains(fields, `"via":"child1"`) && !strings.Contains(fields, `"hops":["low","child1"]`) || !strings.Contains(fields, `"agent":"ci"`) {
			t.Errorf("%s says %s", rec.Event, fields)
		}
	}
	for _, rec := range r.reviews(here.ID) {
		if strings.Contains(string(rec.Fields), "via") || rec.Event == protocol.EventForwardPrompted {
			t.Errorf("of an agent of this node: %s %s", rec.Event, rec.Fields)
		}
	}
}

// TestWhatOnlyAPersonMayAllowBelow: invariant 7 holds over nodes. Neither a rule,
// nor yolo, a grant or a link answers it; what denies still does.
func TestWhatOnlyAPersonMayAllowBelow(t *testing.T) {
	t.Parallel()
	delegating := `,"authorizerChain":["judge"],"modelDelegation":{"allowedSurfaces":["*"],"excludedSurfaces":[]}}`
	for name, row := range map[string]struct {
		policy, command string
		grant           bool
		open            bool // a person is asked
		outcome         protocol.Outcome
		otherwise       protocol.Outcome // without human_only
	}{
		"a rule's allow":     {policy: treePolicy + "}", command: "git status", open: true, otherwise: protocol.AllowedByRule},
		"yolo":               {policy: treePolicy + `,"yoloMode":true}`, command: "make", open: true, otherwise: protocol.AllowedByYolo},
		"a grant":            {policy: treePolicy + "}", command: "make", grant: true, open: true, otherwise: protocol.AllowedByGrant},
		"a link's allow":     {policy: treePolicy + delegating, command: "make", open: true, otherwise: protocol.AllowedByLink},
		"a rule's deny":      {policy: treePolicy + "}", command: "rm x", outcome: protocol.DeniedByRule, otherwise: protocol.DeniedByRule},
		"a deny beside yolo": {policy: treePolicy + `,"yoloMode":true}`, command: "rm x", outcome: protocol.DeniedByRule, otherwise: protocol.DeniedByRule},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, row.policy)
			person := r.person()
			r.link("judge", always("allow", "fine"))
			r.gate("g1")
			c, a := r.child("child1"), r.agent("ci")
			if row.grant {
				for _, give := range []struct {
					pend func(protocol.Ask)
					ask  protocol.Ask
				}{{c.pend, c.bash("ci", row.command)}, {a.pend, a.bash(row.command)}} {
					give.pend(give.ask)
					r.answer(give.ask.ID, granting(protocol.ScopeAgent, row.command))
					r.settled(give.ask.ID)
				}
			}
			if d := c.decide(c.bash("ci", row.command)); d.Outcome != row.otherwise {
				t.Fatalf("without human_only: %s, want %s", d.Outcome, row.otherwise)
			}
			// An agent of this node that says it of itself is taken at its word too.
			relayed, own := c.bash("ci", row.command), a.bash(row.command)
			relayed.HumanOnly, own.HumanOnly = true, true
			if !row.open {
				want(t, c.decide(relayed), deny, row.outcome)
				want(t, a.decide(own), deny, row.outcome)
				return
			}
			c.pend(relayed)
			a.pend(own)
			for _, id := range []string{relayed.ID, own.ID} {
				p := r.stored(id)
				if len(p.Asks) == 0 || slices.ContainsFunc(p.Asks, func(e protocol.Entry) bool { return !e.HumanOnly }) || len(p.Suggest) > 0 {
					t.Errorf("open %+v, suggested %v", p.Asks, p.Suggest)
				}
				r.answer(id, granting(protocol.ScopeAgent, row.command))
			}
			for _, d := range []protocol.Decision{c.decide(relayed), a.decide(own)} {
				want(t, d, allow, protocol.AllowedByHuman)
				if d.Grant != nil {
					t.Errorf("a grant was made of it: %+v", d.Grant)
				}
			}
			if person.times(relayed.ID) != 1 || person.times(own.ID) != 1 {
				t.Error("a person was asked more than once")
			}
		})
	}
}

// TestAParentKnowsNoAgentOfItsChild: what a child says of its agent loosens
// nothing here, and whatever layer may tighten does.
func TestAParentKnowsNoAgentOfItsChild(t *testing.T) {
	t.Parallel()
	r := newRig(t, layeredFleet)
	r.denying()
	g := r.gate("g1")
	r.layer("project/"+shop, `{"permission":{"bash":{"npm *":"allow","git status":"ask","make":"allow"}}}`)
	g.inForce(r.layer("agent/reviewer", `{"permission":{"bash":{"git diff":"allow","git status":"deny"}}}`))
	c := r.child("child1")
	ask := func(change func(*protocol.Ask)) string {
		a := c.bash("ci", "git status")
		change(&a)
		d := c.decide(a)
		return string(d.Outcome)
	}
	for name, row := range map[string]struct {
		change func(*protocol.Ask)
		want   protocol.Outcome
	}{
		"nothing said":                   {func(*protocol.Ask) {}, protocol.AllowedByRule},
		"a name that would be denied":    {func(a *protocol.Ask) { a.AgentName = "reviewer" }, protocol.AllowedByRule},
		"a file that is not here":        {func(a *protocol.Ask) { a.Project.Digest = "sha256:" + strings.Repeat("0", 64) }, protocol.AllowedByRule},
		"a project that tightens":        {func(a *protocol.Ask) { a.Project.ID = shop }, protocol.NoApprover},
		"a project that is trusted here": {func(a *protocol.Ask) { *a = in(*a, shop, shopRoot, ""); a.Tool.Input = []byte(`{"command":"make"}`) }, protocol.NoApprover},
		"a project against a deny":       {func(a *protocol.Ask) { *a = in(*a, shop, shopRoot, ""); a.Tool.Input = []byte(`{"command":"npm i"}`) }, protocol.DeniedByRule},
		"a name that is trusted here": {func(a *protocol.Ask) {
			a.Agent, a.AgentName, a.Tool.Input = "review-1", "reviewer", []byte(`{"command":"git diff"}`)
		}, protocol.NoApprover},
	} {
		if got := ask(row.change); got != string(row.want) {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
	// The same, said by agents of this node whom it knows, does loosen.
	a, b := r.agent("ci"), r.agent("review-1")
	want(t, a.decide(in(a.bash("make"), shop, shopRoot, "")), allow, protocol.AllowedByRule)
	want(t, b.decide(in(b.bash("git diff"), "", "", "reviewer")), allow, protocol.AllowedByRule)
}

// TestNobodySitsAtAChildsSession: that a person sits at the session is said of the
// child's node, and makes nobody an approver here.
func TestNobodySitsAtAChildsSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"}}`)
	person := r.person()
	r.denying()
	r.gate("g1")
	c, a := r.child("child1"), r.agent("ci")
	below, here := c.bash("ci", "make"), a.bash("make")
	below.Session.Interactive, here.Session.Interactive = true, true
	d := c.decide(below)
	want(t, d, deny, protocol.NoApprover)
	if d.Session.Interactive { // nor does a link or the node above take it so
		t.Error("the child's session counts as interactive")
	}
	a.pend(here)
	if person.times(below.ID) != 0 || person.times(here.ID) != 1 {
		t.Errorf("asked about the child's %d times, about the agent's %d", person.times(below.ID), person.times(here.ID))
	}
}

func TestALoopIsRefusedByItsName(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"allow"}}`)
	r.gate("g1")
	c := r.child("child1")
	far := make([]string, 0, protocol.MaxHops)
	for i := range protocol.MaxHops {
		far = append(far, fmt.Sprintf("n%d", i))
	}
	for name, row := range map[string]struct {
		below []string
		says  string // "" where it is ruled
	}{
		"the child's own":          {},
		"two levels":               {below: []string{"low"}},
		"as many as there may be":  {below: far[:protocol.MaxHops-1]},
		"one more":                 {below: far, says: "n0 > n1"},
		"back here":                {below: []string{nodetest.Name}, says: nodetest.Name + " > child1 > " + nodetest.Name},
		"back here, further below": {below: []string{"low", nodetest.Name, "x"}, says: "low > " + nodetest.Name + " > x > child1"},
		"round below":              {below: []string{"child1", "x"}, says: "child1 > x > child1"},
	} {
		ask := c.bash("ci", "make", row.below...)
		h := c.once(ask)
		if row.says == "" {
			if h.decision == nil || !h.decision.Allowed() {
				t.Errorf("%s: %+v", name, h)
			}
			continue
		}
		if h.code() != protocol.CodeInvalid || h.fault.Ask != ask.ID || !strings.Contains(h.fault.Error.Message, "loop") || !strings.Contains(h.fault.Error.Message, row.says) {
			t.Errorf("%s: %+v, want invalid, loop and %q", name, h.fault, row.says)
		}
		if n := len(r.decisions(ask.ID)); n != 0 || r.count(ask.ID, protocol.EventGateError) != 1 {
			t.Errorf("%s: %d decisions, %v", name, n, r.events(ask.ID))
		}
	}
}

// TestAChildThatTakesItsAskBackClosesThePrompt.
func TestAChildThatTakesItsAskBackClosesThePrompt(t *testing.T) {
	t.Parallel()
	r := newRig(t, treePolicy+`}`)
	r.person()
	r.gate("g1")
	c, other, a := r.child("child1"), r.child("child2"), r.agent("ci")
	below, twin, here := c.bash("ci", "make", "low"), other.bash("ci", "make"), a.bash("make")
	c.pend(below)
	other.pend(twin)
	a.pend(here)
	for who, done := range map[string]bool{
		"an agent of that name":  a.cancel(below.ID).Cancelled,
		"another child":          other.withdraw(below.ID).Cancelled,
		"a child, of an agent's": c.withdraw(here.ID).Cancelled,
		"a child, of nothing":    c.withdraw(protocol.NewAskID()).Cancelled,
	} {
		if done {
			t.Errorf("%s took it back", who)
		}
	}
	for _, id := range []string{below.ID, twin.ID, here.ID} {
		if p := r.stored(id); p.Withdrawn != nil {
			t.Fatalf("ask %s is withdrawn by somebody else", id)
		}
	}
	closed := must(r.op.SubscribeSync(must(r.Subjects.Event(protocol.NoticePromptClosed))(t)))(t)
	flush(t, r.op)
	if !c.withdraw(below.ID).Cancelled {
		t.Fatal("the child could not take its own ask back")
	}
	r.settled(below.ID)
	d := c.decide(below)
	want(t, d, deny, protocol.Cancelled)
	n := must(protocol.Read[protocol.Notice](must(closed.NextMsg(soon))(t).Data))(t)
	if n.Ask != below.ID || n.Agent != "ci" || n.Via != "child1" {
		t.Errorf("notice %+v", n)
	}
	if c.withdraw(below.ID).Cancelled {
		t.Error("what is decided is withdrawn once more")
	}
}

// TestAChildHearsWithinASecond: a slow gate is not taken for a dead one.
func TestAChildHearsWithinASecond(t *testing.T) {
	t.Parallel()
	r := newRig(t, treePolicy+`,"authorizerChain":["slow"]}`)
	release := make(chan struct{})
	r.link("slow", func(l linkCall) { l.accept(); <-release; l.verdict("defer", "", "") })
	r.person()
	g := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	g.times = standardTimes
	g.start()
	c := r.child("child1")
	ask := c.bash("ci", "make")
	// Far below what one of the node's own agents would be kept waiting: a busy machine is slower.
	late := standardTimes.patience * 3 / 4
	for range 3 {
		h := c.once(ask)
		if h.progress == nil || h.progress.Stage != "link:slow" || h.took > late {
			t.Fatalf("%+v after %s", h, h.took)
		}
	}
	close(release)
	r.waiting(ask.ID)
	if h := c.once(ask); h.progress == nil || h.progress.Stage != "terminal:human" || h.took > late {
		t.Fatalf("%+v after %s", h, h.took)
	}
	r.answer(ask.ID, yes())
	want(t, c.decide(ask), allow, protocol.AllowedByHuman)
}

// TestAChildHearsInTimeWhateverIsUnderWay: a gate that cannot rule or store says
// so in time, never that the ask is pending; the child's next request goes on.
func TestAChildHearsInTimeWhateverIsUnderWay(t *testing.T) {
	t.Parallel()
	r := newRig(t, treePolicy+`}`)
	r.person()
	g := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	g.times.relay, g.times.late = 10*time.Second, 100*time.Millisecond
	g.times.patience, g.times.first = 2*time.Second, 2*time.Second
	g.start()
	c := r.child("child1")
	open := c.bash("ci", "make")
	until(t, "open", func() error { // the first request may be answered before the ask is stored
		if h := c.once(open); h.progress == nil || h.took > time.Second {
			return fmt.Errorf("%+v", h)
		}
		return nil
	})
	for name, ask := range map[string]protocol.Ask{"what rules settle": c.bash("ci", "git status"), "what they leave open": c.bash("ci", "make all")} {
		known := g.policy.read.Swap(0) // as when the connection has just come back
		h := c.once(ask)
		if h.code() != protocol.CodeUnavailable || h.fault.Ask != ask.ID || h.took > time.Second {
			t.Errorf("%s: %+v after %s", name, h.fault, h.took)
		}
		g.policy.read.Store(known)
		until(t, name+", once it can be ruled", func() error {
			if h := c.once(ask); h.progress == nil && h.decision == nil {
				return fmt.Errorf("%+v", h.fault)
			}
			return nil
		})
	}
	if h := c.once(open); h.progress == nil || h.took > time.Second {
		t.Errorf("%+v after %s", h, h.took)
	}
}
