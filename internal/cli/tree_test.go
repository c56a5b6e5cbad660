package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	asksAll   = `{"permission":{"*":"ask"},"terminal":{"kind":"auto"}}`
	asksHuman = `{"permission":{"*":"ask","bash":{"*":"ask","danger *":"deny","fine *":"allow"}},"terminal":{"kind":"human"}}`
	allowsAll = `{"permission":{"*":"allow"},"terminal":{"kind":"deny"}}`
	humanHere = `{"permission":{"*":"ask","bash":{"*":"ask","deploy *":{"action":"ask","humanOnly":true}}},"authorizerChain":["l1"]}`
)

func TestAnAskGoesUpATreeOfNodes(t *testing.T) {
	root := plant(t, "root", asksHuman).all(nil)
	mid := plant(t, "mid", asksAll).all(root.below("mid"))
	leaf := plant(t, "leaf", humanHere).all(mid.below("leaf"))

	t.Run("to a person two nodes up, and comes back", func(t *testing.T) {
		ask, decided := leaf.goesUp(root, bashAsk("make"))
		item := root.waits(ask.ID)
		if got := strings.Join(item.Ask.Hops, " "); got != "leaf mid" || item.Via != "mid" || item.Ask.HumanOnly {
			t.Errorf("hops %q, via %q", got, item.Via)
		}
		root.answer(ask.ID, protocol.FinalAllow)
		d := hear(t, decided, protocol.FinalAllow, protocol.AllowedByHuman)
		if d.DecidedBy != (protocol.Decider{Kind: protocol.DeciderParent, Name: "root-oncall", Node: "root"}) || d.Approver != "root-oncall" || stepsOf(d.Decision) != "mid root" {
			t.Errorf("by %+v, approver %q, way %q", d.DecidedBy, d.Approver, stepsOf(d.Decision))
		}
		for _, n := range []*treeNode{leaf, mid, root} {
			if got := n.recorded(ask.ID); len(got) != 1 || got[0].Outcome != protocol.AllowedByHuman || got[0].Node != n.Name() {
				t.Errorf("%s has recorded %+v", n.Name(), got)
			}
			n.closed(ask.ID)
		}
		if leaf.reviewed(ask.ID, protocol.EventChainDelegated) != 1 || leaf.reviewed(ask.ID, protocol.EventForwardApproved) != 1 ||
			root.reviewed(ask.ID, protocol.EventForwardPrompted) != 1 {
			t.Error("the review logs do not tell of the way")
		}
	})
	t.Run("to a rule up there, either way", func(t *testing.T) {
		d := hear(t, leaf.asks(bashAsk("danger zone")), protocol.FinalDeny, protocol.DeniedByRule)
		if d.DecidedBy.Kind != protocol.DeciderParent || d.DecidedBy.Node != "root" {
			t.Errorf("by %+v", d.DecidedBy)
		}
		hear(t, leaf.asks(bashAsk("fine thing")), protocol.FinalAllow, protocol.AllowedByRule)
	})
	t.Run("as a person's alone, where the lowest node says so", func(t *testing.T) {
		ask, decided := leaf.goesUp(root, bashAsk("deploy it"))
		if item := root.waits(ask.ID); !item.Ask.HumanOnly {
			t.Error("not said at the root")
		}
		root.answer(ask.ID, protocol.FinalAllow)
		hear(t, decided, protocol.FinalAllow, protocol.AllowedByHuman)
	})
	t.Run("but not where a person sits, also at a subagent's session", func(t *testing.T) {
		ask := bashAsk("make")
		ask.Session = protocol.Session{ID: "s9", Parent: "s8", Root: "s1", Interactive: true}
		decided := leaf.asks(ask)
		leaf.waits(ask.ID)
		leaf.answer(ask.ID, protocol.FinalAllow)
		if d := hear(t, decided, protocol.FinalAllow, protocol.AllowedByHuman); d.DecidedBy.Kind != protocol.DeciderHuman || d.Approver != "leaf-oncall" {
			t.Errorf("by %+v", d.DecidedBy)
		}
		if len(root.recorded(ask.ID))+len(mid.recorded(ask.ID)) != 0 {
			t.Error("it was relayed")
		}
	})
	t.Run("and a deny that the lowest node has by then stands", func(t *testing.T) {
		ask, decided := leaf.goesUp(root, bashAsk("make"))
		root.waits(ask.ID)
		leaf.put(strings.Replace(humanHere, `"deploy *"`, `"make":"deny","deploy *"`, 1))
		leaf.denies("make")
		root.answer(ask.ID, protocol.FinalAllow)
		d := hear(t, decided, protocol.FinalDeny, protocol.DeniedByRule)
		if d.DecidedBy.Kind != protocol.DeciderRule || d.DecidedBy.Node != "leaf" || d.Approver != "root-oncall" {
			t.Errorf("by %+v", d.DecidedBy)
		}
		leaf.put(strings.Replace(humanHere, `"deploy *"`, `"back":"deny","deploy *"`, 1))
		leaf.denies("back") // so that the next ask does not meet the rule before
	})
	t.Run("a cancel at the bottom closes the prompt at the top", func(t *testing.T) {
		ask, decided := leaf.goesUp(root, bashAsk("make"))
		root.waits(ask.ID)
		if done, err := leaf.agent.Cancel(t.Context(), ask.ID, "changed my mind"); err != nil || !done {
			t.Fatalf("cancelled %v: %v", done, err)
		}
		hear(t, decided, protocol.FinalDeny, protocol.Cancelled)
		root.closed(ask.ID)
		if got := root.recorded(ask.ID); len(got) != 1 || got[0].Outcome != protocol.Cancelled {
			t.Errorf("the root has recorded %+v", got)
		}
	})
	t.Run("time that is over at the bottom is over at the top", func(t *testing.T) {
		ask := bashAsk("make")
		ask.MaxWaitMS = 1500
		ask, decided := leaf.goesUp(root, ask)
		root.waits(ask.ID)
		hear(t, decided, protocol.FinalDeny, protocol.Expired)
		root.closed(ask.ID)
		mid.closed(ask.ID)
	})
}

func TestWhatOnlyAPersonMayAllowNoRuleOfTheParentDoes(t *testing.T) {
	root := plant(t, "root", allowsAll).all(nil)
	leaf := plant(t, "leaf", humanHere).all(root.below("leaf"))
	hear(t, leaf.asks(bashAsk("make")), protocol.FinalAllow, protocol.AllowedByRule)
	hear(t, leaf.asks(bashAsk("deploy it")), protocol.FinalDeny, protocol.NoApprover)
}

func TestNodesThatAreEachOthersParentsRefuseByTheWay(t *testing.T) {
	a, b := plant(t, "a", asksAll), plant(t, "b", asksAll)
	a.all(b.below("a"))
	b.all(a.below("b"))
	d := hear(t, a.asks(bashAsk("make")), protocol.FinalDeny, protocol.Unavailable)
	if !strings.Contains(d.Reason, "loop") || !strings.Contains(d.Reason, "a → b → a") {
		t.Errorf("reason %q", d.Reason)
	}
}

func TestAParentThatIsNotThereIsNoRefusal(t *testing.T) {
	root := plant(t, "root", asksHuman)
	above := root.below("leaf")
	stopTerminal, _ := root.terminal("t1", nil)
	stopGate, killGate := root.gate("g1")
	leaf := plant(t, "leaf", asksAll).all(above)

	unreached := func(t *testing.T, decided <-chan told, since time.Time) {
		t.Helper()
		d := hear(t, decided, protocol.FinalDeny, protocol.Unavailable)
		took := d.at.Sub(since)
		t.Logf("noticed after %s", took.Round(time.Millisecond))
		if took > 4*time.Second { // 2 s, on a machine that does much else
			t.Error("that is too late")
		}
		if !strings.Contains(d.Reason, "Nobody has refused") || !strings.Contains(d.Reason, "root") {
			t.Errorf("reason %q", d.Reason)
		}
		if n := leaf.reviewed(d.Ask, protocol.EventGateError); n != 1 {
			t.Errorf("recorded %d times", n)
		}
	}
	t.Run("another gate of it goes on, and nobody is asked twice", func(t *testing.T) {
		ask := bashAsk("make")
		decided := leaf.asks(ask)
		at := root.waits(ask.ID).Taken
		root.gate("g2")
		killGate()
		if got := root.waits(ask.ID).Taken; !got.Equal(at) {
			t.Errorf("taken at %s and at %s", at, got)
		}
		root.answer(ask.ID, protocol.FinalAllow)
		hear(t, decided, protocol.FinalAllow, protocol.AllowedByHuman)
		if n := root.reviewed(ask.ID, protocol.EventForwardPrompted); n != 1 {
			t.Errorf("prompted %d times", n)
		}
	})
	t.Run("its server dies while a person looks", func(t *testing.T) {
		ask, decided := leaf.goesUp(root, bashAsk("make"))
		root.waits(ask.ID)
		stopGate()
		stopTerminal()
		since := time.Now()
		if err := root.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		unreached(t, decided, since)
	})
	t.Run("it was dead from the first", func(t *testing.T) {
		leaf = plant(t, "leaf", asksAll).all(above) // starts all the same
		unreached(t, leaf.asks(bashAsk("make")), time.Now())
	})
}

func TestAnotherGateOfTheChildGoesOn(t *testing.T) {
	root := plant(t, "root", asksHuman).all(nil)
	leaf := plant(t, "leaf", asksAll)
	leaf.terminal("t1", root.below("leaf"))
	_, kill := leaf.gate("g1")
	ask := bashAsk("make")
	decided := leaf.asks(ask)
	at := root.waits(ask.ID).Taken
	leaf.gate("g2")
	kill()
	root.answer(ask.ID, protocol.FinalAllow)
	d := hear(t, decided, protocol.FinalAllow, protocol.AllowedByHuman)
	if d.Gate != "g2" || len(leaf.recorded(ask.ID)) != 1 || len(root.recorded(ask.ID)) != 1 || at.IsZero() {
		t.Errorf("gate %s, %d and %d records", d.Gate, len(leaf.recorded(ask.ID)), len(root.recorded(ask.ID)))
	}
	if n := root.reviewed(ask.ID, protocol.EventForwardPrompted); n != 1 {
		t.Errorf("prompted %d times", n)
	}
}
