package layers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/layers"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

func word(reason string) protocol.Freeze {
	return protocol.Freeze{Reason: reason, By: "op", At: time.Now().UTC()}
}

func frozen(t *testing.T, kind, name string) layers.Frozen {
	t.Helper()
	switch kind {
	case "agent":
		return must(layers.Agent(name))(t)
	case "session":
		return must(layers.Session(name))(t)
	}
	return layers.Fleet()
}

// TestFreezesStopWhomTheyName and nobody else.
func TestFreezesStopWhomTheyName(t *testing.T) {
	t.Parallel()
	const odd = "s 1/ü.*>"
	for _, row := range []struct {
		name       string
		kind, who  string
		agent, via string
		session    protocol.Session
		want       bool
	}{
		{"the fleet stops any agent", "all", "", "ci", "", protocol.Session{}, true},
		{"the fleet stops what a child relays", "all", "", "ci", "child", protocol.Session{ID: "s"}, true},
		{"an agent is stopped", "agent", "ci", "ci", "", protocol.Session{ID: "s"}, true},
		{"a child node is stopped under its name", "agent", "child", "ci", "child", protocol.Session{}, true},
		{"a session is stopped", "session", "s1", "ci", "", protocol.Session{ID: "s1"}, true},
		{"a child of a session is stopped", "session", "s1", "ci", "", protocol.Session{ID: "s3", Parent: "s1", Root: "s0"}, true},
		{"all below a root are stopped", "session", "s0", "ci", "", protocol.Session{ID: "s3", Parent: "s1", Root: "s0"}, true},
		{"a session with any characters", "session", odd, "ci", "", protocol.Session{ID: odd}, true},

		{"another agent goes on", "agent", "ci", "ci2", "", protocol.Session{ID: "ci"}, false},
		{"an agent in other letters goes on", "agent", "ci", "CI", "", protocol.Session{}, false},
		{"an agent of that name below a child goes on", "agent", "ci", "ci", "child", protocol.Session{}, false},
		{"an agent called as a session goes on", "session", "ci", "ci", "", protocol.Session{}, false},
		{"another session goes on", "session", "s1", "ci", "", protocol.Session{ID: "s2"}, false},
		{"the parent of a session goes on", "session", "s3", "ci", "", protocol.Session{ID: "s1", Root: "s0"}, false},
		{"a call without a session goes on", "session", "s1", "ci", "", protocol.Session{}, false},
		{"nobody is stopped by nothing", "", "", "ci", "", protocol.Session{ID: "s1"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var f layers.Freezes
			if row.kind != "" {
				f = f.With(layers.Freeze{Frozen: frozen(t, row.kind, row.who), Revision: 1, Word: word("stop")})
			}
			one, got := f.Of(row.agent, row.via, row.session)
			if got != row.want {
				t.Fatalf("stopped: %v (%s)", got, one.Line())
			}
			if !got {
				return
			}
			if _, still := f.With(layers.Freeze{Frozen: one.Frozen, Revision: 2, Removed: true}).Of(row.agent, row.via, row.session); still {
				t.Error("stopped after it was lifted")
			}
		})
	}
}

// TestWhatIsNoFreezeStopsAllTheSame: nobody can tell whom a broken key meant, and
// a broken value stands under a name.
func TestWhatIsNoFreezeStopsAllTheSame(t *testing.T) {
	t.Parallel()
	good := string(must(protocol.Write(word("stop")))(t))
	for _, row := range []struct {
		name, key, text string
		ci, other       bool // stopped
		broken          bool
	}{
		{"a value cut off, of an agent", "freeze.agent.ci", good[:9], true, false, true},
		{"an empty value, of an agent", "freeze.agent.ci", "", true, false, true},
		{"a later version, of an agent", "freeze.agent.ci", `{"v":2}`, true, false, true},
		{"no reason, of the fleet", "freeze.all", `{"v":1,"reason":"","by":"op","at":"2030-01-01T00:00:00Z"}`, true, true, true},
		{"a word that is no scope", "freeze.team.ci", good, true, true, true},
		{"no scope", "freeze.x", good, true, true, true},
		{"more behind the fleet", "freeze.all.ci", good, true, true, true},
		{"an agent that is no name", "freeze.agent.a=b", good, true, true, true},
		{"a session that is no base64", "freeze.session.czE=", good, true, true, true},
		{"a whole one, of an agent", "freeze.agent.ci", good, true, false, false},
		{"a whole one, of the fleet", "freeze.all", good, true, true, false},
		{"a layer", "agent.ci", `{}`, false, false, false},
		{"a layer called as a freeze", "agent.freeze", `{}`, false, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var f layers.Freezes
			if one, ok := layers.ReadFreeze(row.key, []byte(row.text), 3); ok {
				f = f.With(one)
				if one.Key() != row.key || (one.Err != nil) != row.broken || one.Reason() == "" || f.Revision(row.key) != 3 {
					t.Errorf("read as %q, %v, revision %d", one.Key(), one.Err, f.Revision(row.key))
				}
			}
			_, ci := f.Of("ci", "", protocol.Session{})
			_, other := f.Of("other", "", protocol.Session{})
			if ci != row.ci || other != row.other {
				t.Errorf("stopped: ci %v, other %v", ci, other)
			}
		})
	}
}

func TestAFreezeIsStoredAndLiftedByCompareAndSet(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s := store(t)
	put(t, s, "fleet", `{}`)
	for _, who := range []layers.Frozen{layers.Fleet(), frozen(t, "agent", "ci"), frozen(t, "session", "s 1/ü.*>")} {
		t.Run(who.String(), func(t *testing.T) {
			first := must(s.Freeze(ctx, who, word("one")))(t)
			over := must(s.Freezes(ctx))(t).Standing()
			i := slices.IndexFunc(over, func(f layers.Freeze) bool { return f.Frozen == who })
			if i < 0 || over[i].Revision != first || over[i].Word.Reason != "one" || over[i].Err != nil {
				t.Fatalf("stored %+v", over)
			}
			second := must(s.Freeze(ctx, who, word("two")))(t) // said again, with another reason
			if _, err := s.Thaw(ctx, over[i]); !errors.Is(err, layers.ErrOvertaken) {
				t.Errorf("an old revision lifted: %v", err)
			}
			over[i].Revision = second
			end := must(s.Thaw(ctx, over[i]))(t)
			now := must(s.Freezes(ctx))(t)
			if end <= second || now.Revision(who.Key()) != end || len(now.Standing()) != 0 {
				t.Errorf("lifted at %d, known at %d, standing %v", end, now.Revision(who.Key()), now.Standing())
			}
			must(s.Freeze(ctx, who, word("three")))(t) // and anew
			now = must(s.Freezes(ctx))(t)
			if _, err := s.Thaw(ctx, now.Standing()[0]); err != nil {
				t.Error(err)
			}
		})
	}
	for _, bad := range []protocol.Freeze{{Reason: "", By: "op", At: time.Now()}, {Reason: strings.Repeat("x", protocol.MaxReason+1), By: "op", At: time.Now()}, {Reason: "x", At: time.Now()}} {
		if _, err := s.Freeze(ctx, layers.Fleet(), bad); !protocol.IsRefusal(err) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for _, name := range []string{"", "a b", "a.b", "*", strings.Repeat("a", 65)} {
		if _, err := layers.Agent(name); !errors.Is(err, layers.ErrFrozenNobody) {
			t.Errorf("agent %q: %v", name, err)
		}
	}
}

// TestAFreezeIsNoLayer: it neither shows among layers nor breaks the policy nor
// moves its revision.
func TestAFreezeIsNoLayer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s := store(t)
	at := put(t, s, "fleet", `{"permission":{"bash":"allow"}}`)
	put(t, s, "freeze.agent.ci", `{`)
	must(s.Freeze(ctx, layers.Fleet(), word("stop")))(t)
	book, known := layers.NewBook(), make(chan struct{})
	watch, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		<-known
		stop()
	}()
	err := s.Watch(watch, func(e layers.Entry) error {
		return book.Take(e, func(e layers.Entry) (*policy.Document, error) { return s.LastGood(ctx, e) })
	}, func() { close(known) })
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if set := book.Set(); set.Clamped() != "" || set.Revision() != at || len(book.Layers()) != 1 || len(book.Broken()) != 0 {
		t.Errorf("clamped %q, revision %d, layers %v", set.Clamped(), set.Revision(), book.Layers())
	}
	if n := len(book.Freezes().Standing()); n != 2 {
		t.Errorf("%d freezes", n)
	}
	if n, h := len(must(s.Newest(ctx))(t)), len(must(s.History(ctx))(t)); n != 1 || h != 1 {
		t.Errorf("%d layers, %d revisions", n, h)
	}
}
