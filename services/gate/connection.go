package gate

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
)

// connection is the gate's connection as a row of lives: each begins when the
// connection comes back. A server that restarts forgets who watched what, and
// the client finds that out only by the silence, ten seconds and more later:
// till then a gate would be deaf to a new policy and go on allowing by the old.
type connection struct {
	nc *nats.Conn

	mu   sync.Mutex
	life context.Context
	end  context.CancelFunc
}

func newConnection(nc *nats.Conn) *connection {
	c := &connection{nc: nc}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// number counts the lives. The client counts on before it subscribes anew, so
// whoever handles a message of a new life sees its number.
func (c *connection) number() uint64 { return c.nc.Stats().Reconnects }

// follow begins a new life whenever the connection has come back, until ctx
// ends.
func (c *connection) follow(ctx context.Context) {
	connected := c.nc.StatusChanged(nats.CONNECTED)
	defer c.nc.RemoveStatusListener(connected)
	for {
		select {
		case <-ctx.Done():
			return
		case <-connected:
			c.mu.Lock()
			c.end()
			c.life, c.end = context.WithCancel(context.Background())
			c.mu.Unlock()
		}
	}
}

// within returns a context that ends with ctx and with the life of this moment.
func (c *connection) within(ctx context.Context) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	life := c.life
	c.mu.Unlock()
	one, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(life, cancel)
	return one, func() { stop(); cancel() }
}
