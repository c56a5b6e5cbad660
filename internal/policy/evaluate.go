package policy

import (
	"fmt"
	"slices"
	"strings"
)

// maxReported bounds the entries and units of one ruling: they travel in
// messages with a size limit, and nobody reads more.
const (
	maxReported = 32
	maxShown    = 1024
)

// ruleAlone rules one call under the rules of s itself.
func (s *Snapshot) ruleAlone(c Call) Ruling {
	args, known := arguments(c.Input)
	e := evaluation{s: s, tool: canonicalTool(c.Tool), place: placeOf(c), args: args}
	e.run()
	if !known {
		e.add(floor(e.tool, "", "unknown-input", "the call's input is no object that could be read"))
	}
	e.bound()
	e.out.settle()
	e.out.Suggest = e.suggest()
	return e.out
}

// evaluation is one ruling in the making.
type evaluation struct {
	s     *Snapshot
	tool  string
	place place
	args  map[string]any
	out   Ruling
	// denied: out holds an entry that denies. more counts the entries that did
	// not fit.
	denied bool
	more   int
	// effort counts the steps spent on comparing globs with rules.
	effort int
}

func (e *evaluation) run() {
	server, _, isMCP := mcpName(e.tool)
	_, isFile := fileTools[e.tool]
	switch {
	case e.tool == ToolCanary:
		e.add(canary())
	case e.tool == "":
		e.add(Entry{MatchedPattern: "<no-tool>", Origin: OriginBuiltin, Action: Deny, Reason: "the call names no tool"})
	case e.tool == surfaceBash:
		e.bash()
	case e.tool == surfaceMCP || isMCP && server != "":
		e.mcp()
		e.others()
	case isFile:
		e.file()
	default:
		e.others()
		value := e.value()
		e.add(e.s.entry(e.tool, e.place.home, value, values{exact: []string{value}}))
	}
}

// value is what the patterns of a tool are matched against where the tool has
// neither command nor path: the name of a skill, else "*".
func (e *evaluation) value() string {
	if e.tool == surfaceSkill {
		for _, key := range []string{"skill", "name"} {
			if name, _ := e.args[key].(string); name != "" {
				return name
			}
		}
	}
	return "*"
}

// canary is the entry of the doctor's test call.
func canary() Entry {
	return Entry{
		Surface: ToolCanary, Value: "*", MatchedPattern: "*", Origin: OriginBuiltin,
		Action: Deny, Reason: CanaryReason,
	}
}

// add notes an entry, once. Beyond maxReported only the first that denies is
// kept: padding must neither hide a deny nor make a ruling that cannot be sent.
func (e *evaluation) add(entry Entry) {
	for _, have := range e.out.Entries {
		if have.Surface == entry.Surface && have.Value == entry.Value && have.MatchedPattern == entry.MatchedPattern &&
			have.Action == entry.Action && have.Origin == entry.Origin {
			return
		}
	}
	if len(e.out.Entries) >= maxReported && (e.denied || entry.Action != Deny) {
		if entry.Action != Allow {
			e.more++
		}
		return
	}
	e.denied = e.denied || entry.Action == Deny
	e.out.Entries = append(e.out.Entries, entry)
}

// file rules a tool of the table: the crosscutting surfaces for its path, and
// its own surface with the path as value.
func (e *evaluation) file() {
	tool := fileTools[e.tool]
	paths, odd := namedTexts(e.args, tool.paths)
	if len(paths) == 0 && tool.here && !odd {
		paths = []string{"."}
	}
	if len(paths) == 0 || odd {
		e.add(strict(e.s.entry(e.tool, e.place.home, "", values{wide: []string{""}})))
		e.add(floor(e.tool, "", "no-path", "the call names no path that can be ruled on"))
	}
	for _, typed := range paths {
		for _, p := range fromURL(typed) {
			e.crossing(p, tool.dir, 0)
			e.add(e.fileEntry(p))
		}
	}
	chosen, odd := namedTexts(e.args, tool.globs)
	for _, g := range chosen {
		e.glob(g, tool.dir)
	}
	if tool.selects {
		e.chosen(paths, chosen, odd)
	}
	e.unknownArguments(tool)
}

// chosen rules what a tool that looks into directories could come upon there.
// A tool that only names files, as glob and grep for names, shows none of what
// is in them.
func (e *evaluation) chosen(dirs, chosen []string, odd bool) {
	if kind, ok := e.args["type"].(string); ok && e.tool == "grep" && kind != "" && len(chosen) == 0 {
		chosen = []string{typeGlob(kind)}
	}
	mode, _ := e.args["output_mode"].(string)
	names := e.tool != "grep" || mode == "files_with_matches" || mode == "count"
	if odd || len(chosen) == 0 && !names {
		chosen = append(chosen, "*")
	}
	for _, dir := range dirs {
		for _, g := range chosen {
			if !file(dir) {
				e.selects(dir, g, reads, 0)
			}
		}
	}
}

// unknownArguments keeps a call of a known tool from being allowed that holds
// arguments which seem to name files, and which the tool is not known to have.
func (e *evaluation) unknownArguments(tool fileTool) {
	rest := map[string]any{}
	for k, v := range e.args {
		if !slices.Contains(tool.paths, k) && !slices.Contains(tool.globs, k) {
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

// strict keeps a deny and makes everything else an ask that nothing lifts: for
// rules consulted about a value that nobody could read.
func strict(e Entry) Entry {
	if e.Action != Deny {
		e.Action, e.Floor = Ask, true
	}
	return e
}

// fileEntry is what a file tool's own surface says of a path: the strictest of
// all readings.
func (e *evaluation) fileEntry(typed string) Entry {
	var out Entry
	for i, r := range e.place.readings(typed) {
		got := e.s.entry(e.tool, e.place.home, typed, r.values(typed))
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
	for _, entry := range e.s.cross(e.place, typed, dir) {
		entry.Unit = unit
		e.add(entry)
	}
}

// glob rules an argument that selects files by a pattern: a path rule may name
// the very pattern, and its fixed front may lead out of the project.
func (e *evaluation) glob(g string, dir direction) {
	e.bare(g, dir, 0)
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
		if strings.HasPrefix(one, "/") || strings.HasPrefix(one, "~") || strings.Contains(one, "..") {
			e.crossing(front, dir, 0)
		}
	}
}

// bare adds the path entries of a word that need not be a path: only a rule
// that denies or asks about something more than everything counts.
func (e *evaluation) bare(word string, dir direction, unit int) {
	for _, r := range e.place.readings(word) {
		found := e.s.directed(surfacePath, e.place.home, r.values(word), dir)
		if found == nil || found.action == Allow || found.pattern.w.any() {
			continue
		}
		entry := e.s.entryOf(found, surfacePath, word)
		entry.Unit = unit
		e.add(entry)
	}
}

// others adds the crosscutting entries of a tool that the table does not know:
// arguments with a path's name are taken for paths, either way.
func (e *evaluation) others() {
	paths, all := otherPaths(e.args)
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
}

// bound keeps a ruling small enough to be sent. What is left out is made up
// for by an entry that asks.
func (e *evaluation) bound() {
	if e.more > 0 {
		e.out.Entries = append(e.out.Entries,
			floor(e.tool, "", "too-many-entries", fmt.Sprintf("%d more things to rule on than are shown", e.more)))
	}
	for i := range e.out.Entries {
		entry := &e.out.Entries[i]
		entry.Value = shorten(entry.Value)
		if entry.Unit >= maxReported {
			entry.Unit = 0
		}
	}
	if len(e.out.Units) > maxReported {
		e.out.Units = e.out.Units[:maxReported]
	}
	for i := range e.out.Units {
		e.out.Units[i].Text = shorten(e.out.Units[i].Text)
	}
}

// shorten cuts a text that is only shown.
func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}
