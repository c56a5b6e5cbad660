package gate

import (
	"context"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/pkg/protocol"
)

// How often the gate looks which links run, and how long it listens each time.
const (
	discoveryPeriod = time.Second
	discoveryListen = 250 * time.Millisecond
	maxDiscovered   = 4096
)

// links is which links run, by micro discovery. It is for the record and for
// people alone: a link is asked by its subject, seen or not.
type links struct {
	nc   *nats.Conn
	node string

	mu    sync.Mutex
	names []string
}

// running are the names of the links last seen.
func (l *links) running() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names
}

// discover looks again and again until ctx ends.
func (l *links) discover(ctx context.Context) {
	tick := time.NewTicker(discoveryPeriod)
	defer tick.Stop()
	for {
		l.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look asks once and takes what answers within discoveryListen.
func (l *links) look(ctx context.Context) {
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
	ctx, cancel := context.WithTimeout(ctx, discoveryListen)
	defer cancel()
	seen := map[string]bool{}
	for range maxDiscovered {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break // the time is over, or nobody is there
		}
		var info micro.Info
		if json.Unmarshal(msg.Data, &info) != nil || info.Name != protocol.ServiceLink || info.Metadata["node"] != l.node {
			continue
		}
		if link := info.Metadata["link"]; protocol.ValidToken(link) {
			seen[link] = true
		}
	}
	names := make([]string, 0, len(seen))
	for n := range seen {
		names = append(names, n)
	}
	l.mu.Lock()
	l.names = names
	l.mu.Unlock()
}
