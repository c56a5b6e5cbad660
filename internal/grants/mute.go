package grants

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/pkg/protocol"
)

// OfModules says whether a grant is one that turns permission checks off: it is
// on the surface of modules, and names checks by their ids. A tool that is called
// "module" has patterns of another form.
func OfModules(g protocol.Grant) bool {
	if g.Surface != protocol.SurfaceModule || len(g.Patterns) == 0 {
		return false
	}
	for _, p := range g.Patterns {
		level, rest, _ := strings.Cut(p, ":")
		if level != "project" && level != "fleet" && level != "user" || !strings.Contains(rest, "/") {
			return false
		}
	}
	return true
}

// Mutes says whether a grant that applies to an ask turns off the check of that
// id, letter by letter: no wildcard reaches a check that its giver has not seen. A
// project's check is that of the project that it was seen in: another one's of the
// same name is another.
func Mutes(g protocol.Grant, project, check string) bool {
	if !OfModules(g) || g.Scope != protocol.ScopeSession || !slices.Contains(g.Patterns, check) {
		return false
	}
	return !strings.HasPrefix(check, "project:") || g.Project == project
}

// checkMute refuses a grant that turns off anything but the one check that has
// asked, for longer or for more than its session. What a check blocks nobody can
// turn off: a block asks nobody.
func checkMute(p protocol.Pending, g protocol.Grant) error {
	check := p.Prompt.Check
	switch {
	case check == "":
		return fmt.Errorf("%w: no permission check that could be turned off has asked for this answer", ErrWider)
	case g.Scope != protocol.ScopeSession:
		return fmt.Errorf("%w: a permission check is turned off for the session alone, not for the %s", ErrWider, g.Scope)
	case g.Uses != 0:
		return fmt.Errorf("%w: a permission check is turned off for the session, not for a number of uses", ErrWider)
	case len(g.Patterns) != 1 || g.Patterns[0] != check:
		return fmt.Errorf("%w: the check that asks is %q, and only that can be turned off", ErrWider, check)
	}
	for _, e := range p.Asks {
		if e.ByModule() && e.Value == check {
			return nil
		}
	}
	return fmt.Errorf("%w: check %q has not asked for this answer", ErrWider, check)
}
