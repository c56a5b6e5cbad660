package gate

import (
	"cmp"
	"context"
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
	seen   map[string]string // by link: healthOK, or why none of its workers can work
	looked time.Time
}

// A link's word on itself: metadata that pkg/link announces.
const (
	metadataHealth = "health"
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

// look asks once and takes what answers within listen, or until all of enough
// have answered.
func (l *links) look(ctx context.Context, listen time.Duration, enough []string) {
	subject, err := micro.ControlSubject(micro.InfoVerb, protocol.ServiceLink, "")
	if err != nil {
		return
	}
	inbox := l.nc.NewRespInbox()
	sub, err := l.nc.SubscribeSync(inbox)
	if err != nil {
		return
	}
	defer sub.Unsubscribe()
	if l.nc.PublishRequest(subject, inbox, []byte("{}")) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listen)
	defer cancel()
	seen := map[string]string{}
	whole := true
	for range maxDiscovered {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break // the time is over, or nobody is there
		}
		// One worker that can work is enough of a link.
		if link, health := l.linkOf(msg.Data); link != "" && seen[link] != healthOK {
			seen[link] = health
		}
		if enough != nil && !missing(enough, seen) {
			whole = false
			break
		}
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
	}
	l.seen, l.looked = seen, time.Now()
}

// linkOf is the name of the link of this node that answers with data, or "", and
// how it says it is. One that does not say can work.
func (l *links) linkOf(data []byte) (name, health string) {
	var info micro.Info
	if json.Unmarshal(data, &info) != nil || info.Name != protocol.ServiceLink || info.Metadata["node"] != l.node {
		return "", ""
	}
	if name = info.Metadata["link"]; !protocol.ValidToken(name) {
		return "", ""
	}
	return name, cmp.Or(protocol.Safe(info.Metadata[metadataHealth], maxHealth, false), healthOK)
}
