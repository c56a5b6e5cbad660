package policy

import "strings"

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

// mcp rules a call of an MCP tool. A joined name that can be taken apart in
// more than one way is denied by a rule on any of them, and allowed by none.
func (e *evaluation) mcp() {
	if e.tool != surfaceMCP {
		e.joinedMCP()
		return
	}
	server, name, ok := mcpTarget(e.args)
	v := mcpValues(server, name)
	shown := server + "/" + name
	got := e.s.entry(surfaceMCP, e.place.home, shown, v)
	if !ok {
		e.add(strict(got))
		e.add(floor(surfaceMCP, shown, "no-tool", "the call does not say which server and tool it means"))
		return
	}
	e.add(got)
}

func (e *evaluation) joinedMCP() {
	rest := strings.TrimPrefix(e.tool, mcpPrefix)
	var splits []values
	var shown string
	for i := range len(rest) - 1 {
		if i > 0 && rest[i:i+2] == "__" && i+2 < len(rest) {
			if shown == "" {
				shown = rest[:i] + "/" + rest[i+2:]
			}
			splits = append(splits, mcpValues(rest[:i], rest[i+2:]))
		}
	}
	for _, v := range splits {
		got := e.s.entry(surfaceMCP, e.place.home, shown, v)
		if len(splits) > 1 {
			got = strict(got)
		}
		e.add(got)
	}
	if len(splits) > 1 {
		e.add(floor(surfaceMCP, shown, "ambiguous-tool", "the name can be split into server and tool in more than one way"))
	}
	// A rule on the joined name itself counts too, if there is one.
	if r := e.s.rules.last(e.tool, e.place.home, values{exact: []string{"*"}}); r != nil {
		e.add(e.s.entryOf(r, e.tool, "*"))
	}
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

// mcpValues are the spellings of server and tool. One proves which tool it is
// only where no other pair is spelled alike: "git_hub_x" is the tool x of
// git_hub as well as hub_x of git.
func mcpValues(server, name string) values {
	v := values{}
	put := func(sep string, proves bool) {
		if proves {
			v.exact = append(v.exact, server+sep+name)
		} else {
			v.wide = append(v.wide, server+sep+name)
		}
	}
	put("/", !strings.Contains(server, "/"))
	put(":", !strings.Contains(server+name, ":"))
	put("_", !strings.Contains(server+name, "_"))
	return v
}
