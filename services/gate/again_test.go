package gate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// humanGrants is grantPolicy on a node where a person answers.
var humanGrants = strings.Replace(grantPolicy, `"kind":"deny"`, `"kind":"human"`, 1)

// ended waits until id is settled and returns its one record.
func (r *rig) ended(id string) protocol.Decision {
	r.t.Helper()
	r.settled(id)
	all := r.decisions(id)
	if len(all) != 1 {
		r.t.Fatalf("%d records on %s", len(all), id)
	}
	return all[0]
}

// stays makes sure that asks still wait for a person once everything that was to
// be looked at again has been.
func (r *rig) stays(g *served, ids ...string) {
	r.t.Helper()
	until(r.t, "looked at", func() error {
		g.again.mu.Lock()
		defer g.again.mu.Unlock()
		if n := len(g.again.queue); n > 0 {
			return fmt.Errorf("%d to look at", n)
		}
		return nil
	})
	for _, id := range ids {
		until(r.t, "waits", func() error {
			item, err := r.open.Get(context.Background(), id)
			if err == nil && (item.Owner != "" || item.Stage != "terminal:human" || !g.takesAnswer(item.Pending)) {
				err = fmt.Errorf("owner %q, stage %s", item.Owner, item.Stage)
			}
			return err
		})
	}
}

// closings counts the notices that close a prompt, by ask.
func (r *rig) closings() func(id string) int {
	r.t.Helper()
	sub := must(r.op.SubscribeSync(r.Subjects.All(protocol.KindEvent)))(r.t)
	flush(r.t, r.op)
	closed := map[string]int{}
	return func(id string) int {
		for {
			m, err := sub.NextMsg(2 * quick.sweep)
			if err != nil {
				return closed[id]
			}
			if n, err := protocol.Read[protocol.Notice](m.Data); err == nil && n.Kind == protocol.NoticePromptClosed {
				closed[n.Ask]++
			}
		}
	}
}

func TestTenLikeAsksAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	for name, gates := range map[string]int{"at one gate": 1, "at three gates": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, humanGrants)
			person := r.person()
			for i := range gates {
				r.gate(fmt.Sprintf("g%d", i))
			}
			a := r.agent("ci")
			closed := r.closings()
			var asks []protocol.Ask
			heard := make(chan protocol.Decision, 10)
			for i := range 10 {
				ask := a.bash(fmt.Sprintf("make %d", i))
				asks = append(asks, ask)
				go func() { d, _ := a.follow(ask); heard <- d }()
				r.waiting(ask.ID)
			}
			r.answer(asks[4].ID, granting(protocol.ScopeSession, "make *"))
			byPerson := 0
			for range asks {
				d := receive(t, heard)
				if d.Outcome == protocol.AllowedByHuman {
					byPerson++
					continue
				}
				want(t, d, allow, protocol.AllowedByGrant)
				if d.Approver != "oncall-1" || d.Origin != "grant:"+asks[4].ID || d.Policy.Grants != asks[4].ID || d.DecidedBy.Kind != protocol.DeciderGrant || len(d.Asks) != 1 {
					t.Errorf("record %+v", d)
				}
			}
			if byPerson != 1 {
				t.Errorf("%d answers of a person on record", byPerson)
			}
			for _, ask := range asks {
				r.ended(ask.ID)
				if person.times(ask.ID) != 1 || closed(ask.ID) != 1 || r.count(ask.ID, protocol.EventRequestApproved) != 1 {
					t.Errorf("%s: put %d times, closed %d times, %q", ask.ID, person.times(ask.ID), closed(ask.ID), r.events(ask.ID))
				}
			}
		})
	}
}

func TestAGrantSettlesNothingThatItWouldNotAllow(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanGrants)
	r.person()
	g := r.gate("g1")
	a, b := r.agent("ci"), r.agent("ci-2")
	elsewhere := a.bash("make a")
	elsewhere.Session.ID = "s2"
	first, other := a.bash("make x"), b.bash("make a")
	like, floor, rest, unlike := a.bash("make a"), a.bash("make a > $(cat x)"), a.bash("make a && cargo build"), a.bash("cargo build")
	for by, asks := range map[*agent][]protocol.Ask{a: {elsewhere, first, like, floor, rest, unlike}, b: {other}} {
		for _, ask := range asks {
			by.pend(ask)
		}
	}
	r.answer(first.ID, granting(protocol.ScopeSession, "make *"))
	want(t, r.ended(like.ID), allow, protocol.AllowedByGrant)
	r.stays(g, elsewhere.ID, other.ID, floor.ID, rest.ID, unlike.ID)
	t.Run("nor what only a person allows, or a rule denies", func(t *testing.T) {
		human := a.bash("deploy b")
		a.pend(human)
		answered := a.bash("git push")
		a.pend(answered)
		r.answer(answered.ID, granting(protocol.ScopeAgent, "git *"))
		r.settled(answered.ID)
		r.stays(g, human.ID)
		want(t, a.decide(a.bash("git push --force")), deny, protocol.DeniedByRule)
	})
}

// The two that race for the last use are one too many: that one goes on waiting,
// and its person can answer it.
func TestAWaitingAskSpendsAUseOrWaits(t *testing.T) {
	t.Parallel()
	r, store := grantsRig(t)
	g := r.gate("g1")
	r.gate("g2")
	a := r.agent("ci")
	first := a.bash("make x")
	a.pend(first)
	var waits []string
	for i := range 5 {
		ask := a.bash(fmt.Sprintf("make %d", i))
		a.pend(ask)
		waits = append(waits, ask.ID)
	}
	v := granting(protocol.ScopeAgent, "make *")
	v.Grant.Uses = 3
	r.answer(first.ID, v)
	r.settled(first.ID)
	until(t, "used up", func() error {
		if all := must(store.All(context.Background()))(t); len(all) > 0 {
			return fmt.Errorf("left %+v", all)
		}
		return nil
	})
	var left []string
	until(t, "three settled", func() error {
		left = left[:0]
		for _, id := range waits {
			if _, err := r.open.Get(context.Background(), id); err == nil {
				left = append(left, id)
			}
		}
		if len(left) != 2 {
			return fmt.Errorf("%d wait", len(left))
		}
		return nil
	})
	r.stays(g, left...)
	r.answer(left[0], no("not this one"))
	want(t, r.ended(left[0]), deny, protocol.DeniedByHuman)
	r.answer(left[1], yes())
	want(t, r.ended(left[1]), allow, protocol.AllowedByHuman)
}

func TestAPolicySettlesWhatWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	r.person()
	g := r.gate("g1")
	a := r.agent("ci")
	allowed, denied, open := a.bash("make a"), a.bash("cargo build"), a.bash("yarn")
	waiting := func(asks ...protocol.Ask) {
		t.Helper()
		for _, ask := range asks {
			a.pend(ask)
		}
	}
	const rules = `{"permission":{"*":"ask","bash":{"*":"ask","make *":"allow","cargo *":{"action":"deny","reason":"Not here."}}},"terminal":{"kind":"human"}}`
	waiting(allowed, denied, open)
	revision := r.put(rules)
	want(t, r.ended(allowed.ID), allow, protocol.AllowedByRule)
	d := r.ended(denied.ID)
	want(t, d, deny, protocol.DeniedByRule)
	if d.Reason != "Not here." || d.MatchedPattern != "cargo *" || d.Policy.Revision != revision || d.DecidedBy.Kind != protocol.DeciderRule || d.Approver != "" {
		t.Errorf("record %+v", d)
	}
	want(t, a.decide(denied), deny, protocol.DeniedByRule)
	r.stays(g, open.ID)
	t.Run("nothing where the new one cannot be read", func(t *testing.T) {
		ask := a.bash("yarn b")
		waiting(ask)
		g.inForce(r.put(broken))
		r.stays(g, ask.ID, open.ID)
	})
	t.Run("also one that came while no gate ran", func(t *testing.T) {
		g.stop()
		r.put(strings.Replace(rules, `"make *"`, `"yarn":"deny","make *"`, 1))
		g = r.gate("g2")
		want(t, r.ended(open.ID), deny, protocol.DeniedByRule)
	})
}

// What a person gives while a link thinks spares them the prompt.
func TestAGrantGivenMeanwhileSparesThePrompt(t *testing.T) {
	t.Parallel()
	r := newRig(t, strings.Replace(humanGrants, `"terminal"`, `"authorizerChain":["slow"],"terminal"`, 1))
	person := r.person()
	r.gate("g1")
	a := r.agent("ci")
	calls := make(chan linkCall, 4)
	r.link("slow", func(c linkCall) { c.accept(); calls <- c })
	first, second, unlike := a.bash("make x"), a.bash("make y"), a.bash("cargo build")
	thinks := map[string]linkCall{}
	for _, ask := range []protocol.Ask{first, second, unlike} {
		go a.follow(ask) //nolint:errcheck // the record counts
		c := receive(t, calls)
		thinks[c.Ask.ID] = c
	}
	thinks[first.ID].verdict("defer", "", "")
	r.waiting(first.ID)
	r.answer(first.ID, granting(protocol.ScopeSession, "make *"))
	r.settled(first.ID)
	for _, ask := range []protocol.Ask{second, unlike} {
		thinks[ask.ID].verdict("defer", "not mine", "")
	}
	d := r.ended(second.ID)
	want(t, d, allow, protocol.AllowedByGrant)
	wantTrail(t, d, "slow=defer")
	r.waiting(unlike.ID)
	if person.times(second.ID) != 0 || person.times(unlike.ID) != 1 {
		t.Errorf("put to a person %d and %d times", person.times(second.ID), person.times(unlike.ID))
	}
}

// An answer and a grant that meet over one ask end in one record, and no answer
// that was accepted is overtaken.
func TestAnAnswerAndAGrantThatRaceMakeOneRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanGrants)
	r.person()
	r.gate("g1")
	r.gate("g2")
	a := r.agent("ci")
	accepted, overtaken := 0, 0
	for round := range 30 {
		first, second := a.bash("make x"), a.bash("make y")
		first.Session.ID = first.ID // a grant for this round alone
		second.Session.ID = first.ID
		a.pend(first)
		a.pend(second)
		r.answer(first.ID, granting(protocol.ScopeSession, "make *"))
		if round%2 == 1 {
			r.settled(first.ID) // the grant is stored, and looked for
		}
		took := false
		_, err := r.open.Update(context.Background(), second.ID, func(p *protocol.Pending) error {
			if took = p.AtTerminal() && p.Verdict == nil; !took {
				return errLost
			}
			p.Verdict = &protocol.TerminalVerdict{Ask: second.ID, Verdict: deny, Outcome: protocol.DeniedByHuman, Approver: "oncall-2", At: time.Now().UTC()}
			return nil
		})
		d := r.ended(second.ID)
		if took = took && err == nil; took {
			accepted++
			want(t, d, deny, protocol.DeniedByHuman)
		} else {
			overtaken++
			want(t, d, allow, protocol.AllowedByGrant)
		}
	}
	t.Logf("%d answers were accepted, %d came too late", accepted, overtaken)
}

// A gate that dies with an ask closed to answers leaves it to the next, which
// settles it or opens it again.
func TestAnAskLeftInSettlingIsTakenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanGrants)
	person := r.person()
	g1 := r.gate("g1")
	a := r.agent("ci")
	granted, open := a.bash("make x"), a.bash("cargo build")
	a.pend(open)
	want(t, r.give(a, a.bash("make y"), granting(protocol.ScopeAgent, "make y")), allow, protocol.AllowedByHuman)
	a.pend(granted)
	g1.kill()
	for _, id := range []string{granted.ID, open.ID} { // what the dead gate did last
		must(r.open.Update(context.Background(), id, func(p *protocol.Pending) error {
			p.Owner, p.Lease, p.Stage = "g1", time.Now().Add(quick.lease/2).UTC(), protocol.StageSettling
			return nil
		}))(t)
	}
	r.put(strings.Replace(humanGrants, `"deploy *"`, `"make *":"allow","deploy *"`, 1))
	g2 := r.gate("g2")
	want(t, r.ended(granted.ID), allow, protocol.AllowedByRule)
	r.stays(g2, open.ID)
	if n := person.times(open.ID); n != 1 {
		t.Errorf("put to a person %d times", n)
	}
	r.answer(open.ID, yes())
	want(t, r.ended(open.ID), allow, protocol.AllowedByHuman)
}

// The gate that stored a grant and dies before it has looked at what waits has
// not deleted the answered ask: whoever finishes that looks.
func TestTheNextGateLooksForADeadOne(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanGrants)
	r.person()
	g1 := r.gate("g1")
	a := r.agent("ci")
	first, second := a.bash("make x"), a.bash("make y")
	a.pend(first)
	a.pend(second)
	g1.kill()
	r.answer(first.ID, granting(protocol.ScopeSession, "make *"))
	dead := r.newGate("dead", r.Connect(t, protocol.RoleGate, "dead"))
	p := must(r.open.Get(context.Background(), first.ID))(t).Pending
	dead.policy.now.Store(g1.policy.now.Load())
	d := must(dead.recorder.store(context.Background(), must(dead.conclude(context.Background(), p, interruption(p, dead.policy.freezes.current(), time.Now())))(t)))(t)
	if err := dead.remember(context.Background(), d); err != nil {
		t.Fatal(err)
	}
	r.gate("g2")
	want(t, r.ended(second.ID), allow, protocol.AllowedByGrant)
	want(t, r.ended(first.ID), allow, protocol.AllowedByHuman)
}

func TestWhatIsLookedAtAgainIsQueuedOnce(t *testing.T) {
	t.Parallel()
	a := newAgain()
	a.add("a", "b", "a")
	a.add("b", "c")
	var got []string
	for id, ok := a.next(); ok; id, ok = a.next() {
		got = append(got, id)
	}
	a.add("a")
	id, _ := a.next()
	if got := strings.Join(append(got, id), " "); got != "a b c a" {
		t.Errorf("looked at %q", got)
	}
	now := time.Now()
	a.note("ci", now)
	if !a.lately("ci", now.Add(newlyGranted-1)) || a.lately("ci", now.Add(newlyGranted)) || a.lately("ci-2", now) {
		t.Error("who was granted something lately")
	}
	if a.forget(now.Add(newlyGranted)); len(a.granted) != 0 {
		t.Errorf("kept %v", a.granted)
	}
}

func TestWhatWaitsIsFoundOldestFirst(t *testing.T) {
	t.Parallel()
	m := newMirror()
	put := func(id, agent string, change func(*protocol.Pending)) {
		p := protocol.Pending{Ask: protocol.Ask{ID: id, Agent: agent}, Node: nodetest.Name, Taken: time.Now()}
		change(&p)
		m.put(pending.Item{Pending: p, Revision: 1})
	}
	same := func(*protocol.Pending) {}
	put("4", "ci", same)
	put("1", "ci", same)
	put("3", "other", same)
	put("2", "ci", func(p *protocol.Pending) { p.Owner = "g" })
	put("5", "ci", func(p *protocol.Pending) { p.Taken = time.Time{} })
	put("6", "ci", func(p *protocol.Pending) { p.Verdict = &protocol.TerminalVerdict{} })
	put("7", "ci", func(p *protocol.Pending) { p.Withdrawn = &protocol.Cancel{} })
	if got := strings.Join(m.waiting("ci"), "") + " " + strings.Join(m.waiting(""), ""); got != "14 134" {
		t.Errorf("waiting are %q", got)
	}
}
