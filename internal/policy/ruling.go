package policy

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Path is one path that the adapter fixed: as the agent typed it, and as it
// resolves on the agent's host (symbolic links followed). Resolved may be
// empty where the adapter could not tell.
type Path struct {
	Raw      string
	Resolved string
}

// Call is what a ruling is made on: one tool call and the facts its adapter
// fixed. Facts of the agent's host only tighten a ruling.
type Call struct {
	// Tool is the tool's name as the adapter gives it. Known tools are
	// recognised in any letter case ("Bash" is the shell).
	Tool string
	// Input is the tool's input as JSON; nil or not an object is a call
	// without arguments.
	Input jsontext.Value
	// Cwd and Home are absolute paths on the agent's host. Without an
	// absolute Cwd no path is known to be inside it.
	Cwd, Home string
	// Platform is the agent's system as Go names it ("linux", "darwin"); where
	// files are found in any letter case, so are they by what denies and asks.
	Platform string
	// Paths are the paths that the adapter resolved, in any order.
	Paths []Path
	// MCPServers are the names of the MCP servers that the agent has; by them a
	// tool's name that joins server and tool is taken apart.
	MCPServers []string
	// StatedServers are the same on the word of the agent's host. They tighten
	// alone: a call is ruled with them and without, and the stricter ruling
	// stands, so that no host makes a tool one of a server that may be called.
	StatedServers []string
}

// Entry is what one surface said about one value of a call.
type Entry struct {
	// Surface as the rules name it: "bash", "read", "external_directory", …
	Surface string
	// Value that was matched: a command, a path, "server/tool" or "*".
	Value string
	// MatchedPattern is the rule's pattern, or a sentinel in angle brackets
	// ("<wrapper:sudo>") that says why a floor was set.
	MatchedPattern string
	// Origin is who wrote the rule: the layer's name, or one of the Origin
	// constants.
	Origin string
	// Place is where the rule stands that spoke; nowhere for what no rule said.
	Place  Position
	Action Action
	// Reason and Guidance are the rule's own words for the agent and for the
	// approver.
	Reason, Guidance string
	// HumanOnly: no link, grant or yolo answers this entry, only a person.
	HumanOnly bool
	// Floor: the entry is open because the call could not be proven harmless,
	// not because a rule asks. Neither yolo nor a grant lifts it.
	Floor bool
	// Unit is the index in Ruling.Units of the shell unit the entry is about;
	// 0 for calls without units.
	Unit int
}

// Unit is one command found in a shell text, with what the shell rules say
// about it alone.
type Unit struct {
	Text    string
	Action  Action
	Pattern string
	// Note says what sort of place the unit was found in, as
	// "inside sudo" or "in a substitution"; empty for the command itself.
	Note string
}

// Ruling is the answer of recorded authority to one call. Its zero value
// refuses: Action is None.
type Ruling struct {
	// Action is the strictest of all entries.
	Action Action
	// Entries are all that was consulted, external_directory first, then path,
	// then the others; within each in the order of the source.
	Entries []Entry
	// Units are the commands of a shell call, in the order of the source.
	Units []Unit
	// Decisive is the entry to report: the first with Action.
	Decisive Entry
	// Suggest are the patterns that an approver may be offered for a grant on
	// the first open entry; empty where none would be safe.
	Suggest []string
	// Cleared are the entries that grants made an allow of; see RuleWith.
	Cleared []Entry
}

// Open returns the entries that the rules left to somebody else: those that
// ask. They matter only where Action is Ask; a denied call has nothing open.
func (r Ruling) Open() []Entry {
	if r.Action != Ask {
		return nil
	}
	var open []Entry
	for _, e := range r.Entries {
		if e.Action == Ask {
			open = append(open, e)
		}
	}
	return open
}

// unreadable are the floors that say that a call could not be read at all.
var unreadable = []string{"<no-command>", "<no-path>", "<no-tool>", "<unknown-input>"}

// Unreadable says whether the call does not say what it would do: no command,
// no path, an input that is none. Nobody can have allowed such a call knowing
// what it is, so what an approver made of a call must not be one.
func (r Ruling) Unreadable() bool {
	return len(r.Entries) == 0 || slices.ContainsFunc(r.Entries, func(e Entry) bool {
		return e.Origin == OriginBuiltin && slices.Contains(unreadable, e.MatchedPattern)
	})
}

// settle orders the entries, takes the strictest action and picks the entry to
// report. A ruling without entries stays None, and so refuses.
func (r *Ruling) settle() {
	slices.SortStableFunc(r.Entries, func(a, b Entry) int { return surfaceRank(a.Surface) - surfaceRank(b.Surface) })
	if len(r.Entries) == 0 {
		return
	}
	r.Action = Allow
	for _, e := range r.Entries {
		r.Action = stricter(r.Action, e.Action)
	}
	i := slices.IndexFunc(r.Entries, func(e Entry) bool { return e.Action == r.Action })
	if r.Action == Allow {
		// What allowed a call is the rule of its tool; the crosscutting
		// surfaces only let it pass.
		i = len(r.Entries) - 1
		if at := slices.IndexFunc(r.Entries, func(e Entry) bool { return surfaceRank(e.Surface) == 2 && e.Origin != OriginBuiltin }); at >= 0 {
			i = at
		}
		// Where yoloMode let any of it pass, the rules alone did not allow it, and
		// the record must not say that they did.
		if at := slices.IndexFunc(r.Entries, func(e Entry) bool { return e.Origin == OriginYolo }); at >= 0 {
			i = at
		}
	}
	r.Decisive = r.Entries[i]
}

// surfaceRank is the order in which surfaces are reported.
func surfaceRank(surface string) int {
	switch crosscutting(surface) {
	case surfaceExternal:
		return 0
	case surfacePath:
		return 1
	}
	return 2
}
