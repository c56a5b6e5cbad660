package policy

import (
	"slices"

	"github.com/tailscale/hujson"
)

// maxRuleText bounds a rule's reason and guidance, in bytes.
const maxRuleText = 4096

var (
	actionWords = []string{"allow", "ask", "deny"}
	ruleKeys    = []string{"action", "reason", "guidance", "humanOnly", "flagsAnyOrder"}
)

// permission reads the rules, in the order of the document.
func (d *decoder) permission(v hujson.Value) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		d.addf(v.StartOffset, "permission is %s; expected an object from surface to rules, as {\"*\": \"ask\"}", kindOf(v))
		return
	}
	d.members(obj, func(key string, m hujson.ObjectMember) {
		if d.surfaceName(key, m) {
			d.surface(key, m.Value)
		}
	})
}

// surfaceName checks the name of a surface.
func (d *decoder) surfaceName(name string, m hujson.ObjectMember) bool {
	at := m.Name.StartOffset
	if name == "" {
		d.addf(at, "an empty surface; expected a tool's name, \"path\", \"external_directory\" or \"*\"")
		return false
	}
	if known := canonicalTool(name); known != name {
		// It would never match: calls of this tool are ruled under the other
		// name, and a deny that never matches is an allow.
		d.addf(at, "surface %q; this tool is called %q in rules", clip(name), known)
		return false
	}
	return d.fits(at, name)
}

// surface reads what stands behind one surface: an action for everything on
// it, or a map from pattern to rule.
func (d *decoder) surface(name string, v hujson.Value) {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		if r, ok := d.action(v); ok {
			r.whole = true
			d.surfaces = append(d.surfaces, surfaceRules{name: name, whole: true})
			d.rule(name, "*", r, v.StartOffset)
		}
		return
	}
	if compileWildcard(name).any() {
		if !looksLikeRule(obj) {
			d.everySurface(name, obj)
			return
		}
	}
	if looksLikeRule(obj) {
		d.addf(v.StartOffset, "a rule stands where patterns are expected; write {\"*\": {\"action\": …}}")
		return
	}
	d.surfaces = append(d.surfaces, surfaceRules{name: name})
	d.members(obj, func(pattern string, m hujson.ObjectMember) {
		r, ok := d.ruleValue(m.Value)
		if ok && d.fits(m.Name.StartOffset, pattern) {
			d.rule(name, pattern, r, m.Name.StartOffset)
		}
	})
}

// looksLikeRule says whether an object that stands for a map of patterns was
// meant as one rule: {"action": "deny", "reason": "…"}.
func looksLikeRule(obj *hujson.Object) bool {
	action := false
	for _, m := range obj.Members {
		key, err := text(m.Name)
		if err != nil || !slices.Contains(ruleKeys, key) {
			return false
		}
		action = action || key == "action"
	}
	return action
}

// ruleValue reads an action or an object with one.
func (d *decoder) ruleValue(v hujson.Value) (rule, bool) {
	if _, ok := v.Value.(*hujson.Object); !ok {
		return d.action(v)
	}
	var r rule
	d.object(v, "the rule",
		field{"action", func(v hujson.Value) {
			got, _ := d.action(v)
			r.action = got.action
		}},
		field{"reason", func(v hujson.Value) { d.ruleText(v, "reason", &r.reason) }},
		field{"guidance", func(v hujson.Value) { d.ruleText(v, "guidance", &r.guidance) }},
		field{"humanOnly", func(v hujson.Value) { d.boolean(v, "humanOnly", &r.humanOnly) }},
		field{"flagsAnyOrder", func(v hujson.Value) { d.boolean(v, "flagsAnyOrder", &r.anyOrder) }},
	)
	if r.action == None {
		if !hasKey(v, "action") {
			d.addf(v.StartOffset, "the rule has no action; expected \"action\": \"allow\", \"ask\" or \"deny\"")
		}
		return rule{}, false
	}
	if r.humanOnly && r.action != Ask {
		d.addf(v.StartOffset, "humanOnly belongs to a rule that asks, and this one says %q", r.action)
		return rule{}, false
	}
	if r.anyOrder && r.action == Allow {
		// What stands between the flags would be allowed unread.
		d.addf(v.StartOffset, "flagsAnyOrder belongs to a rule that denies or asks, and this one says %q", r.action)
		return rule{}, false
	}
	return r, true
}

func hasKey(v hujson.Value, key string) bool {
	obj, ok := v.Value.(*hujson.Object)
	return ok && slices.ContainsFunc(obj.Members, func(m hujson.ObjectMember) bool {
		s, err := text(m.Name)
		return err == nil && s == key
	})
}

func (d *decoder) action(v hujson.Value) (rule, bool) {
	s, ok := d.oneOf(v, "action", actionWords)
	a, _ := ParseAction(s)
	return rule{action: a}, ok
}

func (d *decoder) ruleText(v hujson.Value, what string, to *string) {
	s, err := text(v)
	if err != nil {
		d.addf(v.StartOffset, "%s is %s; expected a text", what, kindOf(v))
		return
	}
	if len(s) > maxRuleText {
		d.addf(v.StartOffset, "%s has %d bytes; expected at most %d", what, len(s), maxRuleText)
		return
	}
	*to = s
}

// rule adds one rule to the surface that is being read.
func (d *decoder) rule(surface, pattern string, r rule, at int) {
	r.surface, r.pattern = compileWildcard(surface), compilePattern(pattern)
	if pathSurface(surface) {
		if climbs(pattern) {
			d.addf(at, "pattern %q can never match: paths are matched with their \"..\" resolved; expected the path that it leads to", clip(pattern))
			return
		}
		r.pattern = compilePathPattern(pattern)
		if r.action != Allow {
			r.folded = compilePathPattern(lowerPattern(pattern))
		}
	}
	r.joined = joinedPattern(surface, pattern) && r.action == Allow
	r.at, r.origin = at, d.layer.String()
	r.place.File = d.file
	r.place.Line, r.place.Column = d.position(at)
	last := &d.surfaces[len(d.surfaces)-1]
	last.rules = append(last.rules, r)
}
