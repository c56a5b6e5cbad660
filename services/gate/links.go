package gate

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/pkg/protocol"
)

// How often the gate looks which links run, how long it listens each time, and
// how long an ask waits for a link that was not seen before.
const (
	discoveryPeriod = time.Second
	discoveryListen = 250 * time.Millisecond
	resolveListen   = 100 * time.Millisecond
	maxDiscovered   = 4096
)

// links is which links run, by micro discovery. It is for the record and for
// people alone: a link is asked by its subject, seen or not.
type links struct {
	nc   *nats.Conn
	node string

	mu     sync.Mutex
	seen   map[string]string   // by link: healthOK, or why none of its workers can work
	names  map[string][]string // by link: its workers that can work and have a name
	looked time.Time
}

// A link's word on itself: metadata that pkg/link announces.
const (
	metadataHealth = "health"
	metadataWorker = "worker"
	healthOK       = "ok"
	maxHealth      = 200 // bytes
)

// running are the names of the links last seen that can work.
func (l *links) running() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, health := range l.seen {
		if health == healthOK {
			names = append(names, name)
		}
	}
	return names
}

// unable is why a link that runs cannot work; "" for any other.
func (l *links) unable(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if health := l.seen[name]; health != healthOK {
		return health
	}
	return ""
}

// discover looks again and again until ctx ends, as long as the policy's chain
// names any link.
func (l *links) discover(ctx context.Context, chain func() []string) {
	tick := time.NewTicker(discoveryPeriod)
	defer tick.Stop()
	for {
		if len(chain()) > 0 {
			l.look(ctx, discoveryListen, nil)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// resolve returns which links run, and looks anew first when one of chain has
// not been seen: a link that has just started is in the record of the next ask.
// One that stays away costs the asks of a second no more than one such look.
func (l *links) resolve(ctx context.Context, chain []string) []string {
	l.mu.Lock()
	stale := missing(chain, l.seen) && time.Since(l.looked) > resolveListen
	l.mu.Unlock()
	if stale {
		l.look(ctx, resolveListen, chain)
	}
	return l.running()
}

func missing(chain []string, seen map[string]string) bool {
	return slices.ContainsFunc(chain, func(link string) bool { return seen[link] == "" })
}

// workers are the names of those workers of link last seen that can work, in any
// order.
func (l *links) workers(link string) []string {
	l.mu.Lock()
	names := slices.Clone(l.names[link])
	l.mu.Unlock()
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// awake is the worker of link that answers first at this moment and can work; ""
// if none does that can be asked by its own name.
func (l *links) awake(ctx context.Context, link string) (name string) {
	l.each(ctx, resolveListen, func(w worker) (enough bool) {
		if w.link == link && w.health == healthOK && protocol.ValidToken(w.name) {
			name = w.name
		}
		return name != ""
	})
	return name
}

// look asks once and takes what answers within listen, or until all of enough
// have answered.
func (l *links) look(ctx context.Context, listen time.Duration, enough []string) {
	seen, names := map[string]string{}, map[string][]string{}
	whole := true
	asked := l.each(ctx, listen, func(w worker) bool {
		// One worker that can work is enough of a link.
		if seen[w.link] != healthOK {
			seen[w.link] = w.health
		}
		if w.health == healthOK && protocol.ValidToken(w.name) {
			names[w.link] = append(names[w.link], w.name)
		}
		whole = enough == nil || missing(enough, seen)
		return !whole
	})
	if !asked {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !whole {
		// Those that did not answer yet may well run.
		for known, health := range l.seen {
			if seen[known] == "" || health == healthOK {
				seen[known] = health
			}
		}
		names = l.names
	}
	l.seen, l.names, l.looked = seen, names, time.Now()
}

// worker is what one worker says of itself. Nothing of it is proven.
type worker struct {
	link   string
	name   string // what it can be asked under alone; "" if it cannot
	health string // healthOK, or why it cannot work
}

// each asks the node's workers once and hands what answers within listen to take,
// until that has enough; false when nobody could be asked.
func (l *links) each(ctx context.Context, listen time.Duration, take func(worker) (enough bool)) bool {
	subject, err := micro.ControlSubject(micro.InfoVerb, protocol.ServiceLink, "")
	if err != nil {
		return false
	}
	inbox := l.nc.NewRespInbox()
	sub, err := l.nc.SubscribeSync(inbox)
	if err != nil {
		return false
	}
	defer sub.Unsubscribe()
	if l.nc.PublishRequest(subject, inbox, []byte("{}")) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, listen)
	defer cancel()
	for range maxDiscovered {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break // the time is over, or nobody is there
		}
		if w, ok := l.workerOf(msg.Data); ok && take(w) {
			break
		}
	}
	return true
}

// workerOf is the worker of this node that answers with data. One that does not
// say how it is can work.
func (l *links) workerOf(data []byte) (worker, bool) {
	var info micro.Info
	if json.Unmarshal(data, &info) != nil || info.Name != protocol.ServiceLink || info.Metadata["node"] != l.node {
		return worker{}, false
	}
	w := worker{
		link: info.Metadata["link"], name: info.Metadata[metadataWorker],
		health: cmp.Or(protocol.Safe(info.Metadata[metadataHealth], maxHealth, false), healthOK),
	}
	return w, protocol.ValidToken(w.link)
}
