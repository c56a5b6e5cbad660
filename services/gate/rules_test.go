package gate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/assent-dev/assent/pkg/protocol"
)

const plainPolicy = `{
  "permission": { "*": "ask", "read": "allow",
    "bash": { "*": "ask", "git status": "allow", "npm *": { "action": "deny", "reason": "Use pnpm instead" } } },
  "terminal": { "kind": "deny" }
}`

func TestRulesSettleACallAndRecordIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, plainPolicy)
	r.denying()
	g := r.gate("g1")
	a := r.agent("ci")
	for _, row := range []struct {
		name    string
		ask     protocol.Ask
		result  protocol.FinalChoice
		outcome protocol.Outcome
		reason  string
		by      protocol.DeciderKind
	}{
		{"a rule allows", a.bash("git status"), allow, protocol.AllowedByRule, "", protocol.DeciderRule},
		{"a rule denies with its reason", a.bash("npm install"), deny, protocol.DeniedByRule, "Use pnpm instead", protocol.DeciderRule},
		{"a tool is allowed", a.call("read", `{"file_path":"/repo/a.go"}`), allow, protocol.AllowedByRule, "", protocol.DeciderRule},
		{"what no rule settles asks, and nobody is there", a.bash("make release"), deny, protocol.NoApprover, "Nobody is there.", protocol.DeciderTerminal},
		{"an unknown tool asks", a.call("teleport", `{}`), deny, protocol.NoApprover, "Nobody is there.", protocol.DeciderTerminal},
		{"a deny wins over an allow beside it", a.bash("git status && npm install"), deny, protocol.DeniedByRule, "Use pnpm instead", protocol.DeciderRule},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := a.decide(row.ask)
			want(t, d, row.result, row.outcome)
			if d.Reason != row.reason || d.DecidedBy.Kind != row.by {
				t.Errorf("reason %q by %+v", d.Reason, d.DecidedBy)
			}
			if d.Policy.Revision != g.policy.current().Revision() || d.CallDigest == "" || d.Requester.User == "" {
				t.Errorf("decision does not say under what and for whom: %+v", d)
			}
			stored := r.decisions(row.ask.ID)
			if len(stored) != 1 || stored[0].Outcome != row.outcome || !stored[0].DecidedAt.Equal(d.DecidedAt) {
				t.Errorf("the record holds %+v", stored)
			}
		})
	}
}

func TestNoDecisionIsHeardThatTheStreamRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, plainPolicy)
	r.gate("g1")
	a := r.agent("ci")
	want(t, a.decide(a.bash("git status")), allow, protocol.AllowedByRule)
	r.bound(protocol.StreamDecisions, 1)
	for name, ask := range map[string]protocol.Ask{"an allow": a.bash("git status"), "a deny": a.bash("npm install")} {
		t.Run(name, func(t *testing.T) {
			d := a.decide(ask)
			want(t, d, deny, protocol.Unavailable)
			if n := len(r.decisions(ask.ID)); n != 0 {
				t.Errorf("%d records", n)
			}
			until(t, "told", func() error { return has(r.events(ask.ID), protocol.EventGateError) })
		})
	}
	t.Run("a malformed ask", func(t *testing.T) {
		id := protocol.NewAskID()
		want(t, *a.raw(id, fmt.Appendf(nil, `{"v":1,"id":%q,"agent":7}`, id)).decision, deny, protocol.Unavailable)
	})
	t.Run("and once there is room the id is still free", func(t *testing.T) {
		ask := a.bash("git status")
		want(t, a.decide(ask), deny, protocol.Unavailable)
		r.bound(protocol.StreamDecisions, -1)
		want(t, a.decide(ask), allow, protocol.AllowedByRule)
	})
}

// bound sets the most bytes of a stream.
func (r *rig) bound(stream string, bytes int64) {
	r.t.Helper()
	cfg := must(r.js.Stream(context.Background(), stream))(r.t).CachedInfo().Config
	cfg.MaxBytes = bytes
	must(r.js.UpdateStream(context.Background(), cfg))(r.t)
}

func has(events []string, event string) error {
	for _, e := range events {
		if e == event {
			return nil
		}
	}
	return fmt.Errorf("no %s in %v", event, events)
}

func TestAnOpenAskWaitsForAStreamThatRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, plainPolicy)
	r.denying()
	g := r.gate("g1")
	a := r.agent("ci")
	r.bound(protocol.StreamDecisions, 1)
	ask := a.bash("make")
	if h := a.once(ask); h.progress == nil {
		t.Fatalf("want Progress, got %+v", h.decision)
	}
	// The gate goes on trying, once a lease and not once a turn of the wheel.
	until(t, "tried again", func() error {
		if n := r.count(ask.ID, protocol.EventGateError); n < 2 {
			return fmt.Errorf("%d failures", n)
		}
		return nil
	})
	if n := r.count(ask.ID, protocol.EventGateError); n > 4 {
		t.Errorf("%d failures within two leases: the gate hammers the stream", n)
	}
	r.bound(protocol.StreamDecisions, -1)
	want(t, a.decide(ask), deny, protocol.NoApprover)
	r.settled(ask.ID)
	if g.mirror.due(time.Now()) != nil {
		t.Error("something is still due")
	}
}

func TestTheSameIdGivesTheSameDecision(t *testing.T) {
	t.Parallel()
	r := newRig(t, plainPolicy)
	r.denying()
	g1, g2 := r.gate("g1"), r.gate("g2")
	a, b := r.agent("ci"), r.agent("other")

	t.Run("again, though the policy has changed", func(t *testing.T) {
		ask := a.bash("git status")
		first := a.decide(ask)
		rev := r.put(`{"permission":{"*":"deny"}}`)
		g1.inForce(rev)
		g2.inForce(rev)
		again := a.decide(ask)
		want(t, again, allow, protocol.AllowedByRule)
		if !again.DecidedAt.Equal(first.DecidedAt) || again.Gate != first.Gate {
			t.Error("a second decision was made")
		}
		rev = r.put(plainPolicy)
		g1.inForce(rev)
		g2.inForce(rev)
	})
	t.Run("again, though it would be open now", func(t *testing.T) {
		ask := a.bash("make")
		first := a.decide(ask)
		want(t, first, deny, protocol.NoApprover)
		again := a.decide(ask)
		if !again.DecidedAt.Equal(first.DecidedAt) || len(r.decisions(ask.ID)) != 1 {
			t.Error("a second decision was made")
		}
		r.settled(ask.ID)
	})
	t.Run("another call under it is a conflict and learns nothing", func(t *testing.T) {
		ask := a.bash("git status")
		a.decide(ask)
		other := a.bash("cat SECRETWORD")
		other.ID = ask.ID
		learnsNothing(t, a.once(other), "git status")
	})
	t.Run("another agent under it is a conflict and learns nothing", func(t *testing.T) {
		ask := a.bash("git status")
		a.decide(ask)
		other := b.bash("git status")
		other.ID = ask.ID
		learnsNothing(t, b.once(other), "ci")
	})
}

func learnsNothing(t *testing.T, h heard, secret string) {
	t.Helper()
	if h.fault == nil || h.fault.Error.Code != protocol.CodeConflict {
		t.Fatalf("want a conflict, got %+v", h)
	}
	if text := h.fault.Error.Error(); strings.Contains(text, secret) || strings.Contains(text, "allow") {
		t.Errorf("the conflict tells of the first call: %q", text)
	}
}

func TestWhatIsNoAskIsDenied(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"allow"}}`)
	r.gate("g1")
	a, b := r.agent("ci"), r.agent("other")
	idAt := func(at time.Time) string { return ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy()).String() }
	good := string(must(protocol.Write(a.bash("git status")))(t))
	withID := func(id, body string) []byte {
		at := strings.Index(body, `"id":"`) + len(`"id":"`)
		return []byte(body[:at] + id + body[at+26:])
	}
	decided := map[string]struct {
		id   string
		body func(id string) []byte
	}{
		"a wrong type":    {protocol.NewAskID(), func(id string) []byte { return fmt.Appendf(nil, `{"v":1,"id":%q,"agent":["ci"]}`, id) }},
		"a duplicate key": {protocol.NewAskID(), func(id string) []byte { return append(withID(id, good)[:len(good)-1], `,"agent":"ci"}`...) }},
		"an unknown source": {protocol.NewAskID(), func(id string) []byte {
			return []byte(strings.Replace(string(withID(id, good)), "tool_call", "dream", 1))
		}},
		"invalid UTF-8": {protocol.NewAskID(), func(id string) []byte {
			return []byte(strings.Replace(string(withID(id, good)), "linux", "li\xffux", 1))
		}},
		"another's name in it": {protocol.NewAskID(), func(id string) []byte {
			return []byte(strings.Replace(string(withID(id, good)), `"agent":"ci"`, `"agent":"other"`, 1))
		}},
		"an id of last week": {idAt(time.Now().Add(-7 * 24 * time.Hour)), func(id string) []byte { return withID(id, good) }},
		"an id of next week": {idAt(time.Now().Add(7 * 24 * time.Hour)), func(id string) []byte { return withID(id, good) }},
		"no input": {protocol.NewAskID(), func(id string) []byte {
			return []byte(strings.Replace(string(withID(id, good)), `{"command":"git status"}`, `7`, 1))
		}},
	}
	for name, row := range decided {
		t.Run(name+" is recorded as invalid", func(t *testing.T) {
			h := a.raw(row.id, row.body(row.id))
			if h.decision == nil {
				t.Fatalf("want a decision, got %+v", h)
			}
			want(t, *h.decision, deny, protocol.Invalid)
			if stored := r.decisions(row.id); len(stored) != 1 || stored[0].Outcome != protocol.Invalid {
				t.Errorf("record: %+v", stored)
			}
			again := a.raw(row.id, row.body(row.id))
			if again.decision == nil || !again.decision.DecidedAt.Equal(h.decision.DecidedAt) {
				t.Errorf("the same again: %+v", again)
			}
		})
	}
	unread := map[string]struct {
		body string
		code protocol.Code
	}{
		"junk":             {"%%%", protocol.CodeInvalid},
		"nothing":          {"", protocol.CodeInvalid},
		"no id":            {`{"v":1,"agent":"ci"}`, protocol.CodeInvalid},
		"two ids":          {`{"v":1,"id":"` + protocol.NewAskID() + `","id":"` + protocol.NewAskID() + `"}`, protocol.CodeInvalid},
		"too much":         {`{"v":1,"x":"` + strings.Repeat("a", protocol.DefaultMaxBytes) + `"}`, protocol.CodeTooLarge},
		"a list of itself": {strings.Repeat("[", 5000), protocol.CodeInvalid},
	}
	for name, row := range unread {
		t.Run(name+" gets an error reply", func(t *testing.T) {
			h := a.raw("", []byte(row.body))
			if h.fault == nil || h.fault.Error.Code != row.code || h.fault.Ask != "" || h.fault.Error.Remedy == "" {
				t.Errorf("got %+v", h)
			}
		})
	}
	t.Run("an ask a little old or new is taken", func(t *testing.T) {
		for _, at := range []time.Duration{-23 * time.Hour, 23 * time.Hour} {
			id := idAt(time.Now().Add(at))
			want(t, *a.raw(id, withID(id, good)).decision, allow, protocol.AllowedByRule)
		}
	})
	t.Run("too much under an id is recorded", func(t *testing.T) {
		ask := a.bash(strings.Repeat("a", 100))
		body := strings.Replace(string(must(protocol.Write(ask))(t)), `"platform"`, `"x":"`+strings.Repeat("b", protocol.DefaultMaxBytes)+`","platform"`, 1)
		want(t, *a.raw(ask.ID, []byte(body)).decision, deny, protocol.Invalid)
	})
	t.Run("under an id that was decided it is a conflict", func(t *testing.T) {
		ask := a.bash("git status")
		a.decide(ask)
		learnsNothing(t, b.raw(ask.ID, fmt.Appendf(nil, `{"v":1,"id":%q}`, ask.ID)), "git status")
		if len(r.decisions(ask.ID)) != 1 {
			t.Error("a second record")
		}
	})
}

func TestAMalformedAskUnderAnothersPendingIdIsAConflict(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"terminal":{"kind":"human"}}`)
	r.person()
	r.gate("g1")
	a, b := r.agent("ci"), r.agent("other")
	ask := a.bash("make")
	a.pend(ask)
	learnsNothing(t, b.raw(ask.ID, fmt.Appendf(nil, `{"v":1,"id":%q}`, ask.ID)), "make")
	other := b.bash("make")
	other.ID = ask.ID
	learnsNothing(t, b.once(other), "make")
	if n := len(r.decisions(ask.ID)); n != 0 {
		t.Fatalf("%d decisions on an open ask", n)
	}
	r.answer(ask.ID, yes())
	want(t, a.decide(ask), allow, protocol.AllowedByHuman)
}

// A gate whose mirror is behind may record a malformed ask under the id of an
// open one. The open one then ends, undecided and unallowed, and not in a loop.
func TestAnOpenAskWhoseIdIsTakenEndsAsAConflict(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask"},"terminal":{"kind":"human"}}`)
	r.person()
	g := r.gate("g1")
	a := r.agent("ci")
	ask := a.bash("make")
	a.pend(ask)
	taken := g.refuse(call{ask: protocol.Ask{ID: ask.ID, Agent: "other"}, digest: "raw:x", askedAt: time.Now()}, protocol.Invalid, "broken")
	if _, err := g.record(context.Background(), taken); err != nil {
		t.Fatal(err)
	}
	got := make(chan heard, 1)
	go func() {
		h, err := a.try(ask.ID, must(protocol.Write(ask))(t))
		if err != nil {
			t.Error(err)
		}
		got <- h
	}()
	r.answer(ask.ID, yes())
	learnsNothing(t, <-got, "raw:x")
	r.settled(ask.ID)
	learnsNothing(t, a.once(ask), "raw:x")
	until(t, "told", func() error { return has(r.events(ask.ID), protocol.EventGateError) })
	if n := r.count(ask.ID, protocol.EventRequestApproved); n != 0 {
		t.Error("an approval was told that is none")
	}
}
