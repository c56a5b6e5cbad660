package gate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// modulesPolicy allows, asks and denies some commands; settings stand behind it.
func modulesPolicy(settings ...string) string {
	return `{"permission":{"*":"ask","bash":{"*":"ask","git *":"allow","rm *":{"action":"deny","reason":"Never."}}},
		"terminal":{"kind":"deny"}` + strings.Join(append([]string{""}, settings...), ",") + `}`
}

const (
	yoloOn     = `"yoloMode":true`
	failDeny   = `"modules":{"onFailure":"deny"}`
	strictOn   = `"modules":{"strict":true}`
	linkAllows = `"authorizerChain":["l0"],"modelDelegation":{"allowedSurfaces":["*"]}`
)

func human(policy string) string {
	return strings.Replace(policy, `"kind":"deny"`, `"kind":"human"`, 1)
}

// checkOf is a check "c" that says one thing of one command.
func checkOf(command, says string) scriptedCheck {
	return scriptedCheck{name: "c", says: map[string]string{command: says}}
}

// TestModulesAndRulesTogether: the strictest of what rules and modules say
// stands, whoever else would have allowed.
func TestModulesAndRulesTogether(t *testing.T) {
	t.Parallel()
	const asks = `The permission check "c" asks for a person`
	for name, row := range map[string]struct {
		policy, command, says string
		result                protocol.FinalChoice
		outcome               protocol.Outcome
		reason                string
	}{
		"nothing said of what a rule allows":   {modulesPolicy(), "git tag", "", allow, protocol.AllowedByRule, ""},
		"nothing said of what yolo lets pass":  {modulesPolicy(yoloOn), "make", "", allow, protocol.AllowedByYolo, ""},
		"nothing said of what a link allows":   {modulesPolicy(linkAllows), "make", "", allow, protocol.AllowedByLink, ""},
		"nothing said of what a rule asks":     {modulesPolicy(), "make", "", deny, protocol.NoApprover, "Nobody is there."},
		"nothing said of what a rule denies":   {modulesPolicy(), "rm x", "", deny, protocol.DeniedByRule, "Never."},
		"a block of what a rule allows":        {modulesPolicy(), "git tag", "block", deny, protocol.DeniedByModule, "Not like this."},
		"a block of what a rule asks":          {modulesPolicy(), "make", "block", deny, protocol.DeniedByModule, "Not like this."},
		"a block under yolo":                   {modulesPolicy(yoloOn), "make", "block", deny, protocol.DeniedByModule, "Not like this."},
		"a block of what a link would allow":   {modulesPolicy(linkAllows), "make", "block", deny, protocol.DeniedByModule, "Not like this."},
		"a block of what a rule denies":        {modulesPolicy(), "rm x", "block", deny, protocol.DeniedByRule, "Never."},
		"a request of what a rule allows":      {modulesPolicy(), "git tag", "request", deny, protocol.NoApprover, asks},
		"a request under yolo":                 {modulesPolicy(yoloOn), "make", "request", deny, protocol.NoApprover, asks},
		"a request of what a link would allow": {modulesPolicy(linkAllows), "make", "request", deny, protocol.NoApprover, asks},
		"a request of what a rule denies":      {modulesPolicy(), "rm x", "request", deny, protocol.DeniedByRule, "Never."},
		"a failure of what a rule allows":      {modulesPolicy(), "git tag", "fail", deny, protocol.NoApprover, asks},
		"a failure under yolo":                 {modulesPolicy(yoloOn), "make", "fail", deny, protocol.NoApprover, asks},
		"a failure that shall deny":            {modulesPolicy(failDeny), "git tag", "fail", deny, protocol.Unavailable, `The permission check "c" failed, and so has said nothing of this call: it threw: x is not a function.`},
		"a failure that shall deny, beside":    {modulesPolicy(failDeny), "git tag", "", allow, protocol.AllowedByRule, ""},
		"a failure of what a rule denies":      {modulesPolicy(failDeny), "rm x", "fail", deny, protocol.DeniedByRule, "Never."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, row.policy)
			r.denying()
			r.link("l0", always("allow", "fine"))
			r.checking("g1", newModules(checkOf(row.command, row.says)))
			a := r.agent("ci")
			ask := a.bash(row.command)
			d := a.decide(ask)
			want(t, d, row.result, row.outcome)
			if !strings.HasPrefix(d.Reason, row.reason) || row.reason == "" && d.Reason != "" && row.outcome != protocol.AllowedByLink {
				t.Errorf("reason %q, want %q", d.Reason, row.reason)
			}
			if asked := d.Outcome != protocol.DeniedByRule; (d.Policy.Modules == "sha256:one") != asked {
				t.Errorf("the record says modules %q", d.Policy.Modules)
			}
			if stored := r.decisions(ask.ID); len(stored) != 1 || stored[0].Outcome != row.outcome {
				t.Errorf("the record holds %+v", stored)
			}
		})
	}
}

// TestWhatAProjectBringsHidesNoBlock: its modules speak first, and come from the
// agent's host; the operator's say no all the same. Among the operator's own the
// first one speaks.
func TestWhatAProjectBringsHidesNoBlock(t *testing.T) {
	t.Parallel()
	at := func(level module.Level, name, says string) scriptedCheck {
		return scriptedCheck{name: name, level: level, says: map[string]string{"git tag": says}}
	}
	project, fleet, user := module.LevelProject, module.LevelFleet, module.LevelUser
	for name, row := range map[string]struct {
		settings []string
		checks   []scriptedCheck
		outcome  protocol.Outcome
		check    string
	}{
		"a project's request":                              {nil, []scriptedCheck{at(project, "p", "request"), at(fleet, "f", "")}, protocol.NoApprover, "p"},
		"a project's request before the fleet's":           {nil, []scriptedCheck{at(project, "p", "request"), at(fleet, "f", "request")}, protocol.NoApprover, "p"},
		"a project's request before the fleet's block":     {nil, []scriptedCheck{at(project, "p", "request"), at(fleet, "f", "block")}, protocol.DeniedByModule, "f"},
		"a project's request before the user's block":      {nil, []scriptedCheck{at(project, "p", "request"), at(project, "q", "request"), at(fleet, "f", ""), at(user, "u", "block")}, protocol.DeniedByModule, "u"},
		"a project's request before a failure":             {nil, []scriptedCheck{at(project, "p", "request"), at(fleet, "f", "fail")}, protocol.NoApprover, "p"},
		"a project's request before a failure that denies": {[]string{failDeny}, []scriptedCheck{at(project, "p", "request"), at(fleet, "f", "fail")}, protocol.Unavailable, "f"},
		"a project's block":                                {nil, []scriptedCheck{at(project, "p", "block"), at(fleet, "f", "block")}, protocol.DeniedByModule, "p"},
		"a project's failure before the fleet's block":     {nil, []scriptedCheck{at(project, "p", "fail"), at(fleet, "f", "block")}, protocol.DeniedByModule, "f"},
		"the fleet's request before its own block":         {nil, []scriptedCheck{at(fleet, "f", "request"), at(fleet, "g", "block")}, protocol.NoApprover, "f"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, modulesPolicy(row.settings...))
			r.denying()
			r.checking("g1", newModules(row.checks...))
			a := r.agent("ci")
			d := a.decide(a.bash("git tag"))
			if d.Outcome != row.outcome || d.MatchedPattern != row.check {
				t.Errorf("%s by %s, want %s by %s", d.Outcome, d.MatchedPattern, row.outcome, row.check)
			}
		})
	}
}

// TestADecisionNamesModuleVersionAndCheck of whatever stood in the way.
func TestADecisionNamesModuleVersionAndCheck(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		policy, says string
		level        module.Level
		by           protocol.Decider
	}{
		"a block":               {modulesPolicy(), "block", module.LevelFleet, protocol.Decider{Kind: protocol.DeciderModule, Name: "m/c", Node: "main"}},
		"a failure that denies": {modulesPolicy(failDeny), "fail", module.LevelUser, protocol.Decider{Kind: protocol.DeciderModule, Name: "m/c", Node: "main"}},
		"a request":             {modulesPolicy(), "request", module.LevelProject, protocol.Decider{Kind: protocol.DeciderTerminal, Name: "deny", Node: "main"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, row.policy)
			r.denying()
			c := checkOf("git tag", row.says)
			c.level = row.level
			r.checking("g1", newModules(c))
			a := r.agent("ci")
			d := a.decide(a.bash("git tag"))
			if d.Allowed() || d.Surface != "module" || d.MatchedPattern != "c" || d.Value != string(row.level)+":m/c" ||
				d.Origin != "module:"+string(row.level)+":m@0123456789ab" || d.DecidedBy != row.by {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestARequestIsAPersonsAlone: what a module asks for is put in its words, and a
// person's answer ends it.
func TestARequestIsAPersonsAlone(t *testing.T) {
	t.Parallel()
	c := checkOf("git tag", "request")
	c.labels = true
	r := newRig(t, human(modulesPolicy(yoloOn, linkAllows)))
	r.person()
	judge := r.link("l0", always("allow", "fine"))
	r.checking("g1", newModules(c))
	a := r.agent("ci")
	for name, row := range map[string]struct {
		answer  protocol.TerminalVerdict
		result  protocol.FinalChoice
		outcome protocol.Outcome
	}{
		"a person allows":           {yes(), allow, protocol.AllowedByHuman},
		"a person allows and notes": {protocol.TerminalVerdict{Verdict: allow, Note: "push it, too"}, allow, protocol.AllowedByHuman},
		"a person denies":           {no("not today"), deny, protocol.DeniedByHuman},
		"a person stops the agent":  {protocol.TerminalVerdict{Verdict: deny, Abort: true, Reason: "stop"}, deny, protocol.DeniedByHuman},
	} {
		ask := a.bash("git tag")
		a.pend(ask)
		item := must(r.open.Get(context.Background(), ask.ID))(t)
		wantPrompt := protocol.Prompt{Name: "c", Description: "About c.", Guidance: "Look at the tag.", ApproveLabel: "Release", EditLabel: "Change", RejectLabel: "Hold", Check: "user:m/c"}
		if got := item.Prompt; len(got.Highlight) != 1 || got.Highlight[0] != (protocol.Span{Start: 0, End: 4}) {
			t.Errorf("%s: highlight %v", name, got.Highlight)
		} else if got.Highlight = nil; fmt.Sprint(got) != fmt.Sprint(wantPrompt) {
			t.Errorf("%s: prompt %+v", name, got)
		}
		if len(item.Asks) != 1 || !item.Asks[0].ByModule() || !item.Asks[0].HumanOnly {
			t.Errorf("%s: open is %+v", name, item.Asks)
		}
		r.answer(ask.ID, row.answer)
		d := a.decide(ask)
		want(t, d, row.result, row.outcome)
		if d.Note != row.answer.Note || d.Abort != row.answer.Abort || d.DecidedBy.Name != "oncall-1" {
			t.Errorf("%s: %+v", name, d)
		}
		if len(d.Trail) != 1 || !d.Trail[0].Capped {
			t.Errorf("%s: the link's allow is in the trail as %+v", name, d.Trail)
		}
	}
	if judge.total.Load() == 0 {
		t.Error("the link was not asked")
	}
}

// TestARuleSpeaksBesideAModule: an approver reads both, and the open entries of
// both.
func TestARuleSpeaksBesideAModule(t *testing.T) {
	t.Parallel()
	r := newRig(t, `{"permission":{"*":"ask","bash":{"make *":{"action":"ask","guidance":"Look at the branch."}}},"terminal":{"kind":"human"}}`)
	r.person()
	r.checking("g1", newModules(checkOf("make x", "request")))
	a := r.agent("ci")
	ask := a.bash("make x")
	a.pend(ask)
	item := must(r.open.Get(context.Background(), ask.ID))(t)
	if item.Prompt.Name != "c" || item.Prompt.Guidance != "Look at the tag.\nLook at the branch." {
		t.Errorf("prompt %+v", item.Prompt)
	}
	if len(item.Asks) != 2 || item.Asks[0].Surface != "bash" || item.Asks[0].HumanOnly || !item.Asks[1].ByModule() || !item.Asks[1].HumanOnly {
		t.Errorf("open is %+v", item.Asks)
	}
}

// TestAnEditedCallIsUnderTheModulesToo, and a call that they have come to block
// while a person looked.
func TestAnEditedCallIsUnderTheModulesToo(t *testing.T) {
	t.Parallel()
	blocks := checkOf("git push", "block")
	for name, row := range map[string]struct {
		settings []string
		edit     string
		then     *moduleState
		result   protocol.FinalChoice
		outcome  protocol.Outcome
	}{
		"as it was":                        {nil, "", nil, allow, protocol.AllowedByHuman},
		"changed into what a module likes": {nil, "git log", nil, allow, protocol.AllowedByHuman},
		"changed into what it blocks":      {nil, "git push", nil, deny, protocol.DeniedByModule},
		"blocked meanwhile":                {nil, "", &moduleState{digest: "sha256:two", checks: []scriptedCheck{checkOf("make", "block")}}, deny, protocol.DeniedByModule},
		"asked for meanwhile":              {nil, "", &moduleState{digest: "sha256:two", checks: []scriptedCheck{checkOf("make", "request")}}, allow, protocol.AllowedByHuman},
		"failing meanwhile":                {nil, "", &moduleState{digest: "sha256:two", checks: []scriptedCheck{checkOf("make", "fail")}}, allow, protocol.AllowedByHuman},
		"failing meanwhile, to deny":       {[]string{failDeny}, "", &moduleState{digest: "sha256:two", checks: []scriptedCheck{checkOf("make", "fail")}}, deny, protocol.Unavailable},
		"not loading meanwhile":            {nil, "", &moduleState{digest: "sha256:two", problems: oneProblem}, allow, protocol.AllowedByHuman},
		"not loading meanwhile, strictly":  {[]string{strictOn}, "", &moduleState{digest: "sha256:two", problems: oneProblem}, deny, protocol.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, human(modulesPolicy(row.settings...)))
			r.person()
			m := newModules(blocks)
			r.checking("g1", m)
			a := r.agent("ci")
			ask := a.bash("make")
			a.pend(ask)
			if row.then != nil {
				m.mu.Lock()
				m.changed = nil // it is the second ruling that must see it
				m.mu.Unlock()
				m.set(*row.then)
			}
			v := yes()
			if row.edit != "" {
				v.EditedInput = a.bash(row.edit).Tool.Input
			}
			r.answer(ask.ID, v)
			d := a.decide(ask)
			want(t, d, row.result, row.outcome)
			if d.Approver != "oncall-1" {
				t.Errorf("the record does not say who allowed: %+v", d)
			}
			if row.result == deny && (d.DecidedBy.Kind != protocol.DeciderModule || d.Surface != "module") {
				t.Errorf("by %+v on %s", d.DecidedBy, d.Surface)
			}
		})
	}
}

// TestWithoutModulesNothingChanges: a gate that has none, and one whose modules
// are none.
func TestWithoutModulesNothingChanges(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]Modules{"no modules": nil, "none in force": newModules()} {
		r := newRig(t, modulesPolicy(strictOn))
		r.denying()
		if s, ok := m.(*moduleScript); ok {
			s.set(moduleState{})
		}
		r.checking("g1", m)
		a := r.agent("ci")
		d := a.decide(a.bash("git log"))
		want(t, d, allow, protocol.AllowedByRule)
		if d.Policy.Modules != "" || d.Policy.Grants != "" {
			t.Errorf("%s: %+v", name, d.Policy)
		}
		want(t, a.decide(a.bash("make")), deny, protocol.NoApprover)
	}
}

// TestARulingIsUnderOneStateOfTheModules: what is swapped while checks are asked
// counts from the next ask on.
func TestARulingIsUnderOneStateOfTheModules(t *testing.T) {
	t.Parallel()
	r := newRig(t, modulesPolicy())
	r.denying()
	m := newModules()
	second := moduleState{digest: "sha256:two", checks: []scriptedCheck{checkOf("git log", "block")}}
	m.set(moduleState{digest: "sha256:one", say: func(module.Call) module.Verdict {
		m.set(second)
		return module.Verdict{Decision: module.Pass}
	}})
	r.checking("g1", m)
	a := r.agent("ci")
	d := a.decide(a.bash("git log"))
	want(t, d, allow, protocol.AllowedByRule)
	if d.Policy.Modules != "sha256:one" {
		t.Errorf("under %q", d.Policy.Modules)
	}
	d = a.decide(a.bash("git log"))
	want(t, d, deny, protocol.DeniedByModule)
	if d.Policy.Modules != "sha256:two" {
		t.Errorf("under %q", d.Policy.Modules)
	}
}

// TestWhatRulesDenyIsNotAskedAbout: a module learns nothing of it, and cannot slow
// it down.
func TestWhatRulesDenyIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	r := newRig(t, modulesPolicy())
	m := newModules()
	r.checking("g1", m)
	a := r.agent("ci")
	want(t, a.decide(a.bash("rm x")), deny, protocol.DeniedByRule)
	if n := m.calls.Load(); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

func TestTrustedModulesAreThoseOfATrustedProject(t *testing.T) {
	t.Parallel()
	doc := must(policy.Read(policy.Fleet(), "fleet", []byte(`{"trustedProjects":[{"id":"shop","root":"/repo","agents":["ci*"]}]}`)))(t)
	s := must(policy.NewSet(1, doc))(t)
	file := projectFile{brought: brought{modules: []module.Source{{Name: "m", Level: module.LevelProject}}}}
	ask := protocol.Ask{Agent: "ci", Project: protocol.Project{ID: "shop", Root: "/repo"}}
	for name, row := range map[string]struct {
		change func(*protocol.Ask)
		want   int
	}{
		"trusted":              {func(*protocol.Ask) {}, 1},
		"another project":      {func(a *protocol.Ask) { a.Project.ID = "other" }, 0},
		"another root":         {func(a *protocol.Ask) { a.Project.Root = "/tmp/repo" }, 0},
		"another agent":        {func(a *protocol.Ask) { a.Agent = "dev" }, 0},
		"relayed by a child":   {func(a *protocol.Ask) { a.Hops = []string{"child1"} }, 0},
		"a name that it wears": {func(a *protocol.Ask) { a.Agent, a.AgentName = "dev", "ci" }, 0},
		"trusted, with a name": {func(a *protocol.Ask) { a.AgentName = "reviewer" }, 1},
	} {
		a := ask
		row.change(&a)
		who := whoAsks(a, file)
		if got := trustedModules(s.For(who), who, file); len(got.modules) != row.want {
			t.Errorf("%s: %d modules, want %d", name, len(got.modules), row.want)
		}
	}
}
