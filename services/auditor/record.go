package auditor

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Kind says which stream a record comes from.
type Kind string

// The kinds of record.
const (
	KindDecision Kind = "decision"
	KindReview   Kind = "review"
)

// Message is one message of a stream, as it stands there.
type Message struct {
	Stream  string
	Seq     uint64
	At      time.Time
	Subject string
	Data    []byte
}

// Record is one line of the review log: a message of a stream under the ask
// that it is about.
type Record struct {
	// Ask is the ask id in the subject; "" if the subject names none.
	Ask    string `json:"ask"`
	Kind   Kind   `json:"kind"`
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
	// At is when the stream stored it.
	At      time.Time `json:"at"`
	Subject string    `json:"subject"`
	// Broken says why the record cannot be relied on; "" for a sound one.
	Broken string `json:"broken,omitempty"`
	// Record is the body, byte for byte. It is empty, and Raw holds the body,
	// when the body cannot stand in one line of JSON.
	Record jsontext.Value `json:"record,omitempty"`
	Raw    []byte         `json:"raw,omitempty"`
}

// NewRecord makes the record of m on node. It never refuses: what is wrong with
// m stands in Broken.
func NewRecord(node string, m Message) Record {
	r := Record{Kind: kindOf(m.Stream), Stream: m.Stream, Seq: m.Seq, At: m.At.UTC(), Subject: m.Subject}
	if oneLine(m.Data) {
		r.Record = jsontext.Value(m.Data)
	} else {
		r.Raw = m.Data
	}
	sub, err := protocol.ParseSubject(m.Subject)
	if err == nil && (sub.Kind == protocol.KindDecision || sub.Kind == protocol.KindReview) {
		r.Ask = sub.Tokens[0]
	}
	if err == nil {
		err = r.agree(node, sub, m.Data)
	}
	if err != nil {
		r.Broken = err.Error()
	}
	return r
}

func kindOf(stream string) Kind {
	if stream == protocol.StreamReview {
		return KindReview
	}
	return KindDecision
}

// agree checks the body against the subject. Whoever may write into a stream
// chooses both; a record found under one ask must speak of that ask.
func (r *Record) agree(node string, sub protocol.Subject, data []byte) error {
	if string(sub.Kind) != string(r.Kind) {
		return fmt.Errorf("%w: a %s subject in the stream %s", protocol.ErrMismatch, sub.Kind, r.Stream)
	}
	if sub.Node != node {
		return fmt.Errorf("%w: a subject of node %q on node %q", protocol.ErrMismatch, sub.Node, node)
	}
	if err := protocol.CheckAskID(sub.Tokens[0]); err != nil {
		return err
	}
	if r.Kind == KindReview {
		return agreeReview(sub, data)
	}
	return agreeDecision(sub, data)
}

func agreeDecision(sub protocol.Subject, data []byte) error {
	d, err := protocol.ReadDecisionFor(sub.Tokens[0], sub.Tokens[1], data, protocol.MaxBytes(len(data)))
	if err != nil {
		return err
	}
	return firstMismatch(
		pair{"node", d.Node, sub.Node},
		pair{"surface", protocol.TokenOr(d.Surface), sub.Tokens[2]},
		pair{"result", d.Result.String(), sub.Tokens[3]},
	)
}

func agreeReview(sub protocol.Subject, data []byte) error {
	rec, err := protocol.Read[protocol.ReviewRecord](data, protocol.MaxBytes(len(data)))
	if err != nil {
		return err
	}
	return firstMismatch(
		pair{"ask", rec.Ask, sub.Tokens[0]},
		pair{"node", rec.Node, sub.Node},
		pair{"event", rec.Event, strings.Join(sub.Tokens[1:], ".")},
	)
}

type pair struct{ what, body, subject string }

func firstMismatch(pairs ...pair) error {
	for _, p := range pairs {
		if p.body != p.subject {
			return fmt.Errorf("%w: %s is %q in the body and %q in the subject", protocol.ErrMismatch, p.what, protocol.Safe(p.body, 80, false), p.subject)
		}
	}
	return nil
}

// Decision reads the record as a decision.
func (r *Record) Decision() (protocol.Decision, error) {
	return protocol.Read[protocol.Decision](r.Record, protocol.MaxBytes(len(r.Record)))
}

// Review reads the record as one of the review log's events.
func (r *Record) Review() (protocol.ReviewRecord, error) {
	return protocol.Read[protocol.ReviewRecord](r.Record, protocol.MaxBytes(len(r.Record)))
}

// AppendLine appends the record to b as one line of JSON, body byte for byte.
func (r *Record) AppendLine(b []byte) ([]byte, error) {
	head := *r
	head.Record = nil
	line, err := json.Marshal(&head, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return b, fmt.Errorf("encoding record %d of %s: %w", r.Seq, r.Stream, err)
	}
	if len(r.Record) == 0 {
		return append(append(b, line...), '\n'), nil
	}
	b = append(b, line[:len(line)-1]...)
	b = append(b, `,"record":`...)
	b = append(b, r.Record...)
	return append(b, '}', '\n'), nil
}

// oneLine says whether data can stand as a value in a line of JSON as it is.
func oneLine(data []byte) bool {
	return len(data) > 0 && !bytes.ContainsAny(data, "\n\r") &&
		jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true))
}
