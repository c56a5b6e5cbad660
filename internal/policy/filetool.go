package policy

import (
	"slices"
	"strings"
)

// file rules a tool of the table: the crosscutting surfaces for its path, and
// its own surface with the path as value.
func (e *evaluation) file(tool fileTool) {
	paths, odd := namedTexts(e.args, tool.paths)
	chosen, oddGlobs := namedTexts(e.args, tool.globs)
	var found []typedPath
	if tool.patch {
		var fits bool
		found, fits = patchedFiles(e.args, tool.paths)
		odd = odd || !fits
	}
	if len(paths) == 0 && tool.here && !odd {
		paths = []string{"."}
	}
	for _, typed := range paths {
		for _, p := range fromURL(typed) {
			found = append(found, typedPath{p, tool.dir})
		}
	}
	for _, a := range e.s.pathArguments[e.name()] {
		more, strange := namedTexts(e.args, []string{a.name})
		odd = odd || strange
		for _, typed := range more {
			found = append(found, typedPath{typed, a.dir})
		}
	}
	if len(found) == 0 || odd {
		e.noPath()
	}
	for _, p := range found {
		readings := e.place.readings(p.text)
		own := p.dir == reads && e.agentsOwn(p.text)
		e.protect(&e.place, p.text, p.dir)
		if !stream(p.text) {
			for _, entry := range e.s.crossReadings(&e.place, readings, p.text, p.dir) {
				if !own || entry.Surface != surfaceExternal {
					e.add(entry)
				}
			}
		}
		e.add(e.fileEntry(readings, p.text))
	}
	for _, g := range chosen {
		e.glob(g, tool.dir)
	}
	if tool.selects {
		e.chosen(paths, chosen, oddGlobs)
	}
	e.unknownArguments(tool)
}

// noPath rules a call of a file tool that names no file. Where it holds no text
// at all it can open none; any text may be a path under a name that nobody here
// knows.
func (e *evaluation) noPath() {
	var texts []string
	if all := textsUnder(e.args, true, func(string) bool { return true }, 0, &texts); all && strings.Join(texts, "") == "" {
		e.add(Entry{Surface: e.tool, MatchedPattern: "<no-path>", Origin: OriginBuiltin, Action: Allow,
			Reason: "the call holds no text, so it opens no file; the rules for the tool as a whole decide"})
		e.add(e.ruled("", values{exact: []string{""}}))
		return
	}
	e.add(strict(e.ruled("", values{wide: []string{""}})))
	e.add(floor(e.tool, "", "no-path", "the call does not say in a known argument which file it means"))
}

// agentFolders are where agents keep what they are told to read: skills, docs
// and extensions of their own. agentSecrets lie there too.
var (
	agentFolders = []pattern{compilePathPattern("~/.pi/agent/*")}
	agentSecrets = []pattern{compilePathPattern("~/.pi/agent/auth*"), compilePathPattern("~/.pi/agent/sessions*")}
)

// agentsOwn says whether a path lies in an agent's own folder, and nothing but
// what holds for everything outside of the project is asked of it: what a rule
// says of the place by name, and every deny, stands.
func (e *evaluation) agentsOwn(typed string) bool {
	if !strings.Contains(typed, "/agent") {
		return false
	}
	readings := e.place.readings(typed)
	return len(readings) > 0 && !slices.ContainsFunc(readings, func(r pathReading) bool {
		v := r.values(typed)
		matches := func(p pattern) bool {
			return slices.ContainsFunc(v.exact, func(s string) bool { return p.match(s, e.place.home, false) })
		}
		found := e.s.directed(surfaceExternal, e.place.home, v, reads)
		asked := found == nil && e.s.entryOf(nil, surfaceExternal, "*").Action == Ask || found != nil && found.action == Ask && !found.humanOnly && found.pattern.w.any()
		return !asked || e.s.clamped != "" || !slices.ContainsFunc(agentFolders, matches) || slices.ContainsFunc(agentSecrets, matches)
	})
}

// typedPath is a path as typed, and what is done with it.
type typedPath struct {
	text string
	dir  direction
}

// chosen rules what a tool that looks into directories could come upon there.
// A tool that only names files, as glob and grep for names, shows none of what
// is in them.
func (e *evaluation) chosen(dirs, chosen []string, odd bool) {
	if kind, ok := e.args["type"].(string); ok && e.tool == "grep" && kind != "" && len(chosen) == 0 {
		chosen = []string{typeGlob(kind)}
	}
	mode, _ := e.args["output_mode"].(string)
	names := e.tool != "grep" && e.tool != "read" || mode == "files_with_matches" || mode == "count"
	if names {
		// To name all there is does no more than a listing.
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(g string) bool { return strings.Trim(g, "*/") == "" })
	}
	if odd || len(chosen) == 0 && !names {
		chosen = append(chosen, "*")
	}
	for _, dir := range dirs {
		for _, g := range chosen {
			if !file(dir) {
				e.selects(&e.place, dir, g, reads, 0)
			}
		}
	}
}

// unknownArguments keeps a call of a known tool from being allowed that holds
// arguments which seem to name files, and which the tool is not known to have.
func (e *evaluation) unknownArguments(tool fileTool) {
	rest := map[string]any{}
	for k, v := range e.args {
		if !slices.Contains(tool.paths, k) && !slices.Contains(tool.globs, k) && !e.s.declaredPath(e.name(), k) {
			rest[k] = v
		}
	}
	found, all := otherPaths(rest)
	for _, p := range found {
		for _, p := range fromURL(p) {
			e.crossing(p, tool.dir, 0)
		}
	}
	if len(found) > 0 || !all {
		e.add(floor(e.tool, "", "unknown-argument", "the call names files in arguments that this tool is not known to have"))
	}
}

func (s *Snapshot) declaredPath(tool, argument string) bool {
	return slices.ContainsFunc(s.pathArguments[tool], func(a pathArg) bool { return a.name == argument })
}

// fileEntry is what a file tool's own surface says of a path: the strictest of
// all readings.
func (e *evaluation) fileEntry(readings []pathReading, typed string) Entry {
	var out Entry
	for i, r := range readings {
		got := e.ruled(typed, r.values(typed))
		if r.abs == "" {
			got = strict(got)
		}
		if i == 0 || got.Action < out.Action {
			out = got
		}
	}
	return out
}

// crossing adds what the crosscutting surfaces say of a path.
func (e *evaluation) crossing(typed string, dir direction, unit int) {
	e.crossingAt(&e.place, typed, dir, unit)
}

func (e *evaluation) crossingAt(p *place, typed string, dir direction, unit int) {
	e.protect(p, typed, dir)
	for _, entry := range e.s.cross(p, typed, dir) {
		entry.Unit = unit
		e.add(entry)
	}
}

// glob rules an argument that selects files by a pattern: a path rule may name
// the very pattern, and its fixed front may lead out of the project.
func (e *evaluation) glob(g string, dir direction) {
	e.bare(&e.place, g, dir, 0)
	all, ok := globs(g)
	if !ok {
		e.add(floor(e.tool, g, "odd-pattern", "nobody can tell which files this pattern selects"))
		return
	}
	for _, one := range all {
		front := one
		if i := strings.IndexAny(one, "*?"); i >= 0 {
			front = one[:i]
		}
		if strings.HasPrefix(one, "/") || strings.HasPrefix(one, "~") || strings.Contains(one, "..") || drive(one) {
			e.crossing(front, dir, 0)
		}
	}
}

// bare adds the path entries of a word that need not be a path: only a rule
// that denies or asks about something more than everything counts.
func (e *evaluation) bare(p *place, word string, dir direction, unit int) {
	if stream(word) {
		return
	}
	if r, ok := p.single(word); ok {
		if found := e.s.directedAt(p, &r, word, dir); speaksOf(found) {
			e.bareRule(p, found, r, word, unit)
		}
		e.bareSkill(p, r, word, dir, unit)
		return
	}
	for _, r := range p.readings(word) {
		if found := e.s.directed(surfacePath, p.home, r.values(word), dir); speaksOf(found) {
			e.bareRule(p, found, r, word, unit)
		}
		e.bareSkill(p, r, word, dir, unit)
	}
}

func (e *evaluation) bareSkill(p *place, r pathReading, word string, dir direction, unit int) {
	if entry, ok := e.s.skillEntry(p, r, word, dir); ok {
		entry.Unit = unit
		e.add(entry)
	}
}

// speaksOf says whether a rule denies or asks about something more than
// everything.
func speaksOf(found *rule) bool {
	return found != nil && found.action != Allow && !found.pattern.w.any()
}

func (e *evaluation) bareRule(p *place, found *rule, r pathReading, word string, unit int) {
	entry := e.s.decided(found, surfacePath, word, p.home, r.values(word))
	entry.Unit = unit
	e.add(entry)
}

// others adds the crosscutting entries of a tool that the table does not know:
// the arguments that the policy says hold paths, else those with a path's name,
// either way; and denies of what looks like a command. It says whether the
// input was understood.
func (e *evaluation) others(args map[string]any, known bool) bool {
	declared, ok := e.s.pathArguments[e.name()]
	if ok {
		return e.declared(declared, args, known)
	}
	if text, ok := plainText(e.input); ok && !known {
		// A tool that takes one text: it may be a path, and nothing else.
		e.maybePath(text)
		return true
	}
	if len(args) == 0 {
		return known
	}
	paths, all := otherPaths(args)
	if !all {
		e.add(floor(e.tool, "", "unknown-input", "the call's input is too large to find all paths in it"))
	}
	for _, typed := range paths {
		if strings.Contains(typed, "://") && !isFileURL(typed) {
			continue
		}
		for _, p := range fromURL(typed) {
			e.crossing(p, both, 0)
		}
	}
	e.likelyPaths(args)
	e.maybeCommands(args)
	return known
}

func (e *evaluation) declared(list []pathArg, args map[string]any, known bool) bool {
	for _, a := range list {
		texts, odd := namedTexts(args, []string{a.name})
		if odd {
			e.add(floor(e.tool, a.name, "no-path", "this argument holds paths, and what stands there is no text"))
		}
		for _, typed := range texts {
			for _, p := range fromURL(typed) {
				e.crossing(p, a.dir, 0)
			}
		}
	}
	return known
}

func (e *evaluation) maybePath(text string) {
	switch {
	case text == "" || len(text) > maxShown:
	case looksLikePath(text) && !strings.ContainsAny(text, " \n"):
		for _, p := range fromURL(text) {
			e.crossing(p, both, 0)
		}
	default:
		e.bare(&e.place, text, both, 0)
	}
}
