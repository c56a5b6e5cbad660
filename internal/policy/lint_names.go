package policy

import (
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/assent-dev/assent/internal/jsonwords"
)

// knownSurfaces are the names that a rule is likely to mean.
var knownSurfaces = func() []string {
	out := []string{surfaceBash, surfaceMCP, surfaceSkill, "webfetch", "websearch", "agent", "task", "todowrite"}
	for _, plain := range []string{surfacePath, surfaceExternal} {
		out = append(out, plain, plain+suffixRead, plain+suffixWrite)
	}
	for tool := range fileTools {
		out = append(out, tool)
	}
	slices.Sort(out)
	return out
}()

// otherTools are tools of common agents whose names are near a known one and
// are no slips of the pen.
var otherTools = []string{"patch", "apply_patch", "batch", "fetch", "web_fetch", "web_search", "google_web_search", "write_todos", "todoread", "bashoutput", "taskoutput", "taskstop", "lsp", "agents", "skills"}

// statedAs are the names under which Claude Code's adapter states tools that
// Claude Code lists otherwise.
var statedAs = map[string]string{"WebFetch": "webfetch", "WebSearch": "websearch", "Agent": "agent", "Task": "agent"}

// slip returns the known name that a surface was probably meant to be, "" for a
// name that is known or like none.
func slip(name string) string {
	lower := strings.ToLower(name)
	if !compileWildcard(name).literal() || strings.HasPrefix(name, mcpPrefix) ||
		slices.Contains(knownSurfaces, lower) || slices.Contains(otherTools, lower) || canonicalTool(name) != name {
		return ""
	}
	return jsonwords.Nearest(name, knownSurfaces)
}

// surfaces warns of surfaces under a name that looks like a slip of the pen.
func (l *linter) surfaces() {
	eachMember(memberOf(l.tree, "permission"), func(name string, m hujson.ObjectMember) {
		if stated := statedAs[name]; stated != "" && l.s.rules.bySurface[stated] == nil {
			l.warn(m.Name.StartOffset, "Claude Code's %s is ruled as %q, so this rule does not reach it; write %q, and %q only for other agents that have a tool of this name",
				name, stated, stated, name)
		}
		if like := slip(name); like != "" {
			l.warn(m.Name.StartOffset, "no known surface or tool is called %q; did you mean %q? A rule for a tool that no agent has does nothing", clip(name), like)
		}
	})
}

// envelope warns of a delegation that is wider, or narrower, than it looks.
func (l *linter) envelope() {
	d := memberOf(l.tree, "modelDelegation")
	for _, key := range []string{"allowedSurfaces", "excludedSurfaces"} {
		list, _ := memberOf(d, key).Value.(*hujson.Array)
		if list == nil {
			continue
		}
		for _, e := range list.Elements {
			if name, err := text(e); err == nil {
				l.delegated(key, name, e.StartOffset)
			}
		}
	}
}

func (l *linter) delegated(key, name string, at int) {
	plain := crosscutting(name)
	switch like := slip(name); {
	case compileWildcard(name).any() && key == "allowedSurfaces":
		l.warn(at, "a link may allow everything that asks, short of humanOnly, excludedSurfaces and secrets; expected the surfaces that it is meant for, as \"bash\"")
	case canonicalTool(name) != name:
		l.warn(at, "%s names %q, which matches nothing: this tool is called %q in rules", key, clip(name), canonicalTool(name))
	case key == "allowedSurfaces" && plain != "" && plain != name:
		l.warn(at, "allowedSurfaces names %q, which matches nothing: links are let onto %q as a whole; exclude a direction with excludedSurfaces", name, plain)
	case like != "" && l.s.rules.bySurface[name] == nil:
		l.warn(at, "%s: no known surface or tool is called %q; did you mean %q?", key, clip(name), like)
	}
}

// ending warns of links that nobody will ask: one chain for an ask, the parent's.
func (l *linter) ending() {
	if l.s.term.Kind == TerminalParent && len(l.s.chain) > 0 {
		at := memberOf(memberOf(l.tree, "terminal"), "kind").StartOffset
		l.warn(at, "terminal kind \"parent\": every open ask goes to the parent node, so no link of authorizerChain is ever asked here; write \"auto\", or leave the chain out")
	}
}

// memberOf returns the value under a key of an object, nothing if there is none.
func memberOf(v hujson.Value, key string) (found hujson.Value) {
	eachMember(v, func(name string, m hujson.ObjectMember) {
		if name == key {
			found = m.Value
		}
	})
	return found
}

func eachMember(v hujson.Value, visit func(name string, m hujson.ObjectMember)) {
	obj, _ := v.Value.(*hujson.Object)
	if obj == nil {
		return
	}
	for _, m := range obj.Members {
		if name, err := text(m.Name); err == nil {
			visit(name, m)
		}
	}
}
