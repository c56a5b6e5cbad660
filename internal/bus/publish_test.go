package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

func TestPublishWantsTheAcknowledgementOfTheStream(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	nc := n.Connect(t, protocol.RoleGate, "g1")
	to := func(id, result string) *nats.Msg {
		return &nats.Msg{Subject: protocol.SubjectRoot + ".main.decision." + id + ".ci.bash." + result, Data: []byte("{}"), Header: nats.Header{
			jetstream.ExpectedLastSubjSeqHeader:     {"0"},
			jetstream.ExpectedLastSubjSeqSubjHeader: {protocol.SubjectRoot + ".main.decision." + id + ".>"},
		}}
	}
	one, two := protocol.NewAskID(), protocol.NewAskID()
	for i, id := range []string{one, two} {
		if seq, err := bus.Publish(t.Context(), nc, to(id, "allow"), protocol.StreamDecisions, time.Second); err != nil || seq != uint64(i+1) {
			t.Fatalf("sequence %d, %v", seq, err)
		}
	}
	var api *jetstream.APIError
	if seq, err := bus.Publish(t.Context(), nc, to(one, "deny"), protocol.StreamDecisions, time.Second); seq != 0 || !errors.As(err, &api) || api.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequence {
		t.Errorf("a second decision: sequence %d, %v", seq, err)
	}
	if seq, err := bus.Publish(t.Context(), nc, to(protocol.NewAskID(), "deny"), protocol.StreamReview, time.Second); seq != 0 || err == nil {
		t.Errorf("another stream acknowledged it: sequence %d, %v", seq, err)
	}
}

func TestPublishTakesNothingElseForAnAcknowledgement(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	gate := n.Connect(t, protocol.RoleGate, "g1")
	judge := n.Connect(t, protocol.RoleJudge, "j")
	subject := protocol.SubjectRoot + ".main.link.stream"
	var answer string
	answered := make(chan struct{}, 1)
	if _, err := judge.Subscribe(subject, func(m *nats.Msg) {
		if answer != "" {
			_ = m.Respond([]byte(answer))
		}
		answered <- struct{}{}
	}); err != nil {
		t.Fatal(err)
	}
	if err := judge.Flush(); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		answer string
		ok     bool
	}{
		"an acknowledgement":         {`{"stream":"S","seq":7}`, true},
		"one that says more":         {`{"stream":"S","seq":7,"duplicate":false,"domain":"d"}`, true},
		"another stream's":           {`{"stream":"T","seq":7}`, false},
		"nobody's":                   {`{"seq":7}`, false},
		"without a place":            {`{"stream":"S"}`, false},
		"a refusal":                  {`{"stream":"S","seq":7,"error":{"code":500,"err_code":1,"description":"no"}}`, false},
		"two answers in one":         {`{"stream":"T","stream":"S","seq":7}`, false},
		"in other letters":           {`{"Stream":"S","Seq":7}`, false},
		"a text":                     {`ok`, false},
		"an empty object":            {`{}`, false},
		"nothing before the time is": {"", false},
	} {
		answer = row.answer
		seq, err := bus.Publish(t.Context(), gate, &nats.Msg{Subject: subject, Data: []byte("{}")}, "S", 200*time.Millisecond)
		<-answered
		if (err == nil) != row.ok || row.ok != (seq == 7) {
			t.Errorf("%s: sequence %d, %v", name, seq, err)
		}
	}
}

func TestPublishWaitsForALeaderNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	gate := n.Connect(t, protocol.RoleGate, "g1")
	msg := &nats.Msg{Subject: protocol.SubjectRoot + ".main.link.nobody", Data: []byte("{}")}
	began := time.Now()
	if _, err := bus.Publish(t.Context(), gate, msg, "S", 50*time.Millisecond); !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("nobody there for 50 ms: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := bus.Publish(ctx, gate, msg, "S", time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("given up after 50 ms: %v", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %s", took)
	}
	if _, err := bus.Publish(t.Context(), gate, msg, "S", time.Minute); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("nobody comes: %v", err)
	}
	// One that comes meanwhile is found.
	judge := n.Connect(t, protocol.RoleJudge, "j")
	go func() {
		time.Sleep(100 * time.Millisecond)
		_, _ = judge.Subscribe(msg.Subject, func(m *nats.Msg) { _ = m.Respond([]byte(`{"stream":"S","seq":3}`)) })
	}()
	if seq, err := bus.Publish(t.Context(), gate, msg, "S", time.Minute); err != nil || seq != 3 {
		t.Errorf("sequence %d, %v", seq, err)
	}
}
