package gate

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// chainPolicy asks about every command, delegates bash and ends at deny.
func chainPolicy(links ...string) string {
	return fmt.Sprintf(`{
  "permission": { "*": "ask", "bash": { "*": "ask", "docker *": { "action": "ask", "humanOnly": true } } },
  "authorizerChain": [%s], "linkTimeout": "900ms",
  "modelDelegation": { "allowedSurfaces": ["bash"], "excludedSurfaces": ["write"] },
  "terminal": { "kind": "deny" } }`, quoted(links))
}

func quoted(words []string) string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		out = append(out, fmt.Sprintf("%q", w))
	}
	return strings.Join(out, ",")
}

// said is a trail as link=verdict/failure, with a star where it was capped.
func said(d protocol.Decision) string {
	var out []string
	for _, e := range d.Trail {
		s := e.Link + "=" + e.Verdict.String()
		if e.Failure != "" {
			s += "/" + e.Failure
		}
		if e.Capped {
			s += "*"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func wantTrail(t testing.TB, d protocol.Decision, trail string) {
	t.Helper()
	if got := said(d); got != trail {
		t.Fatalf("trail is %q, want %q", got, trail)
	}
}

func TestLinksAreAskedInConfigOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, chainPolicy("first", "gone", "second"))
	r.denying()
	g := r.gate("g1")
	order := make(chan string, 16)
	nc := r.Connect(t, protocol.RoleJudge, "j")
	named := func(name string) func(linkCall) {
		return func(c linkCall) { order <- name; c.verdict("defer", "", "") }
	}
	// Registered in the wrong order, and one that nobody named.
	second := r.linkOn(nc, "second", named("second"))
	r.announce(nc, "second", g)
	unnamed := r.link("unnamed", always("allow", "me too"))
	first := r.linkOn(nc, "first", named("first"))
	r.announce(nc, "first", g)
	a := r.agent("ci")
	ask := a.bash("make")
	d := a.decide(ask)
	want(t, d, deny, protocol.NoApprover)
	wantTrail(t, d, "first=defer gone=defer/unregistered second=defer")
	close(order)
	if one, two, more := <-order, <-order, <-order; one != "first" || two != "second" || more != "" || first.times(ask.ID) != 1 || second.times(ask.ID) != 1 {
		t.Errorf("asked %s, %s, %s", one, two, more)
	}
	if unnamed.total.Load() != 0 {
		t.Error("a link that nobody named was asked")
	}
	r.settled(ask.ID)
	wantEvents := []string{protocol.EventChainResolved, protocol.EventChainUnregistered, protocol.EventRequestWaiting, protocol.EventRequestDenied}
	if got := r.events(ask.ID); !slices.Equal(got, wantEvents) {
		t.Errorf("events %v, want %v", got, wantEvents)
	}
	for _, rec := range r.reviews(ask.ID) {
		fields := string(rec.Fields)
		switch rec.Event {
		case protocol.EventChainResolved:
			if fields != `{"links":["first","second"]}` {
				t.Errorf("resolved: %s", fields)
			}
		case protocol.EventChainUnregistered:
			if fields != `{"link":"gone"}` {
				t.Errorf("unregistered: %s", fields)
			}
		}
		if rec.Gate != "g1" || rec.Link != "" || rec.Node != "main" {
			t.Errorf("stamped %+v", rec)
		}
	}
}

func TestNothingIsSaidOfAnEmptyOrUnseenChain(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		chain []string
		run   []string
		want  []string
	}{
		"empty, though links run": {nil, []string{"one"}, []string{protocol.EventRequestWaiting, protocol.EventRequestDenied}},
		"named, but none is seen": {[]string{"one"}, nil, []string{protocol.EventChainUnregistered, protocol.EventRequestWaiting, protocol.EventRequestDenied}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, chainPolicy(row.chain...))
			r.denying()
			g := r.gate("g1")
			for _, l := range row.run {
				nc := r.Connect(t, protocol.RoleJudge, "j")
				r.linkOn(nc, l, always("allow", ""))
				r.announce(nc, l, g)
			}
			a := r.agent("ci")
			ask := a.bash("make")
			want(t, a.decide(ask), deny, protocol.NoApprover)
			r.settled(ask.ID)
			until(t, "the story", func() error {
				if got := r.events(ask.ID); !slices.Equal(got, row.want) {
					return fmt.Errorf("events %v, want %v", got, row.want)
				}
				return nil
			})
		})
	}
}

func TestTheEnvelopeIsTheGates(t *testing.T) {
	t.Parallel()
	r := newRig(t, chainPolicy("one", "two"))
	r.denying()
	g := r.gate("g1")
	var verdicts book[string]
	r.link("one", func(c linkCall) { c.verdict(strings.Fields(verdicts.get(c.Ask.ID))[0], "one's reason", "") })
	r.link("two", func(c linkCall) { c.verdict(strings.Fields(verdicts.get(c.Ask.ID))[1], "two's reason", "") })
	a := r.agent("ci")
	run := func(t *testing.T, ask protocol.Ask, say string) protocol.Decision {
		verdicts.put(ask.ID, say)
		return a.decide(ask)
	}
	for _, row := range []struct {
		name    string
		ask     protocol.Ask
		say     string
		result  protocol.FinalChoice
		outcome protocol.Outcome
		trail   string
	}{
		{"an allow inside it allows", a.bash("make"), "allow defer", allow, protocol.AllowedByLink, "one=allow"},
		{"the second link may allow too", a.bash("make"), "defer allow", allow, protocol.AllowedByLink, "one=defer two=allow"},
		{"a deny denies and ends the chain", a.bash("make"), "deny allow", deny, protocol.DeniedByLink, "one=deny"},
		{"outside it an allow is capped", a.call("web_fetch", `{"url":"https://example.org"}`), "allow allow", deny, protocol.NoApprover, "one=defer* two=defer*"},
		{"outside it a deny is not capped", a.call("web_fetch", `{"url":"https://example.org"}`), "allow deny", deny, protocol.DeniedByLink, "one=defer* two=deny"},
		{"what only a person allows is capped", a.bash("docker ps"), "allow allow", deny, protocol.NoApprover, "one=defer* two=defer*"},
		{"what only a person allows a link may deny", a.bash("docker ps"), "deny allow", deny, protocol.DeniedByLink, "one=deny"},
		{"a secret's path is capped", a.bash("cat .env"), "allow defer", deny, protocol.NoApprover, "one=defer* two=defer"},
		{"one open entry outside is enough", a.bash("cat /etc/passwd"), "allow defer", deny, protocol.NoApprover, "one=defer* two=defer"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := run(t, row.ask, row.say)
			want(t, d, row.result, row.outcome)
			wantTrail(t, d, row.trail)
			if d.Outcome == protocol.AllowedByLink || d.Outcome == protocol.DeniedByLink {
				last := d.Trail[len(d.Trail)-1]
				if d.DecidedBy.Kind != protocol.DeciderLink || d.DecidedBy.Name != last.Link || d.Reason != last.Link+"'s reason" || d.Origin != "authorizer:"+last.Link {
					t.Errorf("decided by %+v, reason %q, origin %q", d.DecidedBy, d.Reason, d.Origin)
				}
			}
		})
	}
	t.Run("without a modelDelegation every allow is capped", func(t *testing.T) {
		g.inForce(r.put(`{"permission":{"*":"ask"},"authorizerChain":["one","two"],"terminal":{"kind":"deny"}}`))
		d := run(t, a.bash("make"), "allow allow")
		want(t, d, deny, protocol.NoApprover)
		wantTrail(t, d, "one=defer* two=defer*")
	})
	t.Run("and a deny still denies", func(t *testing.T) {
		want(t, run(t, a.bash("make"), "allow deny"), deny, protocol.DeniedByLink)
	})
}

func TestWhateverIsNoVerdictInTimeDefers(t *testing.T) {
	t.Parallel()
	r := newRig(t, chainPolicy("one", "two"))
	r.denying()
	r.gate("g1")
	other := protocol.NewAskID()
	rows := map[string]struct {
		serve func(linkCall)
		trail string
	}{
		"junk":               {func(c linkCall) { c.reply("yes!") }, "defer/malformed"},
		"an empty body":      {func(c linkCall) { c.reply("") }, "defer/malformed"},
		"another ask's id":   {func(c linkCall) { c.reply(`{"v":1,"ask":"` + other + `","verdict":"allow"}`) }, "defer/malformed"},
		"no id":              {func(c linkCall) { c.reply(`{"v":1,"verdict":"allow"}`) }, "defer/malformed"},
		"a word no link has": {func(c linkCall) { c.verdict("permit", "", "") }, "defer/malformed"},
		"a word in capitals": {func(c linkCall) { c.verdict("ALLOW", "", "") }, "defer/malformed"},
		"a terminal's words": {func(c linkCall) {
			c.reply(`{"v":1,"ask":"` + c.Ask.ID + `","verdict":"","outcome":"allowed_by_human"}`)
		}, "defer/malformed"},
		"another version":            {func(c linkCall) { c.reply(`{"v":2,"ask":"` + c.Ask.ID + `","verdict":"allow"}`) }, "defer/malformed"},
		"both words":                 {func(c linkCall) { c.reply(`{"v":1,"ask":"` + c.Ask.ID + `","verdict":"deny","verdict":"allow"}`) }, "defer/malformed"},
		"a deny without a reason":    {func(c linkCall) { c.verdict("deny", "", "") }, "defer/malformed"},
		"an allow that failed":       {func(c linkCall) { c.verdict("allow", "", "breaker_open") }, "defer/malformed"},
		"too much":                   {func(c linkCall) { c.verdict("allow", strings.Repeat("a", 300<<10), "") }, "defer/malformed"},
		"an error header":            {func(c linkCall) { c.header(protocol.HeaderErrorCode, "500") }, "defer/error"},
		"the server's own 503":       {func(c linkCall) { c.status503() }, "defer/unregistered"},
		"silence":                    {func(c linkCall) { c.accept() }, "defer/timeout"},
		"a defer":                    {func(c linkCall) { c.verdict("defer", "not mine", "") }, "defer"},
		"a failure in its own words": {func(c linkCall) { c.verdict("defer", "", "breaker_open") }, "defer/breaker_open"},
		"an allow at last":           {func(c linkCall) { c.verdict("allow", "", "") }, "allow"},
	}
	var serve book[func(linkCall)]
	r.link("one", func(c linkCall) { serve.get(c.Ask.ID)(c) })
	r.link("two", always("defer", ""))
	a := r.agent("ci")
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			ask := a.bash("make")
			serve.put(ask.ID, row.serve)
			d := a.decide(ask)
			if row.trail == "allow" {
				want(t, d, allow, protocol.AllowedByLink)
				wantTrail(t, d, "one=allow")
				return
			}
			want(t, d, deny, protocol.NoApprover)
			wantTrail(t, d, "one="+row.trail+" two=defer")
			unregistered := 0
			if strings.HasSuffix(row.trail, "unregistered") {
				unregistered = 1
			}
			if n := r.count(ask.ID, protocol.EventChainUnregistered); n != unregistered {
				t.Errorf("%d records of an unregistered link", n)
			}
		})
	}
	t.Run("a running link cannot have itself recorded as unregistered", func(t *testing.T) {
		ask := a.bash("make")
		serve.put(ask.ID, func(c linkCall) { c.verdict("defer", "", protocol.FailureUnregistered) })
		wantTrail(t, a.decide(ask), "one=defer/unregistered two=defer")
		if r.count(ask.ID, protocol.EventChainUnregistered) != 0 {
			t.Error("the link told the gate's story")
		}
	})
}

func (c linkCall) header(key, value string) {
	_ = c.nc.PublishMsg(&nats.Msg{Subject: c.msg.Reply, Data: []byte(`{"v":1,"ask":"` + c.Ask.ID + `","verdict":"allow"}`), Header: nats.Header{key: {value}}})
}

func (c linkCall) status503() {
	_ = c.nc.PublishMsg(&nats.Msg{Subject: c.msg.Reply, Header: nats.Header{"Status": {"503"}}})
}

func TestALinkIsToldTheGatesClockAndPolicy(t *testing.T) {
	t.Parallel()
	r := newRig(t, chainPolicy("one"))
	r.denying()
	r.gate("g1")
	deadlines, revisions := make(chan time.Time, 1), make(chan uint64, 1)
	r.link("one", func(c linkCall) { c.accept(); deadlines <- c.Deadline; revisions <- c.PolicyRevision })
	a := r.agent("ci")
	began := time.Now()
	d := a.decide(a.bash("make"))
	wantTrail(t, d, "one=defer/timeout")
	if took := time.Since(began); took < 900*time.Millisecond || took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	if in := (<-deadlines).Sub(began); in < 800*time.Millisecond || in > 2*time.Second {
		t.Errorf("the link was told a deadline in %s", in)
	}
	if got := <-revisions; got == 0 || got != d.Policy.Revision {
		t.Errorf("the link was told policy revision %d, the record says %d", got, d.Policy.Revision)
	}
	if ms := d.Trail[0].MS; ms < 800 || ms > 5000 {
		t.Errorf("the trail says %v ms", ms)
	}
}

func TestASecondWorkerIsAskedOnlyWhenTheFirstIsSilent(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		serve func(n int32, c linkCall)
		asked int
		trail string
	}{
		"silent first":       {func(n int32, c linkCall) { onlySecond(n, c) }, 2, "one=deny"},
		"slow but accepted":  {func(n int32, c linkCall) { c.accept(); wait(700); c.verdict("deny", "no", "") }, 1, "one=deny"},
		"slow to accept":     {func(n int32, c linkCall) { wait(250); c.accept(); wait(400); c.verdict("deny", "no", "") }, 1, "one=deny"},
		"a verdict at once":  {func(n int32, c linkCall) { c.verdict("deny", "no", "") }, 1, "one=deny"},
		"silent both":        {func(n int32, c linkCall) {}, 2, "one=defer/timeout"},
		"first answers late": {func(n int32, c linkCall) { onlyFirstLate(n, c) }, 2, "one=deny"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, chainPolicy("one"))
			r.denying()
			g := r.gate("g1")
			var n counter
			serve := func(c linkCall) { row.serve(n.next(), c) }
			// Two workers, so that the queue group has a choice.
			one, two := r.link("one", serve), r.linkOn(r.Connect(t, protocol.RoleJudge, "j2"), "one", serve)
			a := r.agent("ci")
			ask := a.bash("make")
			d := a.decide(ask)
			wantTrail(t, d, row.trail)
			wait(600) // longer than a second attempt would take to come
			if got := one.times(ask.ID) + two.times(ask.ID); got != row.asked {
				t.Errorf("asked %d times, want %d", got, row.asked)
			}
			until(t, "capabilities are gone", func() error {
				g.capabilities.mu.Lock()
				defer g.capabilities.mu.Unlock()
				if n := len(g.capabilities.out); n != 0 {
					return fmt.Errorf("%d are out", n)
				}
				return nil
			})
		})
	}
}

func onlySecond(n int32, c linkCall) {
	if n == 2 {
		c.accept()
		c.verdict("deny", "no", "")
	}
}

func onlyFirstLate(n int32, c linkCall) {
	if n == 1 {
		wait(700)
		c.verdict("deny", "no", "")
	}
}

// wait is the slowness of a scripted worker, never how a test waits.
func wait(ms int) { time.Sleep(time.Duration(ms) * time.Millisecond) }

// counter numbers the requests of several workers.
type counter struct{ n atomic.Int32 }

func (c *counter) next() int32 { return c.n.Add(1) }

// TestTheAskerHearsWhereTheAskStandsNow: not that it waits for a link which was
// passed over while the asker's request lay at the gate.
func TestTheAskerHearsWhereTheAskStandsNow(t *testing.T) {
	t.Parallel()
	r := newRig(t, strings.Replace(chainPolicy("gone"), `"kind": "deny"`, `"kind": "human"`, 1))
	r.terminal(protocol.TerminalHuman, func(q protocol.TerminalRequest) string { return progressFor(q.Ask.ID) })
	r.gate("g1")
	a := r.agent("ci")
	if h := a.once(a.bash("make")); h.progress == nil || h.progress.Stage != "terminal:human" {
		t.Errorf("heard %+v", h.progress)
	}
}
