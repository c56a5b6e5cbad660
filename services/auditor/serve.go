package auditor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/version"
	"github.com/assent-dev/assent/pkg/protocol"
)

// ServiceName is under what name an auditor can be discovered.
const ServiceName = "assent-auditor"

// StreamStats says how the keeping of one stream goes. Counts begin with the
// process.
type StreamStats struct {
	Stream string `json:"stream"`
	// Written is how many records went to disk; Again how many came a second
	// time and were known.
	Written uint64 `json:"written"`
	Again   uint64 `json:"again"`
	// Broken is how many of what came could not be relied on.
	Broken uint64 `json:"broken"`
	// WriteFailures is how many attempts to write failed.
	WriteFailures uint64 `json:"write_failures"`
	// Lag is how many records were not acknowledged at LagAt.
	Lag   uint64    `json:"lag"`
	LagAt time.Time `json:"lag_at,omitzero"`
	// Trouble is the newest error, "" once a batch has been stored after it.
	Trouble   string    `json:"trouble"`
	TroubleAt time.Time `json:"trouble_at,omitzero"`
}

// stats holds the numbers of all streams; its parts are safe for concurrent use.
type stats struct{ streams []*streamStats }

type streamStats struct {
	mu sync.Mutex
	s  StreamStats
}

func newStats(streams []string) *stats {
	out := &stats{}
	for _, name := range streams {
		out.streams = append(out.streams, &streamStats{s: StreamStats{Stream: name}})
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

func (s *stats) all() []StreamStats {
	var out []StreamStats
	for _, st := range s.streams {
		st.mu.Lock()
		out = append(out, st.s)
		st.mu.Unlock()
	}
	return out
}

func (s *streamStats) change(f func(*StreamStats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.s)
}

func (s *streamStats) stored(written, again int) {
	s.change(func(st *StreamStats) {
		st.Written += uint64(written)
		st.Again += uint64(again)
		st.Trouble = ""
	})
}

func (s *streamStats) broken() { s.change(func(st *StreamStats) { st.Broken++ }) }

func (s *streamStats) lag(n uint64) {
	s.change(func(st *StreamStats) { st.Lag, st.LagAt = n, time.Now().UTC() })
}

func (s *streamStats) trouble(err error) {
	s.change(func(st *StreamStats) { st.Trouble, st.TroubleAt = err.Error(), time.Now().UTC() })
}

func (s *streamStats) writeFailed(err error) {
	s.trouble(err)
	s.change(func(st *StreamStats) { st.WriteFailures++ })
}

// announce makes the auditor known to discovery and returns how to leave it.
// Credentials that do not let it be found are no reason not to keep the record.
func announce(nc *nats.Conn, cfg Config, s *stats) (leave func(), err error) {
	// micro subscribes to nine subjects and hears of no refusal. One question
	// first, and no more when the answer is no.
	probe, err := bus.Subscribe(nc, "$SRV.PING."+ServiceName, "", 1, func(*nats.Msg) {}, func(*nats.Msg) {})
	if err != nil && nc.IsClosed() {
		return nil, errClosed
	}
	if err != nil {
		cfg.Logger.Warn("the auditor cannot be discovered; its numbers are in this log alone", "error", err)
		return func() {}, nil
	}
	service, err := register(nc, cfg, s)
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	if err := errors.Join(err, probe.Drain(ctx)); err != nil {
		return nil, err
	}
	return func() {
		if err := service.Stop(); err != nil && !nc.IsClosed() {
			cfg.Logger.Warn("leaving discovery", "error", err)
		}
	}, nil
}

// register adds the micro service. The numbers stand in its statistics, as data
// of the endpoint "state", which answers with them too.
func register(nc *nats.Conn, cfg Config, s *stats) (micro.Service, error) {
	service, err := micro.AddService(nc, micro.Config{
		Name:               ServiceName,
		Version:            version.Version,
		Description:        "keeps the review log",
		Metadata:           map[string]string{"node": cfg.Node, "version": version.Version},
		QueueGroupDisabled: true,
		StatsHandler:       func(*micro.Endpoint) any { return s.all() },
	})
	if err != nil {
		return nil, fmt.Errorf("registering %s: %w", ServiceName, err)
	}
	state := micro.HandlerFunc(func(req micro.Request) {
		if !protocol.ReplyFrom(protocol.RoleAuditor, req.Reply()) && !protocol.ReplyFrom(protocol.RoleOperator, req.Reply()) {
			cfg.Logger.Warn("a question for the state without a proper reply subject is not answered")
			return
		}
		if err := req.RespondJSON(s.all()); err != nil {
			cfg.Logger.Warn("answering with the state", "error", err)
		}
	})
	// The endpoint is in the auditor's own inbox: the only place where its
	// credentials let it listen.
	if err := service.AddEndpoint("state", state, micro.WithEndpointSubject(nc.Opts.InboxPrefix+".state")); err != nil {
		return nil, errors.Join(fmt.Errorf("registering %s: %w", ServiceName, err), service.Stop())
	}
	return service, nil
}
