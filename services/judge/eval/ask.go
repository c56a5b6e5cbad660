package eval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/assent-dev/assent/internal/grants"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// asking is one case on its way to a link: what a gate would hand over, and what
// the link does with it.
type asking struct {
	call    policy.Call
	rules   *policy.Snapshot
	ruling  policy.Ruling
	request link.Request
	log     *kept
	tally   tally
	// over: the verdict is there, and the capabilities are dead.
	over atomic.Bool
}

// newAsking rules a case and makes the request that a gate would send. What no
// gate could send is an error.
func newAsking(c Case, rules *policy.Snapshot, name string) (*asking, error) {
	ask := c.Call.ask(askID(c.ID))
	a := &asking{call: grants.Call(ask), rules: rules, log: &kept{}}
	a.ruling = rules.Rule(a.call)
	a.request = link.Request{Ask: ask, Deadline: time.Now().Add(rules.LinkTimeout()),
		PolicyRevision: rules.Revision(), Query: a, Log: a.log}
	a.log.over = &a.over
	for _, e := range a.ruling.Open() {
		a.request.Asks = append(a.request.Asks, protocol.Entry{Surface: e.Surface, Value: e.Value, MatchedPattern: e.MatchedPattern,
			Origin: e.Origin, Unit: e.Unit, HumanOnly: e.HumanOnly, Floor: e.Floor})
	}
	for _, u := range a.ruling.Units {
		a.request.Units = append(a.request.Units, protocol.Unit{Text: u.Text, Decision: wireAction(u.Action), Pattern: u.Pattern, Note: u.Note})
	}
	if _, err := protocol.Write(ask); err != nil {
		return nil, fmt.Errorf("no agent could ask this: %w", err)
	}
	return a, a.sendable(name)
}

// sendable refuses what would not pass between a gate and a judge.
func (a *asking) sendable(name string) error {
	if len(a.request.Asks) == 0 {
		return nil
	}
	subjects, err := protocol.NewSubjects("eval")
	if err != nil {
		return err
	}
	query, qerr := subjects.Query("eval", "query")
	log, lerr := subjects.Log("eval", "log")
	_, err = protocol.Write(protocol.LinkRequest{Link: name, Ask: a.request.Ask, Asks: a.request.Asks, Units: a.request.Units,
		Deadline: a.request.Deadline, Query: query, Log: log})
	if err = errors.Join(qerr, lerr, err); err != nil {
		return fmt.Errorf("no gate could ask this: %w", err)
	}
	return nil
}

// askID is the same for a case each time, so that a run can be repeated.
func askID(id string) string {
	sum := sha256.Sum256([]byte(id))
	var u ulid.ULID
	_ = u.SetTime(1) // in bounds
	_ = u.SetEntropy(sum[:10])
	return u.String()
}

// Check implements link.Query at parity with a gate that holds no grants.
func (a *asking) Check(ctx context.Context, q protocol.Query) (protocol.Check, error) {
	if a.over.Load() {
		return protocol.Check{}, link.ErrOver
	}
	if err := ctx.Err(); err != nil {
		return protocol.Check{}, err
	}
	if _, err := protocol.Write(q); err != nil {
		return protocol.Check{}, err
	}
	r := a.rules.Check(policy.Query{Surface: q.Surface, Value: q.Value, Tool: q.Tool, Cwd: cmp.Or(q.Cwd, a.call.Cwd), Home: a.call.Home,
		Platform: a.call.Platform, Paths: a.call.Paths, WithPaths: true})
	return protocol.Check{State: wireAction(r.State), MatchedPattern: r.MatchedPattern, Origin: r.Origin,
		Reason: protocol.Safe(r.Reason, protocol.MaxReason, true)}, nil
}

// wireAction is the action's word on the wire; no action is written as deny.
func wireAction(a policy.Action) protocol.Action {
	switch a {
	case policy.Allow:
		return protocol.ActionAllow
	case policy.Ask:
		return protocol.ActionAsk
	default:
		return protocol.ActionDeny
	}
}

// kept is a review log that is kept until the case is scored.
type kept struct {
	mu      sync.Mutex
	records []record
	over    *atomic.Bool
}

type record struct {
	event  string
	fields jsontext.Value
}

// Review implements link.Log.
func (k *kept) Review(ctx context.Context, event string, fields any) error {
	return k.keep(ctx, event, fields)
}

// Debug implements link.Log.
func (k *kept) Debug(ctx context.Context, event string, fields any) error {
	return k.keep(ctx, event, fields)
}

func (k *kept) keep(ctx context.Context, event string, fields any) error {
	if k.over.Load() {
		return link.ErrOver
	}
	if err := cmp.Or(ctx.Err(), protocol.CheckEvent(event)); err != nil {
		return err
	}
	raw, err := json.Marshal(fields, json.Deterministic(true))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", link.ErrFields, err)
	case len(raw) > link.MaxFields:
		return fmt.Errorf("%w: %d bytes, the limit is %d", link.ErrFields, len(raw), link.MaxFields)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records = append(k.records, record{event, raw})
	return nil
}

// causeNone is the word for a defer of which no record says why.
const causeNone = "not-its-business"

// The records that say why a link deferred.
const (
	eventDecision     = "model_judge.decision"
	eventShortCircuit = "model_judge.short_circuit"
)

// cause is the one word for why a link deferred: the last record's finest, else
// the verdict's own failure.
func (k *kept) cause(v protocol.Verdict) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range slices.Backward(k.records) {
		if r.event != eventDecision && r.event != eventShortCircuit {
			continue // another link's record may hold anything
		}
		var said struct {
			ModelReason string `json:"modelReason"`
			DeferReason string `json:"deferReason"`
			Reason      string `json:"reason"`
		}
		_ = json.Unmarshal(r.fields, &said)
		if word := cmp.Or(said.ModelReason, said.DeferReason, said.Reason); protocol.ValidToken(word) {
			return word
		}
	}
	return cmp.Or(v.Failure, causeNone)
}
