package policy

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/shell"
)

// maxReported bounds the entries and units of one ruling: they travel in
// messages with a size limit, and nobody reads more.
const (
	maxReported = 32
	maxShown    = 1024
)

// evaluations are used again: one is the largest part of what a ruling takes.
var evaluations = sync.Pool{New: func() any { return new(evaluation) }}

// ruleAlone rules one call under the rules of s itself.
func (s *Snapshot) ruleAlone(c Call) Ruling {
	args, known := arguments(c.Input)
	e := evaluations.Get().(*evaluation)
	*e = evaluation{s: s, place: placeOf(c), args: args, input: c.Input, servers: c.MCPServers}
	e.tool, e.own = kindOfTool(strings.TrimSpace(c.Tool))
	e.run(known)
	e.bound()
	e.out.settle()
	e.out.Suggest = e.suggest()
	out := e.out
	*e = evaluation{} // nothing of a call outlives it
	evaluations.Put(e)
	return out
}

// evaluation is one ruling in the making.
type evaluation struct {
	s *Snapshot
	// tool is the surface of the tool's kind, own the tool's name where that is
	// another.
	tool, own string
	place     place
	args      map[string]any
	input     jsontext.Value
	servers   []string
	out       Ruling
	// denied: out holds an entry that denies. more counts the entries that did
	// not fit.
	denied bool
	more   int
	// command is the shell text that was read last.
	command *shell.Command
	// ways are the directions in which the words of a command are used.
	ways map[string]direction
	// effort counts the steps spent on comparing globs with rules.
	effort int
	// places as deniedPlaces says, once it was asked for; copied are the copies
	// that were looked at.
	places []string
	copied map[seenWord]bool
	// folders counts the words that were looked at as folders.
	folders int
}

// run consults every surface that has a say. known: the input could be read.
func (e *evaluation) run(known bool) {
	name := e.name()
	declared, isShell := e.s.shells[name]
	switch {
	case e.tool == ToolCanary:
		e.add(canary())
		return
	case e.tool == "":
		e.add(Entry{MatchedPattern: "<no-tool>", Origin: OriginBuiltin, Action: Deny, Reason: "the call names no tool"})
		return
	case isShell:
		e.tool, e.own = surfaceBash, name
		e.shellCall(declared)
	case e.tool == surfaceBash:
		e.shellCall(shellTools[name])
	case e.isMCP():
		e.mcp()
	case fileTools[name].surface != "":
		e.file(fileTools[name])
	default:
		known = e.others(e.args, known)
		for _, value := range e.values() {
			e.add(e.ruled(value, values{exact: []string{value}}))
		}
	}
	if !known {
		e.add(floor(e.tool, "", "unknown-input", "the call's input is no object that could be read"))
	}
}

// name is the tool's own name, as rules may write it.
func (e *evaluation) name() string {
	if e.own != "" {
		return e.own
	}
	return e.tool
}

// ruled is what the rules of the tool's kind and those of its own name say of a
// value: the stricter where both speak, the fallback where neither does.
func (e *evaluation) ruled(shown string, v values) Entry {
	found, surface := e.s.rules.last(e.tool, e.place.home, v), e.tool
	if e.own != "" {
		if r := e.s.rules.last(e.own, e.place.home, v); r != nil && (found == nil || e.s.ruleStrictness(e.own, r) < e.s.ruleStrictness(e.tool, found)) {
			found, surface = r, e.own
		}
	}
	return e.s.decided(found, surface, shown, e.place.home, v)
}

// noValue is the value of a tool that has none.
var noValue = []string{"*"}

// values are what the patterns of a tool are matched against where the tool has
// neither command nor path: the name of a skill, else "*". Agents differ in the
// argument that names a skill, and one takes no notice of another's: all count.
func (e *evaluation) values() (names []string) {
	for _, key := range []string{"skill", "name", "command"} {
		if name, _ := e.args[key].(string); e.tool == surfaceSkill && name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return noValue
	}
	return names
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

// strict keeps a deny and makes everything else an ask that nothing lifts: for
// rules consulted about a value that nobody could read.
func strict(e Entry) Entry {
	if e.Action != Deny {
		e.Action, e.Floor = Ask, true
	}
	return e
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
