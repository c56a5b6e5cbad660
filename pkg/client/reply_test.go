package client

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Nothing but a whole decision on this ask for this agent is a yes.
func TestAskTakesNothingElseForADecision(t *testing.T) {
	t.Parallel()
	g, n := startGate(t)
	answer := map[string]func(a protocol.Ask) *nats.Msg{
		"an empty body":                  func(protocol.Ask) *nats.Msg { return &nats.Msg{} },
		"plain text":                     func(protocol.Ask) *nats.Msg { return &nats.Msg{Data: []byte("allow")} },
		"true":                           func(protocol.Ask) *nats.Msg { return &nats.Msg{Data: []byte("true")} },
		"an empty object":                func(protocol.Ask) *nats.Msg { return &nats.Msg{Data: []byte("{}")} },
		"a word alone":                   func(protocol.Ask) *nats.Msg { return &nats.Msg{Data: []byte(`{"v":1,"result":"allow"}`)} },
		"a stream's receipt":             func(protocol.Ask) *nats.Msg { return &nats.Msg{Data: []byte(`{"stream":"ASSENT_DECISIONS","seq":1}`)} },
		"an allow on another ask":        func(protocol.Ask) *nats.Msg { return g.decision(allow(otherAsk)) },
		"an allow for another agent":     func(a protocol.Ask) *nats.Msg { d := allow(a.ID); d.Agent = "ci-7"; return g.decision(d) },
		"an allow with a deny's outcome": edited(g, "allowed_by_rule", "denied_by_rule"),
		"a deny with an allow's outcome": edited(g, `"result":"allow"`, `"result":"deny"`),
		"an allow without an outcome":    edited(g, `"outcome":"allowed_by_rule"`, `"outcome":""`),
		"an unknown result":              edited(g, `"result":"allow"`, `"result":"yes"`),
		"a result in another case":       edited(g, `"result":"allow"`, `"result":"ALLOW"`),
		"a result that is true":          edited(g, `"result":"allow"`, `"result":true`),
		"a key in another case":          edited(g, `"result"`, `"Result"`),
		"two results":                    edited(g, `"result":"allow"`, `"result":"deny","result":"allow"`),
		"another version":                edited(g, `"v":1`, `"v":2`),
		"no version":                     edited(g, `"v":1,`, ``),
		"an allow that is pending too":   edited(g, `"v":1`, `"v":1,"status":"pending"`),
		"an allow that is an error too":  edited(g, `"v":1`, `"v":1,"error":{"code":"invalid"}`),
		"an allow cut short": func(a protocol.Ask) *nats.Msg {
			m := g.decision(allow(a.ID))
			m.Data = m.Data[:len(m.Data)-1]
			return m
		},
		"an allow and more": func(a protocol.Ask) *nats.Msg {
			m := g.decision(allow(a.ID))
			m.Data = append(m.Data, m.Data...)
			return m
		},
		"an allow that is too large": func(a protocol.Ask) *nats.Msg {
			m := g.decision(allow(a.ID))
			m.Data = append(m.Data, strings.Repeat(" ", protocol.CarrierMaxBytes)...)
			return m
		},
		"an allow under an error header": func(a protocol.Ask) *nats.Msg {
			m := g.decision(allow(a.ID))
			m.Header = nats.Header{protocol.HeaderErrorCode: {"500"}}
			return m
		},
		"an allow under a status header": func(a protocol.Ask) *nats.Msg {
			m := g.decision(allow(a.ID))
			m.Header = nats.Header{"Status": {"503"}}
			return m
		},
		"a fault about another ask": func(protocol.Ask) *nats.Msg { return g.fault(otherAsk, protocol.CodeConflict) },
		"a fault without a body":    func(protocol.Ask) *nats.Msg { m := g.fault("", protocol.CodeConflict); m.Data = nil; return m },
		"a sign of life of another": func(protocol.Ask) *nats.Msg { return g.progress(progress(otherAsk)) },
		"a receipt of a withdrawal": func(a protocol.Ask) *nats.Msg {
			return &nats.Msg{Data: []byte(`{"v":1,"ask":"` + a.ID + `","cancelled":true}`)}
		},
		"a pending of an unknown kind": func(a protocol.Ask) *nats.Msg {
			return &nats.Msg{Data: []byte(`{"v":1,"ask":"` + a.ID + `","status":"allowed","stage":"x"}`)}
		},
	}
	g.asks(func(a protocol.Ask) *nats.Msg { return answer[a.Intent](a) })
	c := newClient(t, n)
	for name := range answer {
		t.Run(name, func(t *testing.T) {
			ask := call()
			ask.Intent = name
			d, err := c.Ask(within(t, 10*time.Second), ask)
			if !errors.Is(err, ErrReply) {
				t.Errorf("error %v, want ErrReply", err)
			}
			if d.Allowed() || d.Result.Valid() {
				t.Errorf("a verdict came out: %+v", d)
			}
		})
	}
}

func edited(g *gate, old, with string) func(protocol.Ask) *nats.Msg {
	return func(a protocol.Ask) *nats.Msg {
		m := g.decision(allow(a.ID))
		if !strings.Contains(string(m.Data), old) {
			g.t.Errorf("a decision holds no %s", old)
		}
		m.Data = []byte(strings.Replace(string(m.Data), old, with, 1))
		return m
	}
}
