package auditor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
)

// Query says which records are wanted. Zero fields ask for nothing.
type Query struct {
	// Kind is KindDecision (also when empty) or KindReview. The review log's
	// records carry none of the next four.
	Kind    Kind
	Agent   string
	Surface string
	Result  protocol.FinalChoice
	Outcome protocol.Outcome
	// Since leaves out what the stream stored before.
	Since time.Time
	// Limit is how many records, the newest, Last returns; 0 is all.
	Limit int
}

// Reader reads the record from the streams, one message by sequence at a time:
// all that an auditor's credentials allow. It is safe for concurrent use.
type Reader struct {
	nc   *nats.Conn
	js   jetstream.JetStream
	node string
}

// NewReader returns a reader of node's record. nc holds an auditor's
// credentials.
func NewReader(nc *nats.Conn, node string) (*Reader, error) {
	if err := protocol.CheckToken("node", node); err != nil {
		return nil, err
	}
	js, err := bus.JetStream(nc)
	if err != nil {
		return nil, err
	}
	return &Reader{nc: nc, js: js, node: node}, nil
}

// Of returns everything about one ask, from both streams, in the order in which
// the streams stored it.
func (r *Reader) Of(ctx context.Context, ask string) ([]Record, error) {
	if err := protocol.CheckAskID(ask); err != nil {
		return nil, err
	}
	var out []Record
	for _, kind := range []Kind{KindReview, KindDecision} {
		filter := r.filter(kind, ask, ">")
		for m, err := range bus.ReadStream(ctx, r.nc, streamOf(kind), 1, filter) {
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrRead, err)
			}
			out = append(out, r.record(kind, m))
		}
	}
	slices.SortStableFunc(out, func(a, b Record) int { return a.At.Compare(b.At) })
	return out, nil
}

// Last returns the newest records that q asks for, the newest last, and the
// sequence up to which the stream was read.
func (r *Reader) Last(ctx context.Context, q Query) (records []Record, end uint64, err error) {
	first, last, err := r.bounds(ctx, q.kind())
	if err != nil {
		return nil, 0, err
	}
	limit := cmp.Or(q.Limit, int(min(last, 1<<40)))
	// From the end, in blocks that grow: a rare record far back costs the server
	// a look into its index, and no block holds more than it has to.
	for hi, size := last, uint64(max(limit, 64)); hi >= first && hi > 0 && len(records) < limit; size *= 4 {
		lo := first
		if hi-first >= size {
			lo = hi - size + 1
		}
		part, err := r.block(ctx, q, lo, hi, limit-len(records))
		if err != nil {
			return nil, 0, err
		}
		records = append(part, records...)
		if older, err := r.olderThan(ctx, q, lo); err != nil || older {
			return records, last, err
		}
		hi = lo - 1
	}
	return records, last, nil
}

// olderThan says whether everything before seq is too old for q.
func (r *Reader) olderThan(ctx context.Context, q Query, seq uint64) (bool, error) {
	if q.Since.IsZero() {
		return false, nil
	}
	for m, err := range bus.ReadStream(ctx, r.nc, streamOf(q.kind()), seq, "") {
		if err != nil {
			return false, fmt.Errorf("%w: %w", ErrRead, err)
		}
		return m.Time.Before(q.Since), nil
	}
	return true, nil
}

// segments is how many readers share a block: each waits for one message at a
// time.
const segments = 8

// block reads the newest limit records of q from lo to hi, in order.
func (r *Reader) block(ctx context.Context, q Query, lo, hi uint64, limit int) ([]Record, error) {
	step := max(32, (hi-lo)/segments+1)
	var parts [][]Record
	var starts []uint64
	for at := lo; at <= hi; at += step {
		starts = append(starts, at)
	}
	parts = make([][]Record, len(starts))
	errs := make([]error, len(starts))
	var wg sync.WaitGroup
	for i, at := range starts {
		wg.Go(func() { parts[i], errs[i] = r.segment(ctx, q, at, min(hi, at+step-1), limit) })
	}
	wg.Wait()
	out := slices.Concat(parts...)
	return out[max(0, len(out)-limit):], errors.Join(errs...)
}

func (r *Reader) segment(ctx context.Context, q Query, lo, hi uint64, limit int) ([]Record, error) {
	filter, err := r.filterOf(q)
	if err != nil {
		return nil, err
	}
	var out []Record
	for m, err := range bus.ReadStream(ctx, r.nc, streamOf(q.kind()), lo, filter) {
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRead, err)
		}
		if m.Seq > hi {
			break
		}
		if rec := r.record(q.kind(), m); q.matches(&rec) {
			out = append(out, rec)
		}
		if len(out) >= 2*limit {
			out = append(out[:0], out[len(out)-limit:]...)
		}
	}
	return out, nil
}

// followPause is how often Follow looks for new records.
const followPause = 200 * time.Millisecond

// Follow hands emit every record that q asks for and the stream stores after
// the sequence after, until ctx ends (nil) or emit fails. While the server
// cannot be read it says so once to log, and goes on where it was.
func (r *Reader) Follow(ctx context.Context, q Query, after uint64, log *slog.Logger, emit func(Record) error) error {
	f := follower{Reader: r, q: q, next: after + 1, emit: emit, log: log}
	pauses := newPauses()
	pauses.MaxInterval = 5 * time.Second
	lost := false
	for ctx.Err() == nil {
		err := f.step(ctx)
		var stop *emitError
		switch {
		case errors.As(err, &stop):
			return stop.err
		case ctx.Err() != nil:
			return nil
		case r.nc.IsClosed():
			return errClosed
		case err != nil && !lost:
			log.Warn("the record cannot be read at the moment; trying again", "error", err)
			lost = true
		case err == nil && lost:
			log.Info("reading the record again")
			lost = false
		}
		if err == nil {
			pauses.Reset()
			sleep(ctx, followPause)
			continue
		}
		sleep(ctx, pauses.NextBackOff())
	}
	return nil
}

type emitError struct{ err error }

func (e *emitError) Error() string { return e.err.Error() }

type follower struct {
	*Reader
	q    Query
	next uint64
	emit func(Record) error
	log  *slog.Logger
}

// step reads what is new, and moves on message by message, so that a break in
// the middle repeats nothing.
func (f *follower) step(ctx context.Context) error {
	first, last, err := f.bounds(ctx, f.q.kind())
	if err != nil {
		return err
	}
	if last+1 < f.next {
		f.log.Warn("the stream begins anew: it was made again, or restored from a copy", "expected", f.next, "last", last)
		f.next = first
	}
	if f.next > last {
		return nil
	}
	filter, err := f.filterOf(f.q)
	if err != nil {
		return &emitError{err}
	}
	for m, err := range bus.ReadStream(ctx, f.nc, streamOf(f.q.kind()), f.next, filter) {
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRead, err)
		}
		rec := f.record(f.q.kind(), m)
		if f.q.matches(&rec) {
			if err := f.emit(rec); err != nil {
				return &emitError{err}
			}
		}
		f.next = m.Seq + 1
	}
	f.next = max(f.next, last+1)
	return nil
}

// bounds are the first and the last sequence of the stream of kind.
func (r *Reader) bounds(ctx context.Context, kind Kind) (first, last uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	s, err := r.js.Stream(ctx, streamOf(kind))
	if err != nil {
		return 0, 0, fmt.Errorf("%w: asking for the state of %s: %w", ErrRead, streamOf(kind), err)
	}
	state := s.CachedInfo().State
	return max(1, state.FirstSeq), state.LastSeq, nil
}

func (r *Reader) record(kind Kind, m bus.StreamMsg) Record {
	return NewRecord(r.node, Message{Stream: streamOf(kind), Seq: m.Seq, At: m.Time, Subject: m.Subject, Data: m.Data})
}

func streamOf(k Kind) string {
	if k == KindReview {
		return protocol.StreamReview
	}
	return protocol.StreamDecisions
}
