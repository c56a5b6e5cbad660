package cli

import (
	"context"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/gate"
	"github.com/assent-dev/assent/services/terminal"
)

// fullAt is when a bounded stream is worth a warning, in percent.
const fullAt = 80

// behindAt is how many records an auditor may lag before it is worth a warning.
const behindAt = 1000

// checkStreams looks at the record's streams and the auditor's place in them.
func (d *doctor) checkStreams(ctx context.Context) {
	js, err := jetstream.New(d.operator)
	if err != nil {
		d.fail("record", "", "opening JetStream: %v", err)
		return
	}
	d.checkClock(ctx, js)
	for _, at := range []struct{ name, check, auditor, remedy string }{
		{protocol.StreamDecisions, "record", "auditor", "make it larger (`assent node prepare --max-decisions BYTES`): when the decision stream is full, nothing is allowed"},
		{protocol.StreamReview, "record-review", "auditor-review", "make it larger (`assent node prepare --max-review BYTES`): when the review stream is full, its oldest records go"},
	} {
		s, err := js.Stream(ctx, at.name)
		if err != nil {
			d.fail(at.check, "run `assent node prepare`", "stream %s: %v", at.name, err)
			continue
		}
		info := s.CachedInfo()
		if most := info.Config.MaxBytes; most > 0 && info.State.Bytes*100 > uint64(most)*fullAt {
			d.warn(at.check, at.remedy, "stream %s is %d %% full", at.name, info.State.Bytes*100/uint64(most))
		} else {
			d.ok(at.check, "%s holds %s", at.name, count(int(info.State.Msgs), "record"))
		}
		d.checkAuditor(ctx, s, at.auditor)
	}
}

// Bounds of how far a clock may be off: leases and presence compare the clocks of
// gates and servers, and are themselves some ten seconds long.
const (
	clockWarns = 2 * time.Second
	clockFails = protocol.LeaseTime / 2
)

// checkClock holds this machine's clock against the NATS server's. That of a gate
// elsewhere is looked at by the doctor there.
func (d *doctor) checkClock(ctx context.Context, js jetstream.JetStream) {
	s, err := js.Stream(ctx, protocol.StreamDecisions)
	if err != nil {
		return // said below, with its remedy
	}
	before := time.Now()
	info, err := s.Info(ctx)
	after := time.Now()
	if err != nil || info.TimeStamp.IsZero() {
		return
	}
	d.judgeClock(before, after, info.TimeStamp)
}

// judgeClock compares the server's time with those between which it said it: a
// slow answer is no wrong clock.
func (d *doctor) judgeClock(before, after, server time.Time) {
	const remedy = "set both by NTP: a gate with a wrong clock takes over asks that others carry, and sees nobody present"
	off, word := server.Sub(after), "behind"
	if ahead := before.Sub(server); ahead > 0 {
		off, word = ahead, "ahead of"
	}
	switch {
	case off >= clockFails:
		d.fail("clock", remedy, "this machine's clock is %s %s the NATS server's", off.Round(time.Second), word)
	case off >= clockWarns:
		d.warn("clock", remedy, "this machine's clock is %s %s the NATS server's", off.Round(time.Second), word)
	}
}

func (d *doctor) checkAuditor(ctx context.Context, s jetstream.Stream, check string) {
	name := s.CachedInfo().Config.Name
	c, err := s.Consumer(ctx, node.AuditorDurable)
	if err != nil {
		d.fail(check, "run `assent node prepare`", "the auditor's place in %s is missing: %v", name, err)
		return
	}
	info := c.CachedInfo()
	switch behind := info.NumPending + uint64(info.NumAckPending); {
	case info.NumWaiting == 0:
		d.warn(check, "start `assent auditor`: the record is in the stream, but nobody copies it", "no auditor reads %s", name)
	case behind > behindAt:
		d.warn(check, "look at the auditor's log", "the auditor is %d records of %s behind", behind, name)
	}
}

// checkServices asks which services answer.
func (d *doctor) checkServices(ctx context.Context) {
	for _, want := range []struct{ name, what, remedy string }{
		{gate.ServiceName, "gate", "start `assent gate` (or `assent up`): without one every call is denied"},
		{terminal.ServiceName, "terminal", "start `assent terminal` (or `assent up`): without one every open ask is denied"},
	} {
		n, err := d.countServices(ctx, want.name)
		switch {
		case err != nil:
			d.fail(want.what, "", "%v", err)
		case n == 0:
			d.fail(want.what, want.remedy, "no %s answers on node %s", want.what, d.node)
		default:
			d.ok(want.what, "%d running", n)
		}
	}
}

// countServices counts the services of that name on this node.
func (d *doctor) countServices(ctx context.Context, name string) (int, error) {
	all, err := runningServices(ctx, d.operator, name, d.node)
	return len(all), err
}

// linkRemedies say how to mend what does not fit of a link.
var linkRemedies = map[string]string{
	problemMissing:  "start what serves it (`assent judge`, or a program of yours), or take it out of the policy's authorizerChain",
	problemUnnamed:  "name it in the policy's authorizerChain, or stop it",
	problemUnable:   "mend that, and start the judge again where it does not come back by itself: until then it takes no asks",
	problemFailing:  "`assent links` says why, the judge's log more: mend its key, budget or model server; until its model answers, every ask goes on to the next judge or to a person",
	problemVersions: "start all of them in one version: asks go to either",
}

// checkLinks holds the chain against what runs.
func (d *doctor) checkLinks(ctx context.Context) {
	chain, err := namedLinks(ctx, d.operator)
	if err != nil {
		return // the policy's own check has said it
	}
	running, err := runningLinks(ctx, d.operator, d.node)
	if err != nil {
		d.fail("chain", "", "%v", err)
		return
	}
	if len(chain) == 0 {
		d.ok("chain", "the chain is empty: open asks go straight to the terminal")
	}
	fits := len(chain) > 0
	for _, row := range compareLinks(chain, running) {
		if row.Problem == "" {
			continue
		}
		fits = false
		d.warn("chain", linkRemedies[row.Problem], "link %s %s", row.Name, row.problemText())
	}
	if fits {
		d.ok("chain", "%s named, all running", count(len(chain), "link"))
	}
}

// checkGate proves the gate: a call that a built-in rule denies must come back
// denied by that rule, and be on the record.
func (d *doctor) checkGate(ctx context.Context) {
	p, ok := d.as(protocol.RoleAgent, d.agent, "gate-call")
	if !ok {
		return
	}
	a, err := dialAgent(ctx, p, "doctor")
	if err != nil {
		d.fail("gate-call", "", "%v", err)
		return
	}
	defer a.close()
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	decision, err := a.ask(ctx, protocol.Ask{
		ID: protocol.NewAskID(), Source: protocol.SourceToolCall, Cwd: "/", Home: "/",
		Tool: protocol.Tool{Name: policy.ToolCanary, Input: jsontext.Value("{}")},
	})
	switch {
	case err != nil:
		d.fail("gate-call", "", "the gate does not decide: %v", err)
	case decision.Outcome == protocol.Unavailable && !decision.Allowed():
		d.fail("gate-call", "see the finding on the record above, and the gate's log: until it is mended every call is denied", "the gate could not record a decision: %s", decision.Reason)
	case decision.Outcome == protocol.Frozen && !decision.Allowed():
		d.warn("gate-call", "see the finding on freezes above", "not checked: the agent that would prove it is frozen: %s", decision.Reason)
	case decision.Allowed() || decision.Outcome != protocol.DeniedByRule || decision.Origin != policy.OriginBuiltin:
		d.fail("gate-call", "this is no gate of Assent, or one with a fault: do not use it", "a call that must be denied came back as %s (%s)", decision.Result, decision.Outcome)
	default:
		d.ok("gate-call", "a call that must be denied was denied: ask %s", decision.Ask)
		d.checkRecorded(ctx, decision.Ask)
	}
}

// checkRecorded looks the canary's decision up in the stream, as an auditor.
func (d *doctor) checkRecorded(ctx context.Context, id string) {
	p, ok := d.as(protocol.RoleAuditor, d.auditor, "record-call")
	if !ok {
		return
	}
	nc, err := bus.Connect(ctx, bus.Config{URL: p.NATS, Creds: p.Creds, Role: protocol.RoleAuditor, Logger: quietLog()})
	if err != nil {
		d.fail("record-call", "", "%v", err)
		return
	}
	defer nc.Close()
	subjects, err := protocol.NewSubjects(d.node)
	if err != nil {
		d.fail("record-call", "", "%v", err)
		return
	}
	of, err := subjects.DecisionOf(id)
	if err != nil {
		d.fail("record-call", "", "%v", err)
		return
	}
	for m, err := range bus.ReadStream(ctx, nc, protocol.StreamDecisions, 1, of) {
		if err != nil {
			d.fail("record-call", "", "reading the record: %v", err)
			return
		}
		if strings.Contains(m.Subject, id) {
			d.ok("record-call", "that denial is on the record, number %d", m.Seq)
			return
		}
	}
	d.fail("record-call", "do not use this node: it answers without recording", "the gate denied ask %s without recording it", id)
}
