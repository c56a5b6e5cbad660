package policy

import (
	"slices"

	"github.com/tailscale/hujson"
)

// Who asks: what chooses the layers of a ruling. Agent is stated by
// credentials; everything else is the word of the agent's host, and only
// tightens unless the fleet layer trusts it.
type Who struct {
	// Agent is the name that the agent's credentials state.
	Agent string
	// AgentName is the name that the agent wears, "" for none.
	AgentName string
	// Project is the id of the project that it works in, Root where that lies.
	Project, Root string
	// File is the project's own policy, nil for none.
	File *Document
	// FileBroken says what is wrong with the project's own policy where that
	// does not read; "" if nothing is.
	FileBroken string
}

// trustedProject is one entry of trustedProjects.
type trustedProject struct {
	id, root string
	agents   []wildcard
}

// trustedName is one entry of trustedAgentNames.
type trustedName struct {
	name   string
	agents []wildcard
}

// trustsProject says whether the project's layers may loosen for who.
func (t *settings) trustsProject(who Who) bool {
	return slices.ContainsFunc(t.trustedProjects, func(p trustedProject) bool {
		return p.id == who.Project && p.root == who.Root && matchesAny(p.agents, who.Agent)
	})
}

// trustsName says whether the layers of the agent's name may loosen for who.
func (t *settings) trustsName(who Who) bool {
	return slices.ContainsFunc(t.trustedNames, func(n trustedName) bool {
		return n.name == who.AgentName && matchesAny(n.agents, who.Agent)
	})
}

func matchesAny(patterns []wildcard, s string) bool {
	return s != "" && slices.ContainsFunc(patterns, func(w wildcard) bool { return w.match(s) })
}

// trustedProjects reads [{"id": "…", "root": "…", "agents": ["…"]}].
func (d *decoder) trustedProjects(v hujson.Value) {
	list, ok := v.Value.(*hujson.Array)
	if !ok {
		d.addf(v.StartOffset, "trustedProjects is %s; expected a list, as [{\"id\": \"github.com/acme/shop\", \"root\": \"/srv/shop\", \"agents\": [\"ci-*\"]}]", kindOf(v))
		return
	}
	for _, e := range list.Elements {
		d.trustedProject(e)
	}
}

func (d *decoder) trustedProject(v hujson.Value) {
	var p trustedProject
	d.object(v, "the trusted project",
		field{"id", func(v hujson.Value) { d.ruleText(v, "id", &p.id) }},
		field{"root", func(v hujson.Value) { d.ruleText(v, "root", &p.root) }},
		field{"agents", func(v hujson.Value) { p.agents = compileAll(d.patterns(v, "agents")...) }},
	)
	if _, isObject := v.Value.(*hujson.Object); !isObject {
		return
	}
	layer := ProjectLayer(p.id)
	switch {
	case !layer.valid():
		d.addf(v.StartOffset, "the trusted project has no id that names a project")
	case p.root == "":
		d.addf(v.StartOffset, "the trusted project has no root; expected the absolute path in which it lies")
	case len(p.agents) == 0:
		d.addf(v.StartOffset, "the trusted project names no agents; expected patterns of credential names, as [\"ci-*\"]")
	default:
		d.s.trustedProjects = append(d.s.trustedProjects, p)
	}
}

// trustedNames reads {"reviewer": ["ci-*"]}: the name, and who may wear it.
func (d *decoder) trustedNames(v hujson.Value) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		d.addf(v.StartOffset, "trustedAgentNames is %s; expected an object from a name to the agents that may wear it, as {\"reviewer\": [\"ci-*\"]}", kindOf(v))
		return
	}
	d.members(obj, func(name string, m hujson.ObjectMember) {
		agents := compileAll(d.patterns(m.Value, "the agents of "+clip(name))...)
		if !AgentLayer(name).valid() {
			d.addf(m.Name.StartOffset, "%q is no name that an agent can wear", clip(name))
			return
		}
		d.s.trustedNames = append(d.s.trustedNames, trustedName{name, agents})
	})
}
