package policy

import "strings"

// The crosscutting surfaces and the suffixes of their forms for one direction.
const (
	surfaceBash     = "bash"
	surfaceMCP      = "mcp"
	surfaceSkill    = "skill"
	surfacePath     = "path"
	surfaceExternal = "external_directory"
	suffixRead      = "_read"
	suffixWrite     = "_write"
)

// ToolCanary is the tool that `assent doctor` calls to prove that a gate
// decides. It is denied by a rule of the engine that no policy lifts.
const ToolCanary = "assent_doctor_canary"

// CanaryReason is what the doctor looks for: words that only a gate says.
const CanaryReason = "This is the doctor's test call. The gate works."

// crosscutting returns the plain form of a surface that cuts across all tools,
// "" for every other.
func crosscutting(surface string) string {
	plain := strings.TrimSuffix(strings.TrimSuffix(surface, suffixRead), suffixWrite)
	if plain == surfacePath || plain == surfaceExternal {
		return plain
	}
	return ""
}

// pathSurface says whether the values of a surface are paths.
func pathSurface(surface string) bool {
	_, file := fileTools[surface]
	return file || crosscutting(surface) != ""
}

// rule is one line of the document.
type rule struct {
	surface wildcard
	pattern pattern
	// folded is the pattern of a path in lower case, for a rule that denies or
	// asks.
	folded           pattern
	action           Action
	reason, guidance string
	humanOnly        bool
	// joined: the pattern allows MCP tools by server and tool joined with an
	// underscore, and so matches nothing that another tool is spelled like.
	joined bool
	// anyOrder: the pattern's flags may stand anywhere among the command's.
	anyOrder bool
	// whole: it is the action of a surface that has no map of patterns.
	whole bool
	// everywhere: it speaks of every surface, and is no fallback.
	everywhere bool
	// at is the offset in the document at which the rule stands, place the same
	// for people.
	at    int
	place Position
	// origin is the layer that wrote the rule.
	origin string
}

// ruleSet is the rules of a snapshot, in the order of the documents.
type ruleSet struct {
	rules []rule
	// fallback is the last rule whose surface is nothing but stars: what all
	// surfaces fall back to, wherever in the document it stands.
	fallback *rule
	// bySurface holds, for every surface that the document names, the rules
	// that speak of it; wild are those of surface patterns.
	bySurface map[string][]*rule
	wild      []*rule
	// indexes are those of the surfaces in bySurface.
	indexes map[string]*index
}

// seal sorts the rules by surface. Afterwards the set is read only.
func (rs *ruleSet) seal() {
	rs.bySurface = map[string][]*rule{}
	var named []*rule
	for i := range rs.rules {
		r := &rs.rules[i]
		switch {
		case r.surface.any() && !r.everywhere:
			rs.fallback = r
		default:
			named = append(named, r)
			if !r.surface.literal() {
				rs.wild = append(rs.wild, r)
			}
		}
	}
	for _, r := range named {
		if r.surface.literal() {
			rs.bySurface[r.surface.text] = nil
		}
	}
	for surface := range rs.bySurface {
		for _, r := range named {
			if r.surface.match(surface) {
				rs.bySurface[surface] = append(rs.bySurface[surface], r)
			}
		}
	}
	rs.indexes = make(map[string]*index, len(rs.bySurface))
	for surface, rules := range rs.bySurface {
		rs.indexes[surface] = newIndex(rules)
	}
}

// of returns the rules that speak of a surface, without the fallback.
func (rs *ruleSet) of(surface string) []*rule {
	if rules, ok := rs.bySurface[surface]; ok {
		return rules
	}
	var rules []*rule
	for _, r := range rs.wild {
		if r.surface.match(surface) {
			rules = append(rules, r)
		}
	}
	return rules
}

// values are the spellings under which one thing is matched. exact prove what
// it is, so an allow may match them; wide are more readings, which only deny
// and ask.
type values struct {
	exact, wide []string
	// joined are those of exact that a joined pattern may match.
	joined []string
	// fold: letters count in either case for what denies and asks.
	fold bool
}

// index returns the index of a surface's rules.
func (rs *ruleSet) index(surface string) *index {
	if x, ok := rs.indexes[surface]; ok {
		return x
	}
	if len(rs.wild) == 0 {
		return noRules
	}
	return newIndex(rs.of(surface))
}

var noRules = &index{}

// last returns the last rule of a surface that matches, nil if none does.
func (rs *ruleSet) last(surface, home string, v values) *rule {
	x := rs.index(surface)
	if at := x.last(v, home, nil); at >= 0 {
		return x.rules[at]
	}
	return nil
}

func (r *rule) matches(v values, home string) bool {
	strict := r.action != Allow
	if strict && v.fold && r.folded.w.parts != nil && r.matchesFolded(v, home) {
		return true
	}
	exact := v.exact
	if r.joined {
		exact = v.joined
	}
	for _, s := range exact {
		if r.pattern.match(s, home, strict) {
			return true
		}
	}
	if !strict {
		return false
	}
	for _, s := range v.wide {
		if r.pattern.match(s, home, strict) {
			return true
		}
	}
	return false
}

// matchesFolded is matches with every letter in lower case.
func (r *rule) matchesFolded(v values, home string) bool {
	home = foldText(home)
	for _, list := range [][]string{v.exact, v.wide} {
		for _, s := range list {
			if r.folded.match(foldText(s), home, true) {
				return true
			}
		}
	}
	return false
}

// entry asks the rules of one surface about one value, the fallback and the
// built-in ask behind them.
func (s *Snapshot) entry(surface, home, value string, v values) Entry {
	return s.cleared(s.entryOf(s.rules.last(surface, home, v), surface, value), home, v)
}

// entryOf is what a rule says on a surface; without a rule, the fallback.
func (s *Snapshot) entryOf(r *rule, surface, value string) Entry {
	if r == nil {
		r = s.rules.fallback
	}
	e := Entry{Surface: surface, Value: value, MatchedPattern: "*", Origin: OriginDefault, Action: Ask}
	if r != nil {
		e.MatchedPattern, e.Origin, e.Action = r.pattern.text, r.origin, r.action
		e.Reason, e.Guidance, e.HumanOnly = r.reason, r.guidance, r.humanOnly
		e.Place = r.place
	}
	return s.adjust(e)
}

// adjust applies what holds for a whole snapshot: a clamp, else yolo.
func (s *Snapshot) adjust(e Entry) Entry {
	if s.clamped != "" {
		if e.Action == Allow {
			e.Action, e.Floor, e.Reason = Ask, true, s.clamped
		}
		return e
	}
	if s.Yolo() && e.Action == Ask && !e.HumanOnly && !e.Floor {
		e.Action, e.Origin = Allow, OriginYolo
	}
	return e
}

// floor is an entry that asks whatever the rules allow; why becomes its
// pattern, in angle brackets.
func floor(surface, value, why, reason string) Entry {
	return Entry{
		Surface: surface, Value: value, MatchedPattern: "<" + why + ">", Origin: OriginBuiltin,
		Action: Ask, Reason: reason, Floor: true,
	}
}
