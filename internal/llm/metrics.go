package llm

import (
	"github.com/prometheus/client_golang/prometheus"
)

// guardMetrics count what went through a Guard. Labels are words of this
// package and the operator's name for the link, never a model's or an agent's.
type guardMetrics struct {
	asks    *prometheus.CounterVec
	seconds prometheus.Histogram
	tokens  *prometheus.CounterVec
	dollars prometheus.Counter
	price   Price
}

func newGuardMetrics(c GuardConfig, state func() GuardState) *guardMetrics {
	m := &guardMetrics{
		asks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "assent_judge_model_asks_total",
			Help: "Questions to a model by their end: answered, or why there was no answer.",
		}, []string{"end"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "assent_judge_model_seconds",
			Help:    "From the first attempt to the last answer, of questions that left.",
			Buckets: []float64{.1, .25, .5, 1, 2, 3, 5, 8, 15, 30},
		}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "assent_judge_model_tokens_total",
			Help: "Tokens used, or the most that can have been where the server did not say.",
		}, []string{"direction"}),
		dollars: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "assent_judge_model_dollars_total",
			Help: "US dollars spent, by the configured price.",
		}),
		price: c.Price,
	}
	if c.Metrics == nil {
		return m
	}
	r := prometheus.WrapRegistererWith(prometheus.Labels{"link": c.Name}, c.Metrics)
	r.MustRegister(m.asks, m.seconds, m.tokens, m.dollars)
	for _, word := range []string{BreakerClosed, BreakerHalfOpen, BreakerOpen} {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "assent_judge_breaker",
			Help:        "1 for the state that the model's breaker is in.",
			ConstLabels: prometheus.Labels{"state": word},
		}, func() float64 {
			if state().Breaker == word {
				return 1
			}
			return 0
		}))
	}
	return m
}

func (m *guardMetrics) count(r reply) {
	end := Reason(r.err)
	if end == "" {
		end = "answered"
	}
	m.asks.WithLabelValues(end).Inc()
	if r.info.Attempts > 0 {
		m.seconds.Observe(r.info.Latency.Seconds())
	}
}

func (m *guardMetrics) spent(u Usage) {
	m.tokens.WithLabelValues("in").Add(float64(u.Input))
	m.tokens.WithLabelValues("out").Add(float64(u.Output))
	m.dollars.Add(m.price.Of(u))
}
