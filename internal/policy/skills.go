package policy

import (
	"path"
	"slices"
	"strings"
)

// A skill is a folder of texts, and to read them is to use it: a rule that
// denies a skill, or asks about it, holds for whoever reads in its folder by
// another tool too. An allow of a skill allows no file: which folders are skills
// is told by their place alone, and a place is an agent's to make.

// skillEntry is what the skill rules say of reading a path; ok is false where it
// lies in no skill's folder, or no rule on skills denies or asks.
func (s *Snapshot) skillEntry(p *place, r pathReading, typed string, dir direction) (Entry, bool) {
	if dir&reads == 0 {
		return Entry{}, false
	}
	form := r.abs
	if form == "" {
		form = path.Clean("/" + typed)
	}
	name := skillOf(form)
	if name == "" {
		return Entry{}, false
	}
	if strings.ContainsAny(name, "*?[{(") {
		return s.skillsOf(name)
	}
	v := values{exact: []string{name}}
	if p.fold {
		v.wide = []string{strings.ToLower(name)}
	}
	found := s.rules.last(surfaceSkill, p.home, v)
	if found == nil || found.action == Allow {
		return Entry{}, false
	}
	entry := s.decided(found, surfaceSkill, name, p.home, v)
	return entry, entry.Action != Allow
}

// skillsOf is the entry of a glob in place of a skill's name.
func (s *Snapshot) skillsOf(glob string) (Entry, bool) {
	all, ok := globs(glob)
	if !ok {
		all = []string{"*"}
	}
	rules := s.rules.of(surfaceSkill)
	for i := len(rules) - 1; i >= 0; i-- {
		r := rules[i]
		if r.action == Allow && r.pattern.w.any() {
			break
		}
		for _, one := range all {
			if r.action != Allow && overlap(r.pattern.w.text, one) {
				entry := floor(surfaceSkill, glob, "could-select:"+r.pattern.text, "it could reach the files of a skill that a rule speaks of; name the skill")
				entry.HumanOnly, entry.Guidance = r.humanOnly, r.guidance
				return entry, true
			}
		}
	}
	return Entry{}, false
}

// skillOf is the name of the skill in whose folder a clean path lies, "" for
// none: what stands below the skills folder of an agent, and the folder of a
// SKILL.md anywhere.
func skillOf(abs string) string {
	if !mentionsSkill(abs) && !strings.ContainsAny(abs, "*?[{(") {
		return ""
	}
	parts := strings.Split(strings.ReplaceAll(abs, `\`, "/"), "/")
	for i := 1; i+1 < len(parts); i++ {
		if couldName(parts[i], "skills", "skill") && keepsSkills(strings.ToLower(parts[i-1])) {
			return parts[i+1]
		}
	}
	if n := len(parts); n > 1 && couldName(parts[n-1], "skill.md") {
		return parts[n-2]
	}
	return ""
}

// keepsSkills says whether agents look for skills in a folder of this name:
// .claude, .codex, .agents, ~/.pi/agent, ~/.config/opencode.
func keepsSkills(folder string) bool {
	return strings.HasPrefix(folder, ".") || couldName(folder, "agent", "opencode")
}

// couldName says whether a part of a path is one of some names in any letter
// case, or begins like one and has the shell fill in the rest. A glob without
// such a beginning, as "*", stands in every other command and is left alone.
func couldName(part string, names ...string) bool {
	part = strings.ToLower(part)
	if slices.Contains(names, part) {
		return true
	}
	at := strings.IndexAny(part, "*?[{(")
	if at < 1 {
		return false
	}
	all, ok := globs(part)
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, part[:at]) && (!ok || slices.ContainsFunc(all, func(one string) bool { return overlap(one, name) }))
	})
}

// mentionsSkill says, fast, whether "skill" stands in a text, in any letter
// case.
func mentionsSkill(s string) bool {
	for {
		i := strings.IndexByte(s, 'k')
		if j := strings.IndexByte(s, 'K'); j >= 0 && (i < 0 || j < i) {
			i = j
		}
		if i < 0 {
			return false
		}
		if i > 0 && len(s) >= i+4 && strings.EqualFold(s[i-1:i+4], "skill") {
			return true
		}
		s = s[i+1:]
	}
}
