package gate

import (
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
	names  []string
	looked time.Time
}

// running are the names of the links last seen.
func (l *links) running() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names
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
	stale := missing(chain, l.names) && time.Since(l.looked) > resolveListen
	l.mu.Unlock()
	if stale {
		l.look(ctx, resolveListen, chain)
	}
	return l.running()
}

func missing(chain, names []string) bool {
	return slices.ContainsFunc(chain, func(link string) bool { return !slices.Contains(names, link) })
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
	var names []string
	whole := true
	for range maxDiscovered {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break // the time is over, or nobody is there
		}
		if link := l.linkOf(msg.Data); link != "" && !slices.Contains(names, link) {
			names = append(names, link)
		}
		if enough != nil && !missing(enough, names) {
			whole = false
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !whole {
		// Those that did not answer yet may well run.
		for _, known := range l.names {
			if !slices.Contains(names, known) {
				names = append(names, known)
			}
		}
	}
	l.names, l.looked = names, time.Now()
}

// linkOf is the name of the link of this node that answers with data, or "".
func (l *links) linkOf(data []byte) string {
	var info micro.Info
	if json.Unmarshal(data, &info) != nil || info.Name != protocol.ServiceLink || info.Metadata["node"] != l.node {
		return ""
	}
	if link := info.Metadata["link"]; protocol.ValidToken(link) {
		return link
	}
	return ""
}
