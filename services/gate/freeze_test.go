package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

const incident = "Incident 7: wait for word."

// frozenWho reads "all", "agent NAME" or "session ID".
func frozenWho(t testing.TB, who string) layers.Frozen {
	t.Helper()
	switch kind, name, _ := strings.Cut(who, " "); kind {
	case "agent":
		return must(layers.Agent(name))(t)
	case "session":
		return must(layers.Session(name))(t)
	default:
		return layers.Fleet()
	}
}

// freeze stores a freeze as the command does, and returns once gates confirm it.
func (r *rig) freeze(who string, gates ...*served) uint64 {
	r.t.Helper()
	f := frozenWho(r.t, who)
	store := must(layers.Open(context.Background(), r.js))(r.t)
	revision := must(store.Freeze(context.Background(), f, protocol.Freeze{Reason: incident, By: "op", At: time.Now().UTC()}))(r.t)
	r.confirmed(f.Key(), revision, gates...)
	return revision
}

// thaw lifts a freeze likewise.
func (r *rig) thaw(who string, over uint64, gates ...*served) {
	r.t.Helper()
	f := frozenWho(r.t, who)
	store := must(layers.Open(context.Background(), r.js))(r.t)
	r.confirmed(f.Key(), must(store.Thaw(context.Background(), layers.Freeze{Frozen: f, Revision: over}))(r.t), gates...)
}

func (r *rig) confirmed(key string, revision uint64, gates ...*served) {
	r.t.Helper()
	for _, g := range gates {
		until(r.t, "confirmed by "+g.name, func() error {
			c, fault, err := r.confirm(g.name, key, revision)
			switch {
			case err != nil:
				return err
			case fault != nil:
				return &fault.Error
			case c.Gate != g.name || c.Key != key || c.Revision < revision:
				return fmt.Errorf("confirmed %+v", c)
			}
			return nil
		})
	}
}

func (r *rig) confirm(gate, key string, revision uint64) (protocol.Confirmed, *protocol.ErrorReply, error) {
	r.t.Helper()
	subject := must(r.Subjects.Confirm(gate))(r.t)
	m, err := r.op.Request(subject, must(protocol.Write(protocol.Confirm{Key: key, Revision: revision}))(r.t), soon)
	if err != nil {
		return protocol.Confirmed{}, nil, err
	}
	if f, err := protocol.Read[protocol.ErrorReply](m.Data); err == nil {
		return protocol.Confirmed{}, &f, nil
	}
	c, err := protocol.Read[protocol.Confirmed](m.Data)
	return c, nil, err
}

// wantFrozen holds a decision against what a freeze makes of an ask.
func wantFrozen(t testing.TB, d protocol.Decision) {
	t.Helper()
	want(t, d, deny, protocol.Frozen)
	if d.Reason != incident || d.DecidedBy.Kind != protocol.DeciderGate || d.Grant != nil {
		t.Errorf("decided by %+v, reason %q, grant %v", d.DecidedBy, d.Reason, d.Grant)
	}
}

func TestAFreezeStopsWhomItNamesFromTheNextAskOn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		who         string
		stops, lets protocol.Session // of agent ci
		agent       bool             // agent other is stopped too
	}{
		{"agent ci", protocol.Session{ID: "s1"}, protocol.Session{}, false},
		{"session s1", protocol.Session{ID: "s3", Parent: "s2", Root: "s1"}, protocol.Session{ID: "s4", Root: "s2"}, false},
		{"session s2", protocol.Session{ID: "s3", Parent: "s2", Root: "s1"}, protocol.Session{ID: "s1"}, false},
		{"all", protocol.Session{}, protocol.Session{}, true},
	} {
		t.Run(row.who, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, plainPolicy)
			r.denying()
			gates := []*served{r.gate("g1"), r.gate("g2")}
			a, other := r.agent("ci"), r.agent("other")
			call := func(of *agent, s protocol.Session) protocol.Ask {
				ask := of.bash("git status")
				ask.Session = s
				return ask
			}
			want(t, a.decide(call(a, row.stops)), allow, protocol.AllowedByRule)
			at := r.freeze(row.who, gates...)
			for range 4 { // some at each gate
				wantFrozen(t, a.decide(call(a, row.stops)))
				if d := other.decide(call(other, protocol.Session{ID: "o"})); d.Allowed() == row.agent {
					t.Errorf("the other agent: %s", d.Outcome)
				}
			}
			if row.lets.ID != "" {
				want(t, a.decide(call(a, row.lets)), allow, protocol.AllowedByRule)
			}
			r.thaw(row.who, at, gates...)
			for range 4 {
				want(t, a.decide(call(a, row.stops)), allow, protocol.AllowedByRule)
			}
		})
	}
}

// TestNothingLiftsAFreeze: whoever could allow the call.
func TestNothingLiftsAFreeze(t *testing.T) {
	t.Parallel()
	t.Run("yolo", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, `{"permission":{"*":"ask"},"yoloMode":true}`)
		g := r.gate("g1")
		a := r.agent("ci")
		want(t, a.decide(a.bash("make")), allow, protocol.AllowedByYolo)
		r.freeze("agent ci", g)
		wantFrozen(t, a.decide(a.bash("make")))
	})
	t.Run("a grant", func(t *testing.T) {
		t.Parallel()
		r, _ := grantsRig(t)
		g := r.gate("g1")
		a := r.agent("ci")
		r.give(a, a.bash("git push"), granting(protocol.ScopeAgent, "git push *"))
		want(t, a.decide(a.bash("git push origin")), allow, protocol.AllowedByGrant)
		r.freeze("agent ci", g)
		wantFrozen(t, a.decide(a.bash("git push origin")))
	})
	t.Run("a person who sits at the session", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, humanPolicy(""))
		person := r.person()
		g := r.gate("g1")
		a := r.agent("ci")
		r.freeze("all", g)
		ask := a.bash("make")
		ask.Session.Interactive = true
		wantFrozen(t, a.decide(ask))
		if person.total.Load() != 0 {
			t.Error("a person was asked")
		}
	})
	t.Run("a retry of what was frozen, after the thaw", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, plainPolicy)
		g := r.gate("g1")
		a := r.agent("ci")
		at := r.freeze("agent ci", g)
		ask := a.bash("git status")
		wantFrozen(t, a.decide(ask))
		r.thaw("agent ci", at, g)
		wantFrozen(t, a.decide(ask)) // one decision per id
		want(t, a.decide(a.bash("git status")), allow, protocol.AllowedByRule)
	})
}

// TestAFreezeEndsWhatWaitsForAPerson, and only that of the frozen.
func TestAFreezeEndsWhatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	r := newRig(t, humanPolicy(""))
	person := r.person()
	gates := []*served{r.gate("g1"), r.gate("g2")}
	a, other := r.agent("ci"), r.agent("other")
	var asks []protocol.Ask
	for range 6 {
		asks = append(asks, a.bash("make"))
		a.pend(asks[len(asks)-1])
	}
	theirs := other.bash("make")
	other.pend(theirs)
	closed := must(r.op.SubscribeSync(must(r.Subjects.Event(protocol.NoticePromptClosed))(t)))(t)
	flush(t, r.op)
	r.freeze("agent ci", gates...)
	for _, ask := range asks {
		r.settled(ask.ID)
		wantFrozen(t, a.decide(ask))
		if n := len(r.decisions(ask.ID)); n != 1 || person.times(ask.ID) != 1 {
			t.Errorf("%d records, asked %d times", n, person.times(ask.ID))
		}
		n := must(protocol.Read[protocol.Notice](must(closed.NextMsg(soon))(t).Data))(t)
		if n.Outcome != protocol.Frozen || n.Agent != "ci" {
			t.Errorf("notice %+v", n)
		}
		if _, err := r.open.Update(context.Background(), ask.ID, func(*protocol.Pending) error { return nil }); err == nil {
			t.Error("an answer could still be stored")
		}
	}
	r.answer(theirs.ID, yes())
	want(t, other.decide(theirs), allow, protocol.AllowedByHuman)
}

// TestAnAnswerThatWasStoredFallsToAFreeze that comes before it is settled; who
// allowed stays on the record, and what was granted with it is none.
func TestAnAnswerThatWasStoredFallsToAFreeze(t *testing.T) {
	t.Parallel()
	r, store := grantsRig(t)
	g1 := r.gate("g1")
	a := r.agent("ci")
	allowed, denied := a.bash("git push"), a.bash("git pull")
	a.pend(allowed)
	a.pend(denied)
	g1.stop()
	v := granting(protocol.ScopeAgent, "git push *")
	v.Note = "go on"
	r.answer(allowed.ID, v)
	r.answer(denied.ID, no("not today"))
	r.freeze("session s1")
	g2 := r.gate("g2") // begins with the freeze in force
	d := a.decide(allowed)
	wantFrozen(t, d)
	if d.Approver != "oncall-1" || d.Note != "go on" {
		t.Errorf("approver %q, note %q", d.Approver, d.Note)
	}
	if held := must(store.Of(context.Background(), "ci"))(t); len(held) != 0 {
		t.Errorf("granted: %+v", held)
	}
	want(t, a.decide(denied), deny, protocol.DeniedByHuman) // a person's no stays a person's
	g2.stop()
}

// TestALinksAllowFallsToAFreeze that comes while the link is at work, and the
// link's chain goes no further.
func TestALinksAllowFallsToAFreeze(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"authorizerChain":["one","two"],"linkTimeout":"5s","modelDelegation":{"allowedSurfaces":["bash"]},"terminal":{"kind":"deny"}}`)
	calls := r.holdOpen()
	second := r.link("two", always("allow", ""))
	g := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make")
	got := make(chan protocol.Decision, 1)
	go func() { d, _ := a.follow(ask); got <- d }()
	c := receive(t, calls)
	r.freeze("agent ci", g)
	c.verdict("allow", "fine", "")
	wantFrozen(t, receive(t, got))
	if second.total.Load() != 0 {
		t.Error("the next link was asked")
	}
	r.settled(ask.ID)
	if n := len(r.decisions(ask.ID)); n != 1 {
		t.Errorf("%d records", n)
	}
}

func TestAFreezeStandsForAGateThatStarts(t *testing.T) {
	t.Parallel()
	r := newRig(t, plainPolicy)
	g := r.gate("g1")
	a := r.agent("ci")
	at := r.freeze("agent ci", g)
	g.stop()
	g = r.gate("g2")
	wantFrozen(t, a.decide(a.bash("git status")))
	g.stop()
	r.thaw("agent ci", at)
	r.gate("g3")
	want(t, a.decide(a.bash("git status")), allow, protocol.AllowedByRule)
}

// TestABrokenFreezeFreezes, says so, and leaves the policy as it is.
func TestABrokenFreezeFreezes(t *testing.T) {
	t.Parallel()
	r := newRig(t, plainPolicy)
	r.denying()
	g := r.gate("g1")
	a, other := r.agent("ci"), r.agent("other")
	kv := must(r.js.KeyValue(context.Background(), protocol.BucketPolicy))(t)
	for _, row := range []struct {
		key, text string
		other     protocol.Outcome
	}{
		{"freeze.agent.ci", `{"v":1,"reason":`, protocol.AllowedByRule},
		{"freeze.agent.ci", ``, protocol.AllowedByRule},
		{"freeze.team.x", `{}`, protocol.Frozen},
	} {
		at := must(kv.Put(context.Background(), row.key, []byte(row.text)))(t)
		r.confirmed(row.key, at, g)
		if d := a.decide(a.bash("git status")); d.Outcome != protocol.Frozen || !strings.Contains(d.Reason, "does not read") {
			t.Errorf("%s %q: %s (%s)", row.key, row.text, d.Outcome, d.Reason)
		}
		if d := other.decide(other.bash("git status")); d.Outcome != row.other || g.policy.current().Clamped() != "" {
			t.Errorf("%s %q: the other agent %s, clamped %q", row.key, row.text, d.Outcome, g.policy.current().Clamped())
		}
		if err := kv.Delete(context.Background(), row.key); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "thawed", func() error {
		if d := a.decide(a.bash("git status")); !d.Allowed() {
			return fmt.Errorf("%s", d.Outcome)
		}
		return nil
	})
}

// TestPolicyRevisionsAreNotMovedByFreezes: what was ruled under one revision can
// be replayed under it.
func TestPolicyRevisionsAreNotMovedByFreezes(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	revision := r.put(plainPolicy)
	g := r.gate("g1")
	a := r.agent("ci")
	r.freeze("agent nobody", g)
	if d := a.decide(a.bash("git status")); d.Policy.Revision != revision {
		t.Errorf("revision %d, want %d", d.Policy.Revision, revision)
	}
	if g.policy.of(policy.Who{}).Revision() != revision {
		t.Error("the policy's revision has moved")
	}
}

func TestAnswersToConfirm(t *testing.T) {
	t.Parallel()
	r := newRig(t, plainPolicy)
	g := r.gate("g1")
	at := r.freeze("agent ci", g)
	for _, row := range []struct {
		name, key string
		revision  uint64
		want      protocol.Code
	}{
		{"what is in force", "freeze.agent.ci", at, "none"},
		{"what was before it", "freeze.agent.ci", at - 1, "none"},
		{"what is not there yet", "freeze.agent.ci", at + 1, protocol.CodeUnavailable},
		{"another key", "freeze.all", at, protocol.CodeUnavailable},
	} {
		c, fault, err := r.confirm("g1", row.key, row.revision)
		got := protocol.Code("none")
		if fault != nil {
			got = fault.Error.Code
		}
		if err != nil || got != row.want || fault == nil && c.Revision != at {
			t.Errorf("%s: %s, %+v, %v", row.name, got, c, err)
		}
	}
	subject := must(r.Subjects.Confirm("g1"))(t)
	if f := must(protocol.Read[protocol.ErrorReply](must(r.op.Request(subject, []byte(`{"v":1}`), soon))(t).Data))(t); f.Error.Code != protocol.CodeInvalid {
		t.Errorf("without a key: %+v", f)
	}
	t.Run("not where an answer would be an attack", func(t *testing.T) {
		victim := must(r.op.SubscribeSync(must(r.Subjects.Event(protocol.NoticeReady))(t)))(t)
		body := must(protocol.Write(protocol.Confirm{Key: "freeze.agent.ci", Revision: at}))(t)
		if err := r.op.PublishMsg(&nats.Msg{Subject: subject, Reply: must(r.Subjects.Event(protocol.NoticeReady))(t), Data: body}); err != nil {
			t.Fatal(err)
		}
		r.confirmed("freeze.agent.ci", at, g) // behind it, on the same subject
		if m, err := victim.NextMsg(200 * time.Millisecond); err == nil {
			t.Errorf("answered there: %s", m.Data)
		}
	})
}

// TestTheLogNamesEachFreezeOnceAndItsEnd: whoever watches a gate is not told of the
// same stop at each change, nor left to think that one still stands.
func TestTheLogNamesEachFreezeOnceAndItsEnd(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &authority{log: slog.New(slog.NewTextHandler(&out, nil)), freezing: func(layers.Freezes) {}}
	book := layers.NewBook()
	says := func(what string, change layers.Freeze, want, never string) {
		t.Helper()
		out.Reset()
		if err := book.Take(layers.Entry{Revision: change.Revision, Freeze: &change}, nil); err != nil {
			t.Fatal(err)
		}
		a.stop(book)
		if !strings.Contains(out.String(), want) || never != "" && strings.Contains(out.String(), never) {
			t.Errorf("%s: want %q and not %q, got %q", what, want, never, out.String())
		}
	}
	ci := must(layers.Agent("ci"))(t)
	word := protocol.Freeze{Reason: incident, By: "op", At: time.Now().UTC()}
	says("one", layers.Freeze{Frozen: ci, Revision: 1, Word: word}, "FROZEN: nothing is allowed to agent ci", "err=")
	says("a second", layers.Freeze{Frozen: layers.Fleet(), Revision: 2, Word: word}, "FROZEN: nothing is allowed to the whole fleet", "agent ci")
	says("the first with another reason", layers.Freeze{Frozen: ci, Revision: 3, Word: word}, "agent ci", "the whole fleet")
	says("one that does not read", layers.Freeze{Frozen: ci, Revision: 4, Err: errors.New("no JSON")}, `err="no JSON"`, "")
	says("its end", layers.Freeze{Frozen: ci, Revision: 5, Removed: true}, "thawed: the freeze of agent ci is lifted", "FROZEN")
}
