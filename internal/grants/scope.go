package grants

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// ErrWider: a grant would not be what its giver can have meant. The text is for
// the approver.
var ErrWider = errors.New("this grant cannot be given")

// Applies says whether a grant speaks of a call at now. It is for its own agent
// alone, whatever the scope: what an agent says of its session, its root and its
// project chooses among its own grants, and never reaches another's. The agent of
// the same name below another node, or at another than here, is another.
func Applies(g protocol.Grant, node string, a protocol.Ask, now time.Time) bool {
	if g.Node != node || g.Agent != a.Agent || g.Via != a.Via() || !slices.Equal(g.Hops, a.Hops) || g.Ask == "" || g.Expired(now) {
		return false
	}
	switch g.Scope {
	case protocol.ScopeSession:
		return g.Session != "" && g.Session == a.Session.ID
	case protocol.ScopeTree:
		return g.Root != "" && g.Root == root(a)
	case protocol.ScopeProject:
		return g.Project != "" && g.Project == a.Project.ID
	case protocol.ScopeAgent:
		return true
	default:
		return false
	}
}

// root is the root of a call's tree of sessions. A session that names none is
// its own.
func root(a protocol.Ask) string {
	if a.Session.Root != "" {
		return a.Session.Root
	}
	return a.Session.ID
}

// Bind is what an approver granted with an answer to a pending ask, with
// everything that the approver does not say.
func Bind(g protocol.Grant, p protocol.Pending, approver string) protocol.Grant {
	g.Node, g.Agent, g.GrantedBy, g.Ask = p.Node, p.Ask.Agent, approver, p.Ask.ID
	g.Via, g.Hops = p.Ask.Via(), append([]string(nil), p.Ask.Hops...)
	g.Session, g.Root, g.Project = p.Ask.Session.ID, root(p.Ask), p.Ask.Project.ID
	return Anchor(g, p.Ask)
}

// Anchor is a grant whose relative paths are those of the directory that the ask
// came from: a person who lets ".env" be read means this one, and the agent may
// be in another directory at the next call.
func Anchor(g protocol.Grant, a protocol.Ask) protocol.Grant {
	if !policy.OfPaths(g.Surface) || a.Cwd == "" {
		return g
	}
	cwd := strings.TrimSuffix(a.Cwd, "/")
	if a.Platform == "windows" {
		cwd = strings.TrimRight(strings.ReplaceAll(a.Cwd, `\`, "/"), "/")
	}
	g.Patterns = slices.Clone(g.Patterns)
	for i, pattern := range g.Patterns {
		if policy.Relative(pattern) && !strings.ContainsAny(cwd, "*?") {
			g.Patterns[i] = cwd + "/" + strings.TrimPrefix(pattern, "./")
		}
	}
	return g
}

// Same says whether what is stored is a grant as it was given, with no more uses
// than it had.
func Same(given, stored protocol.Grant) bool {
	if given.Uses > 0 && (stored.Uses < 1 || stored.Uses > given.Uses) {
		return false
	}
	stored.Uses = given.Uses
	return reflect.DeepEqual(given, stored)
}

// Compile is the grant as rulings know it.
func Compile(g protocol.Grant) (policy.Grant, error) {
	return policy.NewGrant(g.Ask, g.Surface, g.Patterns)
}

// Check refuses, with ErrWider, a grant that is wider than what the pending ask
// put before a person, or that could never clear a call. Whoever takes the
// answer checks it, and whoever carries it through.
func Check(p protocol.Pending, v protocol.TerminalVerdict, now time.Time) error {
	g := v.Grant
	switch {
	case g == nil:
		return nil
	case v.Verdict != protocol.FinalAllow:
		return fmt.Errorf("%w: only an allow grants", ErrWider)
	case len(v.EditedInput) > 0:
		return fmt.Errorf("%w: the call was changed, and a grant is on what the agent asked", ErrWider)
	case g.Expired(now):
		return fmt.Errorf("%w: it has ended already, at %s", ErrWider, g.Expires)
	}
	bound := Bind(*g, p, "approver")
	if !Applies(bound, p.Node, p.Ask, now) {
		return fmt.Errorf("%w: the ask names no %s for it to hold in", ErrWider, g.Scope)
	}
	if OfModules(*g) {
		return checkMute(p, *g)
	}
	compiled, err := Compile(bound)
	if err == nil {
		err = compiled.TooWide()
	}
	if err != nil {
		return fmt.Errorf("%w: %s%s", ErrWider, strings.TrimPrefix(err.Error(), policy.ErrGrant.Error()+": "), narrower(p, g.Surface))
	}
	return covers(p, compiled)
}

// narrower names the pattern that is offered for a pending ask, if there is one
// on the surface.
func narrower(p protocol.Pending, surface string) string {
	e, ok := Grantable(p)
	if !ok || e.Surface != surface || len(p.Suggest) == 0 {
		return ""
	}
	return fmt.Sprintf("; suggested is %q", p.Suggest[0])
}

// covers refuses a grant with a pattern that lets nothing pass of what is open.
func covers(p protocol.Pending, g policy.Grant) error {
	found := make([]bool, len(g.Patterns))
	closed := make([]*protocol.Entry, len(g.Patterns))
	var open, always []string
	for _, e := range p.Asks {
		if e.Surface != g.Surface {
			continue
		}
		for i, ok := range g.Covers(Call(p.Ask), e.Surface, e.Value) {
			switch {
			case ok && asksAlways(p, e):
				closed[i] = &e
			case ok:
				found[i] = true
			}
		}
		if asksAlways(p, e) {
			always = append(always, e.Value)
		} else {
			open = append(open, e.Value)
		}
	}
	i := slices.Index(found, false)
	switch {
	case i < 0:
		return nil
	case closed[i] != nil:
		return fmt.Errorf("%w: what pattern %q covers of this call has to be answered each time, whatever is granted%s", ErrWider, g.Patterns[i], whyAlways(p, *closed[i]))
	}
	return fmt.Errorf("%w: pattern %q would not cover the call that you answer; %s", ErrWider, g.Patterns[i], whatIsOpen(g.Surface, open, always))
}

// asksAlways says whether an open entry stays open whatever is granted: only a
// person answers it, or a floor stands at it or beside it in the same unit. A
// grant that clears the one alone never lets the unit pass.
//
// What a permission module asks is asked beside the rules: a grant on a rule's
// entry lets the like pass where the module does not ask.
func asksAlways(p protocol.Pending, e protocol.Entry) bool {
	return e.ByModule() || slices.ContainsFunc(p.Asks, func(o protocol.Entry) bool { return o.Unit == e.Unit && (o.Floor || o.HumanOnly) && !o.ByModule() })
}

// whyAlways is the word for what holds an entry back from every grant.
func whyAlways(p protocol.Pending, of protocol.Entry) string {
	for _, e := range p.Asks {
		switch {
		case e.Unit != of.Unit, e.ByModule():
		case e.HumanOnly:
			return ": its rule is for a person alone"
		case e.Floor:
			return fmt.Sprintf(": %s cannot be proven harmless (%s)", protocol.Safe(e.Value, 80, false), protocol.Safe(e.MatchedPattern, 80, false))
		}
	}
	return ""
}

// Grantable is the first open entry that a grant can clear: that for which a
// pattern is suggested, if one is.
func Grantable(p protocol.Pending) (protocol.Entry, bool) {
	for _, e := range p.Asks {
		if !asksAlways(p, e) {
			return e, true
		}
	}
	return protocol.Entry{}, false
}

// Leaves are the open entries of a pending ask that a grant does not clear: for
// them the like of the call is asked about again.
func Leaves(p protocol.Pending, g protocol.Grant) []protocol.Entry {
	if OfModules(g) {
		return slices.DeleteFunc(slices.Clone(p.Asks), func(e protocol.Entry) bool { return e.ByModule() && Mutes(g, g.Project, e.Value) })
	}
	compiled, err := Compile(g)
	if err != nil {
		return p.Asks
	}
	cleared := func(e protocol.Entry) bool {
		return !e.Floor && !e.HumanOnly && slices.Contains(compiled.Covers(Call(p.Ask), e.Surface, e.Value), true)
	}
	return slices.DeleteFunc(slices.Clone(p.Asks), cleared)
}

func whatIsOpen(surface string, open, always []string) string {
	switch {
	case len(open) > 0:
		return fmt.Sprintf("open on %s is %q", surface, strings.Join(open[:min(len(open), 3)], `", "`))
	case len(always) > 0:
		return "what is open on " + surface + " has to be answered each time"
	default:
		return "nothing is open on " + surface
	}
}

// Call is an ask as rulings know it.
func Call(a protocol.Ask) policy.Call {
	c := policy.Call{Tool: a.Tool.Name, Input: a.Tool.Input, Cwd: a.Cwd, Home: a.Home, Platform: a.Platform, StatedServers: a.MCPServers}
	for _, p := range a.Paths {
		c.Paths = append(c.Paths, policy.Path{Raw: p.Raw, Resolved: p.Resolved})
	}
	return c
}
