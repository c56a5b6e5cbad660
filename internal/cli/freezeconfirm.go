package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/gate"
)

// confirmTime bounds the wait for one gate.
const confirmTime = 10 * time.Second

// confirmRounds bounds how often gates are looked for.
const confirmRounds = 5

// confirm asks every gate that answers discovery whether it acts by revision of
// a freeze's key, and waits until each has said so, or its time is over. It looks
// again until no further gate answers: one that was just starting may have read
// the freezes before this one was stored.
func (z *freezer) confirm(ctx context.Context, key string, revision uint64) ([]gateConfirms, error) {
	subjects, err := protocol.NewSubjects(z.node)
	if err != nil {
		return nil, err
	}
	out := []gateConfirms{}
	for round := range confirmRounds {
		names, err := runningGates(ctx, z.nc, z.node)
		if err != nil {
			return nil, err
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			return slices.ContainsFunc(out, func(g gateConfirms) bool { return g.Name == name })
		})
		if len(names) == 0 && round > 0 {
			break
		}
		out = append(out, confirmAll(ctx, z.nc, subjects, names, protocol.Confirm{Key: key, Revision: revision})...)
	}
	return out, nil
}

// confirmAll asks gates side by side.
func confirmAll(ctx context.Context, nc *nats.Conn, subjects protocol.Subjects, names []string, c protocol.Confirm) []gateConfirms {
	out := make([]gateConfirms, len(names))
	var asking sync.WaitGroup
	for i, name := range names {
		asking.Go(func() {
			err := confirmOne(ctx, nc, subjects, name, c)
			out[i] = gateConfirms{Name: name, Confirmed: err == nil}
			if err != nil {
				out[i].Error = protocol.Safe(err.Error(), 400, false)
			}
		})
	}
	asking.Wait()
	return out
}

// confirmOne asks one gate until it confirms or says no.
func confirmOne(ctx context.Context, nc *nats.Conn, subjects protocol.Subjects, gate string, c protocol.Confirm) error {
	subject, err := subjects.Confirm(gate)
	if err != nil {
		return err
	}
	body, err := protocol.Write(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		m, err := nc.RequestWithContext(ctx, subject, body)
		if err != nil {
			return cmp.Or(last, fmt.Errorf("it does not answer: %w", err))
		}
		fault, ferr := protocol.Read[protocol.ErrorReply](m.Data)
		if ferr != nil {
			return confirms(m.Data, gate, c)
		}
		if last = &fault.Error; fault.Error.Code != protocol.CodeUnavailable {
			return last
		}
	}
	return cmp.Or(last, context.Cause(ctx))
}

// confirms holds a gate's answer against the question: an answer for another
// gate or key, or about something that was stored before, confirms nothing.
func confirms(data []byte, gate string, c protocol.Confirm) error {
	got, err := protocol.Read[protocol.Confirmed](data)
	switch {
	case err != nil:
		return fmt.Errorf("its answer does not read: %w", err)
	case got.Gate != gate || got.Key != c.Key || got.Revision < c.Revision:
		return errors.New("its answer is about something else")
	case got.Revision > c.Revision:
		return fmt.Errorf("somebody else has changed it meanwhile, to revision %d: see `assent freeze list`", got.Revision)
	}
	return nil
}

// runningGates are the names of the gates of node that answer discovery.
func runningGates(ctx context.Context, nc *nats.Conn, node string) ([]string, error) {
	all, err := runningServices(ctx, nc, gate.ServiceName, node)
	var names []string
	for _, info := range all {
		names = append(names, info.Metadata["gate"])
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// runningServices are the services of that name on node that answer discovery.
func runningServices(ctx context.Context, nc *nats.Conn, name, node string) ([]micro.Info, error) {
	subject, err := micro.ControlSubject(micro.InfoVerb, name, "")
	if err != nil {
		return nil, fmt.Errorf("asking for services: %w", err)
	}
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("asking for services: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection closes next
	if err := nc.PublishRequest(subject, inbox, nil); err != nil {
		return nil, fmt.Errorf("asking for services: %w", err)
	}
	var found []micro.Info
	for range linksMost {
		msg, err := nextReply(ctx, sub)
		if err != nil {
			break // the time is over, or nobody is there
		}
		var info micro.Info
		if json.Unmarshal(msg.Data, &info) == nil && info.Name == name && info.Metadata["node"] == node {
			found = append(found, info)
		}
	}
	return found, ctx.Err()
}

// heardTime bounds the look into the record for a name.
const heardTime = 2 * time.Second

// isUnheardOf says that the record holds no decision on a call of agent: then its
// name may be mistyped. Where the record does not tell, it is false.
func (z *freezer) isUnheardOf(ctx context.Context, agent string) bool {
	ctx, cancel := context.WithTimeout(ctx, heardTime)
	defer cancel()
	subjects, err := protocol.NewSubjects(z.node)
	if err != nil {
		return false
	}
	all, err := subjects.DecisionsOn(agent)
	if err != nil {
		return false
	}
	js, err := jetstream.New(z.nc)
	if err != nil {
		return false
	}
	s, err := js.Stream(ctx, protocol.StreamDecisions)
	if err != nil {
		return false
	}
	_, err = s.GetLastMsgForSubject(ctx, all)
	return errors.Is(err, jetstream.ErrMsgNotFound)
}
