package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// suggest is the pattern offered for a grant on the first open entry; none where
// a grant would not let it pass: a floor stands beside it, or only a person may
// answer. What is offered always covers what it is offered for.
func (e *evaluation) suggest() []string {
	open := e.out.Open()
	if len(open) == 0 || strings.HasSuffix(open[0].Value, "…") {
		return nil
	}
	first := open[0]
	if slices.ContainsFunc(open, func(o Entry) bool { return o.Unit == first.Unit && (o.Floor || o.HumanOnly) }) {
		return nil
	}
	return e.offer(first)
}

// offer is the pattern for an entry, or the entry's own value where the pattern
// would not cover it.
func (e *evaluation) offer(of Entry) []string {
	for _, pattern := range []string{e.pattern(of), of.Value} {
		if e.wildcards(of, pattern) {
			continue
		}
		g, err := NewGrant("", of.Surface, []string{pattern})
		if err == nil && g.coversAt(e.place, of.Surface, of.Value)[0] {
			return []string{pattern}
		}
	}
	return nil
}

// wildcards says whether something that the call itself holds would become a
// wildcard in a pattern for it. "*" is no such thing where a tool has no value.
func (e *evaluation) wildcards(of Entry, pattern string) bool {
	hasValue := of.Surface == surfaceBash || of.Surface == surfaceMCP || of.Surface == surfaceSkill || pathSurface(of.Surface)
	if !hasValue && pattern == "*" {
		return false
	}
	if pattern != of.Value {
		pattern = strings.TrimSuffix(pattern, "*")
	}
	return strings.ContainsAny(pattern, "*?")
}

// pattern is the pattern for things like that of an entry.
func (e *evaluation) pattern(of Entry) string {
	switch {
	case of.Surface == surfaceBash:
		text, _ := e.args["command"].(string)
		for _, u := range e.readText(text).Units {
			if u.Text == of.Value {
				return commandPattern(u.Words)
			}
		}
		return of.Value
	case of.Surface == surfaceMCP:
		return serverPattern(of.Value)
	case pathSurface(of.Surface):
		return e.folderPattern(of.Value)
	case of.Surface == surfaceSkill:
		return of.Value
	}
	return "*" // any other tool has no value
}

// commandPattern is the pattern for commands that do the same as words do.
func commandPattern(words []string) string {
	n := arity(words)
	whole := strings.Join(words, " ")
	switch {
	case len(words) < 2 || exact(words, n):
		return whole
	case n >= len(words):
		return whole + "*"
	}
	return strings.Join(words[:n], " ") + " *"
}

// serverPattern is all tools of an MCP server. What names no server stands for
// itself: a star would be every tool of every server.
func serverPattern(value string) string {
	i := strings.IndexAny(value, ":/")
	if i < 0 {
		i = strings.IndexByte(value, '_')
	}
	if i <= 0 {
		return value
	}
	return value[:i+1] + "*"
}

// folderPattern is everything in a path's folder, where that is a folder of its
// own kind: neither the disk, nor a home, nor one of the system's.
func (e *evaluation) folderPattern(value string) string {
	dir := path.Dir(value)
	home := e.place.home
	switch {
	case secretIn(value, compileAll(lowered(e.s.secrets)...)) != "",
		strings.Contains(value, `\`), strings.Contains("/"+value+"/", "/../"), strings.HasSuffix(value, "/"),
		dir == "/" || dir == "~" || dir == home || home != "" && strings.HasPrefix(home, dir+"/"),
		strings.HasPrefix(path.Base(dir), ".") && dir != ".",
		systemFolder(dir):
		return value
	case dir == "." && value != ".":
		return "./*"
	}
	return dir + "/*"
}

// Folders at the top of a disk. In those of the system no two files are of one
// kind; of the others what lies right below is too much.
var (
	systems = strings.Fields("etc dev proc sys boot root run bin sbin lib lib64 System Library private")
	commons = strings.Fields("usr var opt home Users")
)

func systemFolder(dir string) bool {
	rest, absolute := strings.CutPrefix(dir, "/")
	if !absolute {
		return false
	}
	parts := strings.Split(rest, "/")
	return slices.Contains(systems, parts[0]) || slices.Contains(commons, parts[0]) && len(parts) < 3
}

// suggestPlace stands for the directory of a query that names none.
const suggestPlace = "/project"

// Suggest is the pattern for a grant on what a query asks about, where the rules
// leave that open or do not speak of it. A query is about the rules alone: that
// a call may be open for another reason as well is not known here.
func (s *Snapshot) Suggest(q Query) []string {
	surface := canonicalTool(q.Surface)
	if plain := crosscutting(surface); plain != "" {
		surface = plain
	}
	c := s.Check(q)
	silent := surface == surfacePath && c.Origin == OriginDefault
	switch {
	case q.Surface == "" || q.Tool != "" || c.State != Ask && !silent:
		return nil
	case pathSurface(surface) && q.Value == "*":
		return []string{"*"} // the tool as a whole
	case surface == surfaceMCP && q.Value != "" && !strings.ContainsAny(q.Value, "*?"):
		return []string{serverPattern(q.Value)} // whose tool it is depends on the call
	}
	if q.Cwd == "" {
		q.Cwd = suggestPlace
	}
	e := evaluation{
		s: s, tool: surface, place: placeOf(Call{Cwd: q.Cwd, Home: q.Home, Platform: q.Platform, Paths: q.Paths}),
		args: map[string]any{"command": q.Value},
	}
	of := Entry{Surface: surface, Value: strings.TrimSpace(q.Value)}
	if pathSurface(surface) && strings.HasSuffix(of.Value, "/") {
		// A folder, by what is in it. The folders for which that is too much are
		// offered as what they are.
		inside := of
		inside.Value += "x"
		if p := e.folderPattern(inside.Value); p != inside.Value && !e.wildcards(inside, p) {
			return e.offer(inside)
		}
	}
	if surface == surfaceBash {
		units := shell.Read(q.Value).Units
		if len(units) == 0 {
			return []string{""} // nothing runs: the rule for it, and no grant
		}
		of.Value = units[0].Text
	}
	return e.offer(of)
}
