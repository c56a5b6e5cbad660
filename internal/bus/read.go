package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// KeyValue is one entry of a key-value bucket.
type KeyValue struct {
	Key   string
	Value []byte
	// Revision is the entry's sequence in the bucket: what a compare-and-set
	// compares.
	Revision uint64
	Created  time.Time
}

// Bounds of reading.
const (
	readBatch   = 256
	readTimeout = 5 * time.Second
)

// LastPerKey reads every live entry of bucket, in order of revision, without a
// consumer: it asks for messages in batches by sequence. So it needs only the
// right to DIRECT.GET.KV_<bucket>, works over an account border, and has
// no upper bound on the number of keys. Deleted keys are left out. The result
// is whole or there is an error (ErrRead): a list with a gap would hide asks.
func LastPerKey(ctx context.Context, nc *nats.Conn, bucket string) ([]KeyValue, error) {
	prefix := "$KV." + bucket + "."
	last := map[string]KeyValue{}
	for from := uint64(1); ; {
		page, err := directBatch(ctx, nc, "KV_"+bucket, prefix+">", from)
		if err != nil {
			return nil, fmt.Errorf("%w: bucket %s: %w", ErrRead, bucket, err)
		}
		for _, m := range page.msgs {
			key := strings.TrimPrefix(m.subject, prefix)
			// An entry that changes while it is read stands again further on.
			delete(last, key)
			if !m.deleted {
				last[key] = KeyValue{Key: key, Value: m.data, Revision: m.seq, Created: m.at}
			}
			from = m.seq + 1
		}
		if page.pending == 0 {
			return sortedByRevision(last), nil
		}
		if len(page.msgs) == 0 {
			return nil, fmt.Errorf("%w: bucket %s: the server holds %d entries back", ErrRead, bucket, page.pending)
		}
	}
}

type page struct {
	msgs    []stored
	pending uint64 // how many the server still has after these
}

type stored struct {
	subject string
	data    []byte
	seq     uint64
	at      time.Time
	deleted bool
}

// directBatch asks stream for the next messages on filter from a sequence on.
func directBatch(ctx context.Context, nc *nats.Conn, stream, filter string, from uint64) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"seq": from, "next_by_subj": filter, "batch": readBatch})
	if err != nil {
		return page{}, fmt.Errorf("asking: %w", err)
	}
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return page{}, fmt.Errorf("asking: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // the answer is read or lost either way
	if err := nc.PublishRequest(apiOf(nc)+".DIRECT.GET."+stream, inbox, body); err != nil {
		return page{}, fmt.Errorf("asking: %w", err)
	}
	var out page
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return page{}, fmt.Errorf("after %d messages: %w", len(out.msgs), err)
		}
		done, err := out.add(m)
		if err != nil || done {
			return out, err
		}
	}
}

// add takes one reply in; done at the end of the batch.
func (p *page) add(m *nats.Msg) (done bool, err error) {
	switch status := m.Header.Get("Status"); status {
	case "":
	case "404":
		return true, nil
	case "204":
		p.pending, err = strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
		if err != nil {
			return true, fmt.Errorf("reading the end of a batch: %w", err)
		}
		return true, nil
	case "503":
		return true, errors.New("no server answers for it: the stream does not exist, or these credentials may not read it")
	default:
		return true, fmt.Errorf("the server says %s %s", status, m.Header.Get("Description"))
	}
	s, err := storedFrom(m)
	if err != nil {
		return true, err
	}
	p.msgs = append(p.msgs, s)
	return false, nil
}

func storedFrom(m *nats.Msg) (stored, error) {
	seq, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	if err != nil {
		return stored{}, fmt.Errorf("reading a stored message: %w", err)
	}
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get("Nats-Time-Stamp"))
	if err != nil {
		return stored{}, fmt.Errorf("reading a stored message: %w", err)
	}
	return stored{
		subject: m.Header.Get("Nats-Subject"), data: m.Data, seq: seq, at: at,
		// A delete, a purge, or the marker that the server leaves for either.
		deleted: m.Header.Get("KV-Operation") != "" || m.Header.Get("Nats-Marker-Reason") != "",
	}, nil
}

func sortedByRevision(in map[string]KeyValue) []KeyValue {
	out := make([]KeyValue, 0, len(in))
	for _, kv := range in {
		out = append(out, kv)
	}
	slices.SortFunc(out, func(a, b KeyValue) int { return cmp.Compare(a.Revision, b.Revision) })
	return out
}

// StreamMsg is one stored message of a stream.
type StreamMsg struct {
	Subject string
	Seq     uint64
	Time    time.Time
	Header  nats.Header
	Data    []byte
}

// ReadStream reads stored messages of stream whose subject matches filter
// ("" is all), from sequence from on (0 and 1 are the first), in order, up to
// the last that there is when the reader comes to it. It asks for one message
// at a time and so needs only the right to STREAM.MSG.GET.<stream>. The sequence
// ends after an error (ErrRead), which it yields with a zero message.
func ReadStream(ctx context.Context, nc *nats.Conn, stream string, from uint64, filter string) iter.Seq2[StreamMsg, error] {
	if filter == "" {
		filter = ">"
	}
	return func(yield func(StreamMsg, error) bool) {
		for seq := max(from, 1); ; {
			m, found, err := nextMsg(ctx, nc, stream, seq, filter)
			if err != nil {
				yield(StreamMsg{}, fmt.Errorf("%w: stream %s from %d: %w", ErrRead, stream, seq, err))
				return
			}
			if !found || !yield(m, nil) {
				return
			}
			seq = m.Seq + 1
		}
	}
}

// noMessage is the server's code for "no message found".
const noMessage = 10037

func nextMsg(ctx context.Context, nc *nats.Conn, stream string, seq uint64, filter string) (StreamMsg, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"seq": seq, "next_by_subj": filter})
	if err != nil {
		return StreamMsg{}, false, fmt.Errorf("asking: %w", err)
	}
	reply, err := nc.RequestWithContext(ctx, apiOf(nc)+".STREAM.MSG.GET."+stream, body)
	if errors.Is(err, nats.ErrNoResponders) {
		return StreamMsg{}, false, errors.New("no server answers for it: these credentials may not read it, or JetStream is off")
	}
	if err != nil {
		return StreamMsg{}, false, fmt.Errorf("asking: %w", err)
	}
	var r struct {
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Hdrs    []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
		Error *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &r); err != nil {
		return StreamMsg{}, false, fmt.Errorf("reading a stored message: %w", err)
	}
	switch {
	case r.Error != nil && r.Error.Code == noMessage:
		return StreamMsg{}, false, nil
	case r.Error != nil:
		return StreamMsg{}, false, errors.New(r.Error.Description)
	case r.Message == nil || r.Message.Seq < seq:
		return StreamMsg{}, false, errors.New("the server's reply holds no message")
	}
	out := StreamMsg{Subject: r.Message.Subject, Seq: r.Message.Seq, Time: r.Message.Time, Data: r.Message.Data}
	if len(r.Message.Hdrs) > 0 {
		if out.Header, err = nats.DecodeHeadersMsg(r.Message.Hdrs); err != nil {
			return StreamMsg{}, false, fmt.Errorf("reading the headers of %d: %w", out.Seq, err)
		}
	}
	return out, true, nil
}
