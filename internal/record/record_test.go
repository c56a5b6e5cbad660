package record_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/record"
	"github.com/assent-dev/assent/pkg/protocol"
)

type stream struct {
	*record.Reader
	t    *testing.T
	n    *nodetest.Node
	gate *nats.Conn
}

func open(t *testing.T, role protocol.Role) *stream {
	t.Helper()
	n := nodetest.Start(t, nodetest.Quiet())
	js, err := bus.JetStream(n.Connect(t, role, "r"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(context.Background(), js, n.Subjects)
	if err != nil {
		t.Fatal(err)
	}
	return &stream{Reader: r, t: t, n: n, gate: n.Connect(t, protocol.RoleGate, "g")}
}

func decision(result protocol.FinalChoice, outcome protocol.Outcome) protocol.Decision {
	return protocol.Decision{Ask: protocol.NewAskID(), Node: nodetest.Name, Agent: "ci", Result: result, Outcome: outcome, Surface: "bash",
		DecidedBy: protocol.Decider{Kind: protocol.DeciderRule}, Trail: []protocol.TrailEntry{}, Asks: []protocol.Entry{}}
}

// put writes body under the subject of d.
func (s *stream) put(d protocol.Decision, body string) {
	s.t.Helper()
	subject, err := s.n.Subjects.Decision(d.Ask, d.Agent, d.Surface, d.Result)
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := s.gate.Request(subject, []byte(body), 5*time.Second)
	if err != nil || strings.Contains(string(m.Data), "error") {
		s.t.Fatalf("%v %s", err, m.Data)
	}
}

func body(t *testing.T, d protocol.Decision) string {
	t.Helper()
	b, err := protocol.Write(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestADecisionIsFoundByItsAskAlone(t *testing.T) {
	t.Parallel()
	for _, role := range []protocol.Role{protocol.RoleGate, protocol.RoleTerminal} {
		t.Run("by a "+string(role), func(t *testing.T) {
			t.Parallel()
			s := open(t, role)
			yes := decision(protocol.FinalAllow, protocol.AllowedByRule)
			no := decision(protocol.FinalDeny, protocol.DeniedByHuman)
			no.Surface = "a surface that is no token"
			s.put(yes, body(t, yes))
			s.put(no, body(t, no))
			for _, want := range []protocol.Decision{yes, no} {
				got, ok, err := s.Find(t.Context(), want.Ask)
				if err != nil || !ok || got.Outcome != want.Outcome || got.Ask != want.Ask || got.Surface != want.Surface {
					t.Errorf("%+v %v %v", got, ok, err)
				}
			}
			got, ok, err := s.Find(t.Context(), protocol.NewAskID())
			if err != nil || ok || got.Allowed() {
				t.Errorf("an ask nobody decided: %+v %v %v", got, ok, err)
			}
			if _, ok, err := s.Find(t.Context(), "*"); err == nil || ok {
				t.Errorf("a wildcard is no ask: %v", err)
			}
		})
	}
}

func TestWhatIsNoDecisionOnTheAskDecidesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, protocol.RoleGate)
	other := decision(protocol.FinalAllow, protocol.AllowedByRule)
	for name, text := range map[string]string{
		"junk":                       "%%%",
		"nothing":                    "",
		"another ask's":              body(t, other),
		"an allow that says denied":  strings.Replace(body(t, other), "allowed_by_rule", "denied_by_rule", 1),
		"another version":            strings.Replace(body(t, other), `"v":1`, `"v":2`, 1),
		"without a result":           strings.Replace(body(t, other), `"result":"allow"`, `"result":""`, 1),
		"larger than a decision may": `{"v":1,"x":"` + strings.Repeat("a", 1000<<10) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := decision(protocol.FinalAllow, protocol.AllowedByRule)
			s.put(d, strings.ReplaceAll(text, "ASK", d.Ask))
			got, ok, err := s.Find(t.Context(), d.Ask)
			if !errors.Is(err, record.ErrUnreadable) || ok || got.Allowed() || got.Ask != "" {
				t.Errorf("%+v %v %v", got, ok, err)
			}
		})
	}
}

func TestAStreamThatDoesNotAnswerDecidesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, protocol.RoleGate)
	d := decision(protocol.FinalAllow, protocol.AllowedByRule)
	s.put(d, body(t, d))
	js, err := bus.JetStream(s.n.Connect(t, protocol.RoleOperator, "op"))
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), protocol.StreamDecisions); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	got, ok, err := s.Find(context.Background(), d.Ask)
	if !errors.Is(err, record.ErrUnreadable) || ok || got.Ask != "" || time.Since(began) > 5*time.Second {
		t.Errorf("%+v %v %v after %s", got, ok, err, time.Since(began))
	}
}
