//go:build faults

// Package faults breaks a whole fleet at random and counts what is lost: a node
// on three servers, two of each service, fifty agents that ask all the time,
// and one component after another killed in the middle of its work.
package faults

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/record"
	"github.com/assent-dev/assent/pkg/protocol"
)

// How the run is set, by the environment: FAULT_TIME is how long components are
// killed (60s), FAULT_SEED repeats the order of the kills and what agents ask,
// FAULT_LOG is a file for what the services log.
const (
	defaultTime = time.Minute
	agents      = 50
	// settleTime is how long asks may still take once nothing breaks any more: a
	// lease that a killed gate left, and the longest wait that an agent set.
	settleTime = time.Minute
)

// policy: rules settle some commands, two links decide some, and a person the
// rest.
const policy = `{
  "permission": { "*": "ask", "path": "allow", "bash": { "*": "ask", "look *": "allow", "wipe *": { "action": "deny", "reason": "nobody wipes" } } },
  "authorizerChain": ["first", "second"],
  "linkTimeout": "3s",
  "modelDelegation": { "allowedSurfaces": ["bash"] },
  "terminal": { "kind": "human", "maxWait": "10m" }
}`

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNothingIsLostWhateverIsKilled(t *testing.T) {
	f := newFleet(t)
	f.begin()
	deadline := time.Now().Add(f.lasts)
	for time.Now().Before(deadline) {
		f.breakOne()
	}
	f.end()
	f.report()
	f.check()
	f.leave()
}

// fleet is everything that runs.
type fleet struct {
	t       *testing.T
	lasts   time.Duration
	rng     *rand.Rand // of the kills, one goroutine's
	seed    uint64
	log     *slog.Logger
	cluster *nodetest.Cluster
	dir     string // of the auditor
	parts   []*part
	person  *person
	agents  []*agent
	asking  sync.WaitGroup
	stop    chan struct{} // closed when no new ask begins
	kills   map[string]int
	record  *record.Reader
	began   time.Time
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, lasts: defaultTime, seed: uint64(time.Now().UnixNano()), stop: make(chan struct{}), kills: map[string]int{}, dir: nodetest.Dir(t)}
	var err error
	if text := os.Getenv("FAULT_TIME"); text != "" {
		if f.lasts, err = time.ParseDuration(text); err != nil {
			t.Fatalf("FAULT_TIME: %v", err)
		}
	}
	if text := os.Getenv("FAULT_SEED"); text != "" {
		if f.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FAULT_SEED: %v", err)
		}
	}
	f.rng = rand.New(rand.NewPCG(f.seed, 0))
	f.log = logTo(t, os.Getenv("FAULT_LOG"))
	f.cluster = nodetest.StartCluster(t)
	f.push(policy)
	return f
}

func logTo(t *testing.T, file string) *slog.Logger {
	if file == "" {
		return slog.New(slog.DiscardHandler)
	}
	w, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// push stores the policy as an operator does.
func (f *fleet) push(text string) {
	js, err := bus.JetStream(f.cluster.Connect(f.t, protocol.RoleOperator, "op"))
	if err != nil {
		f.t.Fatal(err)
	}
	kv, err := js.KeyValue(f.t.Context(), protocol.BucketPolicy)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := kv.Put(f.t.Context(), "fleet", []byte(text)); err != nil {
		f.t.Fatal(err)
	}
}

// begin starts the services, the person and the agents.
func (f *fleet) begin() {
	f.parts = f.makeParts()
	for _, p := range f.parts {
		if p.kind != "server" { // they run already
			p.start()
		}
	}
	f.person, f.record = f.newPerson(), f.recordReader()
	f.began = time.Now()
	for i := range agents {
		a := f.newAgent(i)
		f.agents = append(f.agents, a)
		f.asking.Go(a.work)
	}
}

// breakOne kills one component, leaves it dead for a while, starts it again and
// lets the fleet come to itself: what is promised is that any one may be lost.
func (f *fleet) breakOne() {
	p := f.parts[f.rng.IntN(len(f.parts))]
	f.log.Info("KILL", "part", p.name)
	p.kill()
	f.kills[p.kind]++
	time.Sleep(time.Duration(500+f.rng.IntN(2500)) * time.Millisecond)
	p.start()
	f.log.Info("STARTED", "part", p.name)
	nodetest.CheckFor(f.t, settleTime, 20*time.Millisecond, f.cluster.Healthy)
	time.Sleep(time.Duration(f.rng.IntN(1000)) * time.Millisecond)
}

// end lets every ask come to its end with everything running.
func (f *fleet) end() {
	close(f.stop)
	done := make(chan struct{})
	go func() { f.asking.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * settleTime):
		f.t.Error("agents still ask")
		for _, a := range f.agents {
			a.giveUp()
		}
		<-done
	}
}
