package policy

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestAQueryIsRuledAsACallWouldBe: for a shell text, whatever the rules and the
// grants, the answer is the ruling of a call with that text, and by the same
// grants.
func TestAQueryIsRuledAsACallWouldBe(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"git push", "git push --force", "git status", "make", "make test", "rm -rf x", "echo $(make)", "sudo make", "sh -c 'git push'", "a=1 make", "make > out", "deploy it"})
		pattern := rapid.SampledFrom([]string{"git *", "git push *", "git status", "make *", "make", "rm *", "sudo *", "echo *", "deploy *", "*out*"})
		action := rapid.SampledFrom([]string{`"allow"`, `"ask"`, `"deny"`, `{"action":"ask","humanOnly":true}`})
		command := strings.Join(rapid.SliceOfN(word, 1, 3).Draw(t, "commands"), rapid.SampledFrom([]string{" && ", "; ", " | "}).Draw(t, "between"))
		rules := []string{`"*":` + action.Draw(t, "base")}
		for _, p := range rapid.SliceOfNDistinct(pattern, 0, 4, rapid.ID).Draw(t, "patterns") {
			rules = append(rules, `"`+p+`":`+action.Draw(t, "action"))
		}
		s, err := Compile("fleet", []byte(`{"permission":{"*":"ask","path":"allow","external_directory":"allow","bash":{`+strings.Join(rules, ",")+`}}}`))
		if err != nil {
			t.Fatal(err)
		}
		var given []Grant
		for i, p := range rapid.SliceOfNDistinct(pattern, 0, 3, rapid.ID).Draw(t, "grants") {
			g, err := NewGrant(string(rune('a'+i)), "bash", []string{p})
			if err != nil {
				t.Fatal(err)
			}
			given = append(given, g)
		}
		ruling := s.RuleWith(bash(command), given)
		got, used := s.CheckWith(Query{Surface: "bash", Value: command, Cwd: "/repo", Home: "/home/dev", Platform: "linux"}, given)
		if got.State != ruling.Action || !slices.Equal(used, ruling.Grants()) {
			t.Fatalf("%s: %s by %v, ruled %s by %v", command, got.State, used, ruling.Action, ruling.Grants())
		}
		if got.MatchedPattern != ruling.Decisive.MatchedPattern || got.Origin != ruling.Decisive.Origin {
			t.Fatalf("%s: by %q of %s, ruled by %q of %s", command, got.MatchedPattern, got.Origin, ruling.Decisive.MatchedPattern, ruling.Decisive.Origin)
		}
	})
}

func TestGrantsAnswerNoQueryOnATool(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, `{"permission":{"*":"ask","bash":"ask","read":"deny"}}`)
	for tool, want := range map[string]Action{"frob": Ask, "bash": Ask, "read": Deny} {
		g := given(t, tool, "*x")
		if got, used := s.CheckWith(Query{Tool: tool}, []Grant{g}); got.State != want || len(used) != 0 {
			t.Errorf("%s: %+v by %v, want %s", tool, got, used, want)
		}
	}
	clamped := s.Clamp("broken")
	if got, used := clamped.CheckWith(Query{Surface: "frob", Value: "ax"}, []Grant{given(t, "frob", "*x")}); got.State != Ask || len(used) != 0 {
		t.Errorf("under a clamp: %+v by %v", got, used)
	}
	if got, used := s.CheckWith(Query{Surface: "frob", Value: "ax"}, []Grant{given(t, "frob", "*x")}); got.State != Allow || len(used) != 1 {
		t.Errorf("without one: %+v by %v", got, used)
	}
}
