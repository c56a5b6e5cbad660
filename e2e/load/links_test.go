//go:build load

package load

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	linkRate    = 2000 // asks a second
	linkWorkers = 4
	linkSenders = 64 // asks that are on their way at once, at most
	linkName    = "instant"
)

// linkTime is how long the asks go on; ASSENT_LOAD_TIME sets another time.
func linkTime(t *testing.T) time.Duration {
	text := os.Getenv("ASSENT_LOAD_TIME")
	if text == "" {
		return 20 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 2*time.Second {
		t.Fatalf("ASSENT_LOAD_TIME=%s: want 2s at least", text)
	}
	return d
}

// askers are what a gate does with a link, without the rest of a gate: a request
// with capabilities of its own, the receipt for "accepted", the verdict read and
// held against the ask.
type askers struct {
	*nodetest.Node
	t        *testing.T
	nc       *nats.Conn
	subject  string
	accepted atomic.Int64

	mu   sync.Mutex
	took []time.Duration
}

func newAskers(t *testing.T) *askers {
	n := nodetest.Start(t, nodetest.Quiet())
	a := &askers{Node: n, t: t, nc: n.Connect(t, protocol.RoleGate, "g1")}
	var err error
	if a.subject, err = n.Subjects.Link(linkName); err != nil {
		t.Fatal(err)
	}
	logs, err := n.Subjects.Logs("g1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.nc.Subscribe(logs, a.receipt); err != nil {
		t.Fatal(err)
	}
	for i := range linkWorkers {
		a.worker(fmt.Sprintf("j%d", i))
	}
	return a
}

func (a *askers) receipt(m *nats.Msg) {
	rec, err := protocol.Read[protocol.LogRecord](m.Data)
	if err != nil || rec.Event != protocol.EventAccepted {
		a.t.Errorf("log record %+v: %v", rec, err)
		return
	}
	a.accepted.Add(1)
	data, err := protocol.Write(protocol.LogReceipt{Ask: m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]})
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		a.t.Errorf("receipt: %v", err)
	}
}

// worker serves the instant link until the test is over.
func (a *askers) worker(name string) {
	nc := a.Connect(a.t, protocol.RoleJudge, name)
	ctx, stop := context.WithCancel(context.Background())
	done, ready := make(chan error, 1), make(chan struct{})
	instant := func(context.Context, link.Request) (protocol.Verdict, error) { return link.Defer("at once"), nil }
	go func() {
		done <- link.Serve(ctx, nc, linkName, instant, link.Concurrency(linkSenders), link.Logger(slog.New(slog.DiscardHandler)), link.Ready(func() { close(ready) }))
	}()
	a.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			a.t.Error(err)
		}
	})
	<-ready
}

func (a *askers) ask() (time.Duration, error) {
	id := protocol.NewAskID()
	query, _ := a.Subjects.Query("g1", id)
	log, _ := a.Subjects.Log("g1", id)
	began := time.Now()
	data, err := protocol.Write(protocol.LinkRequest{
		Link: linkName,
		Ask: protocol.Ask{ID: id, Agent: "ci-42", AgentName: "reviewer", Source: protocol.SourceToolCall, Session: protocol.Session{ID: "s1"},
			Tool: protocol.Tool{Name: "bash", Input: jsontext.Value(`{"command":"git push origin main && make release"}`)}, Cwd: "/repo", Home: "/home/dev", Platform: "linux"},
		Asks:     []protocol.Entry{{Surface: "bash", Value: "git push origin main", MatchedPattern: "*", Origin: "fleet"}, {Surface: "bash", Value: "make release", MatchedPattern: "*", Origin: "fleet", Unit: 1}},
		Units:    []protocol.Unit{{Text: "git push origin main", Decision: protocol.ActionAsk, Pattern: "*"}, {Text: "make release", Decision: protocol.ActionAsk, Pattern: "*"}},
		Deadline: time.Now().Add(8 * time.Second), Query: query, Log: log, PolicyRevision: 1,
	})
	if err != nil {
		return 0, err
	}
	m, err := a.nc.Request(a.subject, data, 8*time.Second)
	if err != nil {
		return 0, err
	}
	v, err := protocol.ReadVerdictFor(id, m.Data)
	if err == nil && (v.Verdict != protocol.ChoiceDefer || v.Reason != "at once" || v.Failure != "") {
		err = fmt.Errorf("verdict %+v", v)
	}
	return time.Since(began), err
}

// askAt asks at that rate for d: each sender takes the next place in time, and
// one that is late asks at once. It returns how many were asked.
func (a *askers) askAt(rate int, d time.Duration) int {
	a.mu.Lock()
	a.took = make([]time.Duration, 0, int(d.Seconds()+1)*rate) // so that the samples are no growth
	a.mu.Unlock()
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range linkSenders {
		wg.Go(func() {
			for !a.t.Failed() {
				at := began.Add(time.Duration(next.Add(1)) * time.Second / time.Duration(rate))
				if at.Sub(began) > d || time.Since(began) > d {
					return
				}
				time.Sleep(time.Until(at))
				took, err := a.ask()
				if err != nil {
					a.t.Errorf("ask: %v", err)
					return
				}
				a.mu.Lock()
				a.took = append(a.took, took)
				a.mu.Unlock()
			}
		})
	}
	wg.Wait()
	return len(a.took)
}

func (a *askers) p(share float64) time.Duration {
	return a.took[min(int(share*float64(len(a.took))), len(a.took)-1)].Round(10 * time.Microsecond)
}

// TestTwoThousandAsksASecondThroughAnInstantLink, and what the first half of them
// left behind is all that the second half leaves too. The rate is a matter of the
// machine: measure it on a quiet one.
func TestTwoThousandAsksASecondThroughAnInstantLink(t *testing.T) {
	d := linkTime(t) / 2
	a := newAskers(t)
	a.askAt(linkRate, time.Second) // connections, buffers and pools are there
	type half struct {
		heap, resident uint64
		routines       int
	}
	var halves [2]half
	n, cpu0 := 0, processTime(t)
	for i := range halves {
		n += a.askAt(linkRate, d)
		slices.Sort(a.took)
		t.Logf("half %d: %.0f asks a second, p50 %s, p95 %s, p99 %s", i+1, float64(len(a.took))/d.Seconds(), a.p(.5), a.p(.95), a.p(.99))
		a.took = nil
		halves[i] = half{heap(), resident(), runtime.NumGoroutine()}
	}
	cpu := processTime(t) - cpu0
	rate, share := float64(n)/(2*d.Seconds()), cpu.Seconds()/(2*d.Seconds())
	t.Logf("%d asks in %s, %.0f a second; %.0f µs of processor time an ask (server, the gate's side and %d workers), %.2f of %d processors",
		n, 2*d, rate, float64(cpu.Microseconds())/float64(n), linkWorkers, share, runtime.GOMAXPROCS(0))
	first, second := halves[0], halves[1]
	t.Logf("heap and stacks %.1f MiB after the first half, %.1f after the second; resident %.1f and %.1f; %d and %d goroutines",
		mib(first.heap), mib(second.heap), mib(first.resident), mib(second.resident), first.routines, second.routines)
	if rate < 0.98*linkRate {
		t.Errorf("%.0f asks a second, want %d; this process got %.2f processors", rate, linkRate, share)
	}
	if got := a.accepted.Load(); got < int64(n) {
		t.Errorf("%d asks were accepted, of %d at least", got, n)
	}
	if most := first.heap + 1<<20 + replyRights(d, n/2); second.heap > most {
		t.Errorf("the heap grew by %.1f MiB, want %.1f at most", mib(second.heap-first.heap), mib(most-first.heap))
	}
	if second.routines > first.routines+8 {
		t.Errorf("%d goroutines more", second.routines-first.routines)
	}
}

// replyRights is what the server holds more after the second half than after the
// first: for each request that it hands to a judge it remembers for a while that the
// judge may answer there. Halves that are longer than that leave nothing more.
func replyRights(half time.Duration, asks int) uint64 {
	const window, each = 2 * time.Minute, 160 // bytes
	if half >= window {
		return 0
	}
	return uint64(asks) * each
}

func mib(n uint64) float64 { return float64(n) / (1 << 20) }
