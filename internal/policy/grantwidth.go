package policy

import (
	"fmt"
	"slices"
	"strings"
)

// TooWide refuses, with ErrGrant, a pattern that does not say what it is about:
// a command names its program, a path its folder, a tool of a server that server.
// "*e*" and "t*" are no wish that a person has, and what they cover is found out
// when it has run. It is for whoever gives a grant.
func (g Grant) TooWide() error {
	for _, p := range g.Patterns {
		front, rest := p, ""
		if i := strings.IndexAny(p, "*?"); i >= 0 {
			front, rest = p[:i], p[i:]
		}
		if rest == "" {
			continue // it covers what it says
		}
		want := ""
		switch {
		case g.Surface == surfaceBash && !namesProgram(front):
			want = `a command begins with the whole name of its program, as in "git push *"`
		case pathSurface(g.Surface) && !namesFolder(front):
			want = `a path begins with a folder that is neither the disk, a home nor one of the system's, as in "/srv/shop/*" or "./*"`
		case g.Surface == surfaceMCP && strings.LastIndexAny(front, ":/_") < 1:
			want = `a tool begins with the name of its server, as in "exa/*"`
		case g.Surface == surfaceSkill && strings.LastIndexAny(front, ":/_-.") < 1:
			want = `a skill is named, as in "pdf" or "office:*"`
		default:
			continue
		}
		return fmt.Errorf("%w: pattern %q is too wide: %s", ErrGrant, clip(p), want)
	}
	return nil
}

// OfPaths says whether the patterns of a surface are paths.
func OfPaths(surface string) bool { return pathSurface(surface) }

// Relative says whether a pattern of paths is one of the call's directory.
func Relative(pattern string) bool {
	_, home := cutHome(pattern)
	return !home && !absoluteLooking(pattern) && !strings.HasPrefix(pattern, "~") && strings.Trim(pattern, "*?") != ""
}

// namesProgram says whether what stands before the first wildcard of a command
// holds the whole name of a program; an assignment before it names none.
func namesProgram(front string) bool {
	words := strings.Fields(front)
	if !strings.HasSuffix(front, " ") && len(words) > 0 {
		words = words[:len(words)-1] // the wildcard may go on with this one
	}
	return slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(w, "=") })
}

// namesFolder says whether what stands before the first wildcard of a path
// leads into a folder of somebody's own.
func namesFolder(front string) bool {
	front = strings.ReplaceAll(front, `\`, "/")
	if len(front) > 1 && front[1] == ':' {
		front = front[2:]
	}
	at := strings.LastIndexByte(front, '/')
	if at < 0 {
		return false
	}
	absolute, here := strings.HasPrefix(front, "/"), strings.HasPrefix(front, "./")
	parts := strings.FieldsFunc(collapse(front[:at]), func(r rune) bool { return r == '/' })
	switch {
	case len(parts) == 0 || parts[0] == "..":
		return false
	case here:
		return true // the call's own directory, which the call itself names
	case slices.Contains([]string{"~", "$HOME", "${HOME}"}, parts[0]):
		return len(parts) > 1
	case !absolute:
		return parts[0] != "."
	case slices.Contains([]string{"home", "Users"}, parts[0]):
		return len(parts) > 2
	}
	return len(parts) > 1 || !slices.Contains(systems, parts[0]) && !slices.Contains(commons, parts[0])
}
