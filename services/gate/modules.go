package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
)

// modulesTime bounds what the permission modules are asked for one ruling, with
// the loading of a project's. An engine keeps to far less; this is for one that
// does not.
const modulesTime = 3 * time.Second

// Modules are the permission modules of a gate. Safe for concurrent use.
type Modules interface {
	// In returns the checks of this moment for a call, those of the call's project
	// first: nil for none. project are the modules that the project brought, none
	// where the policy does not trust it. What is returned changes no more: a
	// ruling asks one state of them, whatever is loaded meanwhile. Loading what is
	// not loaded yet ends with ctx; what cannot be loaded is among the Problems.
	In(ctx context.Context, project []module.Source) Checks
	// Changed is called once, before the gate serves, with what to call whenever
	// other modules than before are in force: asks that wait are ruled again then.
	Changed(func())
}

// Checks are the checks of one moment. Immutable, safe for concurrent use.
type Checks interface {
	// Check asks them about a call, each for call.Time at most; it ends soon after
	// ctx does. A verdict of no known decision is a failure.
	Check(ctx context.Context, call module.Call) module.Verdict
	// Digest identifies the modules that were loaded, "" for none.
	Digest() string
	// Problems are the modules that should be in force and are not.
	Problems() []module.Problem
}

// noChecks are the checks where no module is in force. What a project could not
// bundle may stand beside them.
type noChecks struct{}

func (noChecks) Check(context.Context, module.Call) module.Verdict {
	return module.Verdict{Decision: module.Pass}
}
func (noChecks) Digest() string             { return "" }
func (noChecks) Problems() []module.Problem { return nil }

// checked is what the permission modules say of a call. The zero value: nothing.
type checked struct {
	// digest identifies the modules that were asked.
	digest string
	// entry is what stands in the way of an allow, said by name; none where its
	// surface is "". outcome is that of a deny.
	entry   policy.Entry
	outcome protocol.Outcome
	by      string
	// prompt is how the call is put to a person where that is what they ask for.
	prompt *protocol.Prompt
	// off are the checks that would have asked, and were turned off; muted are the
	// grants that did so.
	off, muted []string
}

// moduled is a ruling under the permission modules of this moment, too. What the
// rules deny is not asked about: no module lifts it.
func (g *Gate) moduled(ctx context.Context, ask protocol.Ask, project brought, r ruled) ruled {
	if g.modules == nil {
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, modulesTime)
	defer cancel()
	r.checked = g.checkedBy(ctx, ask, project, r)
	r.ruling = r.checked.tighten(r.ruling)
	return r
}

// tighten adds what the modules say to a ruling of the same call.
func (c checked) tighten(r policy.Ruling) policy.Ruling {
	if c.entry.Surface == "" {
		return r
	}
	return r.With(c.entry)
}

// denies says whether by is what the modules deny with.
func (c checked) denies(by policy.Entry) bool {
	return c.entry.Surface != "" && c.entry.Action == policy.Deny && by == c.entry
}

// trustedModules are the modules that a project brought, where the operator's
// policy trusts it: from any other they would put words before approvers.
func trustedModules(s *policy.Snapshot, who policy.Who, file projectFile) brought {
	if who.Agent == "" || !s.TrustsProject(who) {
		return brought{}
	}
	return file.brought
}

func (g *Gate) checkedBy(ctx context.Context, ask protocol.Ask, project brought, r ruled) (c checked) {
	settings := r.snapshot.Modules()
	defer func() { // modules that cannot be asked must not take the gate with them
		if broke := recover(); broke != nil {
			c = g.unchecked(ask, settings, module.Verdict{Failure: fmt.Sprintf("the modules could not be asked: panic: %v", broke)})
		}
	}()
	if r.ruling.Action != policy.Ask && r.ruling.Action != policy.Allow {
		return checked{}
	}
	// A project's modules, and what they take, come from the agent's host: half of
	// the time is kept for those whose block they could else sit out.
	first := ctx
	if len(project.modules) > 0 {
		var cancel context.CancelFunc
		first, cancel = context.WithTimeout(ctx, modulesTime/2)
		defer cancel()
	}
	checks := g.modules.In(first, project.modules)
	if checks == nil {
		checks = noChecks{}
	}
	c.digest = checks.Digest()
	problems := append(slices.Clone(project.problems), checks.Problems()...)
	g.unloaded(problems)
	if settings.Strict && len(problems) > 0 {
		c.deny(unloadedEntry(problems[0]), protocol.Unavailable, problems[0].Module)
		return c
	}
	fields := r.snapshot.FieldsOf(ask.Tool.Name, ask.Tool.Input)
	call := module.Call{Ask: ask, Time: settings.CallTime, Fields: &fields}
	v, off, muted := g.walk(first, checks, call)
	said := g.judged(ask, settings, v)
	if v.Decision == module.Request && (v.Check.Level == module.LevelProject || v.Failure != "" && first != ctx) {
		// The first of them speaks, and a project's are the first. But they come from
		// the agent's host: neither a request of theirs nor the time that they took
		// from the others must stand in for a block.
		call.Off = func(c module.Check) bool { return c.Level == module.LevelProject }
		if others := g.judged(ask, settings, checks.Check(ctx, call)); others.stricter(said) {
			said = others
		}
	}
	said.digest, said.off, said.muted = c.digest, off, muted
	return said
}

// stricter says whether c tightens a ruling more than what another says.
func (c checked) stricter(than checked) bool {
	return c.entry.Surface != "" && c.entry.Action < than.entry.Action
}

// walk asks the checks. A check that asks for a person, and which an approver
// turned off for the session, is left out and the others are asked anew: that way
// a check is turned off only where it asks, and its block of another call stands.
func (g *Gate) walk(ctx context.Context, checks Checks, call module.Call) (v module.Verdict, off, muted []string) {
	call.Off = func(c module.Check) bool { return slices.Contains(off, c.ID()) }
	mutes := g.mutes(ctx, call.Ask)
	for {
		v = checks.Check(ctx, call)
		id := v.Check.ID()
		if v.Decision != module.Request || v.Failure != "" || len(off) == maxMuted || slices.Contains(off, id) {
			return v, off, muted
		}
		grant, ok := mutes(id)
		if !ok {
			return v, off, muted
		}
		off = append(off, id)
		if !slices.Contains(muted, grant) {
			muted = append(muted, grant)
		}
	}
}

// ruleEntry rules the call of an open ask. What a module of a machine's user has
// asked stays a person's at every gate: another one may not have that module, and
// so nothing against the call.
func (g *Gate) ruleEntry(ctx context.Context, p protocol.Pending, ask protocol.Ask) (ruled, error) {
	r, err := g.rule(ctx, ask)
	if err != nil || r.checked.entry.Surface != "" {
		return r, err
	}
	for _, e := range p.Asks {
		if e.ByModule() && strings.HasPrefix(e.Origin, userModule) && !slices.Contains(r.checked.off, e.Value) {
			r.checked.entry = policy.Entry{
				Surface: e.Surface, Value: e.Value, MatchedPattern: e.MatchedPattern, Origin: e.Origin, Unit: e.Unit, Action: policy.Ask, HumanOnly: true,
				Reason: p.Prompt.Description, Guidance: p.Prompt.Guidance,
			}
			r.checked.prompt = &p.Prompt
			r.ruling = r.checked.tighten(r.ruling)
			break
		}
	}
	return r, nil
}

const userModule = protocol.OriginModule + string(module.LevelUser) + ":"

// judged is what a verdict makes of a call.
func (g *Gate) judged(ask protocol.Ask, settings policy.Modules, v module.Verdict) (c checked) {
	switch {
	case v.Failure == "" && v.Decision == module.Pass:
	case v.Failure == "" && v.Decision == module.Block:
		e := checkEntry(v.Check, policy.Deny)
		e.Reason = protocol.Safe(v.Reason, protocol.MaxReason, true)
		c.deny(e, protocol.DeniedByModule, checkName(v.Check))
	case v.Failure == "" && v.Decision == module.Request:
		e := checkEntry(v.Check, policy.Ask)
		p := v.Prompt
		p.Name, p.Description, p.Check = v.Check.Name, v.Check.Description, v.Check.ID()
		c.request(e, p)
	default:
		c = g.unchecked(ask, settings, v)
	}
	return c
}

// unchecked is what becomes of a call of which a check could say nothing: a
// person is asked, and told so, or the call is denied. It never passes.
func (g *Gate) unchecked(ask protocol.Ask, settings policy.Modules, v module.Verdict) (c checked) {
	why := protocol.Safe(v.Failure, maxFailure, false)
	if why == "" {
		why = "it gave no answer that means anything"
	}
	g.count("module", "failed")
	g.tellOnce("check "+v.Check.ID()+" "+v.Check.Version, "a permission check failed and could not say anything of a call",
		"check", protocol.Safe(checkName(v.Check), protocol.MaxName, false), "version", v.Check.Version, "ask", ask.ID, "err", why)
	g.review.moduleFailed(ask.ID, checkName(v.Check), why)
	failed := "The permission check" + quotedName(v.Check.Name) + " failed, and so has said nothing of this call: " + why + "."
	if settings.OnFailure != policy.Ask {
		e := checkEntry(v.Check, policy.Deny)
		e.Reason = failed
		c.deny(e, protocol.Unavailable, checkName(v.Check))
		return c
	}
	e := checkEntry(v.Check, policy.Ask)
	c.request(e, protocol.Prompt{Name: v.Check.Name, Description: strings.TrimSpace(v.Check.Description + "\n" + failed)})
	return c
}

// maxFailure bounds what is said of a failure, in bytes.
const maxFailure = 500

func (c *checked) deny(e policy.Entry, outcome protocol.Outcome, by string) {
	c.entry, c.outcome, c.by = e, outcome, protocol.Safe(by, protocol.MaxName, false)
}

// request leaves a call to a person alone.
func (c *checked) request(e policy.Entry, p protocol.Prompt) {
	p = p.Shown()
	e.HumanOnly, e.Reason, e.Guidance = true, p.Description, p.Guidance
	c.entry, c.prompt = e, &p
}

// checkEntry is a check among the entries of a ruling.
func checkEntry(c module.Check, a policy.Action) policy.Entry {
	return policy.Entry{
		Surface: protocol.SurfaceModule, Value: protocol.Safe(c.ID(), protocol.MaxName, false), MatchedPattern: protocol.Safe(c.Name, protocol.MaxName, false),
		Origin: moduleOrigin(string(c.Level), c.Module, c.Version), Action: a,
	}
}

// moduleOrigin says which module spoke, in which version: enough of its digest to
// find it by.
func moduleOrigin(level, name, version string) string {
	const digits = 12
	version = strings.TrimPrefix(version, "sha256:")
	return protocol.Safe(protocol.OriginModule+level+":"+name+"@"+version[:min(len(version), digits)], protocol.MaxName, false)
}

func unloadedEntry(p module.Problem) policy.Entry {
	return policy.Entry{
		Surface: protocol.SurfaceModule, Value: protocol.Safe(string(p.Level)+":"+p.Module, protocol.MaxName, false), MatchedPattern: "<not-loaded>",
		Origin: moduleOrigin(string(p.Level), p.Module, ""), Action: policy.Deny,
		Reason: protocol.Safe(fmt.Sprintf("The %s permission module %q does not load, and the policy allows nothing while that is so: %s", p.Level, p.Module, p.Message), protocol.MaxReason, false),
	}
}

// unanswered is the reason of a denial where nobody is there to answer what a
// permission check asks: the agent must not take it for a rule's word.
func unanswered(p protocol.Pending, reason string) string {
	const nobody = " asks for a person, and no approver is there to answer."
	for _, e := range p.Asks {
		if e.ByModule() {
			return "The permission check" + quotedName(e.MatchedPattern) + nobody
		}
	}
	if p.Ask.Prompt != nil {
		return "The permission check" + quotedName(p.Ask.Prompt.Name) + " of a node below" + nobody
	}
	return reason
}

// byModule says whether an entry is what a permission module says.
func byModule(e policy.Entry) bool {
	return protocol.Entry{Surface: e.Surface, Origin: e.Origin}.ByModule()
}

func checkName(c module.Check) string { return c.Module + "/" + c.Name }

func quotedName(s string) string {
	if s == "" {
		return ""
	}
	return ` "` + protocol.Safe(s, 120, false) + `"`
}

// unloaded tells of modules that should be in force and are not, each once.
func (g *Gate) unloaded(problems []module.Problem) {
	for _, p := range problems {
		if g.tellOnce(fmt.Sprintf("load %q", p), "a permission module does not load; the others run", "level", p.Level, "module", p.Module, "err", protocol.Safe(p.Message, maxFailure, false)) {
			g.notifyUnloaded(p)
			g.count("module", "not_loaded")
		}
	}
}

// newModules is what follows when other modules than before are in force: what is
// wrong with them is told, and asks that wait are ruled again.
func (g *Gate) newModules() {
	g.tellModules(context.Background(), false)
	g.newPolicy()
}

// tellModules tells what is wrong with the modules of every ask: on the log and at
// the desk what was not told before, and with again at the desk all of it, for
// somebody who has just come.
func (g *Gate) tellModules(ctx context.Context, again bool) {
	if g.modules == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, modulesTime)
	defer cancel()
	checks := g.modules.In(ctx, nil)
	if checks == nil {
		return
	}
	problems := checks.Problems()
	g.unloaded(problems)
	for _, p := range problems {
		if again {
			g.notifyUnloaded(p)
		}
	}
}

func (g *Gate) notifyUnloaded(p module.Problem) {
	g.notify(protocol.Notice{Kind: protocol.NoticeModules, Text: protocol.Safe(p.String(), maxFailure, false)})
}

// maxTold bounds what a gate remembers having said of modules.
const maxTold = 1024

// tellOnce logs what was not logged before.
func (g *Gate) tellOnce(key, message string, about ...any) bool {
	g.toldLock.Lock()
	known := g.told[key]
	if !known {
		if len(g.told) >= maxTold {
			clear(g.told)
		}
		g.told[key] = true
	}
	g.toldLock.Unlock()
	if !known {
		g.log.Error(message, about...)
	}
	return !known
}
