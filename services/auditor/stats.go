package auditor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
)

// Lag is how many records of each of Streams no auditor has acknowledged yet, as
// the server counts them: the same for whoever asks, also when no auditor runs.
// nc holds an auditor's or an operator's credentials.
func Lag(ctx context.Context, nc *nats.Conn) (map[string]uint64, error) {
	js, err := bus.JetStream(nc)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	lag := map[string]uint64{}
	for _, stream := range Streams {
		cons, err := js.Consumer(ctx, stream, Durable)
		if err != nil {
			return nil, fmt.Errorf("asking how far the auditor of %s is: %w", stream, err)
		}
		lag[stream] = behind(cons.CachedInfo())
	}
	return lag, nil
}

func behind(info *jetstream.ConsumerInfo) uint64 {
	return info.NumPending + uint64(max(0, info.NumAckPending))
}

// streamNumbers say how the keeping of one stream goes. Counts begin with the
// process. They are logged when the auditor ends.
type streamNumbers struct {
	Stream string
	// Written is how many records went to disk; Again how many came a second
	// time and were known.
	Written uint64
	Again   uint64
	// Broken is how many of what came could not be relied on.
	Broken uint64
	// WriteFailures is how many attempts to write failed.
	WriteFailures uint64
	// Lag is how many records were not acknowledged when it was last asked for.
	Lag uint64
	// Trouble is the newest error, "" once a batch has been stored after it.
	Trouble string
}

// stats holds the numbers of all streams; its parts are safe for concurrent use.
type stats struct{ streams []*streamStats }

type streamStats struct {
	mu sync.Mutex
	s  streamNumbers
}

func newStats(streams []string) *stats {
	out := &stats{}
	for _, name := range streams {
		out.streams = append(out.streams, &streamStats{s: streamNumbers{Stream: name}})
	}
	return out
}

func (s *stats) of(stream string) *streamStats {
	for _, st := range s.streams {
		if st.s.Stream == stream {
			return st
		}
	}
	panic("auditor: no numbers are kept for " + stream)
}

func (s *stats) all() []streamNumbers {
	var out []streamNumbers
	for _, st := range s.streams {
		st.mu.Lock()
		out = append(out, st.s)
		st.mu.Unlock()
	}
	return out
}

func (s *streamStats) change(f func(*streamNumbers)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.s)
}

func (s *streamStats) stored(written, again int) {
	s.change(func(st *streamNumbers) {
		st.Written += uint64(written)
		st.Again += uint64(again)
		st.Trouble = ""
	})
}

func (s *streamStats) broken() { s.change(func(st *streamNumbers) { st.Broken++ }) }

func (s *streamStats) lag(n uint64) {
	s.change(func(st *streamNumbers) { st.Lag = n })
}

func (s *streamStats) trouble(err error) {
	s.change(func(st *streamNumbers) { st.Trouble = err.Error() })
}

func (s *streamStats) writeFailed(err error) {
	s.trouble(err)
	s.change(func(st *streamNumbers) { st.WriteFailures++ })
}

// report logs the numbers of each stream.
func (s *stats) report(log *slog.Logger) {
	for _, n := range s.all() {
		log.Info("auditor ends", "stream", n.Stream, "written", n.Written, "known_before", n.Again, "broken", n.Broken, "write_failures", n.WriteFailures, "lag", n.Lag)
	}
}
