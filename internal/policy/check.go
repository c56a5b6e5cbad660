package policy

import (
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// Query is a question about the rules without a call: what they say of a value
// on a surface, or of a tool as a whole. Exactly one of Surface and Tool is
// set.
type Query struct {
	Surface, Value string
	Tool           string
	// Cwd, Home, Platform and Paths as in Call; they matter for paths only.
	Cwd, Home, Platform string
	Paths               []Path
	// WithPaths rules the paths in a shell text too, as in a call that runs it;
	// without, only its commands are ruled.
	WithPaths bool
}

// Check is the answer to a Query. Its zero value refuses.
type Check struct {
	State          Action
	MatchedPattern string
	Origin         string
	Reason         string
}

// Check answers a query from the rules alone. A shell text is read as a call's
// would be, floors included; a path in all its readings. A query that names
// nothing is denied.
func (s *Snapshot) Check(q Query) Check {
	out := s.checkAlone(q)
	for _, t := range s.tighter {
		if c := t.checkAlone(q); c.State < out.State && (!t.finalOnly || c.State <= Deny) {
			out = c
		}
	}
	return out
}

// CheckWith answers as Check does and, where the rules ask about a value, with
// grants: each clears what RuleWith would let it clear. used are the ids of those
// that the answer rests on. The state of a tool is what the rules are: no grant
// changes it.
func (s *Snapshot) CheckWith(q Query, grants []Grant) (answer Check, used []string) {
	plain := s.Check(q)
	if plain.State != Ask || q.Tool != "" || len(grants) == 0 || s.clamped != "" {
		return plain, nil
	}
	g := &granting{grants: grants}
	out := s.granted(g).Check(q)
	if len(g.cleared) == 0 {
		return plain, nil
	}
	if out.State == Allow {
		e := g.cleared[0] // the rules alone did not allow it
		out.MatchedPattern, out.Origin, out.Reason = e.MatchedPattern, e.Origin, e.Reason
	}
	return out, idsOf(g.cleared)
}

func (s *Snapshot) checkAlone(q Query) Check {
	var r Ruling
	switch {
	case q.Tool != "" && q.Surface == "":
		return s.checkTool(canonicalTool(q.Tool))
	case q.Surface != "" && q.Tool == "":
		r = s.checkSurface(q)
	}
	r.settle()
	if r.Action == None {
		return Check{State: Deny, Origin: OriginBuiltin, Reason: "a query names a surface and a value, or a tool"}
	}
	d := r.Decisive
	return Check{d.Action, d.MatchedPattern, d.Origin, d.Reason}
}

// checkTool is the state of a tool before anything is known of its input. It
// ignores yoloMode: it says what the rules are, not what is let pass.
func (s *Snapshot) checkTool(tool string) Check {
	if tool == ToolCanary {
		c := canary()
		return Check{c.Action, c.MatchedPattern, c.Origin, c.Reason}
	}
	if _, _, ok := mcpName(tool); ok {
		tool = surfaceMCP
	}
	plain := *s
	plain.yolo = nil
	e := evaluation{s: &plain}
	e.tool, e.own = kindOfTool(tool)
	got := e.ruled("*", values{exact: []string{"*"}})
	return Check{got.Action, got.MatchedPattern, got.Origin, got.Reason}
}

func (s *Snapshot) checkSurface(q Query) Ruling {
	surface := canonicalTool(q.Surface)
	e := evaluation{s: s, tool: surface, place: placeOf(Call{Cwd: q.Cwd, Home: q.Home, Platform: q.Platform, Paths: q.Paths})}
	switch plain := crosscutting(surface); {
	case surface == ToolCanary:
		e.add(canary())
	case surface == surfaceBash:
		cmd := shell.Read(q.Value)
		e.shell(cmd)
		if q.WithPaths {
			e.shellPaths(cmd)
			e.bound()
		}
	case surface == surfaceMCP:
		e.checkMCP(q.Value)
	case plain != "":
		e.checkCrosscutting(plain, strings.TrimPrefix(surface, plain), q.Value)
	case pathSurface(surface):
		e.tool, e.own = kindOfTool(surface)
		e.protect(&e.place, q.Value, fileTools[surface].dir)
		e.add(e.fileEntry(e.place.readings(q.Value), q.Value))
	default:
		e.add(s.entry(surface, e.place.home, q.Value, values{exact: []string{q.Value}}))
	}
	return e.out
}

// checkCrosscutting answers for path and external_directory; a path that no
// path rule speaks of passes there as it would in a call.
func (e *evaluation) checkCrosscutting(plain, suffix, value string) {
	dir := map[string]direction{suffixRead: reads, suffixWrite: writes, "": both}[suffix]
	if plain == surfacePath {
		e.protect(&e.place, value, dir)
	}
	for _, r := range e.place.readings(value) {
		found := e.s.directed(plain, e.place.home, r.values(value), dir)
		if found == nil && plain == surfacePath {
			e.add(Entry{Surface: plain, Value: value, MatchedPattern: "*", Origin: OriginDefault, Action: Allow,
				Reason: "no path rule speaks of it; the tool's own rules decide"})
			continue
		}
		e.add(e.s.entryOf(found, plain, value))
	}
}
