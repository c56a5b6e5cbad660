package protocol

import (
	"errors"
	"fmt"
	"reflect"
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

// TestAPromptIsHandedOnByAChildAlone: no agent writes what its approver reads, and
// what a child hands on keeps to its bounds.
func TestAPromptIsHandedOnByAChildAlone(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, row := range map[string]struct {
		change func(*Prompt)
		ok     bool
	}{
		"a prompt":                  {func(*Prompt) {}, true},
		"one of nothing":            {func(p *Prompt) { *p = Prompt{} }, true},
		"words at their bounds":     {func(p *Prompt) { p.Description, p.ApproveLabel = long(MaxReason), long(MaxLabel) }, true},
		"a part of nothing":         {func(p *Prompt) { p.Highlight = []Span{{3, 3}} }, true},
		"a description too long":    {func(p *Prompt) { p.Description = long(MaxReason + 1) }, false},
		"a label too long":          {func(p *Prompt) { p.RejectLabel = long(MaxLabel + 1) }, false},
		"a part before the start":   {func(p *Prompt) { p.Highlight = []Span{{-1, 3}} }, false},
		"a part that ends before":   {func(p *Prompt) { p.Highlight = []Span{{4, 3}} }, false},
		"more parts than are shown": {func(p *Prompt) { p.Highlight = make([]Span, MaxHighlight+1) }, false},
		"a check that hides text":   {func(p *Prompt) { p.Check = "user:m/\u202ec" }, false},
	} {
		a, prompt := sampleAsk(), samplePrompt()
		row.change(&prompt)
		a.V, a.Prompt = CurrentVersion, &prompt
		if got, err := ReadAskFor(a.Agent, unchecked(t, a)); err == nil || got.ID != "" {
			t.Errorf("%s: taken from an agent", name)
		}
		a.Hops = []string{"child1"}
		got, err := ReadRelayedAsk("child1", "main", unchecked(t, a))
		if (err == nil) != row.ok || row.ok && (got.Prompt == nil || got.Prompt.Name != prompt.Name) {
			t.Errorf("%s: from a child: %v, %+v", name, err, got.Prompt)
		}
	}
}

// TestAPromptIsFitToBeShown, whatever a module or a node below wrote.
func TestAPromptIsFitToBeShown(t *testing.T) {
	wild := strings.Repeat("x\x1b[2J\u202e", MaxReason)
	p := Prompt{Name: wild, Description: wild, Guidance: wild, ApproveLabel: wild, EditLabel: wild, RejectLabel: wild, Check: wild, Highlight: append([]Span{{-1, 2}, {5, 4}}, make([]Span, 2*MaxHighlight)...)}.Shown()
	if err := p.check(); err != nil {
		t.Error(err)
	}
	for _, s := range []string{p.Name, p.Description, p.Guidance, p.ApproveLabel, p.EditLabel, p.RejectLabel, p.Check} {
		if strings.ContainsAny(s, "\x1b\u202e") || s == "" {
			t.Errorf("shown as %q", s)
		}
	}
	if kept := samplePrompt(); !reflect.DeepEqual(kept, kept.Shown()) {
		t.Errorf("%+v became %+v", kept, kept.Shown())
	}
}

func TestWhatAModuleSaysIsTakenForNoRule(t *testing.T) {
	for name, row := range map[string]struct {
		e    Entry
		want bool
	}{
		"a module's":                {Entry{Surface: "module", Origin: "module:user:m@0123"}, true},
		"a rule's on a tool's name": {Entry{Surface: "module", Origin: "fleet"}, false},
		"a project's rule":          {Entry{Surface: "module", Origin: "project/module:x"}, false},
		"another surface":           {Entry{Surface: "bash", Origin: "module:user:m@0123"}, false},
		"nothing":                   {Entry{}, false},
	} {
		if row.e.ByModule() != row.want {
			t.Errorf("%s: %v", name, row.e.ByModule())
		}
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
