package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/internal/desk"
	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// grantFlags are the flags of an answer that grants.
type grantFlags struct {
	scope, surface, expires string
	patterns                []string
	uses                    int
	// mute turns off the permission check that asks, and grants nothing else.
	mute bool
}

// never is the word for a grant without an end.
const never = "never"

func (f *grantFlags) flags(fl *pflag.FlagSet) {
	fl.StringVar(&f.scope, "grant", "", "with allow: remember it, for this session, tree, project or agent")
	fl.StringArrayVar(&f.patterns, "pattern", nil, "with --grant: what to allow from now on, instead of the suggestion; may be given again")
	fl.StringVar(&f.surface, "surface", "", "with --grant: the surface of the patterns; left out, that of the suggestion")
	fl.BoolVar(&f.mute, "mute", false, "with allow: don't ask again: turn the permission check that asks off for the rest of the agent's session")
	fl.StringVar(&f.expires, "expires", "", "with --grant or --mute: how long it holds, as 30m or 2026-03-02T18:00:00Z, or never (default 8h)")
	fl.IntVar(&f.uses, "uses", 0, "with --grant: how many calls it may let pass; 0 is no limit")
}

func (f *grantFlags) given() bool { return f.scope != "" || f.mute }

// check refuses flags that do not go together, before anything is looked up.
func (f *grantFlags) check(verdict protocol.FinalChoice, edited bool) error {
	rest := len(f.patterns) > 0 || f.surface != "" || f.expires != "" || f.uses != 0
	switch {
	case !f.given() && rest:
		return usagef("--pattern, --surface, --expires and --uses go with --grant session, tree, project or agent")
	case !f.given():
		return nil
	case f.mute:
		return f.checkMute(verdict, edited)
	case verdict != protocol.FinalAllow:
		return usagef("--grant goes with allow: to refuse such calls from now on, write a deny rule")
	case edited:
		return usagef("--grant does not go with --input: a grant is on what the agent asked")
	case f.uses < 0:
		return usagef("--uses %d: want 0 for no limit, or how many calls", f.uses)
	}
	if err := new(protocol.Scope).UnmarshalText([]byte(f.scope)); err != nil {
		return usagef("--grant %q: want session, tree, project or agent", protocol.Safe(f.scope, 40, false))
	}
	_, err := f.end(time.Now())
	return err
}

// checkMute is check for --mute.
func (f *grantFlags) checkMute(verdict protocol.FinalChoice, edited bool) error {
	switch {
	case f.scope != "" || len(f.patterns) > 0 || f.surface != "" || f.uses != 0:
		return usagef("--mute turns one permission check off and grants nothing else: leave --grant, --pattern, --surface and --uses out")
	case verdict != protocol.FinalAllow:
		return usagef("--mute goes with allow: a check is turned off by whoever allows what it asks about")
	case edited:
		return usagef("--mute does not go with --input: answer without it, and turn the check off at its next ask")
	}
	_, err := f.end(time.Now())
	return err
}

// end is when the grant ends; the zero time is never.
func (f *grantFlags) end(now time.Time) (time.Time, error) {
	switch f.expires {
	case "":
		return now.Add(desk.GrantLife), nil
	case never:
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(f.expires); err == nil && d >= time.Second {
		return now.Add(d), nil
	}
	if at, err := time.Parse(time.RFC3339, f.expires); err == nil && at.After(now) {
		return at, nil
	}
	return time.Time{}, usagef("--expires %q: want a time to come, as 30m, 8h or 2026-03-02T18:00:00Z, or never", protocol.Safe(f.expires, 40, false))
}

// grant is what the flags grant on a pending ask.
func (f *grantFlags) grant(item pending.Item) (*protocol.Grant, error) {
	end, err := f.end(time.Now())
	if err != nil {
		return nil, err
	}
	if f.mute {
		g, err := desk.Mute(item, end)
		return &g, err
	}
	g, err := desk.Grant(item, protocol.Scope(f.scope), f.surface, f.patterns, end, f.uses)
	switch s := protocol.Scope(f.scope); {
	case err == nil:
		return &g, nil
	case item.Ask.Session.ID == "" && (s == protocol.ScopeSession || s == protocol.ScopeTree):
		return nil, fmt.Errorf("%w: answer without --grant, or with --grant agent, which holds for this agent everywhere", err)
	default:
		return nil, fmt.Errorf("%w: see `assent pending`, or answer without --grant", err)
	}
}

// grantLine is a grant in one line, for whoever is about to give it.
func grantLine(g protocol.Grant) string {
	if grants.OfModules(g) {
		return protocol.Safe(fmt.Sprintf("that the check %s does not ask again, for %s, %s; what it blocks stays blocked", strings.Join(g.Patterns, " and "), scopeText(g.Scope), untilText(g.Expires)), 2000, false)
	}
	quoted := make([]string, len(g.Patterns))
	for i, p := range g.Patterns {
		quoted[i] = `"` + p + `"`
	}
	text := fmt.Sprintf("%s %s, for %s, %s", g.Surface, strings.Join(quoted, " and "), scopeText(g.Scope), untilText(g.Expires))
	if g.Uses > 0 {
		text += ", " + count(g.Uses, "call")
	}
	return protocol.Safe(text, 2000, false)
}

// leftLines say what a grant does not clear of the ask that it is given on.
func leftLines(item pending.Item, g protocol.Grant) (lines []string) {
	const most = 5
	left := grants.Leaves(item.Pending, g)
	for i, e := range left {
		if i == most {
			return append(lines, fmt.Sprintf("and %d more", len(left)-most))
		}
		why := ""
		if e.Floor || e.HumanOnly {
			why = ", each time"
		}
		lines = append(lines, protocol.Safe(fmt.Sprintf("not covered, will still ask%s: %s %q", why, e.Surface, e.Value), 400, false))
	}
	return lines
}

func scopeText(s protocol.Scope) string {
	switch s {
	case protocol.ScopeSession:
		return "this session of the agent"
	case protocol.ScopeTree:
		return "this agent's sessions of one tree"
	case protocol.ScopeProject:
		return "this agent in this project"
	default:
		return "this agent everywhere"
	}
}

func untilText(expires string) string {
	at, err := time.Parse(time.RFC3339, expires)
	if err != nil {
		return "without end"
	}
	return "until " + moment(at)
}
