package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// ofRules is a layer of n rules on bash.
func ofRules(n int) []byte {
	rules := make([]string, n)
	for i := range rules {
		rules[i] = fmt.Sprintf(`"cmd%d *":"deny"`, i)
	}
	return []byte(`{"permission":{"bash":{` + strings.Join(rules, ",") + `}}}`)
}

// TestAProjectsLayerIsSmall: its file is the agent's to write, and each call
// under it is held against all of it.
func TestAProjectsLayerIsSmall(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		layer Layer
		rules int
		ok    bool
	}{
		{ProjectLayer("p"), MaxProjectSize, true},
		{ProjectLayer("p"), MaxProjectSize + 1, false},
		{AgentLayer("a"), MaxProjectSize + 1, true},
		{Fleet(), 5 * MaxProjectSize, true},
	} {
		doc, err := Read(r.layer, "x", ofRules(r.rules))
		if (err == nil) != r.ok || err != nil && !errors.Is(err, ErrPolicy) || err == nil && doc.Size() != r.rules {
			t.Errorf("%s with %d rules: %v", r.layer, r.rules, err)
		}
	}
	var secrets []string
	for i := range MaxProjectSize + 1 {
		secrets = append(secrets, fmt.Sprintf(`"s%d"`, i))
	}
	if _, err := Read(ProjectLayer("p"), "x", []byte(`{"secretPaths":[`+strings.Join(secrets, ",")+`]}`)); !errors.Is(err, ErrPolicy) {
		t.Errorf("secret paths: %v", err)
	}
}

// TestWhatASetKeepsIsBounded: agents choose their project's id and its file, and
// so what is composed; they must not fill the memory of a gate with it. What is
// not kept any more is composed again, and rules the same.
func TestWhatASetKeepsIsBounded(t *testing.T) {
	t.Parallel()
	s := set(t, document(t, Fleet(), permission(`{"bash":{"*":"allow"}}`)))
	text := string(ofRules(MaxProjectSize))
	first := Who{Agent: "ci", Project: "p", File: document(t, ProjectLayer("p"), text)}
	for i := range 2*maxComposedRules/MaxProjectSize + 1 {
		who := first
		if i > 0 {
			who.Project = fmt.Sprintf("p%d", i)
			who.File = document(t, ProjectLayer(who.Project), text)
		}
		s.For(who)
		if s.rules > maxComposedRules || len(s.composed) > maxComposed || len(s.composed) == 0 {
			t.Fatalf("after %d it keeps %d policies of %d rules", i, len(s.composed), s.rules)
		}
	}
	if got := s.For(first).Rule(bash("cmd7 x")); got.Action != Deny {
		t.Errorf("composed again it rules %s", got.Action)
	}
}
