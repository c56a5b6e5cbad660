package cli

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

const yellow = "33"

// tree draws an explanation: the call, its commands, and for each what the
// rules said. What it prints was chosen by an agent, so all of it goes through
// Safe.
type tree struct {
	sheet
	b strings.Builder
}

func newTree(env *Env) *tree {
	return &tree{sheet: sheet{w: env.Stdout, colour: isTerminal(env.Stdout) && env.Getenv("NO_COLOR") == ""}}
}

// marks are what stands in front of a line for each action.
var marks = map[policy.Action][2]string{
	policy.Allow: {green, "✓"}, policy.Ask: {yellow, "?"}, policy.Deny: {red, "✗"}, policy.None: {red, "✗"},
}

func (t *tree) mark(a policy.Action) string { return t.paint(marks[a][0], marks[a][1]) }

func (t *tree) linef(indent, format string, args ...any) {
	t.b.WriteString(strings.TrimRight(indent+fmt.Sprintf(format, args...), " ") + "\n")
}

func (t *tree) print(l evalLine, x policy.Explanation) error {
	t.linef("", "%s %s  %s", t.mark(x.Action), t.paint(marks[x.Action][0], x.Action.String()), safe(l.Tool+" "+mainArgument(l.Tool, l.Input)))
	t.units(x)
	t.ways(x)
	_, err := t.w.Write([]byte(t.b.String()))
	return err
}

// units draws each command with what was said of it; a call without commands is
// drawn as one.
func (t *tree) units(x policy.Explanation) {
	if len(x.Units) == 0 {
		t.said("  ", x.Said)
		return
	}
	of := make([][]policy.Said, len(x.Units))
	var whole []policy.Said
	for _, s := range x.Said {
		if s.Unit >= len(of) || aboutWhole(s, x.Units) {
			whole = append(whole, s)
			continue
		}
		of[s.Unit] = append(of[s.Unit], s)
	}
	for i, u := range x.Units {
		branch, below := "├─ ", "│    "
		if i == len(x.Units)-1 && len(whole) == 0 {
			branch, below = "└─ ", "     "
		}
		note := ""
		if u.Note != "" {
			note = "  (" + safe(u.Note) + ")"
		}
		t.linef("", "%s%s %s%s", branch, t.mark(strictestOf(of[i], u.Action)), safe(u.Text), note)
		t.said(below, of[i])
		if len(of[i]) == 0 {
			t.linef(below, "%s", t.paint(faint, "needs no rule of its own"))
		}
	}
	if len(whole) > 0 {
		t.linef("", "└─ %s the call as a whole", t.mark(strictestOf(whole, policy.Allow)))
		t.said("     ", whole)
	}
}

// aboutWhole says whether something was said of more than the command that it
// is filed under.
func aboutWhole(s policy.Said, units []policy.Unit) bool {
	return s.Unit == 0 && len(units) > 1 && s.Floor && s.Value != units[0].Text
}

func strictestOf(said []policy.Said, a policy.Action) policy.Action {
	for _, s := range said {
		a = min(a, s.Action)
	}
	return a
}

func (t *tree) said(indent string, said []policy.Said) {
	for _, s := range said {
		t.linef(indent, "%s %s", t.mark(s.Action), t.verdict(s))
		if s.Guidance != "" {
			t.linef(indent, "  told to the approver: %s", safe(s.Guidance))
		}
		for _, r := range s.Lost {
			t.linef(indent, "  %s", t.paint(faint, "lost: "+ruleText(r)+"  "+placeText(r.Place, r.Origin)))
		}
	}
}

// ruleText is a rule as its author would know it.
func ruleText(r policy.RuleAt) string {
	if r.Whole {
		return fmt.Sprintf("%q: %s", r.Surface, r.Action)
	}
	return fmt.Sprintf("%s %q: %s", safe(r.Surface), r.Pattern, r.Action)
}

const faint = "2"

// verdict is one line on what a surface said.
func (t *tree) verdict(s policy.Said) string {
	about := ""
	if s.Value != "*" && s.Value != "" && s.Surface != "bash" {
		about = " " + safe(s.Value)
	}
	why := s.Why()
	if why != "" {
		why = "  — " + safe(why)
	}
	if s.Place == (policy.Position{}) {
		return fmt.Sprintf("%s%s: %s%s", safe(firstOf(s.Surface, "the call")), about, s.Action, by(s.Entry)) + why
	}
	rule := ruleText(s.Rule)
	if s.Action < s.Rule.Action && s.Action != policy.None {
		rule += ", held to " + s.Action.String()
	}
	if s.HumanOnly {
		rule += ", humanOnly"
	}
	return fmt.Sprintf("%s%s  %s%s", rule, aboutOf(about), placeText(s.Place, s.Rule.Origin), why)
}

// by names what decided where no rule of a document did.
func by(e policy.Entry) string {
	switch group := e.Builtin(); {
	case group != "":
		return "  built-in rule of " + group
	case e.MatchedPattern == "*":
		return ""
	}
	return "  " + safe(e.MatchedPattern)
}

func aboutOf(about string) string {
	if about == "" {
		return ""
	}
	return "  on" + about
}

// placeText is where a rule stands, with its layer where that is not the fleet's.
func placeText(p policy.Position, origin string) string {
	text := safe(p.String())
	if origin != policy.LayerFleet && origin != "" && text != "" {
		text += " (" + safe(origin) + ")"
	}
	return text
}

var goals = map[policy.Action]string{policy.Allow: "allowed", policy.Ask: "asked", policy.Deny: "denied"}

func (t *tree) ways(x policy.Explanation) {
	for _, w := range x.Ways {
		if len(w.Blocks) > 0 {
			t.linef("", "\nno rule can make this %s:", goals[w.To])
			for _, b := range w.Blocks {
				t.linef("  ", "%s", blocked(b, x.Clamped))
			}
			continue
		}
		t.linef("", "\nto be %s:", goals[w.To])
		for _, e := range w.Edits {
			t.linef("  ", "%s", safe(e.String()))
		}
	}
}

// blocked says what stands in the way of a ruling, why, and what would lift it.
func blocked(e policy.Entry, clamped string) string {
	name := safe(e.MatchedPattern)
	if group := e.Builtin(); group != "" {
		name = "the built-in rule of " + group
	} else if !strings.HasPrefix(name, "<") {
		name = fmt.Sprintf("%s %q", safe(e.Surface), name)
	}
	lift := "nothing in a policy lifts this"
	if clamped != "" && e.Reason == clamped {
		lift = "mending the layer lifts this"
	} else if by := e.LiftedBy(); by != "" {
		lift = "only " + by + " lifts this"
	}
	return fmt.Sprintf("%s: %s (%s)", name, safe(strings.TrimSuffix(e.Because(), ".")), lift)
}

func safe(s string) string { return protocol.Safe(s, longText, false) }
