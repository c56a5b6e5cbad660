package llm

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sony/gobreaker/v2"
)

// GuardConfig is what a Guard goes by. All of it may be left out.
type GuardConfig struct {
	// Name is the link's, for metrics.
	Name    string
	Breaker BreakerConfig
	Budget  Budget
	Price   Price
	// Now is the budget's clock; time.Now without it.
	Now func() time.Time
	// Metrics takes the Guard's collectors, each with the label link. One Guard of
	// a name fits into a registry.
	Metrics prometheus.Registerer
	// Changed is told how things stand after the breaker changed, by the Ask that
	// saw it, one at a time: it must not block, and must not Ask.
	Changed func(GuardState)
}

// Guard stands before a provider of one model: it leaves a model alone that
// fails, and refuses what a judge or an agent has no budget for, both at once
// and without a call. Use NewGuard. It is safe for concurrent use.
type Guard struct {
	provider Provider
	config   GuardConfig
	breaker  *gobreaker.CircuitBreaker[reply]
	ledger   *ledger
	metrics  *guardMetrics

	mu    sync.Mutex
	state GuardState
	// changed holds back the news until the breaker is unlocked.
	changed atomic.Bool
	telling sync.Mutex
}

// The states of a breaker.
const (
	BreakerClosed   = "closed"
	BreakerOpen     = "open"
	BreakerHalfOpen = "half-open"
)

// GuardState is what a Guard can say of itself.
type GuardState struct {
	// Breaker is BreakerClosed, BreakerOpen or BreakerHalfOpen, and Since when.
	Breaker string    `json:"breaker"`
	Since   time.Time `json:"since"`
	// Failures counts the failures in a row, and Reason is the last one's word; ""
	// when there are none.
	Failures int    `json:"failures"`
	Reason   string `json:"reason"`
	// SpentToday and Limit are US dollars, of the judge; Limit 0 is none.
	SpentToday float64 `json:"spent_today"`
	Limit      float64 `json:"limit"`
}

// NewGuard returns a Guard that asks p.
func NewGuard(p Provider, c GuardConfig) *Guard {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Breaker = c.Breaker.orDefault()
	g := &Guard{provider: p, config: c, ledger: newLedger(c.Budget, c.Price, c.Now)}
	g.state = GuardState{Breaker: BreakerClosed, Since: time.Now()}
	g.breaker = newBreaker(c.Breaker, g.inARow, g.turned)
	g.metrics = newGuardMetrics(c, g.State)
	return g
}

// Ask implements Provider. The agent that ctx names pays for it: see WithAgent.
func (g *Guard) Ask(ctx context.Context, r Request) (ToolCall, Info, error) {
	out, err := g.breaker.Execute(func() (reply, error) { return g.ask(ctx, r) })
	if !out.ran && err != nil {
		out = reply{info: Describe(g.provider, r.Model), err: g.leftAlone()}
	}
	g.metrics.count(out)
	g.tell()
	return out.call, out.info, out.err
}

func (g *Guard) ask(ctx context.Context, r Request) (reply, error) {
	agent := AgentOf(ctx)
	if err := g.ledger.admit(agent); err != nil {
		return reply{info: Describe(g.provider, r.Model), err: err, ran: true}, errIgnored
	}
	within, time := withMeter(ctx, purse{g.ledger, agent, g.metrics.spent}), given(ctx)
	out := reply{ran: true}
	out.call, out.info, out.err = g.provider.Ask(within, r)
	against := g.config.Breaker.against(out.err, time)
	g.note(out.err, against)
	return out, against
}

// note keeps the failures in a row for State: the breaker forgets them when it
// opens.
func (g *Guard) note(err, against error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case against == nil && g.state.Breaker != BreakerOpen: // a late answer does not hide why it is open
		g.state.Failures, g.state.Reason = 0, ""
	case against == errFailed:
		g.state.Failures++
		g.state.Reason = Reason(err)
	}
}

func (g *Guard) inARow() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state.Failures
}

func (g *Guard) turned(to gobreaker.State) {
	g.mu.Lock()
	g.state.Breaker, g.state.Since = to.String(), time.Now()
	g.mu.Unlock()
	g.changed.Store(true)
}

// tell passes a change on. The lock keeps an older state from being told after
// a newer one.
func (g *Guard) tell() {
	if g.config.Changed == nil || !g.changed.Load() {
		return
	}
	g.telling.Lock()
	defer g.telling.Unlock()
	if g.changed.Swap(false) {
		g.config.Changed(g.State())
	}
}

// State is how things stand now.
func (g *Guard) State() GuardState {
	g.breaker.State() // it opens by half only when somebody looks
	g.mu.Lock()
	s := g.state
	g.mu.Unlock()
	s.SpentToday, s.Limit = g.ledger.today(), g.config.Budget.DollarsPerDay
	return s
}

func (g *Guard) leftAlone() error {
	s := g.State()
	if s.Breaker == BreakerOpen {
		left := time.Until(s.Since.Add(g.config.Breaker.Open)).Round(time.Second)
		return fmt.Errorf("%w: %s, %d in a row; it is tried again in %s", ErrBreakerOpen, s.Reason, s.Failures, left)
	}
	return fmt.Errorf("%w: %s; one call is trying it just now", ErrBreakerOpen, s.Reason)
}

// Describe implements Describer.
func (g *Guard) Describe(model string) Info { return Describe(g.provider, model) }

// Describer is a provider that knows its Info without a call.
type Describer interface{ Describe(model string) Info }

// Describe is the Info of a call of p for model that is not made; only the
// model's name if p does not know.
func Describe(p Provider, model string) Info {
	if d, ok := p.(Describer); ok {
		return d.Describe(model)
	}
	return Info{ModelID: model}
}
