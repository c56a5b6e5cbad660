package policy

import (
	"path"
	"slices"
	"strings"
)

// selfProtection is what the fleet layer says of the built-in rules.
type selfProtection struct {
	// lifted are the groups that it lifts.
	lifted selfSet
	// own are more files and folders that are Assent's own.
	own []pattern
}

// Lifted are the groups of built-in rules that the fleet layer lifts.
func (s *Snapshot) Lifted() []string {
	var out []string
	for i, g := range selfGroups {
		if s.self.lifted&(1<<i) != 0 {
			out = append(out, g.name)
		}
	}
	return out
}

// protect adds what the built-in rules say of a path of any tool but a shell,
// whose words say less of what is done with them.
func (e *evaluation) protect(p *place, typed string, dir direction) {
	if e.tool == surfaceBash {
		return
	}
	whole := dir == both || e.tool == "grep" && dir&reads != 0
	e.guard(p, typed, use{dir: dir, folder: dir&writes != 0, home: whole}, 0)
}

// use is what is done with a path.
type use struct {
	dir direction
	// folder: a folder is changed as a whole, home: or read or changed with all
	// that is in it, gone: it is gone afterwards.
	folder, home, gone bool
}

// guard adds the strictest built-in rule on a path as typed.
func (e *evaluation) guard(p *place, typed string, how use, unit int) {
	if how.dir == 0 || stream(typed) || !e.s.concerns(p, typed, how) {
		return
	}
	var found *selfPathRule
	shown := typed
	for _, r := range p.readings(typed) {
		form := r.abs
		if form == "" {
			form = path.Clean("/" + strings.ReplaceAll(typed, `\`, "/"))
		}
		if got := e.s.selfRule(p, form, how); got != nil && (found == nil || got.Action < found.Action) {
			found, shown = got, form
		}
	}
	if found != nil {
		e.addSelf(found.BuiltinRule, surfacePath, shown, unit)
	}
}

// addSelf adds the entry of a built-in rule. Neither yolo nor a grant nor a link
// lifts one that asks.
func (e *evaluation) addSelf(r BuiltinRule, surface, value string, unit int) {
	entry := Entry{
		Surface: surface, Value: value, MatchedPattern: r.Pattern, Origin: OriginBuiltin,
		Action: r.Action, Reason: r.Reason, Unit: unit,
	}
	if r.Action == Ask {
		entry.Floor, entry.HumanOnly, entry.Guidance = true, true, asksAboutFolder
	}
	e.add(entry)
}

// selfRule returns the built-in rule on one absolute path, nil if none speaks of
// it.
func (s *Snapshot) selfRule(p *place, form string, how use) *selfPathRule {
	form, home := foldText(form), foldText(p.home)
	for i := range s.self.own {
		if s.self.own[i].match(form, home, true) && !s.self.lifted.has(groupFiles) {
			return ownRule(s.self.own[i].text)
		}
	}
	for i := range selfPathRules {
		r := &selfPathRules[i]
		switch {
		case r.dir&how.dir == 0, s.self.lifted&r.group != 0:
		case r.home:
			if how.home && (r.w.match(form, home, true) || r.Pattern == "~" && above(form, home)) {
				return r
			}
		case r.Pattern == ".":
			if how.gone && above(form, foldText(p.cwd)) {
				return r
			}
		case r.Action == Ask && !how.folder:
		case r.w.match(form, home, true):
			return r
		}
	}
	return nil
}

// ownRule is the built-in rule on a path that the policy names.
func ownRule(pattern string) *selfPathRule {
	at := groupIndex(groupFiles)
	return &selfPathRule{BuiltinRule: BuiltinRule{groupFiles, surfacePath, pattern, Deny, selfGroups[at].reason}, group: 1 << at, dir: both}
}

// above says whether a folder has the home directory somewhere in it.
func above(folder, home string) bool {
	_, ok := within(home, folder)
	return ok && home != ""
}

// concerns says, fast, whether a built-in rule could speak of a path. It is for
// all those of which none does.
func (s *Snapshot) concerns(p *place, typed string, how use) bool {
	if len(s.self.own) > 0 || how.home || how.gone || marked(typed, p.fold) {
		return true
	}
	for _, base := range p.bases {
		if marked(base, p.fold) {
			return true
		}
	}
	for _, resolved := range p.resolved[typed] {
		if marked(resolved, p.fold) {
			return true
		}
	}
	return slices.ContainsFunc(p.links, func(l link) bool { return marked(l.to, p.fold) })
}

// marked says whether a part of a path has a name without which no built-in
// rule matches.
func marked(s string, fold bool) bool {
	before, from := "", 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != '/' && s[i] != '\\' {
			if fold && s[i] >= 0x80 {
				return true // letters of other scripts may be folded into these
			}
			continue
		}
		name := s[from:i]
		if name != "" && markedName(name, before) {
			return true
		}
		before, from = name, i+1
	}
	return false
}

// markedName says whether one part of a path has such a name, behind the part
// before it.
func markedName(name, before string) bool {
	switch name[0] {
	case '@', '\'', '"', ' ', '\t', '\n':
		if name = strings.Trim(name, "@'\" \t\n"); name == "" {
			return false
		}
	}
	switch name[0] {
	case '.':
		return equalsAny(name, ".pi", ".codex", ".claude", ".assent", ".gemini", ".opencode", ".claude.json") || secretEnding(name)
	case '$':
		variable := strings.TrimSuffix(strings.TrimPrefix(name[1:], "{"), "}")
		return equalsAny(variable, "ASSENT_STORE", "CLAUDE_CONFIG_DIR", "CODEX_HOME") || secretEnding(name)
	case 'a', 'A':
		if equalsAny(name, "assent", "assent.exe") {
			// A project may have this name, and all that is in it with it.
			return before == "" || before[0] == '$' || equalsAny(before, ".config", "share", "state", "etc", "lib", "run", "bin")
		}
	case 'l', 'L':
		return equalsAny(before, "assent") && equalsAny(name, "local.json")
	case 'c', 'C', 'g', 'G', 'o', 'O':
		return equalsAny(name, "codex", "claude-code", "claudecode", "gemini-cli", "geminicli", "opencode", "opencode.json", "opencode.jsonc") || secretEnding(name)
	}
	return secretEnding(name)
}

func equalsAny(name string, of ...string) bool {
	for _, s := range of {
		if len(s) == len(name) && strings.EqualFold(s, name) {
			return true
		}
	}
	return false
}

func secretEnding(name string) bool {
	return endsFold(name, ".nk") || endsFold(name, ".creds")
}

func endsFold(name, ending string) bool {
	return len(name) >= len(ending) && strings.EqualFold(name[len(name)-len(ending):], ending)
}
