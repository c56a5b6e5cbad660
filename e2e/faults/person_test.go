//go:build faults

package faults

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/desk"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	thinks = time.Second      // how long a prompt stands before the person answers
	grace  = 15 * time.Second // how long the person leaves an ask that is to be withdrawn
)

// person looks at the pending asks, answers them, and notes how often each was
// put to anybody.
type person struct {
	f     *fleet
	desk  *desk.Desk
	conns []*nats.Conn
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu       sync.Mutex
	accepted map[string]protocol.FinalChoice  // answers that the terminal said are stored
	taken    map[string]map[time.Time]bool    // the instants at which an ask was put to people
	prompts  [nodetest.Servers]map[string]int // notices, as heard at each server
	failed   int                              // answers that had to be sent again
}

func (f *fleet) newPerson() *person {
	ctx, stop := context.WithCancel(context.Background())
	p := &person{f: f, stop: stop, accepted: map[string]protocol.FinalChoice{}, taken: map[string]map[time.Time]bool{}}
	var err error
	if p.desk, err = desk.New(p.dial("oncall", ""), nodetest.Name, "oncall"); err != nil {
		f.t.Fatal(err)
	}
	// One listener at each server: the notice is heard although one is away.
	for i := range nodetest.Servers {
		p.prompts[i] = map[string]int{}
		listener, err := desk.New(p.dial("listener", f.cluster.URLOf(i)), nodetest.Name, "listener")
		if err != nil {
			f.t.Fatal(err)
		}
		p.wg.Go(func() {
			_ = listener.Notices(ctx, func(n protocol.Notice) {
				if n.Kind == protocol.NoticePrompt {
					p.mu.Lock()
					defer p.mu.Unlock()
					p.prompts[i][n.Ask]++
				}
			})
		})
	}
	p.wg.Go(func() { p.work(ctx) })
	return p
}

func (p *person) dial(name, url string) *nats.Conn {
	nc, err := p.f.cluster.Dial(bus.Config{URL: url, CredsBytes: p.f.cluster.Creds(p.f.t, protocol.RoleApprover, name)})
	if err != nil {
		p.f.t.Fatal(err)
	}
	p.conns = append(p.conns, nc)
	return nc
}

func (p *person) leave() {
	p.stop()
	for _, nc := range p.conns {
		nc.Close()
	}
	p.wg.Wait()
}

func (p *person) work(ctx context.Context) {
	for ctx.Err() == nil {
		items, _ := p.desk.Pending(ctx) // what cannot be read now is read the next time
		for _, item := range items {
			p.see(ctx, item)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (p *person) see(ctx context.Context, item pending.Item) {
	now := time.Now()
	if !item.Taken.IsZero() {
		p.mu.Lock()
		if p.taken[item.Ask.ID] == nil {
			p.taken[item.Ask.ID] = map[time.Time]bool{}
		}
		p.taken[item.Ask.ID][item.Taken] = true
		p.mu.Unlock()
	}
	verdict, after := answerTo(commandOf(item.Ask))
	if !verdict.Valid() || !desk.Waiting(item, now) || now.Sub(item.Taken) < after {
		return
	}
	r, err := p.desk.Answer(ctx, protocol.Answer{Ask: item.Ask.ID, Verdict: verdict, Reason: "as I see it"})
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.failed++ // it may stand or not: the next look shows
	case r.Accepted:
		p.accepted[item.Ask.ID] = verdict
	}
}

// answerTo is the person's mind. Asks that a link could not decide end up here
// too.
func answerTo(command string) (verdict protocol.FinalChoice, after time.Duration) {
	switch word, _, _ := strings.Cut(command, " "); word {
	case "wait":
		return 0, 0
	case "withdraw":
		return protocol.FinalDeny, grace
	case "person-allow":
		return protocol.FinalAllow, thinks
	default:
		return protocol.FinalDeny, thinks
	}
}
