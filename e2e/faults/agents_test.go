//go:build faults

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/client"
	"github.com/assent-dev/assent/pkg/protocol"
)

// agent asks one call after another, as an adapter does.
type agent struct {
	f      *fleet
	name   string
	nc     *nats.Conn
	client *client.Client
	rng    *rand.Rand
	ctx    context.Context
	giveUp context.CancelFunc
	asks   []*told // read by others only when the agent has ended
}

// told is one ask and what its agent came to hear of it.
type told struct {
	id, command string
	kind        kind
	decision    *protocol.Decision
	took        time.Duration
	silences    int // how often the agent's client gave up: each is a deny
	unrecorded  int // denies that no record has: nothing could be recorded
	cancelled   bool
	fault       error // what ended the ask without a decision
}

// kind is what an agent asks: what its command's first word means to the policy,
// the links and the person.
type kind struct {
	word   string
	weight int
	class  string // under which its wait is counted
	maxMS  int64
	settle []protocol.Outcome // all that it may end in; none: whatever there is
}

var kinds = []kind{
	{word: "look", weight: 5, class: "rules", settle: []protocol.Outcome{protocol.AllowedByRule}},
	{word: "wipe", weight: 2, class: "rules", settle: []protocol.Outcome{protocol.DeniedByRule}},
	{word: "first-allow", weight: 3, class: "links"},
	{word: "first-deny", weight: 1, class: "links"},
	{word: "second-allow", weight: 3, class: "links"},
	{word: "second-deny", weight: 1, class: "links"},
	{word: "person-allow", weight: 3, class: "person"},
	{word: "person-deny", weight: 1, class: "person"},
	{word: "withdraw", weight: 2, class: "withdrawn"},
	{word: "wait", weight: 1, class: "expired", maxMS: 2500},
}

func (f *fleet) newAgent(i int) *agent {
	name := fmt.Sprintf("agent-%02d", i)
	a := &agent{f: f, name: name, rng: rand.New(rand.NewPCG(f.seed, uint64(i)+1))}
	var err error
	if a.nc, err = f.cluster.Dial(bus.Config{CredsBytes: f.cluster.Creds(f.t, protocol.RoleAgent, name)}); err != nil {
		f.t.Fatal(err)
	}
	if a.client, err = client.New(a.nc, nodetest.Name, name); err != nil {
		f.t.Fatal(err)
	}
	a.ctx, a.giveUp = context.WithCancel(context.Background())
	f.t.Cleanup(a.giveUp)
	return a
}

// work asks until the fleet stops.
func (a *agent) work() {
	for {
		select {
		case <-a.f.stop:
			return
		case <-time.After(time.Duration(500+a.rng.IntN(3000)) * time.Millisecond):
		}
		a.one()
	}
}

// one asks one call and goes on asking until it has its decision. An agent
// denies the call as soon as its client gives up; what is looked at here is that
// the id still ends, and in one decision.
func (a *agent) one() {
	k := a.pick()
	ask := protocol.Ask{ID: protocol.NewAskID(), Session: protocol.Session{ID: "s"}, Cwd: "/repo", Home: "/home/dev", Platform: "linux", MaxWaitMS: k.maxMS}
	w := &told{id: ask.ID, kind: k, command: fmt.Sprintf("%s %d", k.word, len(a.asks))}
	ask.Tool = protocol.Tool{Name: "bash", Input: input(w.command)}
	a.asks = append(a.asks, w)
	began := time.Now()
	if k.word == "withdraw" {
		done := make(chan struct{})
		go func() { defer close(done); a.cancel(w) }()
		defer func() { <-done }()
	}
	for !a.ask(ask, w) {
		if a.ctx.Err() != nil {
			w.fault = fmt.Errorf("no decision within %s", time.Since(began).Round(time.Second))
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	w.took = time.Since(began)
}

// ask asks once and says whether the ask has ended.
func (a *agent) ask(ask protocol.Ask, w *told) bool {
	d, err := a.client.Ask(a.ctx, ask)
	var fault *protocol.Fault
	switch {
	case errors.Is(err, client.ErrUnavailable):
		w.silences++
		return false
	case errors.As(err, &fault):
		w.fault = err
		return true
	case err != nil:
		w.fault = err
		return a.ctx.Err() == nil
	case d.Outcome == protocol.Unavailable && !a.recorded(d):
		w.unrecorded++
		return false
	}
	w.decision = &d
	return true
}

// recorded says whether what was heard is the decision on the record. A deny of a
// gate that could record nothing is not, also where another gate has decided the
// ask meanwhile: who asks again hears that one.
func (a *agent) recorded(heard protocol.Decision) bool {
	kept, ok, err := a.f.record.Find(a.ctx, heard.Ask)
	return err == nil && ok && kept.Outcome == heard.Outcome
}

// cancel withdraws the ask some time after it was asked. What fails is tried
// once: the ask then waits for the person, who answers it late.
func (a *agent) cancel(w *told) {
	time.Sleep(time.Duration(300+rand.IntN(2000)) * time.Millisecond)
	done, err := a.client.Cancel(a.ctx, w.id, "not needed any more")
	w.cancelled = err == nil && done
}

func (a *agent) pick() kind {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := a.rng.IntN(total)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	panic("weights do not add up")
}

func input(command string) jsontext.Value {
	b, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return b
}

func commandOf(ask protocol.Ask) string {
	var in struct {
		Command string `json:"command"`
	}
	if err := json.Unmarshal(ask.Tool.Input, &in); err != nil {
		return ""
	}
	return in.Command
}
