package bus

import (
	"fmt"
	"net"
	"sync"
)

// looseServer hands out connections whose handshake cannot lock up.
//
// A connection within the process is a pipe without a buffer. A server that
// refuses credentials writes its refusal while the client still writes the end
// of its greeting: both would wait for each other until a deadline, 10 s later,
// closes the pipe, and the reason is lost.
type looseServer struct{ InProcess }

func (s looseServer) InProcessConn() (net.Conn, error) {
	c, err := s.InProcess.InProcessConn()
	if err != nil {
		return nil, fmt.Errorf("connecting within the process: %w", err)
	}
	return &looseConn{Conn: c}, nil
}

// looseConn writes in the background until the server has answered the first
// thing written. It is used by one reader and one writer at a time.
type looseConn struct {
	net.Conn
	wg sync.WaitGroup // background writes

	mu       sync.Mutex
	greeting bool          // something was written and not yet answered
	answered bool          // the handshake is over: writes go straight through
	last     chan struct{} // closed when the latest background write is done
	err      error         // what a background write came to
}

func (c *looseConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	before, direct, err := c.last, c.answered, c.err
	if err != nil || direct {
		c.mu.Unlock()
		if err != nil {
			return 0, err
		}
		if before != nil {
			<-before
		}
		return c.Conn.Write(b)
	}
	done := make(chan struct{})
	c.greeting, c.last = true, done
	copied := append([]byte(nil), b...)
	c.wg.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		if _, err := c.Conn.Write(copied); err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
		}
	})
	c.mu.Unlock()
	return len(b), nil
}

func (c *looseConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	if c.greeting && n > 0 {
		c.answered = true
	}
	c.mu.Unlock()
	return n, err
}

func (c *looseConn) Close() error {
	err := c.Conn.Close()
	c.wg.Wait()
	return err
}
