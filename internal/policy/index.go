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
	// needs are the characters that each needs.
	needs []charset
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
	x := &index{rules: rules, needs: make([]charset, len(rules))}
	for i, r := range rules {
		x.needs[i] = r.needed()
	}
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
	l := lookup{index: x, v: v, home: home}
	best := l.among(x.always, -1, also)
	if len(x.always) == len(x.rules) {
		return best
	}
	for _, s := range v.exact {
		best = l.look(&x.plain, s, best, also)
	}
	for _, s := range v.wide {
		best = l.look(&x.plain, s, best, also)
	}
	if !v.fold || x.folded.fronts|x.folded.ends == 0 {
		return best
	}
	for _, s := range v.exact {
		best = l.look(&x.folded, foldText(s), best, also)
	}
	for _, s := range v.wide {
		best = l.look(&x.folded, foldText(s), best, also)
	}
	return best
}

// lookup is one search in an index.
type lookup struct {
	*index
	v    values
	home string
	// have are the characters of the values; known says that they were counted.
	have  charset
	known bool
}

// look tries the rules whose front or end is that of a value.
func (l *lookup) look(t *affixTable, s string, best int, also func(*rule) bool) int {
	for bit, n := range affixes {
		if len(s) < n {
			continue
		}
		if t.fronts&(1<<bit) != 0 {
			best = l.among(t.front[s[:n]], best, also)
		}
		if t.ends&(1<<bit) != 0 {
			best = l.among(t.end[s[len(s)-n:]], best, also)
		}
	}
	return best
}

// among tries rules from the last on, down to the best that is known. Of many,
// it first tells by their characters which cannot match: an agent that writes
// long texts of many words must not have every rule compared with every word.
func (l *lookup) among(list []int32, best int, also func(*rule) bool) int {
	if len(list) > fewRules && !l.known {
		l.have, l.known = charsOf(l.v), true
	}
	for i := len(list) - 1; i >= 0 && int(list[i]) > best; i-- {
		at := list[i]
		if l.known && !l.needs[at].within(l.have) {
			continue
		}
		if r := l.rules[at]; r.matches(l.v, l.home) || also != nil && also(r) {
			return int(at)
		}
	}
	return best
}

// charset is a set of the characters of ASCII.
type charset [2]uint64

var everyChar = charset{^uint64(0), ^uint64(0)}

func (l *charset) add(s string) {
	for i := range len(s) {
		if c := s[i]; c < 128 {
			l[c>>6] |= 1 << (c & 63)
		}
	}
}

func (l charset) within(other charset) bool { return l[0]&^other[0] == 0 && l[1]&^other[1] == 0 }

// charsOf are the characters that stand in any spelling of a value.
func charsOf(v values) (out charset) {
	if v.fold || len(v.joined) > 0 {
		return everyChar // matched in other forms too
	}
	for _, s := range v.exact {
		out.add(s)
	}
	for _, s := range v.wide {
		out.add(s)
	}
	return out
}

// needed are characters without which a value does not match a rule.
func (r *rule) needed() (out charset) {
	if r.pattern.home != nil || r.anyOrder || r.joined {
		return out
	}
	out.add(strings.Map(func(c rune) rune {
		if c == '*' || c == '?' {
			return -1
		}
		return c
	}, strings.TrimSuffix(r.pattern.w.text, " *")))
	return out
}
