// Package auditor copies the record of a node, the streams of decisions and of
// the review log, into files that no credential of NATS can reach, and reads
// the streams for people.
package auditor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Durable is the name of the consumer that a node makes for its auditor on each
// of the two streams.
const Durable = "auditor"

// DefaultBatch is how many records are synced to disk at once, at most.
const DefaultBatch = 256

// Config is what an operator sets.
type Config struct {
	// Node is the node whose record is kept.
	Node string
	// Dir is the folder of the review log; MaxBytes and Keep rotate it, as
	// FilesConfig says.
	Dir      string
	MaxBytes int64
	Keep     int
	// Batch is how many records one sync covers at most; default DefaultBatch.
	Batch int
	// Logger takes everything that goes wrong. Default slog.Default.
	Logger *slog.Logger
	// Ready, if not nil, is called once, when both streams are being read.
	Ready func()
}

// Streams are what an auditor keeps, in the order in which it reports on them.
var Streams = []string{protocol.StreamDecisions, protocol.StreamReview}

// Run keeps the review log until ctx ends; then it finishes the batch in hand,
// acknowledges it and returns nil. nc holds an auditor's credentials; Run does
// not close it. An error means that the folder cannot be used, or that the
// connection was closed for good: nothing else ends it, and a record that
// cannot be written is tried again without end.
func Run(ctx context.Context, nc *nats.Conn, cfg Config) error {
	if err := protocol.CheckToken("node", cfg.Node); err != nil {
		return err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Batch <= 0 {
		cfg.Batch = DefaultBatch
	}
	files, err := OpenFiles(FilesConfig{Dir: cfg.Dir, MaxBytes: cfg.MaxBytes, Keep: cfg.Keep, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	return errors.Join(keep(ctx, nc, cfg, files, newStats(Streams)), files.Close())
}

// keep moves both streams into log.
func keep(ctx context.Context, nc *nats.Conn, cfg Config, log Log, stats *stats) error {
	js, err := bus.JetStream(nc)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ready := readyAfter(len(Streams), func() {
		cfg.Logger.Info("auditor ready", "node", cfg.Node, "folder", cfg.Dir)
		if cfg.Ready != nil {
			cfg.Ready()
		}
	})
	var wg sync.WaitGroup
	for _, stream := range Streams {
		c := &consumer{nc: nc, js: js, cfg: cfg, stream: stream, out: log, stats: stats.of(stream),
			found: sync.OnceFunc(ready), log: cfg.Logger.With("stream", stream)}
		wg.Go(func() {
			if err := c.run(ctx); err != nil {
				stop(err)
			}
		})
	}
	wg.Wait()
	flush(nc, cfg.Logger)
	stats.report(cfg.Logger)
	if err := context.Cause(ctx); errors.Is(err, errClosed) {
		return err
	}
	return nil
}

// readyAfter calls ready with the nth call.
func readyAfter(n int, ready func()) func() {
	left := int64(n)
	return func() {
		if atomic.AddInt64(&left, -1) == 0 {
			ready()
		}
	}
}

// errClosed: the connection will not come back.
var errClosed = errors.New("the connection was closed for good: see what the server said of these credentials")

// flush sends the last acknowledgements. If it cannot, their records come again
// and are not written twice.
func flush(nc *nats.Conn, log *slog.Logger) {
	if !nc.IsConnected() {
		return
	}
	if err := nc.FlushTimeout(5 * time.Second); err != nil {
		log.Warn("the last acknowledgements may not have arrived", "error", err)
	}
}
