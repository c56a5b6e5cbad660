package bench

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/internal/version"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Policy is what the asks that are measured are ruled by: one command is allowed
// by a rule, others are open and may be allowed by a link of a chain of n.
func Policy(n int) []byte {
	chain := ""
	for i := range n {
		if i > 0 {
			chain += ","
		}
		chain += strconv.Quote(LinkName(i + 1))
	}
	return []byte(`{
  "permission": {"bash": {"*": "ask", "git status": "allow"}},
  "authorizerChain": [` + chain + `],
  "modelDelegation": {"allowedSurfaces": ["bash"]},
  "terminal": {"kind": "deny"},
  "limits": {"asksPerSecond": 100000, "pending": 100000}
}`)
}

// LinkName is the name of the link at place, from 1, of the measured chain.
func LinkName(place int) string { return "bench-" + strconv.Itoa(place) }

// RuleInput is the call that a rule of Policy allows, ChainInput the one that the
// link at place allows.
var RuleInput = jsontext.Value(`{"command":"git status"}`)

// ChainInput is the call that the link at place decides; those before it defer.
func ChainInput(place int) jsontext.Value {
	return jsontext.Value(`{"command":"` + command(place) + `"}`)
}

func command(place int) string { return "make bench-" + strconv.Itoa(place) }

// DutifulInput is the call about which a bare gate that does its duties asks k links.
func DutifulInput(k int) jsontext.Value {
	return jsontext.Value(`{"command":"make dutiful-` + strconv.Itoa(k) + `"}`)
}

// ServeLink runs an instant link: it answers without thinking, and says nothing
// else. It reads no more of a request than which ask it is about and which call.
func ServeLink(nc *nats.Conn, subjects protocol.Subjects, place int) error {
	name := LinkName(place)
	subject, err := subjects.Link(name)
	if err != nil {
		return fmt.Errorf("serving link %s: %w", name, err)
	}
	mine := []byte(`"` + command(place) + `"`)
	answer := func(m *nats.Msg) {
		v := protocol.Verdict{Ask: askIn(m.Data), Verdict: protocol.ChoiceDefer}
		if bytes.Contains(m.Data, mine) {
			v.Verdict = protocol.ChoiceAllow
		}
		if body, err := protocol.Write(v); err == nil {
			_ = m.Respond(body)
		}
	}
	if _, err := nc.QueueSubscribe(subject, name, answer); err != nil {
		return fmt.Errorf("serving link %s: %w", name, err)
	}
	// Seen by discovery, so that the gate does not look for it at each ask.
	_, err = micro.AddService(nc, micro.Config{
		Name: protocol.ServiceLink, Version: version.Version, Description: "a link without a thought",
		Metadata: map[string]string{"link": name, "node": subjects.Node()},
	})
	if err != nil {
		return fmt.Errorf("announcing link %s: %w", name, err)
	}
	return nc.FlushTimeout(answerTime)
}

// askIn is the id of the ask in a link request, whose first "id" it is.
func askIn(request []byte) string {
	_, rest, _ := bytes.Cut(request, []byte(`"id":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}
