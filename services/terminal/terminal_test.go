package terminal_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/terminal"
	"github.com/assent-dev/assent/services/terminal/deny"
)

const (
	allow = protocol.FinalAllow
	no    = protocol.FinalDeny
)

func TestTheFirstAnswerWins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve("t1")
	r.serve("t2")
	const people = 20
	desk := make([]*approver, people)
	for i := range desk {
		desk[i] = r.approver(fmt.Sprintf("p%d", i))
	}
	p := r.taken()
	receipts := make([]protocol.AnswerReceipt, people)
	var wg sync.WaitGroup
	for i, a := range desk {
		verdict := allow
		if i%2 == 1 {
			verdict = no
		}
		wg.Go(func() {
			got, fault, err := a.send(p.Ask.ID, must(protocol.Write(answerOf(a.name, p.Ask.ID, verdict)))(t))
			if err != nil || fault != nil {
				t.Errorf("%s: %v %v", a.name, fault, err)
				return
			}
			receipts[i] = *got
		})
	}
	wg.Wait()
	stored := r.entry(p.Ask.ID).Verdict
	if stored == nil {
		t.Fatal("nothing is stored")
	}
	accepted := 0
	for i, got := range receipts {
		if got.Accepted {
			accepted++
			if desk[i].name != stored.Approver {
				t.Errorf("%s was accepted, %s is stored", desk[i].name, stored.Approver)
			}
		} else if got.Error == "" {
			t.Errorf("%s is refused in silence", desk[i].name)
		}
		if got.AnsweredBy != stored.Approver || got.Verdict != stored.Verdict || !got.At.Equal(stored.At) {
			t.Errorf("%s is told %+v, stored is %+v", desk[i].name, got, stored)
		}
	}
	if accepted != 1 {
		t.Errorf("%d were accepted", accepted)
	}
}

func TestAnAnswerIsStoredWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve("t1")
	a := r.approver("oncall-1")
	for name, row := range map[string]struct {
		answer  protocol.Answer
		outcome protocol.Outcome
	}{
		"allow":           {protocol.Answer{Verdict: allow, Reason: "fine"}, protocol.AllowedByHuman},
		"allow, changed":  {protocol.Answer{Verdict: allow, EditedInput: jsontext.Value(`{"command":"make test"}`)}, protocol.AllowedByHuman},
		"deny":            {protocol.Answer{Verdict: no, Reason: "not today", Note: "ask me tomorrow"}, protocol.DeniedByHuman},
		"deny, and abort": {protocol.Answer{Verdict: no, Abort: true}, protocol.DeniedByHuman},
	} {
		t.Run(name, func(t *testing.T) {
			p := r.taken()
			row.answer.Ask, row.answer.Approver = p.Ask.ID, a.name
			if got := a.answer(row.answer); !got.Accepted || got.Error != "" || got.AnsweredBy != a.name || got.Verdict != row.answer.Verdict || got.At.IsZero() {
				t.Fatalf("receipt %+v", got)
			}
			v := r.entry(p.Ask.ID).Verdict
			if v == nil || v.Verdict != row.answer.Verdict || v.Outcome != row.outcome || v.Reason != row.answer.Reason || v.Note != row.answer.Note ||
				v.Abort != row.answer.Abort || string(v.EditedInput) != string(row.answer.EditedInput) || v.Approver != a.name || v.Grant != nil {
				t.Errorf("stored %+v", v)
			}
		})
	}
}

// A grant is stored as the approver gave it, or the whole answer is refused: an
// answer without its grant would let the approver believe in one.
func TestAGrantStandsOrFallsWithItsAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve("t1")
	a := r.approver("oncall-1")
	session := func(p *protocol.Pending) { p.Ask.Session.ID = "s1" }
	only := func(change func(*protocol.Entry)) func(*protocol.Pending) {
		return func(p *protocol.Pending) { session(p); change(&p.Asks[0]) }
	}
	bash := func(s protocol.Scope, patterns ...string) protocol.Grant {
		return protocol.Grant{Scope: s, Surface: "bash", Patterns: patterns}
	}
	ended := bash(protocol.ScopeAgent, "make *")
	ended.Expires = time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	lasting := bash(protocol.ScopeSession, "make *")
	lasting.Expires, lasting.Uses = time.Now().Add(time.Hour).UTC().Format(time.RFC3339), 3
	for name, row := range map[string]struct {
		ask   func(*protocol.Pending)
		grant protocol.Grant
		edit  string
		says  string // "" where it stands
	}{
		"for the session":                        {session, bash(protocol.ScopeSession, "make *"), "", ""},
		"for the agent":                          {session, bash(protocol.ScopeAgent, "make"), "", ""},
		"with an end and uses":                   {session, lasting, "", ""},
		"with a pattern of one's own":            {session, bash(protocol.ScopeAgent, "make *"), "", ""},
		"for a project of which nothing is said": {session, bash(protocol.ScopeProject, "make *"), "", "names no project"},
		"wider than the call":                    {session, bash(protocol.ScopeAgent, "make *", "rm *"), "", "would not cover the call that you answer"},
		"for every command":                      {session, bash(protocol.ScopeAgent, "*"), "", "every command"},
		"that has ended":                         {session, ended, "", "ended already"},
		"on a floor":                             {only(func(e *protocol.Entry) { e.Floor = true }), bash(protocol.ScopeAgent, "make *"), "", "answered each time"},
		"on what only a person answers":          {only(func(e *protocol.Entry) { e.HumanOnly = true }), bash(protocol.ScopeAgent, "make *"), "", "answered each time"},
		"on a changed call":                      {session, bash(protocol.ScopeAgent, "make *"), `{"command":"make x"}`, "was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			p := r.taken(row.ask)
			ans := answerOf(a.name, p.Ask.ID, allow)
			if ans.Grant = &row.grant; row.edit != "" {
				ans.EditedInput = jsontext.Value(row.edit)
			}
			got := a.answer(ans)
			v := r.entry(p.Ask.ID).Verdict
			if row.says != "" {
				if got.Accepted || !strings.Contains(got.Error, row.says) || v != nil {
					t.Fatalf("receipt %+v, stored %+v", got, v)
				}
				if got := a.answer(answerOf(a.name, p.Ask.ID, allow)); !got.Accepted {
					t.Errorf("without the grant: %+v", got)
				}
				return
			}
			if !got.Accepted || v == nil || v.Grant == nil || v.Grant.Scope != row.grant.Scope || v.Grant.Uses != row.grant.Uses || v.Grant.Expires != row.grant.Expires {
				t.Errorf("receipt %+v, stored %+v", got, v)
			}
		})
	}
	t.Run("bound by the approver", func(t *testing.T) {
		p := r.taken(session)
		ans := answerOf(a.name, p.Ask.ID, allow)
		g := bash(protocol.ScopeAgent, "make *")
		ans.Grant = &g
		body := strings.Replace(string(must(protocol.Write(ans))(t)), `"grant":{`, `"grant":{"agent":"another",`, 1)
		if receipt, fault, err := a.send(p.Ask.ID, []byte(body)); err != nil || fault == nil || receipt != nil && receipt.Accepted {
			t.Errorf("%+v %v %v", receipt, fault, err)
		}
	})
}

func TestAnAnswerThatDoesNotStandIsRefusedAloud(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve("t1")
	a := r.approver("oncall-1")
	past := func(p *protocol.Pending) { p.Deadline = time.Now().Add(-time.Second) }
	role := func(p *protocol.Pending) { p.Role = protocol.TerminalDeny; p.Taken = time.Now() }
	above := func(p *protocol.Pending) { p.Role = protocol.TerminalParent; p.Taken = time.Now() }
	gone := func(p *protocol.Pending) {
		p.Taken = time.Now()
		p.Withdrawn = &protocol.Cancel{Ask: p.Ask.ID, Reason: "enough"}
	}
	late := func(p *protocol.Pending) { past(p); p.Taken = time.Now() }
	judged := func(p *protocol.Pending) { p.Chain, p.Stage = []string{"judge"}, "link:judge" }
	for name, row := range map[string]struct {
		entry protocol.Pending
		says  string
	}{
		"while a link is asked":         {r.pend(judged), "not before a person"},
		"after the ask was withdrawn":   {r.pend(gone), "withdrawn"},
		"after its time":                {r.pend(late), "expired"},
		"where it is not for a person":  {r.pend(role), "not for a person"},
		"where the parent decides":      {r.pend(above), "answered at the parent node"},
		"to an ask that does not exist": {protocol.Pending{Ask: protocol.Ask{ID: protocol.NewAskID()}}, "no ask with this id"},
	} {
		t.Run(name, func(t *testing.T) {
			got := a.answer(answerOf(a.name, row.entry.Ask.ID, allow))
			if got.Accepted || !strings.Contains(got.Error, row.says) {
				t.Errorf("receipt %+v", got)
			}
			if row.entry.Digest != "" && r.entry(row.entry.Ask.ID).Verdict != nil {
				t.Error("it was stored")
			}
		})
	}
	t.Run("after the ask was decided, with what was decided", func(t *testing.T) {
		for by, first := range map[protocol.Decider]string{
			{Kind: protocol.DeciderHuman, Name: "oncall-2"}: "oncall-2",
			{Kind: protocol.DeciderRule, Name: "bash"}:      "", // a rule is nobody
		} {
			id := protocol.NewAskID()
			d := protocol.Decision{Ask: id, Node: nodetest.Name, Agent: "ci", Result: no, Outcome: protocol.DeniedByRule, Surface: "bash",
				DecidedBy: by, DecidedAt: time.Now().UTC(), Trail: []protocol.TrailEntry{}, Asks: []protocol.Entry{}}
			subject := must(r.Subjects.Decision(id, "ci", "bash", no))(t)
			must(r.gate.Request(subject, must(protocol.Write(d))(t), soon))(t)
			got := a.answer(answerOf(a.name, id, allow))
			if got.Accepted || got.AnsweredBy != first || got.Verdict != no || !got.At.Equal(d.DecidedAt) || !strings.Contains(got.Error, "denied_by_rule") {
				t.Errorf("receipt %+v", got)
			}
		}
	})
	t.Run("that is no answer", func(t *testing.T) {
		p := r.taken()
		good := string(must(protocol.Write(answerOf(a.name, p.Ask.ID, allow)))(t))
		for what, body := range map[string]string{
			"junk":               "%%%",
			"defer":              strings.Replace(good, `"allow"`, `"defer"`, 1),
			"another's name":     strings.Replace(good, "oncall-1", "oncall-2", 1),
			"another ask":        strings.Replace(good, p.Ask.ID, protocol.NewAskID(), 1),
			"a deny that edits":  strings.Replace(strings.Replace(good, `"allow"`, `"deny"`, 1), `"edited_input":null`, `"edited_input":{}`, 1),
			"an allow and abort": strings.Replace(good, `"abort":false`, `"abort":true`, 1),
			"no word at all":     strings.Replace(good, `"allow"`, `""`, 1),
		} {
			receipt, fault, err := a.send(p.Ask.ID, []byte(body))
			if err != nil || receipt != nil || fault == nil || fault.Code != protocol.CodeInvalid {
				t.Errorf("%s: %+v %v %v", what, receipt, fault, err)
			}
		}
		if r.entry(p.Ask.ID).Verdict != nil {
			t.Error("it was stored")
		}
	})
}

func TestNobodyAnswersUnderAnothersName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve("t1")
	a, b := r.approver("oncall-1"), r.approver("oncall-2")
	p := r.taken()
	body := must(protocol.Write(answerOf("oncall-2", p.Ask.ID, allow)))(t)
	subject := must(r.Subjects.Answer("oncall-2", p.Ask.ID))(t)
	quiet := 300 * time.Millisecond
	// By an approver under another's subject: the server does not carry it.
	if m, err := a.nc.Request(subject, body, quiet); err == nil {
		t.Errorf("answered %s", m.Data)
	}
	// From inside the services' own account, with a header that lies.
	op := r.Connect(t, protocol.RoleOperator, "op")
	for _, role := range []*nats.Conn{r.gate, op, r.Connect(t, protocol.RoleJudge, "j")} {
		for _, reply := range []string{"_INBOX.gate.g1.x.y", "$KV.ASSENT_POLICY.fleet", "_R_.forged.x", ""} {
			_ = role.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: body, Header: nats.Header{
				"Nats-Request-Info": {`{"acc":"x","user":"x","name_tag":"oncall-2"}`}}})
		}
		if err := role.FlushTimeout(soon); err != nil {
			t.Fatal(err)
		}
	}
	// By an approver, with a reply subject of its own choice: the border makes
	// another of it, or its credentials do not carry it.
	for _, reply := range []string{"$KV.ASSENT_POLICY.fleet", "assent.v1.main.event.x"} {
		_ = a.nc.PublishMsg(&nats.Msg{Subject: must(r.Subjects.Answer("oncall-1", protocol.NewAskID()))(t), Reply: reply, Data: []byte("x")})
	}
	if v := r.entry(p.Ask.ID).Verdict; v != nil {
		t.Fatalf("stored %+v", v)
	}
	// Behind all of that the one whose name it is answers.
	if got := b.answer(answerOf("oncall-2", p.Ask.ID, no)); !got.Accepted {
		t.Errorf("receipt %+v", got)
	}
	if v := r.entry(p.Ask.ID).Verdict; v == nil || v.Verdict != no {
		t.Errorf("stored %+v", v)
	}
}

func TestAPersonIsAskedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve("t1")
	stop := r.serve("t2")
	face := r.Connect(t, protocol.RoleApprover, "face")
	events := must(face.SubscribeSync(r.Subjects.All(protocol.KindEvent)))(t)
	if err := face.FlushTimeout(soon); err != nil {
		t.Fatal(err)
	}
	p := r.taken()
	at := r.entry(p.Ask.ID).Taken
	for range 5 { // gates that take over, or ask again
		m := r.put(request(p))
		if got, err := protocol.Read[protocol.Progress](m.Data); err != nil || got.Ask != p.Ask.ID || got.Stage != "terminal:human" {
			t.Fatalf("%s", m.Data)
		}
	}
	stop()
	if m := r.put(request(p)); !strings.Contains(string(m.Data), "pending") {
		t.Errorf("with one terminal gone: %s", m.Data)
	}
	if got := r.entry(p.Ask.ID).Taken; !got.Equal(at) {
		t.Errorf("taken at %s, then at %s", at, got)
	}
	prompts := 0
	for {
		m, err := events.NextMsg(200 * time.Millisecond)
		if err != nil {
			break
		}
		if n, err := protocol.Read[protocol.Notice](m.Data); err == nil && n.Kind == protocol.NoticePrompt && n.Ask == p.Ask.ID && n.Agent == "ci" {
			prompts++
		}
	}
	if prompts != 1 {
		t.Errorf("%d prompts", prompts)
	}
	t.Run("and asked for again gives the verdict that stands", func(t *testing.T) {
		a := r.approver("oncall-1")
		if got := a.answer(answerOf(a.name, p.Ask.ID, allow)); !got.Accepted {
			t.Fatalf("receipt %+v", got)
		}
		v, err := protocol.ReadTerminalVerdictFor(p.Ask.ID, r.put(request(p)).Data)
		if err != nil || v.Verdict != allow || v.Approver != a.name {
			t.Errorf("%+v %v", v, err)
		}
	})
}

func TestWhatATerminalIsAskedIsCheckedStrictly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve("t1")
	p := r.pend()
	denied := p
	denied.Role = protocol.TerminalDeny
	t.Run("deny ends at once", func(t *testing.T) {
		v, err := protocol.ReadTerminalVerdictFor(p.Ask.ID, r.put(request(denied)).Data)
		if err != nil || v.Verdict != no || v.Outcome != protocol.NoApprover {
			t.Errorf("%+v %v", v, err)
		}
	})
	t.Run("an ask that is not open is no verdict", func(t *testing.T) {
		gone := p
		gone.Ask.ID = protocol.NewAskID()
		f, err := protocol.Read[protocol.ErrorReply](r.put(request(gone)).Data)
		if err != nil || f.Error.Code != protocol.CodeUnavailable || f.Ask != gone.Ask.ID {
			t.Errorf("%+v %v", f, err)
		}
	})
	good := string(must(protocol.Write(request(p)))(t))
	for name, row := range map[string]struct{ kind, body string }{
		"junk":                  {"human", "%%%"},
		"a kind for another":    {"deny", good},
		"an unknown kind":       {"human", strings.Replace(good, `"kind":"human"`, `"kind":"robot"`, 1)},
		"a kind nobody is of":   {"human", strings.Replace(good, `"kind":"human"`, `"kind":"parent"`, 1)},
		"without a deadline":    {"human", strings.Replace(good, `"deadline"`, `"dead"`, 1)},
		"of another version":    {"human", strings.Replace(good, `"v":1`, `"v":2`, 1)},
		"with a key said twice": {"human", strings.Replace(good, `"kind":"human"`, `"kind":"human","kind":"deny"`, 1)},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			subject := must(r.Subjects.Terminal(row.kind))(t)
			m := must(r.gate.Request(subject, []byte(row.body), soon))(t)
			f, err := protocol.Read[protocol.ErrorReply](m.Data)
			if err != nil || f.Error.Code != protocol.CodeInvalid || m.Header.Get(protocol.HeaderErrorCode) != "invalid" {
				t.Errorf("%s", m.Data)
			}
		})
	}
	t.Run("a reply subject that is no gate's inbox is not answered", func(t *testing.T) {
		js := r.Connect(t, protocol.RoleOperator, "op")
		before := must(js.Request("$JS.API.STREAM.INFO.KV_ASSENT_PENDING", nil, soon))(t)
		subject := must(r.Subjects.Terminal("human"))(t)
		for _, reply := range []string{"$KV.ASSENT_PENDING." + p.Ask.ID, "_INBOX.judge.j.x", "_INBOX.gate.g1.>", ""} {
			_ = r.gate.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: []byte(good)})
		}
		m := r.put(request(denied)) // behind them
		if _, err := protocol.ReadTerminalVerdictFor(p.Ask.ID, m.Data); err != nil {
			t.Error(err)
		}
		after := must(js.Request("$JS.API.STREAM.INFO.KV_ASSENT_PENDING", nil, soon))(t)
		last := func(m *nats.Msg) string {
			_, s, _ := strings.Cut(string(m.Data), `"last_seq":`)
			s, _, _ = strings.Cut(s, ",")
			return s
		}
		if last(before) != last(after) || last(before) == "" || !r.entry(p.Ask.ID).Taken.IsZero() {
			t.Errorf("the bucket went from %s to %s", last(before), last(after))
		}
	})
}

func TestATerminalThatLeavesAnswersWhatItHas(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stop := r.serve("t1")
	r.serve("t2")
	var wg sync.WaitGroup
	begun := make(chan struct{}, 64)
	for range 16 {
		p := r.pend()
		wg.Go(func() {
			subject := must(r.Subjects.Terminal("human"))(t)
			begun <- struct{}{}
			m, err := r.gate.Request(subject, must(protocol.Write(request(p)))(t), soon)
			if err != nil {
				t.Errorf("lost: %v", err)
				return
			}
			if _, err := protocol.Read[protocol.Progress](m.Data); err != nil {
				t.Errorf("%s", m.Data)
			}
		})
	}
	<-begun
	stop()
	wg.Wait()
}

func TestAServiceIsPutTogetherRight(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	nc := r.Connect(t, protocol.RoleTerminal, "t1")
	if _, err := terminal.New(nc, "no node", nil, nil); err == nil {
		t.Error("a node's name that is none")
	}
	if _, err := terminal.New(nc, nodetest.Name, nil, nil, deny.Terminal{}, deny.Terminal{}); err == nil {
		t.Error("two of a kind")
	}
	s := must(terminal.New(r.Connect(t, protocol.RoleAgent, "ci"), nodetest.Name, nil, nil, deny.Terminal{}))(t)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := s.Run(ctx, func() { t.Error("an agent serves as a terminal") }); err == nil {
		t.Error("an agent's credentials will do")
	}
}
