package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/pkg/protocol"
)

// worldLinks are the links that run in a world; gone0 and gone1 may be named in
// a chain and run nowhere.
var worldLinks = []string{"l0", "l1", "l2", "l3"}

// world is one node on which generated scenes are played, one after another: two
// gates, links and terminals that do with each ask what its play says.
type world struct {
	*rig
	gates       []*served
	judge       *nats.Conn
	plays       sync.Map // ask id → *play
	ci, granted *agent
}

// play is what everybody does with one ask, and what they saw of it.
type play struct {
	links  map[string]string // link → a word of manners
	person string            // a word of persons
	edit   string            // the command that an editing person makes of it
	// meanwhile runs once, when the first link or the terminal has been asked and
	// has not answered.
	meanwhile func()
	// probe runs in each link before it answers.
	probe func(linkCall)

	mu      sync.Mutex
	asked   []string // links, in the order in which they were asked
	prompts int      // requests to the human terminal
	refused int      // requests to the terminal where nobody is
	relayed int      // requests to the terminal that relays
	changed bool
}

func newWorld(t *testing.T) *world { return newWorldWith(t, nil) }

// newWorldWith is a world whose gates have permission modules.
func newWorldWith(t *testing.T, modules Modules) *world {
	t.Helper()
	w := &world{rig: newRig(t, policyOf(law{base: "ask", kind: "human"}))}
	w.modules = modules
	w.log = slog.New(slog.DiscardHandler) // everything is broken here, on purpose
	w.judge = w.Connect(t, protocol.RoleJudge, "j")
	for _, name := range worldLinks {
		w.linkOn(w.judge, name, func(c linkCall) { w.serveLink(name, c) })
	}
	w.terminal(protocol.TerminalHuman, w.servePerson)
	w.terminal(protocol.TerminalDeny, w.serveNobody)
	w.terminal(protocol.TerminalParent, w.serveParent)
	for _, name := range []string{"g1", "g2"} {
		w.gates = append(w.gates, w.gate(name))
	}
	w.ci, w.granted = w.rig.agent("ci"), w.rig.agent("granted")
	return w
}

// giveGrant has a person grant every command of the shell that scenes are made
// of to the agent granted, for good.
func (w *world) giveGrant() string {
	w.t.Helper()
	ask := w.granted.bash("alpha one && beta one && gamma one && delta one")
	p := &play{person: "grant"}
	w.plays.Store(ask.ID, p)
	want(w.t, w.granted.decide(ask), allow, protocol.AllowedByHuman)
	w.settled(ask.ID)
	return ask.ID
}

// rule puts l in force at every gate.
func (w *world) rule(l law) {
	w.t.Helper()
	revision := w.put(policyOf(l))
	for _, g := range w.gates {
		g.inForce(revision)
	}
}

// run plays one ask to its decision.
func (w *world) run(a *agent, ask protocol.Ask, p *play) protocol.Decision {
	w.t.Helper()
	w.plays.Store(ask.ID, p)
	defer w.plays.Delete(ask.ID)
	d := a.decide(ask)
	w.settled(ask.ID)
	return d
}

func (w *world) play(id string) *play {
	p, ok := w.plays.Load(id)
	if !ok {
		// A worker that is asked after the ask has ended; it stays silent.
		return &play{}
	}
	return p.(*play)
}

// pause runs what happens meanwhile, once for an ask.
func (p *play) pause() {
	p.mu.Lock()
	first := !p.changed
	p.changed = true
	p.mu.Unlock()
	if first && p.meanwhile != nil {
		p.meanwhile()
	}
}

func (p *play) saw() (asked []string, prompts, refused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.asked...), p.prompts, p.refused
}

func (p *play) relays() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.relayed
}

// manners are what a link may do with an ask, and what its trail then shows.
var manners = map[string]struct {
	serve func(linkCall)
	trail string
}{
	"allow":     {func(c linkCall) { c.verdict("allow", "fine", "") }, "allow"},
	"deny":      {func(c linkCall) { c.verdict("deny", "no", "") }, "deny"},
	"defer":     {func(c linkCall) { c.verdict("defer", "", "") }, "defer"},
	"own word":  {func(c linkCall) { c.verdict("defer", "", "over_budget") }, "defer/over_budget"},
	"accepting": {func(c linkCall) { c.accept(); c.verdict("allow", "", "") }, "allow"},
	"grants": {func(c linkCall) {
		c.reply(fmt.Sprintf(`{"v":1,"ask":%q,"verdict":"allow","grant":{"scope":"agent","surface":"bash","patterns":["alpha *"]}}`, c.Ask.ID))
	}, "allow"},
	"junk":     {func(c linkCall) { c.reply(`{"verdict":"allow"}`) }, "defer/malformed"},
	"empty":    {func(c linkCall) { c.reply("") }, "defer/malformed"},
	"other id": {func(c linkCall) { c.reply(`{"v":1,"ask":"` + protocol.NewAskID() + `","verdict":"allow"}`) }, "defer/malformed"},
	"capitals": {func(c linkCall) { c.verdict("ALLOW", "", "") }, "defer/malformed"},
	"both":     {func(c linkCall) { c.reply(`{"v":1,"ask":"` + c.Ask.ID + `","verdict":"deny","verdict":"allow"}`) }, "defer/malformed"},
	"later":    {func(c linkCall) { c.reply(`{"v":9,"ask":"` + c.Ask.ID + `","verdict":"allow"}`) }, "defer/malformed"},
	"failing":  {func(c linkCall) { c.verdict("allow", "", "breaker_open") }, "defer/malformed"},
	"failed":   {func(c linkCall) { c.header(protocol.HeaderErrorCode, "500") }, "defer/error"},
	"twice":    {func(c linkCall) { c.verdict("defer", "", ""); c.verdict("allow", "", "") }, "defer"},
	"silent":   {func(c linkCall) { c.accept() }, "defer/timeout"},
}

func (w *world) serveLink(name string, c linkCall) {
	p := w.play(c.Ask.ID)
	p.mu.Lock()
	p.asked = append(p.asked, name)
	p.mu.Unlock()
	p.pause()
	if p.probe != nil {
		p.probe(c)
	}
	if m, ok := manners[p.links[name]]; ok {
		m.serve(c)
	}
}

// persons are what comes of an ask that is put to the human terminal.
var persons = map[string]protocol.Outcome{
	"allow": protocol.AllowedByHuman, "deny": protocol.DeniedByHuman, "edit": protocol.AllowedByHuman, "grant": protocol.AllowedByHuman,
	"at once": protocol.AllowedByHuman, // the verdict is the terminal's reply
	// Terminals that are broken, or lie.
	"junk": protocol.Unavailable, "defer": protocol.Unavailable, "nobody": protocol.Unavailable, "other id": protocol.Unavailable,
	"as a rule": protocol.Unavailable, "stored by nobody": protocol.Unavailable,
	// A person who does not answer.
	"cancelled": protocol.Cancelled, "expired": protocol.Expired,
}

func (w *world) servePerson(q protocol.TerminalRequest) string {
	p := w.play(q.Ask.ID)
	p.mu.Lock()
	p.prompts++
	p.mu.Unlock()
	p.pause()
	said := func(id, verdict, outcome, approver string) string {
		return fmt.Sprintf(`{"v":1,"ask":%q,"verdict":%q,"outcome":%q,"approver":%q}`, id, verdict, outcome, approver)
	}
	switch p.person {
	case "junk":
		return "yes"
	case "defer":
		return said(q.Ask.ID, "defer", "no_approver", "")
	case "nobody":
		return said(q.Ask.ID, "allow", "allowed_by_human", "")
	case "as a rule":
		return said(q.Ask.ID, "allow", "allowed_by_rule", "p")
	case "other id":
		return said(protocol.NewAskID(), "allow", "allowed_by_human", "p")
	case "at once":
		return said(q.Ask.ID, "allow", "allowed_by_human", "p")
	}
	if err := w.store(q.Ask.ID, p.verdict()); err != nil {
		return ""
	}
	return progressFor(q.Ask.ID)
}

// verdict is what the person of p stores in the entry, nil for nothing.
func (p *play) verdict() *protocol.TerminalVerdict {
	v := &protocol.TerminalVerdict{Verdict: allow, Outcome: protocol.AllowedByHuman, Approver: "oncall-1"}
	switch p.person {
	case "allow":
	case "deny":
		v.Verdict, v.Outcome, v.Reason = deny, protocol.DeniedByHuman, "not now"
	case "edit":
		in, _ := jsontext.AppendQuote([]byte(`{"command":`), p.edit)
		v.EditedInput = append(in, '}')
	case "grant":
		v.Grant = &protocol.Grant{Scope: protocol.ScopeAgent, Surface: "bash", Patterns: []string{"alpha *", "beta *", "gamma *", "delta *"}}
	case "stored by nobody":
		v.Approver = ""
	default:
		return nil
	}
	return v
}

// store marks the entry as put to a person, with the verdict if there is one.
func (w *world) store(id string, v *protocol.TerminalVerdict) error {
	_, err := w.open.Update(context.Background(), id, func(p *protocol.Pending) error {
		if p.Taken.IsZero() {
			p.Taken = time.Now().UTC()
		}
		if v != nil {
			if p.Verdict != nil {
				return errors.New("answered already")
			}
			said := *v
			said.Ask, said.At = id, p.Taken
			p.Verdict = &said
		}
		return nil
	})
	return err
}

func (w *world) serveNobody(q protocol.TerminalRequest) string {
	p := w.play(q.Ask.ID)
	p.mu.Lock()
	p.refused++
	p.mu.Unlock()
	p.pause()
	return fmt.Sprintf(`{"v":1,"ask":%q,"verdict":"deny","outcome":"no_approver","reason":"Nobody is there."}`, q.Ask.ID)
}

// counted is how often the gates have counted a fail-safe of that kind.
func (w *world) counted(what string) (n float64) {
	w.t.Helper()
	for _, g := range w.gates {
		n += g.counted(what)
	}
	return n
}

func (g *served) counted(what string) (n float64) {
	r := prometheus.NewRegistry()
	r.MustRegister(g.failSafe)
	for _, family := range must(r.Gather())(g.t) {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "what" && l.GetValue() == what {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// revoke takes a grant back.
func (w *world) revoke(id string) {
	w.t.Helper()
	must(must(grants.New(w.op))(w.t).Revoke(context.Background(), id))(w.t)
}

// serveParent is a parent where nobody is.
func (w *world) serveParent(q protocol.TerminalRequest) string {
	p := w.play(q.Ask.ID)
	p.mu.Lock()
	p.relayed++
	p.mu.Unlock()
	p.pause()
	return fmt.Sprintf(`{"v":1,"ask":%q,"verdict":"deny","outcome":"no_approver","reason":"Nobody is there."}`, q.Ask.ID)
}

// present has an approver be there, or nobody, as every gate sees it.
func (w *world) present(yes bool) {
	w.t.Helper()
	kv := must(w.js.KeyValue(context.Background(), protocol.BucketPresence))(w.t)
	if yes {
		must(kv.Put(context.Background(), "oncall-1", []byte(`{"v":1}`)))(w.t)
	} else if err := kv.Delete(context.Background(), "oncall-1"); err != nil {
		w.t.Fatal(err)
	}
	for _, g := range w.gates {
		until(w.t, "presence seen", func() error {
			if g.presence.anyone(time.Now()) != yes {
				return fmt.Errorf("present: %v, want %v", !yes, yes)
			}
			return nil
		})
	}
}
