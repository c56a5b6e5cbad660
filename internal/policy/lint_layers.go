package policy

import (
	"strings"

	"github.com/tailscale/hujson"
)

// loosening warns where a layer allows: without trust that counts for nothing.
func (l *linter) loosening(layer Layer) {
	key := "trustedProjects"
	if layer.kind == kindAgent {
		key = "trustedAgentNames"
	}
	rules := l.s.rules.rules
	for i := range rules {
		if rules[i].action == Allow {
			l.warn(rules[i].at, "what layer %s allows counts only where the fleet layer trusts it (%s); elsewhere this layer can only tighten", layer, key)
			return
		}
	}
}

// trusting warns of trust that reaches further than a name says.
func (l *linter) trusting() {
	if list, _ := memberOf(l.tree, "trustedProjects").Value.(*hujson.Array); list != nil {
		for _, e := range list.Elements {
			root, _ := text(memberOf(e, "root"))
			if root != "" && !strings.HasPrefix(root, "/") && !drive(root) {
				l.warn(memberOf(e, "root").StartOffset, "the root %q is not absolute, so no project matches it; expected the absolute path of the project", clip(root))
			}
			l.everyAgent(memberOf(e, "agents"), "that a project's own file may loosen the policy for every agent")
		}
	}
	eachMember(memberOf(l.tree, "trustedAgentNames"), func(name string, m hujson.ObjectMember) {
		l.everyAgent(m.Value, "that every agent may wear the name "+clip(name)+" and what its layer allows")
	})
}

func (l *linter) everyAgent(agents hujson.Value, means string) {
	list, _ := agents.Value.(*hujson.Array)
	if list == nil {
		return
	}
	for _, e := range list.Elements {
		if name, err := text(e); err == nil {
			if w := compileWildcard(name); w.any() {
				l.warn(e.StartOffset, "%q means %s", name, means)
			}
		}
	}
}

// flags warns of flagsAnyOrder where it changes nothing.
func (l *linter) flags() {
	rules := l.s.rules.rules
	for i := range rules {
		switch r := &rules[i]; {
		case !r.anyOrder:
		case r.surface.literal() && r.surface.text != surfaceBash:
			l.warn(r.at, "flagsAnyOrder is for bash; on %s it changes nothing", clip(r.surface.text))
		case !strings.Contains(" "+r.pattern.text, " -"):
			l.warn(r.at, "bash %q names no flag, so flagsAnyOrder changes nothing", clip(r.pattern.text))
		}
	}
}

// key is where a key of the document stands, 0 if it does not.
func (l *linter) key(name string) int {
	at := 0
	eachMember(l.tree, func(key string, m hujson.ObjectMember) {
		if key == name {
			at = m.Name.StartOffset
		}
	})
	return at
}
