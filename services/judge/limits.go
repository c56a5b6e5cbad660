package judge

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/services/judge/denials"
)

// BreakerConfig says when a model that fails is left alone.
type BreakerConfig struct {
	Failures int     `json:"failures,omitempty" jsonschema:"minimum=1,maximum=1000,default=3" jsonschema_description:"So many failures in a row open the breaker."`
	Rate     float64 `json:"rate,omitempty" jsonschema:"exclusiveMinimum=0,maximum=1,default=0.5" jsonschema_description:"This share of failures opens it too, once enough calls (least) came back within the window."`
	Least    int     `json:"least,omitempty" jsonschema:"minimum=1,maximum=100000,default=10" jsonschema_description:"How many calls the rate is taken of at least."`
	WindowMS int     `json:"windowMs,omitempty" jsonschema:"minimum=1000,maximum=3600000,default=60000" jsonschema_description:"How far back the rate looks, in milliseconds."`
	OpenMS   int     `json:"openMs,omitempty" jsonschema:"minimum=100,maximum=3600000,default=60000" jsonschema_description:"How long the model is left alone, in milliseconds; then one call tries it."`
}

var defaultBreaker = BreakerConfig{Failures: 3, Rate: 0.5, Least: 10, WindowMS: 60_000, OpenMS: 60_000}

// UnmarshalJSONFrom reads over the defaults.
func (b *BreakerConfig) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain BreakerConfig
	p := plain(defaultBreaker)
	if err := json.UnmarshalDecode(dec, &p); err != nil {
		return err
	}
	*b = BreakerConfig(p)
	return nil
}

func (b *BreakerConfig) check() error {
	if b == nil {
		return nil
	}
	return firstOf(
		within("failures", between(b.Failures, 1, 1000)),
		within("rate", share(b.Rate)),
		within("least", between(b.Least, 1, 100_000)),
		within("windowMs", between(b.WindowMS, 1000, 3_600_000)),
		within("openMs", between(b.OpenMS, 100, 3_600_000)),
	)
}

// config is for a link that gives its model timeout. Half of it is what a call
// must have had for its timeout to count: asks that come with next to no time
// left must not take the link away from everybody else.
func (b *BreakerConfig) config(timeout time.Duration) llm.BreakerConfig {
	if b == nil {
		b = &defaultBreaker
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	return llm.BreakerConfig{Failures: b.Failures, Rate: b.Rate, Least: b.Least, Window: ms(b.WindowMS), Open: ms(b.OpenMS), Patience: timeout / 2}
}

// BudgetConfig says what a link may use: in all, and for one agent of it. A day
// is one in UTC. Each process counts for itself.
type BudgetConfig struct {
	CallsPerMinute      int     `json:"callsPerMinute,omitempty" jsonschema:"minimum=0,maximum=1000000" jsonschema_description:"Questions to the model in a minute; 0 is no bound."`
	AgentCallsPerMinute int     `json:"agentCallsPerMinute,omitempty" jsonschema:"minimum=0,maximum=1000000" jsonschema_description:"Those for one agent."`
	DollarsPerDay       float64 `json:"dollarsPerDay,omitempty" jsonschema:"minimum=0,maximum=1000000" jsonschema_description:"US dollars in a day (UTC), by price; 0 is no bound."`
	AgentDollarsPerDay  float64 `json:"agentDollarsPerDay,omitempty" jsonschema:"minimum=0,maximum=1000000" jsonschema_description:"Those for one agent."`
}

func (b *BudgetConfig) check(p *PriceConfig) error {
	if b == nil {
		return nil
	}
	if (b.DollarsPerDay > 0 || b.AgentDollarsPerDay > 0) && (p == nil || p.Input <= 0 && p.Output <= 0) {
		return errors.New("a bound in dollars needs \"price\": without one nothing costs anything")
	}
	return firstOf(
		within("callsPerMinute", between(b.CallsPerMinute, 0, 1_000_000)),
		within("agentCallsPerMinute", between(b.AgentCallsPerMinute, 0, 1_000_000)),
		within("dollarsPerDay", amount(b.DollarsPerDay)),
		within("agentDollarsPerDay", amount(b.AgentDollarsPerDay)),
	)
}

func (b *BudgetConfig) config() llm.Budget {
	if b == nil {
		return llm.Budget{}
	}
	return llm.Budget{
		CallsPerMinute: b.CallsPerMinute, AgentCallsPerMinute: b.AgentCallsPerMinute,
		DollarsPerDay: b.DollarsPerDay, AgentDollarsPerDay: b.AgentDollarsPerDay,
	}
}

// PriceConfig is what the model costs, in US dollars for a million tokens.
type PriceConfig struct {
	Input  float64 `json:"inputPerMillion,omitempty" jsonschema:"minimum=0,maximum=1000000" jsonschema_description:"US dollars for a million tokens that the model reads."`
	Output float64 `json:"outputPerMillion,omitempty" jsonschema:"minimum=0,maximum=1000000" jsonschema_description:"US dollars for a million tokens that it writes."`
}

func (p *PriceConfig) check() error {
	if p == nil {
		return nil
	}
	return firstOf(within("inputPerMillion", amount(p.Input)), within("outputPerMillion", amount(p.Output)))
}

func (p *PriceConfig) config() llm.Price {
	if p == nil {
		return llm.Price{}
	}
	return llm.Price{Input: p.Input, Output: p.Output}
}

// DenialsConfig bounds the denials that a link remembers.
type DenialsConfig struct {
	Entries int     `json:"entries,omitempty" jsonschema:"minimum=0,maximum=1000000,default=1024" jsonschema_description:"How many denials are remembered; 0 remembers none."`
	Minutes float64 `json:"minutes,omitempty" jsonschema:"minimum=0,maximum=1440,default=10" jsonschema_description:"For how long; 0 remembers none."`
}

var defaultDenials = DenialsConfig{Entries: 1024, Minutes: 10}

// UnmarshalJSONFrom reads over the defaults.
func (d *DenialsConfig) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain DenialsConfig
	p := plain(defaultDenials)
	if err := json.UnmarshalDecode(dec, &p); err != nil {
		return err
	}
	*d = DenialsConfig(p)
	return nil
}

func (d *DenialsConfig) check() error {
	if d == nil {
		return nil
	}
	if !(d.Minutes >= 0 && d.Minutes <= 24*60) {
		return within("minutes", fmt.Errorf("%v is out of bounds: want 0 to %d", d.Minutes, 24*60))
	}
	return within("entries", between(d.Entries, 0, 1_000_000))
}

func (d *DenialsConfig) cache() *denials.Cache {
	if d == nil {
		d = &defaultDenials
	}
	return denials.New(d.Entries, time.Duration(d.Minutes*float64(time.Minute)))
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func within(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", key, err)
}

func share(f float64) error {
	if f > 0 && f <= 1 {
		return nil
	}
	return fmt.Errorf("%v is out of bounds: want more than 0, and 1 at most", f)
}

func amount(f float64) error {
	if f >= 0 && f <= 1e6 && !math.IsNaN(f) {
		return nil
	}
	return fmt.Errorf("%v is out of bounds: want 0 to 1000000", f)
}
