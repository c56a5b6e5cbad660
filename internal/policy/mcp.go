package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// mcpPrefix starts the names of tools that an agent lists under one name for
// server and tool together, as mcp__server__tool.
const mcpPrefix = "mcp__"

// mcpName takes such a name apart at its first separator.
func mcpName(tool string) (server, name string, ok bool) {
	rest, ok := strings.CutPrefix(tool, mcpPrefix)
	if !ok {
		return "", "", false
	}
	server, name, ok = strings.Cut(rest, "__")
	return server, name, ok && server != "" && name != ""
}

// isMCP says whether the call is one of an MCP tool: by the gateway's name, by
// a joined one, or by that of a server that the agent has.
func (e *evaluation) isMCP() bool {
	if _, _, joined := mcpName(e.tool); joined || e.tool == surfaceMCP {
		return true
	}
	return len(e.servers) > 0 && e.own == "" && fileTools[e.tool].surface == "" && e.tool != surfaceSkill && len(e.splits(e.tool)) > 0
}

// mcp rules a call of an MCP tool.
func (e *evaluation) mcp() {
	if e.tool != surfaceMCP {
		e.joined(e.tool, e.splits(e.tool))
		e.others(e.args, true)
		return
	}
	target, known := e.target()
	switch {
	case !known:
		e.add(strict(e.s.mcpEntry(e.place.home, target.shown(), target.values())))
		e.add(floor(surfaceMCP, target.shown(), "no-tool", "the call does not say which server and tool it means"))
	case target.name == "":
		e.discover(target.server)
	case target.server == "":
		e.joined(target.name, e.splits(target.name))
	default:
		e.add(e.s.mcpEntry(e.place.home, target.shown(), target.values()))
	}
	e.others(e.mcpArguments(target), true)
}

// joined rules a name that may join server and tool. Taken apart in more than
// one way it is denied by a rule on any of them, and allowed by none.
func (e *evaluation) joined(name string, splits []mcpTool) {
	entries := make([]Entry, 0, len(splits)+1)
	for _, t := range splits {
		entries = append(entries, e.s.mcpEntry(e.place.home, splits[0].shown(), t.values()))
	}
	if len(splits) == 0 {
		t := mcpTool{name: name}
		entries = append(entries, e.s.mcpEntry(e.place.home, t.shown(), t.values()))
	}
	if len(splits) > 1 {
		for i := range entries {
			entries[i] = strict(entries[i])
		}
		entries = append(entries, floor(surfaceMCP, splits[0].shown(), "ambiguous-tool", "the name can be split into server and tool in more than one way"))
	}
	for _, entry := range entries {
		e.add(entry)
	}
	// A rule on the joined name itself counts too, if there is one.
	v := values{exact: []string{"*"}}
	if r := e.s.rules.last(e.tool, e.place.home, v); r != nil && e.tool != surfaceMCP {
		e.add(e.s.decided(r, e.tool, "*", e.place.home, v))
	}
}

// splits are the ways to take a joined name apart: at a colon or slash, at two
// underscores behind the prefix, and at the name of a server that the agent has.
func (e *evaluation) splits(name string) []mcpTool {
	if i := strings.IndexAny(name, ":/"); i > 0 && e.tool == surfaceMCP {
		if i+1 < len(name) {
			return []mcpTool{{name[:i], name[i+1:]}}
		}
		return nil
	}
	var out []mcpTool
	add := func(server, tool string) {
		if t := (mcpTool{server, tool}); server != "" && tool != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	if rest, ok := strings.CutPrefix(name, mcpPrefix); ok {
		for i := range len(rest) - 1 {
			if i > 0 && rest[i:i+2] == "__" {
				add(rest[:i], rest[i+2:])
			}
		}
		return out
	}
	plain := strings.TrimPrefix(name, "mcp_")
	for _, server := range e.servers {
		if tool, ok := strings.CutPrefix(plain, server+"_"); ok {
			add(server, strings.TrimPrefix(tool, "_"))
		}
		if tool, ok := strings.CutSuffix(plain, "_"+server); ok {
			add(server, strings.TrimSuffix(tool, "_"))
		}
	}
	return out
}

// target reads which tool a call of the gateway means; known is false where it
// names one in a way that nobody can read. No tool is a question to the gateway
// itself.
func (e *evaluation) target() (t mcpTool, known bool) {
	server, ok := e.args["server"].(string)
	known = ok || e.args["server"] == nil
	t.server = strings.TrimSpace(server)
	switch v := e.args["tool"].(type) {
	case nil:
	case string:
		t.name = strings.TrimSpace(v)
	case float64, bool:
		// No tool has such a name.
	default:
		return t, false
	}
	return t, known
}

// The gateway's own operations, as rules name them.
const (
	mcpStatus   = "mcp_status"
	mcpList     = "mcp_list"
	mcpSearch   = "mcp_search"
	mcpDescribe = "mcp_describe"
	mcpConnect  = "mcp_connect"
)

// discover rules a question to the gateway itself: what servers and tools there
// are. Where no rule speaks of it, whoever may call some tool may ask for them.
func (e *evaluation) discover(server string) {
	operation, about := mcpStatus, server
	if server != "" {
		operation = mcpList
	}
	for _, one := range [][2]string{{"connect", mcpConnect}, {"describe", mcpDescribe}, {"search", mcpSearch}} {
		if v, _ := e.args[one[0]].(string); v != "" {
			operation, about = one[1], v
			break
		}
	}
	v := values{exact: []string{operation}, joined: []string{operation}}
	found := e.s.rules.last(surfaceMCP, e.place.home, v)
	if found == nil {
		found = e.s.rules.last(surfaceMCP, e.place.home, values{wide: []string{about}})
	}
	if found != nil {
		e.add(e.s.decided(found, surfaceMCP, operation, e.place.home, v))
		return
	}
	entry := e.s.decided(nil, surfaceMCP, operation, e.place.home, v)
	if entry.Action == Ask && !entry.HumanOnly && e.s.clamped == "" && e.s.allowsSomeMCP() {
		entry = Entry{Surface: surfaceMCP, Value: operation, MatchedPattern: operation, Origin: OriginBuiltin, Action: Allow,
			Reason: "some MCP tool is allowed, and finding it calls none"}
	}
	e.add(entry)
}

func (s *Snapshot) allowsSomeMCP() bool {
	return slices.ContainsFunc(s.rules.of(surfaceMCP), func(r *rule) bool { return r.action == Allow })
}

// mcpArguments are what the gateway hands on to the tool.
func (e *evaluation) mcpArguments(t mcpTool) map[string]any {
	if t.name == "" {
		return e.args
	}
	out := map[string]any{}
	for _, key := range []string{"arguments", "args", "input", "params", "parameters"} {
		v := e.args[key]
		if text, ok := v.(string); ok && !tooNestedInput([]byte(text)) {
			var inner map[string]any
			if json.Unmarshal([]byte(text), &inner) == nil {
				v = inner
			}
		}
		if v != nil {
			out[key] = v
		}
	}
	return out
}

// JoinedMCP is the MCP tool that a call of the gateway means, by the name under
// which agents list it (mcp__server__tool), and what is handed to it: the whole
// input, where that cannot be said. ok is false for every other call, and where
// the input names no one tool.
func JoinedMCP(tool string, input jsontext.Value) (name string, args jsontext.Value, ok bool) {
	if canonicalTool(strings.TrimSpace(tool)) != surfaceMCP {
		return "", nil, false
	}
	read, _ := arguments(input)
	e := evaluation{args: read}
	t, known := e.target()
	if known && t.server == "" && !strings.HasPrefix(t.name, mcpPrefix) {
		t.server, t.name, known = mcpTarget(map[string]any{"tool": t.name})
	}
	if !known || t.name == "" {
		return "", nil, false
	}
	name = t.name
	if t.server != "" {
		name = mcpPrefix + t.server + "__" + t.name
	}
	handed := e.mcpArguments(t)
	if len(handed) > 1 {
		return name, input, true
	}
	args = jsontext.Value("{}")
	for _, v := range handed {
		if _, record := v.(map[string]any); !record {
			return name, input, true
		}
		b, err := json.Marshal(v, json.Deterministic(true))
		if err != nil {
			return name, input, true
		}
		args = b
	}
	return name, args, true
}

// JoinsMCP says whether a tool's name joins server and tool.
func JoinsMCP(tool string) bool {
	_, _, ok := mcpName(tool)
	return ok
}

// mcpTool is an MCP tool; server is "" where nobody says which.
type mcpTool struct{ server, name string }

func (t mcpTool) shown() string {
	switch {
	case t.server == "":
		return t.name
	case strings.ContainsAny(t.server, `:/"`):
		// Shown bare it would read as a tool of another server, and a grant be
		// offered on that.
		return strconv.Quote(t.server) + "/" + t.name
	}
	return t.server + "/" + t.name
}

// ownName is the name of a tool that is called with its server in front of it, as
// gateways list their tools, beside the server: "github_delete_x" of github is
// delete_x. "" for every other.
func (t mcpTool) ownName() string {
	name := strings.TrimPrefix(strings.TrimPrefix(t.name, mcpPrefix), "mcp_")
	for _, server := range []string{t.server, strings.ReplaceAll(t.server, "-", "_")} {
		if own, ok := strings.CutPrefix(name, server+"_"); ok {
			return strings.TrimLeft(own, "_")
		}
	}
	return ""
}

// oddServer says whether the value of an entry is a tool of a server whose name
// holds what parts server and tool: no pattern is sure to mean it.
func oddServer(value string) bool { return strings.HasPrefix(value, `"`) }

// mcpSpellings are how rules may name one tool. sure prove which it is, joined
// are those of them with an underscore between; colon is another engine's
// spelling, wide may be others' too.
type mcpSpellings struct{ sure, joined, colon, wide []string }

// joinedPattern says whether a pattern names MCP tools by server and tool joined
// with an underscore.
func joinedPattern(surface, pattern string) bool {
	return surface == surfaceMCP && strings.Contains(pattern, "_") && !strings.ContainsAny(pattern, "/:")
}

// values are the spellings of server and tool. One proves which tool it is only
// where no other pair is spelled alike: "git_hub_x" is the tool x of git_hub as
// well as hub_x of git, and a bare "exa" may be a server or a tool.
func (t mcpTool) values() mcpSpellings {
	if t.server == "" {
		// Some server's tool: what holds for that tool of any server holds.
		return mcpSpellings{sure: []string{"\x00/" + t.name}, wide: []string{t.name}}
	}
	v := mcpSpellings{sure: []string{t.server + "/" + t.name}, wide: []string{t.name}}
	if own := t.ownName(); own != "" {
		v.wide = append(v.wide, own, t.server+"/"+own, t.server+":"+own, t.server+"_"+own)
	}
	if strings.ContainsAny(t.server, ":/") {
		// "exa/*" and "exa:*" are rules on the server exa, and an agent that names
		// a server of its own "exa:x" or "exa/x" must not come under them.
		return mcpSpellings{wide: []string{t.name, t.server, t.server + "/" + t.name, t.server + ":" + t.name, t.server + "_" + t.name}}
	}
	if strings.ContainsAny(t.server+t.name, ":") {
		v.wide = append(v.wide, t.server+":"+t.name)
	} else {
		v.colon = append(v.colon, t.server+":"+t.name)
	}
	if strings.Contains(t.server+t.name, "_") || t.server == surfaceMCP {
		v.wide = append(v.wide, t.server+"_"+t.name)
	} else {
		v.joined = append(v.joined, t.server+"_"+t.name)
		v.sure = append(v.sure, v.joined...)
	}
	if strings.Contains(t.server, "_") {
		v.wide = append(v.wide, t.server)
	} else {
		v.colon = append(v.colon, t.server)
	}
	return v
}

// mcpEntry is what the rules say of an MCP tool. "server:tool" and a bare
// server are spellings taken over from another engine, and allow only where, as
// there, no other spelling is asked about or denied: "*" beside them asks.
func (s *Snapshot) mcpEntry(home, shown string, sp mcpSpellings) Entry {
	sure := values{exact: sp.sure, joined: sp.joined, wide: sp.wide}
	all := values{exact: slices.Concat(sp.sure, sp.colon), joined: sp.joined, wide: sp.wide}
	found, other := s.rules.last(surfaceMCP, home, sure), s.rules.last(surfaceMCP, home, all)
	if found == nil || other != nil && s.ruleStrictness(surfaceMCP, other) < s.ruleStrictness(surfaceMCP, found) {
		found = other
	}
	return s.decided(found, surfaceMCP, shown, home, all)
}

// checkMCP answers a query about a tool by its spelling; without one, about the
// gateway itself.
func (e *evaluation) checkMCP(value string) {
	server, name, ok := mcpTarget(map[string]any{"tool": value})
	switch {
	case value == "":
		e.discover("")
	case ok:
		e.add(e.s.mcpEntry(e.place.home, value, mcpTool{server, name}.values()))
	default:
		e.joined(value, e.splits(value))
	}
}

// mcpValues are the spellings of a tool, without the doubts about some.
func mcpValues(server, name string) values {
	sp := mcpTool{server, name}.values()
	return values{exact: slices.Concat(sp.sure, sp.colon), joined: sp.joined, wide: sp.wide}
}

// mcpTarget reads server and tool from a call's input. The tool may carry its
// server in front, as server:tool or server/tool.
func mcpTarget(args map[string]any) (server, name string, ok bool) {
	server, serverOK := args["server"].(string)
	name, nameOK := args["tool"].(string)
	if !nameOK || args["server"] != nil && !serverOK {
		return server, name, false
	}
	if server == "" {
		i := strings.IndexAny(name, ":/")
		if i <= 0 {
			return "", name, false
		}
		server, name = name[:i], name[i+1:]
	}
	return server, name, server != "" && name != ""
}
