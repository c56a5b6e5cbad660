package protocol

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// unchecked is an ask on the wire that Write would refuse.
func unchecked(t *testing.T, a Ask) []byte {
	t.Helper()
	b, err := json.Marshal(&a)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRelayedAskIsItsChilds: who relays is who the credential says, and no ask
// comes to a node twice.
func TestRelayedAskIsItsChilds(t *testing.T) {
	long := make([]string, 0, MaxHops)
	for i := range MaxHops - 1 {
		long = append(long, fmt.Sprintf("n%d", i))
	}
	for name, row := range map[string]struct {
		hops []string
		want error  // nil: taken
		says string // in the error
	}{
		"from the child":              {hops: []string{"child1"}},
		"from two levels below":       {hops: []string{"grandchild", "child1"}},
		"from as far as it may":       {hops: append(long[:len(long):len(long)], "child1")},
		"an agent's name for a hop":   {hops: []string{"ci-42", "child1"}},
		"without hops":                {want: ErrMismatch, says: "credential"},
		"from another child":          {hops: []string{"child2"}, want: ErrMismatch, says: "credential"},
		"the child not the last":      {hops: []string{"child1", "child2"}, want: ErrMismatch, says: "credential"},
		"back at this node":           {hops: []string{"main", "child1"}, want: ErrLoop, says: "loop"},
		"round below":                 {hops: []string{"child1", "x", "child1"}, want: ErrLoop, says: "child1 > x > child1"},
		"from further than it may be": {hops: append(long[:len(long):len(long)], "more", "child1"), want: ErrLoop, says: "loop"},
		"no name for a hop":           {hops: []string{"a.b", "child1"}, want: ErrToken, says: "hops"},
	} {
		a := sampleAsk()
		a.V, a.Hops = CurrentVersion, row.hops
		got, err := ReadRelayedAsk("child1", "main", unchecked(t, a))
		if !errors.Is(err, row.want) || row.want == nil && (err != nil || got.Via() != "child1" || got.ID != a.ID) {
			t.Errorf("%s: via %q, %v, want %v", name, got.Via(), err, row.want)
		}
		if err != nil && (!strings.Contains(err.Error(), row.says) || got.ID != "") {
			t.Errorf("%s: %v (%v), want %q", name, err, got.ID, row.says)
		}
	}
}

// TestAnAgentRelaysNothing: an ask with hops is a child node's, whoever sends it.
func TestAnAgentRelaysNothing(t *testing.T) {
	a := sampleAsk()
	a.V = CurrentVersion
	if _, err := ReadAskFor(a.Agent, unchecked(t, a)); err != nil || a.Via() != "" {
		t.Fatalf("an agent's own ask: %v, via %q", err, a.Via())
	}
	a.HumanOnly = true // tightens
	if _, err := ReadAskFor(a.Agent, unchecked(t, a)); err != nil {
		t.Fatalf("an agent's own ask for a person: %v", err)
	}
	a.Hops = []string{"child1"}
	if _, err := ReadAskFor(a.Agent, unchecked(t, a)); !errors.Is(err, ErrMismatch) {
		t.Fatalf("an agent's ask with hops: %v", err)
	}
}

// TestAGrantIsBoundToTheWayThatItsAsksCome.
func TestAGrantIsBoundToTheWayThatItsAsksCome(t *testing.T) {
	for name, row := range map[string]struct {
		via  string
		hops []string
		ok   bool
	}{
		"an agent's":           {ok: true},
		"a child's":            {via: "child1", hops: []string{"child1"}, ok: true},
		"from further":         {via: "child1", hops: []string{"low", "child1"}, ok: true},
		"via without a way":    {via: "child1"},
		"a way without via":    {hops: []string{"child1"}},
		"via not on the way":   {via: "child1", hops: []string{"child2"}},
		"via not at its end":   {via: "child1", hops: []string{"child1", "child2"}},
		"a way that is a loop": {via: "child1", hops: []string{"child1", "x", "child1"}},
	} {
		g := Grant{Scope: ScopeAgent, Surface: "bash", Patterns: []string{"git *"}, Node: "main", Agent: "ci", Via: row.via, Hops: row.hops, GrantedBy: "p", Ask: sampleAsk().ID}
		if err := g.bound(); (err == nil) != row.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err := g.unbound(); err == nil {
			t.Errorf("%s: taken from an answer", name)
		}
	}
	for name, g := range map[string]Grant{"via": {Via: "c"}, "hops": {Hops: []string{"c"}}} {
		if g.unbound() == nil {
			t.Errorf("an answer says %s of its grant", name)
		}
	}
}
