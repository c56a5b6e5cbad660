package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// values warns of patterns that no value on their surface can match.
func (l *linter) values() {
	rules := l.s.rules.rules
	for i := range rules {
		r := &rules[i]
		surface := r.surface.text
		switch {
		case !r.surface.literal():
		case r.pattern.text == "":
			l.warn(r.at, "%s \"\" %s: an empty pattern matches nothing but an empty value; write \"*\" for everything", surface, useless(r))
		case surface == surfaceMCP:
			l.server(r)
		case pathSurface(surface):
			l.directory(r)
		case surface != surfaceBash && surface != surfaceSkill && slip(surface) == "" && !r.pattern.w.match("*"):
			l.warn(r.at, "%s %q %s: patterns are not matched against the input of this tool; write an action for the whole tool, or rules on \"path\"",
				clip(surface), clip(r.pattern.text), useless(r))
		}
	}
}

// useless says what a rule that never matches does, loudest for a deny.
func useless(r *rule) string {
	switch r.action {
	case Allow:
		return "never allows anything"
	case Deny:
		return "is a deny that stops nothing"
	}
	return "never matches"
}

// server warns of a pattern of MCP tools that is not written as server/tool.
func (l *linter) server(r *rule) {
	p := r.pattern.text
	joined, isJoined := strings.CutPrefix(p, mcpPrefix)
	separated := strings.ContainsAny(p, "/:_")
	suggestion, why := "", "the value is server/tool"
	switch {
	case isJoined:
		suggestion = asServerTool(joined, "__")
		why = "here the value is server/tool, whatever an agent lists the tool as"
	case !separated && strings.Contains(p, ".") && !strings.ContainsAny(strings.SplitN(p, ".", 2)[0], "*?"):
		suggestion = asServerTool(p, ".")
	case !separated && r.pattern.w.literal() && r.action == Allow:
		suggestion = p + "/*"
		why = "a bare server allows only where \"*\" beside it does not ask"
	case r.action == Allow && strings.Contains(p, ":") && l.beside(r):
		suggestion = strings.Replace(p, ":", "/", 1)
		why = "this spelling allows only where \"*\" beside it does not ask"
	case r.action == Allow && r.pattern.w.literal() && !strings.ContainsAny(p, "/:") && strings.Count(p, "_") > 1:
		suggestion = asServerTool(p, "_")
		why = "more than one pair of server and tool is spelled so"
	default:
		return
	}
	l.warn(r.at, "mcp %q %s: %s; did you mean %q?", clip(p), useless(r), why, clip(suggestion))
}

// beside says whether another rule of the same surface asks or denies whatever
// there is.
func (l *linter) beside(r *rule) bool {
	return slices.ContainsFunc(l.s.rules.bySurface[r.surface.text], func(o *rule) bool { return o.pattern.w.any() && o.action != Allow })
}

// asServerTool writes a name that is joined by sep as server/tool.
func asServerTool(name, sep string) string {
	if server, tool, ok := strings.Cut(name, sep); ok {
		return server + "/" + tool
	}
	if strings.ContainsAny(name, "*?") {
		return name
	}
	return name + "/*"
}

// plainFiles are well-known files whose names look like those of directories.
var plainFiles = []string{
	"passwd", "shadow", "group", "hosts", "sudoers", "fstab", "crontab", "null", "zero", "random", "urandom", "tty",
	"Makefile", "Dockerfile", "LICENSE", "README", "CODEOWNERS", "Procfile", "Gemfile", "authorized_keys", "known_hosts", "credentials",
	".profile", ".gitconfig", ".gitignore", ".gitattributes", ".gitmodules", ".dockerignore", ".envrc", ".editorconfig", ".bash_history", ".zsh_history",
}

// directory warns of a pattern that seems to name a directory and matches
// nothing inside of it.
func (l *linter) directory(r *rule) {
	p := r.pattern.text
	bare := strings.TrimRight(p, "/")
	name := path.Base(bare)
	file := strings.Contains(strings.TrimLeft(name, "."), ".") || strings.HasSuffix(name, "rc") && name[0] == '.' ||
		slices.Contains(plainFiles, name) || secretName(name)
	if !r.pattern.w.literal() || p == bare && (file || bare == ".") || l.inside(r, bare) {
		return
	}
	l.warn(r.at, "%s %q matches only itself, nothing in it; if that is a directory, write %q and %q",
		r.surface.text, clip(p), cmp.Or(bare, "/"), bare+"/*")
}

// inside says whether another rule of the surface speaks of what lies in dir.
func (l *linter) inside(r *rule, dir string) bool {
	return slices.ContainsFunc(l.s.rules.bySurface[r.surface.text], func(o *rule) bool {
		return !o.pattern.w.any() && o.pattern.w.match(dir+"/x")
	})
}
