package gate

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// child relays asks as the terminal of a child node does, in the raw.
type child struct {
	r    *rig
	name string
	nc   *nats.Conn
}

func (r *rig) child(name string) *child {
	r.t.Helper()
	return &child{r: r, name: name, nc: r.Connect(r.t, protocol.RoleChild, name)}
}

// bash is an ask about a command of an agent below the child, by way of the nodes
// named.
func (c *child) bash(agentName, command string, below ...string) protocol.Ask {
	ask := (&agent{r: c.r, name: agentName}).bash(command)
	ask.Hops = append(slices.Clone(below), c.name)
	return ask
}

func (c *child) once(ask protocol.Ask) heard {
	c.r.t.Helper()
	// Not by Write: what it refuses must be refused by the gate too.
	return must(request(c.nc, must(c.r.Subjects.Relay(c.name))(c.r.t), ask.ID, ask.Agent, must(json.Marshal(&ask))(c.r.t)))(c.r.t)
}

// decide asks again until the ask is decided, as a child does.
func (c *child) decide(ask protocol.Ask) protocol.Decision {
	c.r.t.Helper()
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); {
		switch h := c.once(ask); {
		case h.fault != nil:
			c.r.t.Fatalf("ask %s: %v", ask.ID, &h.fault.Error)
		case h.decision != nil:
			return *h.decision
		}
	}
	c.r.t.Fatalf("ask %s is not decided within %s", ask.ID, soon)
	panic("unreachable")
}

// pend relays until the ask stands before a person.
func (c *child) pend(ask protocol.Ask) {
	c.r.t.Helper()
	if h := c.once(ask); h.progress == nil {
		c.r.t.Fatalf("want Progress, got %+v", h)
	}
	c.r.waiting(ask.ID)
}

func (c *child) withdraw(id string) protocol.CancelReceipt {
	c.r.t.Helper()
	subject := must(c.r.Subjects.Withdraw(c.name))(c.r.t)
	m := must(c.nc.Request(subject, must(protocol.Write(protocol.Cancel{Ask: id, Reason: "ended below"}))(c.r.t), soon))(c.r.t)
	return must(protocol.Read[protocol.CancelReceipt](m.Data))(c.r.t)
}

// code is that of an error reply, "" for any other.
func (h heard) code() protocol.Code {
	if h.fault == nil {
		return ""
	}
	return h.fault.Error.Code
}

// stored is the entry of an ask as it stands.
func (r *rig) stored(id string) protocol.Pending {
	r.t.Helper()
	var item pending.Item
	until(r.t, "stored", func() (err error) {
		item, err = r.open.Get(r.t.Context(), id)
		return err
	})
	return item.Pending
}
