package policy

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// The index leaves out no rule that matches: it finds the one that trying all of
// them finds.
func TestIndexFindsWhatTryingAllFinds(t *testing.T) {
	t.Parallel()
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab *?/~.Äß")), 0, 24, -1)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "rules")
		rules := make([]*rule, n)
		for i := range rules {
			p := text.Draw(t, "pattern")
			r := &rule{pattern: compilePattern(p), action: rapid.SampledFrom([]Action{Allow, Ask, Deny}).Draw(t, "action")}
			if r.action != Allow && rapid.Bool().Draw(t, "folded") {
				r.folded = compilePattern(lowerPattern(p))
			}
			rules[i] = r
		}
		v := values{exact: rapid.SliceOfN(text, 0, 3).Draw(t, "exact"), wide: rapid.SliceOfN(text, 0, 3).Draw(t, "wide"), fold: rapid.Bool().Draw(t, "fold")}
		want := -1
		for i := n - 1; i >= 0 && want < 0; i-- {
			if rules[i].matches(v, "/b") {
				want = i
			}
		}
		if got := newIndex(rules).last(v, "/b", nil); got != want {
			t.Fatalf("%+v: rule %d, trying all finds %d", v, got, want)
		}
	})
}

func TestIndexedRulesRuleAlike(t *testing.T) {
	t.Parallel()
	doc := `{"*":"ask","bash":{"*":"ask"`
	for i := range 200 {
		doc += fmt.Sprintf(`,"tool%d run *":"deny","*.e%d":"deny","go%d":"allow"`, i, i, i)
	}
	doc += `,"git *":"allow","git push *":"deny"}}`
	ruleRows(t, []row{
		{"a front with an end that may be missing", doc, bash("git"), Allow, "bash", "git *"},
		{"a front", doc, bash("git status"), Allow, "bash", "git *"},
		{"a whole text", doc, bash("go77"), Allow, "bash", "go77"},
		{"a later and narrower front", doc, bash("git push x"), Deny, "bash", "git push *"},
		{"one of many fronts", doc, bash("tool123 run x"), Deny, "bash", "tool123 run *"},
		{"an end", doc, bash("cat x.e99"), Deny, "bash", "*.e99"},
		{"none of them", doc, bash("tool run x"), Ask, "bash", "*"},
	})
}
