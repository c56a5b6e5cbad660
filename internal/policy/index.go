package policy

import "strings"

// affixes are the lengths by which patterns are found: a pattern stands under
// the longest of them that its fixed front, or else its fixed end, has.
var affixes = [...]int{16, 8, 4, 2, 1}

// index finds among the rules of one surface those that could match a value,
// without trying them all: of a thousand rules on commands few begin as the
// command does. It is exact in one way only: what it leaves out cannot match.
type index struct {
	rules []*rule
	// always are the positions of rules that have neither front nor end, or
	// match in more ways than by their text.
	always []int32
	plain  affixTable
	// folded is the same for the patterns in lower case.
	folded affixTable
}

// affixTable holds the positions of rules by front and by end.
type affixTable struct {
	front, end map[string][]int32
	// fronts and ends say which lengths there are: bit i for affixes[i].
	fronts, ends uint8
}

// fewRules is how many are sooner tried than looked up.
const fewRules = 8

// newIndex indexes the rules of a surface.
func newIndex(rules []*rule) *index {
	x := &index{rules: rules}
	if len(rules) <= fewRules {
		for i := range rules {
			x.always = append(x.always, int32(i))
		}
		return x
	}
	for i, r := range rules {
		if r.pattern.home != nil || r.anyOrder || !x.plain.put(r.pattern.w.text, int32(i)) {
			x.always = append(x.always, int32(i))
			continue
		}
		if r.folded.w.parts != nil {
			x.folded.put(r.folded.w.text, int32(i))
		}
	}
	return x
}

// put files a pattern; false where it has neither a fixed front nor end.
func (t *affixTable) put(pattern string, at int32) bool {
	front := strings.TrimSuffix(pattern, " *") // which matches without its end too
	if i := strings.IndexAny(front, "*?"); i >= 0 {
		front = front[:i]
	}
	end := pattern[strings.LastIndexAny(pattern, "*?")+1:]
	for bit, n := range affixes {
		switch {
		case front != "" && len(front) >= n:
			if t.front == nil {
				t.front = map[string][]int32{}
			}
			t.front[front[:n]] = append(t.front[front[:n]], at)
			t.fronts |= 1 << bit
			return true
		case front == "" && len(end) >= n:
			if t.end == nil {
				t.end = map[string][]int32{}
			}
			t.end[end[len(end)-n:]] = append(t.end[end[len(end)-n:]], at)
			t.ends |= 1 << bit
			return true
		}
	}
	return false
}

// last is the position of the last rule that matches, -1 if none does. also is
// one more way to match, tried on the same rules; nil for none.
func (x *index) last(v values, home string, also func(*rule) bool) int {
	best := x.among(x.always, -1, v, home, also)
	if len(x.always) == len(x.rules) {
		return best
	}
	for _, s := range v.exact {
		best = x.look(&x.plain, s, best, v, home, also)
	}
	for _, s := range v.wide {
		best = x.look(&x.plain, s, best, v, home, also)
	}
	if !v.fold || x.folded.fronts|x.folded.ends == 0 {
		return best
	}
	for _, s := range v.exact {
		best = x.look(&x.folded, foldText(s), best, v, home, also)
	}
	for _, s := range v.wide {
		best = x.look(&x.folded, foldText(s), best, v, home, also)
	}
	return best
}

// look tries the rules whose front or end is that of a value.
func (x *index) look(t *affixTable, s string, best int, v values, home string, also func(*rule) bool) int {
	for bit, n := range affixes {
		if len(s) < n {
			continue
		}
		if t.fronts&(1<<bit) != 0 {
			best = x.among(t.front[s[:n]], best, v, home, also)
		}
		if t.ends&(1<<bit) != 0 {
			best = x.among(t.end[s[len(s)-n:]], best, v, home, also)
		}
	}
	return best
}

// among tries rules from the last on, down to the best that is known.
func (x *index) among(list []int32, best int, v values, home string, also func(*rule) bool) int {
	for i := len(list) - 1; i >= 0 && int(list[i]) > best; i-- {
		if r := x.rules[list[i]]; r.matches(v, home) || also != nil && also(r) {
			return int(list[i])
		}
	}
	return best
}
