package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

const upward = `{"permission":{"*":"ask","bash":{"*":"ask","rm *":{"action":"deny","reason":"Never."},"deploy *":{"action":"ask","humanOnly":true}}},
	"authorizerChain":["l1"],"modelDelegation":{"allowedSurfaces":["*"]},"terminal":{"kind":"auto"}}`

// hasParent lets terminal t say, again and again until the test is over or leave
// is called, that the node has a parent, and waits until each of gates has heard it.
func (r *rig) hasParent(node string, gates ...*served) (leave func()) {
	r.t.Helper()
	body := must(protocol.Write(protocol.ParentSign{Parent: node, Answers: true}))(r.t)
	leave = r.signs(protocol.PresenceParent+"t", body)
	for _, g := range gates {
		until(r.t, "parent known", func() error {
			if got := g.presence.parent(time.Now()); got != node {
				return fmt.Errorf("parent %q, want %q", got, node)
			}
			return nil
		})
	}
	return leave
}

// signs keeps key in ASSENT_PRESENCE alive, as its holder does: a subtest may get its
// turn on a busy machine when a single sign would have lapsed.
func (r *rig) signs(key string, body []byte) (leave func()) {
	r.t.Helper()
	presence := must(r.js.KeyValue(context.Background(), protocol.BucketPresence))(r.t)
	must(presence.Put(context.Background(), key, body))(r.t)
	left, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		again := time.NewTicker(presenceTime / 6)
		defer again.Stop()
		for {
			select {
			case <-left:
				return
			case <-again.C:
				_, _ = presence.Put(context.Background(), key, body) // a sign missed is made good by the next
			}
		}
	}()
	stop := sync.OnceFunc(func() { close(left); <-done })
	r.t.Cleanup(stop)
	return func() {
		stop()
		if err := presence.Delete(context.Background(), key); err != nil {
			r.t.Fatal(err)
		}
	}
}

// above is a scripted terminal that relays, and what it was asked to take back.
type above struct {
	*script
	back book[bool]
}

// relays serves the terminal of kind parent; each answer is a book's, by ask id,
// and Progress where it has none.
func (r *rig) relays(answers *book[string]) *above {
	a := &above{}
	a.script = r.terminal(protocol.TerminalParent, func(q protocol.TerminalRequest) string {
		if q.Withdraw {
			a.back.put(q.Ask.ID, true)
			return fmt.Sprintf(`{"v":1,"ask":%q,"cancelled":true}`, q.Ask.ID)
		}
		if v, ok := answers.m.Load(q.Ask.ID); ok {
			return v.(string)
		}
		return progressFor(q.Ask.ID)
	})
	return a
}

func (a *above) tookBack(t testing.TB, id string) {
	t.Helper()
	until(t, "taken back", func() error {
		if _, ok := a.back.m.Load(id); !ok {
			return errors.New("the parent has not heard of it")
		}
		return nil
	})
}

// said is a parent's verdict on the wire.
func (r *rig) said(id string, change func(*protocol.TerminalVerdict)) string {
	v := protocol.TerminalVerdict{Ask: id, Verdict: allow, Outcome: protocol.AllowedByHuman, Approver: "boss",
		Parent: &protocol.ParentWord{Node: "mid", DecidedBy: protocol.Decider{Kind: protocol.DeciderHuman, Name: "boss", Node: "root"},
			Trail: []protocol.TrailEntry{{Node: "root", Verdict: protocol.ChoiceAllow}, {Link: "judge", Node: "root", Verdict: protocol.ChoiceDefer}}}}
	change(&v)
	return string(must(protocol.Write(v))(r.t))
}

func TestTheParentDecidesOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, upward)
	link := r.link("l1", always("allow", ""))
	var answers book[string]
	parent := r.relays(&answers)
	g := r.gate("g1")
	r.hasParent("mid", g)
	a := r.agent("ci")
	for name, row := range map[string]struct {
		command string
		say     func(*protocol.TerminalVerdict)
		result  protocol.FinalChoice
		outcome protocol.Outcome
	}{
		"a person allows":                {"make", func(*protocol.TerminalVerdict) {}, allow, protocol.AllowedByHuman},
		"a rule allows":                  {"make", func(v *protocol.TerminalVerdict) { v.Outcome, v.Approver = protocol.AllowedByRule, "" }, allow, protocol.AllowedByRule},
		"a person allows something else": {"make", func(v *protocol.TerminalVerdict) { v.EditedInput = jsontext.Value(`{"command":"make test"}`) }, allow, protocol.AllowedByHuman},
		"a person, where one is needed":  {"deploy x", func(*protocol.TerminalVerdict) {}, allow, protocol.AllowedByHuman},
		"a person denies": {"make", func(v *protocol.TerminalVerdict) {
			v.Verdict, v.Outcome, v.Note, v.Abort = deny, protocol.DeniedByHuman, "stop", true
		}, deny, protocol.DeniedByHuman},
		"a rule denies":   {"make", func(v *protocol.TerminalVerdict) { v.Verdict, v.Outcome, v.Approver = deny, protocol.DeniedByRule, "" }, deny, protocol.DeniedByRule},
		"nobody is there": {"make", func(v *protocol.TerminalVerdict) { v.Verdict, v.Outcome, v.Approver = deny, protocol.NoApprover, "" }, deny, protocol.NoApprover},
		"nobody in time":  {"make", func(v *protocol.TerminalVerdict) { v.Verdict, v.Outcome, v.Approver = deny, protocol.Expired, "" }, deny, protocol.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			ask := a.bash(row.command)
			answers.put(ask.ID, r.said(ask.ID, row.say))
			d := a.decide(ask)
			want(t, d, row.result, row.outcome)
			if d.DecidedBy != (protocol.Decider{Kind: protocol.DeciderParent, Name: "boss", Node: "root"}) {
				t.Errorf("by %+v", d.DecidedBy)
			}
			if d.Origin != "parent:root" {
				t.Errorf("origin %q", d.Origin)
			}
			if way := hops(d); way != "mid root root/judge" {
				t.Errorf("the way was %q", way)
			}
			if row.outcome == protocol.DeniedByHuman && (!d.Abort || d.Note != "stop" || d.Approver != "boss") {
				t.Errorf("abort %v, note %q, approver %q", d.Abort, d.Note, d.Approver)
			}
			r.settled(ask.ID)
			if got := r.events(ask.ID); !slices.Contains(got, protocol.EventChainDelegated) || !slices.Contains(got, protocol.EventForwardCreated) || slices.Contains(got, protocol.EventChainResolved) {
				t.Errorf("events %v", got)
			}
			if _, back := parent.back.m.Load(ask.ID); back {
				t.Error("what the parent has decided was taken back")
			}
		})
	}
	if n := link.total.Load(); n != 0 {
		t.Errorf("a link of this node was asked %d times", n)
	}
}

// hops is the way of a decision: the nodes and links of its trail.
func hops(d protocol.Decision) string {
	var way []string
	for _, e := range d.Trail {
		way = append(way, strings.TrimSuffix(e.Node+"/"+e.Link, "/"))
	}
	return strings.Join(way, " ")
}

func TestWhatIsNoAllowOfTheParentDenies(t *testing.T) {
	t.Parallel()
	r := newRig(t, upward)
	var answers book[string]
	parent := r.relays(&answers)
	g := r.gate("g1")
	r.hasParent("mid", g)
	a := r.agent("ci")
	for name, row := range map[string]struct {
		command string
		outcome protocol.Outcome
		reply   func(id string) string
	}{
		"who decided is not said": {"make", protocol.Unavailable, func(id string) string {
			return r.said(id, func(v *protocol.TerminalVerdict) { v.Parent = nil })
		}},
		"a person without a name": {"make", protocol.Unavailable, func(id string) string {
			return r.said(id, func(v *protocol.TerminalVerdict) { v.Approver = "" })
		}},
		"a rule, where only a person may": {"deploy x", protocol.Unavailable, func(id string) string {
			return r.said(id, func(v *protocol.TerminalVerdict) { v.Outcome, v.Approver = protocol.AllowedByRule, "" })
		}},
		"yolo, where only a person may": {"deploy x", protocol.Unavailable, func(id string) string {
			return r.said(id, func(v *protocol.TerminalVerdict) { v.Outcome = protocol.AllowedByYolo })
		}},
		"a grant, where only a person may": {"deploy x", protocol.Unavailable, func(id string) string {
			return r.said(id, func(v *protocol.TerminalVerdict) { v.Outcome = protocol.AllowedByGrant })
		}},
		"a change into what is never allowed here": {"make", protocol.DeniedByRule, func(id string) string {
			return r.said(id, func(v *protocol.TerminalVerdict) { v.EditedInput = jsontext.Value(`{"command":"rm -rf x"}`) })
		}},
		"defer": {"make", protocol.Unavailable, func(id string) string { return fmt.Sprintf(`{"v":1,"ask":%q,"verdict":"defer"}`, id) }},
		"junk":  {"make", protocol.Unavailable, func(string) string { return "%%%" }},
		"another ask's": {"make", protocol.Unavailable, func(string) string {
			return r.said(protocol.NewAskID(), func(*protocol.TerminalVerdict) {})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := a.bash(row.command)
			answers.put(ask.ID, row.reply(ask.ID))
			want(t, a.decide(ask), deny, row.outcome)
			if parent.times(ask.ID) == 0 {
				t.Error("the parent was not asked")
			}
		})
	}
}

func TestADenyHereWinsOverTheParentsAllow(t *testing.T) {
	t.Parallel()
	r := newRig(t, upward)
	var answers book[string]
	parent := r.relays(&answers)
	g := r.gate("g1")
	r.hasParent("mid", g)
	a := r.agent("ci")
	ask := a.bash("make")
	if h := a.once(ask); h.progress == nil || h.progress.Stage != "terminal:parent" {
		t.Fatalf("got %+v", h)
	}
	g.inForce(r.put(strings.Replace(upward, `"rm *"`, `"make":"deny","rm *"`, 1)))
	answers.put(ask.ID, r.said(ask.ID, func(*protocol.TerminalVerdict) {}))
	d := a.decide(ask)
	want(t, d, deny, protocol.DeniedByRule)
	if d.DecidedBy.Kind != protocol.DeciderRule || d.DecidedBy.Node != "main" || d.Approver != "boss" || hops(d) == "" {
		t.Errorf("by %+v, approver %q, way %q", d.DecidedBy, d.Approver, hops(d))
	}
	if parent.times(ask.ID) < 2 {
		t.Error("the parent was not asked again")
	}
}

func TestASilentParentIsNoRefusal(t *testing.T) {
	t.Parallel()
	r := newRig(t, upward)
	var away atomic.Bool
	parent := &script{asked: map[string]int{}}
	gone := protocol.Fault{Code: protocol.CodeUnavailable, Message: "parent node mid is not there"}
	must(r.term.Subscribe(must(r.Subjects.Terminal("parent"))(t), func(m *nats.Msg) {
		q := must(protocol.Read[protocol.TerminalRequest](m.Data))(t)
		parent.note(q.Ask.ID)
		if away.Load() {
			_ = bus.ReplyFault(r.term, m, q.Ask.ID, gone)
			return
		}
		_ = m.Respond([]byte(progressFor(q.Ask.ID)))
	}))(t)
	flush(t, r.term)
	g := r.gate("g1")
	r.hasParent("mid", g)
	a := r.agent("ci")
	t.Run("from the beginning", func(t *testing.T) {
		away.Store(true)
		ask := a.bash("make")
		began := time.Now()
		d := a.decide(ask)
		want(t, d, deny, protocol.Unavailable)
		if took := time.Since(began); took < quick.parent/2 || took > quick.parent+2*time.Second {
			t.Errorf("given up after %s", took)
		}
		if !strings.Contains(d.Reason, "Nobody has refused") || !strings.Contains(d.Reason, "mid") {
			t.Errorf("reason %q", d.Reason)
		}
		r.settled(ask.ID)
		if n := r.count(ask.ID, protocol.EventGateError); n != 1 {
			t.Errorf("recorded %d times: %v", n, r.events(ask.ID))
		}
	})
	t.Run("while it had a person look", func(t *testing.T) {
		away.Store(false)
		ask := a.bash("make")
		if h := a.once(ask); h.progress == nil {
			t.Fatalf("got %+v", h)
		}
		until(t, "asked again", func() error {
			if parent.times(ask.ID) < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		away.Store(true)
		want(t, a.decide(ask), deny, protocol.Unavailable)
	})
	t.Run("for a moment alone", func(t *testing.T) {
		ask := a.bash("make")
		time.AfterFunc(quick.parent/2, func() { away.Store(false) })
		if h := a.once(ask); h.progress == nil {
			t.Fatalf("got %+v", h)
		}
		n := parent.times(ask.ID)
		until(t, "heard again", func() error {
			if parent.times(ask.ID) < n+20 {
				return errors.New("not yet")
			}
			return nil
		})
		if got := a.once(ask); got.progress == nil {
			t.Errorf("got %+v", got)
		}
	})
}

func TestAParentThatNeverTakesAnAskSaysWhy(t *testing.T) {
	t.Parallel()
	r := newRig(t, upward)
	loop := protocol.Fault{Code: protocol.CodeInvalid, Message: "the nodes' parents make a loop: main → mid → main"}
	must(r.term.Subscribe(must(r.Subjects.Terminal("parent"))(t), func(m *nats.Msg) {
		_ = bus.ReplyFault(r.term, m, protocol.PeekAskID(m.Data, "ask"), loop)
	}))(t)
	flush(t, r.term)
	g := r.gate("g1")
	r.hasParent("mid", g)
	a := r.agent("ci")
	began := time.Now()
	d := a.decide(a.bash("make"))
	want(t, d, deny, protocol.Unavailable)
	if !strings.Contains(d.Reason, "main → mid → main") || time.Since(began) > quick.parent {
		t.Errorf("after %s: %q", time.Since(began), d.Reason)
	}
}

func TestAnotherGateGoesOnAskingTheParent(t *testing.T) {
	t.Parallel()
	r := newRig(t, upward)
	var answers book[string]
	parent := r.relays(&answers)
	g1 := r.gate("g1")
	r.hasParent("mid", g1)
	a := r.agent("ci")
	ask := a.bash("make")
	if h := a.once(ask); h.progress == nil {
		t.Fatalf("got %+v", h)
	}
	r.gate("g2")
	g1.kill()
	until(t, "taken over", func() error {
		item, err := r.open.Get(context.Background(), ask.ID)
		if err == nil && item.Owner != "g2" {
			err = fmt.Errorf("owner %q", item.Owner)
		}
		return err
	})
	n := parent.times(ask.ID)
	until(t, "asked on", func() error {
		if parent.times(ask.ID) == n {
			return errors.New("not asked")
		}
		return nil
	})
	answers.put(ask.ID, r.said(ask.ID, func(*protocol.TerminalVerdict) {}))
	d := a.decide(ask)
	want(t, d, allow, protocol.AllowedByHuman)
	if d.Gate != "g2" || len(r.decisions(ask.ID)) != 1 || r.count(ask.ID, protocol.EventForwardCreated) != 1 {
		t.Errorf("gate %s, events %v", d.Gate, r.events(ask.ID))
	}
}

func TestWhatEndsOtherwiseIsTakenBackFromTheParent(t *testing.T) {
	t.Parallel()
	r := newRig(t, upward)
	var answers book[string]
	parent := r.relays(&answers)
	g := r.gate("g1")
	r.hasParent("mid", g)
	a := r.agent("ci")
	t.Run("cancelled", func(t *testing.T) {
		ask := a.bash("make")
		if h := a.once(ask); h.progress == nil {
			t.Fatalf("got %+v", h)
		}
		if !a.cancel(ask.ID).Cancelled {
			t.Fatal("not cancelled")
		}
		want(t, a.decide(ask), deny, protocol.Cancelled)
		parent.tookBack(t, ask.ID)
	})
	t.Run("expired", func(t *testing.T) {
		ask := a.bash("make")
		ask.MaxWaitMS = 700
		want(t, a.decide(ask), deny, protocol.Expired)
		parent.tookBack(t, ask.ID)
	})
}

// The gate that relayed it died, and by the rules of now nobody need be asked.
func TestWhatARuleOfNowDecidesIsTakenBackFromTheParent(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		action  string
		result  protocol.FinalChoice
		outcome protocol.Outcome
	}{
		"a deny":   {"deny", deny, protocol.DeniedByRule},
		"an allow": {"allow", allow, protocol.AllowedByRule},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, upward)
			var answers book[string]
			parent := r.relays(&answers)
			g := r.gate("g1")
			r.hasParent("mid", g)
			a := r.agent("ci")
			ask := a.bash("make")
			if h := a.once(ask); h.progress == nil {
				t.Fatalf("got %+v", h)
			}
			g.kill()
			r.put(strings.Replace(upward, `"bash":{"*":"ask"`, `"bash":{"*":"`+row.action+`"`, 1))
			r.gate("g2")
			want(t, r.ended(ask.ID), row.result, row.outcome)
			parent.tookBack(t, ask.ID)
		})
	}
}

// A limit of the parent counts all agents below a child together: when they begin
// to work at one moment, the parent looks at some of their asks a little later.
func TestAParentThatIsOverALimitIsAskedOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, upward)
	var answers book[string]
	parent := r.relays(&answers)
	g := r.newGate("g1", r.Connect(t, protocol.RoleGate, "g1"))
	g.times.parent = 3 * time.Second
	g.start()
	r.hasParent("mid", g)
	a := r.agent("ci")
	limited := func(id string) string {
		return r.said(id, func(v *protocol.TerminalVerdict) {
			v.Verdict, v.Outcome, v.Approver, v.Reason = deny, protocol.RateLimited, "", "over its limit"
			v.Parent.DecidedBy = protocol.Decider{Kind: protocol.DeciderGate, Node: "mid"}
		})
	}
	soonFree, stays := a.bash("make"), a.bash("make all")
	answers.put(soonFree.ID, limited(soonFree.ID))
	answers.put(stays.ID, limited(stays.ID))
	if h := a.once(soonFree); h.progress == nil {
		t.Fatalf("got %+v", h)
	}
	answers.put(soonFree.ID, r.said(soonFree.ID, func(*protocol.TerminalVerdict) {}))
	want(t, a.decide(soonFree), allow, protocol.AllowedByHuman)
	d := a.decide(stays)
	want(t, d, deny, protocol.RateLimited)
	if d.Reason != "over its limit" || d.DecidedAt.Sub(d.AskedAt) < g.times.parent {
		t.Errorf("after %s: %q", d.DecidedAt.Sub(d.AskedAt), d.Reason)
	}
	if n := parent.times(stays.ID); n < 3 {
		t.Errorf("asked %d times", n)
	}
}

// The request that relays an ask is overtaken by the word that takes it back.
func TestAnAskThatReachesTheParentLateIsTakenBackAllTheSame(t *testing.T) {
	t.Parallel()
	r := newRig(t, upward)
	known := make(chan struct{}) // at the parent, from when it is closed on
	words := make(chan bool, 64)
	r.terminal(protocol.TerminalParent, func(q protocol.TerminalRequest) string {
		if !q.Withdraw {
			return progressFor(q.Ask.ID)
		}
		select {
		case <-known:
			words <- true
			return fmt.Sprintf(`{"v":1,"ask":%q,"cancelled":true}`, q.Ask.ID)
		default:
			words <- false
			return fmt.Sprintf(`{"v":1,"ask":%q,"cancelled":false}`, q.Ask.ID)
		}
	})
	g := r.gate("g1")
	r.hasParent("mid", g)
	a := r.agent("ci")
	ask := a.bash("make")
	if h := a.once(ask); h.progress == nil {
		t.Fatalf("got %+v", h)
	}
	if !a.cancel(ask.ID).Cancelled {
		t.Fatal("not withdrawn")
	}
	if receive(t, words) {
		t.Fatal("known too early")
	}
	close(known)
	for !receive(t, words) {
	}
	until(t, "and no more is said", func() error { return g.isEmpty() })
}
