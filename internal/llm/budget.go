package llm

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Budget bounds what a judge may use, and what of that for one agent. 0 is no
// bound.
type Budget struct {
	CallsPerMinute      int
	AgentCallsPerMinute int
	// DollarsPerDay are US dollars a day in UTC, by Price; without a price nothing
	// costs anything.
	DollarsPerDay      float64
	AgentDollarsPerDay float64
}

// Price is in US dollars for a million tokens.
type Price struct {
	Input  float64
	Output float64
}

// Of is what u costs, in US dollars.
func (p Price) Of(u Usage) float64 {
	return max(float64(u.Input)*p.Input+float64(u.Output)*p.Output, 0) / 1e6
}

// maxAgents bounds the agents that are counted apart. Those beyond it share one
// account: an agent that could push another out would begin anew by it.
const maxAgents = 4096

// ledger keeps the accounts of one day. It is safe for concurrent use.
type ledger struct {
	budget Budget
	price  Price
	now    func() time.Time

	mu     sync.Mutex
	day    int64
	judge  *account
	agents map[string]*account
	others *account
}

// account is guarded by its ledger's mutex.
type account struct {
	limit float64 // +Inf for none
	spent float64
	// held is what calls under way may still cost.
	held  float64
	calls *rate.Limiter // nil for no bound
}

func newLedger(b Budget, p Price, now func() time.Time) *ledger {
	l := &ledger{budget: b, price: p, now: now}
	l.turn(now())
	return l
}

// turn begins a new day if one has begun. A clock that was set back does not: it
// would hand out the same day's money twice.
func (l *ledger) turn(now time.Time) {
	day := now.Unix() / (24 * 60 * 60)
	if l.judge != nil && day <= l.day {
		return
	}
	l.day = day
	l.judge = newAccount(l.budget.DollarsPerDay, l.budget.CallsPerMinute)
	l.others = newAccount(l.budget.AgentDollarsPerDay, l.budget.AgentCallsPerMinute)
	l.agents = make(map[string]*account)
}

func newAccount(dollars float64, calls int) *account {
	a := &account{limit: math.Inf(1)}
	if dollars > 0 {
		a.limit = dollars
	}
	if calls > 0 {
		a.calls = rate.NewLimiter(rate.Limit(float64(calls)/60), calls)
	}
	return a
}

func (l *ledger) agent(name string) *account {
	if a, ok := l.agents[name]; ok {
		return a
	}
	if len(l.agents) >= maxAgents {
		return l.others
	}
	a := newAccount(l.budget.AgentDollarsPerDay, l.budget.AgentCallsPerMinute)
	l.agents[name] = a
	return a
}

// admit counts one Ask of agent, or refuses it.
func (l *ledger) admit(agent string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.turn(now)
	a := l.agent(agent)
	for _, of := range []struct {
		account *account
		who     string
	}{{a, "the agent"}, {l.judge, "the judge"}} {
		switch {
		case of.account.spent >= of.account.limit:
			return fmt.Errorf("%w: %s has spent $%.2f today", ErrOverBudget, of.who, of.account.limit)
		case of.account.calls != nil && of.account.calls.TokensAt(now) < 1:
			return fmt.Errorf("%w: %s has asked too often this minute", ErrOverBudget, of.who)
		}
	}
	for _, of := range []*account{a, l.judge} { // both have room: neither pays for a refusal by the other
		if of.calls != nil {
			of.calls.AllowN(now, 1)
		}
	}
	return nil
}

// purse is the meter of one Ask.
type purse struct {
	ledger *ledger
	agent  string
	spent  func(Usage)
}

// reserve implements meter.
func (p purse) reserve(most Usage) (func(Usage), error) {
	l := p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(l.now())
	// Of the day on which the call began, whenever it ends.
	accounts, cost := []*account{l.agent(p.agent), l.judge}, l.price.Of(most)
	for _, a := range accounts {
		if a.spent+a.held+cost > a.limit {
			return nil, fmt.Errorf("%w: one more call could cost $%.4f, more than is left today", ErrOverBudget, cost)
		}
	}
	for _, a := range accounts {
		a.held += cost
	}
	return func(used Usage) {
		l.mu.Lock()
		for _, a := range accounts {
			a.held -= cost
			a.spent += l.price.Of(used)
		}
		l.mu.Unlock()
		p.spent(used)
	}, nil
}

// today is what the judge spent so far today.
func (l *ledger) today() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(l.now())
	return l.judge.spent
}
