package policy

import "testing"

func TestMCPSpellingsGrant(t *testing.T) {
	t.Parallel()
	tool := func(server, name string) Call { return on("mcp", m{"server": server, "tool": name}) }
	ruleRows(t, []row{
		{"all tools of a server", `{"mcp":{"*":"ask","exa/*":"allow"}}`, tool("exa", "search"), Allow, "mcp", "exa/*"},
		{"tools by the start of their names", `{"mcp":{"issues/get_*":"allow"}}`, tool("issues", "get_item"), Allow, "mcp", "issues/get_*"},
		{"a tool with its server in front, beside a deny of another", `{"mcp":{"*":"ask","exa/*":"allow","exa/rm":"deny"}}`, tool("exa", "exa_search"), Allow, "mcp", "exa/*"},
		{"a bare server", `{"mcp":{"exa":"allow"}}`, tool("exa", "search"), Allow, "mcp", "exa"},
		{"a server named as a server and a tool", `{"*":"ask","mcp":{"exa/*":"allow"}}`, tool("exa/evil", "x"), Ask, "mcp", "*"},
		{"one named so with a colon", `{"*":"ask","mcp":{"exa:*":"allow"}}`, tool("exa:evil", "x"), Ask, "mcp", "*"},
		{"a deny on it", `{"*":"allow","mcp":{"*":"allow","exa:*":"deny"}}`, tool("exa:evil", "x"), Deny, "mcp", "exa:*"},
		{"the server itself", `{"*":"ask","mcp":{"exa/*":"allow"}}`, tool("exa", "evil/x"), Allow, "mcp", "exa/*"},
		{"a colon where nothing else speaks", `{"*":"ask","mcp":{"exa:*":"allow"}}`, tool("exa", "search"), Allow, "mcp", "exa:*"},
		{"an exception by a colon", `{"mcp":{"exa:*":"deny","exa:search":"allow"}}`, tool("exa", "search"), Allow, "mcp", "exa:search"},
		{"blanks around a name", `{"mcp":{"exa/*":"allow"}}`, on("mcp", m{"tool": " exa:search "}), Allow, "mcp", "exa/*"},
		{"asking for the status, where some tool is allowed", `{"mcp":{"exa/*":"allow"}}`, on("mcp", nil), Allow, "mcp", "mcp_status"},
		{"asking for a server's tools", `{"mcp":{"exa/*":"allow"}}`, on("mcp", m{"server": "foo"}), Allow, "mcp", "mcp_list"},
		{"an operation by a rule", `{"mcp":{"*":"ask","mcp_search":"allow"}}`, on("mcp", m{"search": "x"}), Allow, "mcp", "mcp_search"},
		{"an argument that is no path", `{"mcp":{"exa/*":"allow"},"path":{"*.env":"deny"}}`, on("mcp", m{"tool": "exa:read", "arguments": m{"text": ".env"}}), Allow, "mcp", "exa/*"},
	})
	servers := on("exa_search", nil)
	servers.MCPServers = []string{"exa", "git"}
	ruleRows(t, []row{{"a joined name by the servers there are", `{"mcp":{"exa/*":"allow"}}`, servers, Allow, "mcp", "exa/*"}})
}

func TestMCPSpellingsRefuse(t *testing.T) {
	t.Parallel()
	tool := func(server, name string) Call { return on("mcp", m{"server": server, "tool": name}) }
	ruleRows(t, []row{
		{"a server whose name another's begins", `{"*":"ask","mcp":{"my/*":"allow","my_server/*":"deny"}}`, tool("my_server", "delete"), Deny, "mcp", "my_server/*"},
		{"an underscore that another tool shares", `{"*":"ask","mcp":{"my_*":"allow"}}`, tool("my_server", "delete"), Ask, "mcp", "*"},
		{"a deny of a joined name in other letters", `{"*":"allow","mcp":{"*":"allow","exa/rm":"deny"}}`, on("MCP__exa__rm", nil), Deny, "mcp", "exa/rm"},
		{"a deny by a colon behind a star", `{"mcp":{"*":"allow","danger:*":"deny"}}`, on("mcp", m{"tool": "danger:run"}), Deny, "mcp", "danger:*"},
		{"a deny of a bare server", `{"mcp":{"*":"allow","danger":"deny"}}`, tool("danger", "run"), Deny, "mcp", "danger"},
		{"a deny, of a tool with its server in front", `{"mcp":{"*":"allow","git-hub/rm_*":"deny"}}`, tool("git-hub", "git_hub_rm_x"), Deny, "mcp", "git-hub/rm_*"},
		{"the same in the words of an agent", `{"mcp":{"*":"allow","exa/rm":"deny"}}`, tool("exa", "mcp__exa__rm"), Deny, "mcp", "exa/rm"},
		{"an allow does not see through it", `{"*":"ask","mcp":{"exa/search":"allow"}}`, tool("exa", "exa_search"), Ask, "mcp", "*"},
		{"a deny of a bare tool", `{"mcp":{"*":"allow","run":"deny"}}`, tool("danger", "run"), Deny, "mcp", "run"},
		{"a bare tool allows no server's", `{"mcp":{"run":"allow"}}`, tool("danger", "run"), Ask, "mcp", "*"},
		{"a bare server is no tool", `{"mcp":{"exa":"allow"}}`, tool("evil", "exa"), Ask, "mcp", "*"},
		{"a colon beside a star that asks", `{"mcp":{"*":"ask","exa:*":"allow"}}`, tool("exa", "search"), Ask, "mcp", "*"},
		{"a tool in a list", `{"mcp":{"ok:*":"allow","danger":"deny"}}`, on("mcp", m{"tool": []any{"danger:run"}}), Ask, "mcp", ""},
		{"a path of the tool", `{"mcp":"allow","path":{"*.env":"deny"}}`, on("mcp", m{"tool": "fs:read", "arguments": m{"paths": []any{".env"}}}), Deny, "path", "*.env"},
		{"a path in arguments that are a text", `{"mcp":"allow","path":{"*.env":"deny"}}`, on("mcp", m{"tool": "fs:read", "args": `{"path":".env"}`}), Deny, "path", "*.env"},
		{"asking, where nothing is allowed", `{"mcp":{"exa/*":"ask"}}`, on("mcp", nil), Ask, "mcp", "*"},
		{"asking, where all else is denied", `{"*":"deny","mcp":{"exa/*":"allow"}}`, on("mcp", nil), Deny, "mcp", "*"},
		{"the status is no tool of a server mcp", `{"mcp":{"mcp_status":"allow"}}`, tool("mcp", "status"), Ask, "mcp", "*"},
	})
	for name, rules := range map[string]string{
		"exa_search": `{"*":"allow","mcp":{"exa/search":"deny"}}`, "search_exa": `{"*":"allow","mcp":{"exa":"deny"}}`, "mcp_exa_search": `{"*":"allow","mcp":{"exa:*":"deny"}}`,
	} {
		c := on(name, nil)
		c.MCPServers = []string{"exa"}
		ruleRows(t, []row{{name + " by the servers there are", rules, c, Deny, "mcp", ""}})
	}
	two := on("a_b_c", nil)
	two.MCPServers = []string{"a", "a_b"}
	ruleRows(t, []row{{"a name that two servers share", `{"mcp":{"a/*":"allow","a_b/*":"allow"}}`, two, Ask, "mcp", ""}})
}

// What the agent's host says of its servers tightens and never loosens.
func TestStatedServers(t *testing.T) {
	t.Parallel()
	stated := func(name string, servers ...string) Call {
		c := on(name, nil)
		c.StatedServers = servers
		return c
	}
	gateway := on("mcp", m{"tool": "exa_search"})
	gateway.StatedServers = []string{"exa"}
	ruleRows(t, []row{
		{"a deny of the server's tool is found", `{"*":"allow","mcp":{"exa/search":"deny"}}`, stated("exa_search", "exa"), Deny, "mcp", "exa/search"},
		{"an ask of the server is found", `{"*":"allow","mcp":{"exa/*":"ask"}}`, stated("exa_search", "exa"), Ask, "mcp", "exa/*"},
		{"another server's tool", `{"*":"allow","mcp":{"*":"allow","exa/*":"deny"}}`, stated("git_log", "exa", "git"), Allow, "git_log", "*"},
		{"no server of that name", `{"*":"allow","mcp":{"exa/*":"deny"}}`, stated("exa_search", "git"), Allow, "exa_search", "*"},
		{"a stated server allows nothing", `{"*":"ask","mcp":{"exa/*":"allow"}}`, stated("exa_search", "exa"), Ask, "exa_search", "*"},
		{"a tool that a rule denies by its name", `{"*":"ask","exa_search":"deny","mcp":{"exa/*":"allow"}}`, stated("exa_search", "exa"), Deny, "exa_search", "*"},
		{"what both allow", `{"*":"ask","exa_search":"allow","mcp":{"exa/*":"allow"}}`, stated("exa_search", "exa"), Allow, "exa_search", "*"},
		{"a joined name in the gateway's call", `{"*":"ask","mcp":{"*":"allow","exa/*":"deny"}}`, gateway, Deny, "mcp", "exa/*"},
		{"without servers", `{"*":"allow","mcp":{"exa/*":"deny"}}`, stated("exa_search"), Allow, "exa_search", "*"},
	})
}
