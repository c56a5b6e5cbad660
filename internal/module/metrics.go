package module

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts what modules say and how they fail. The labels are words of
// closed sets: nothing that a module or an agent could fill.
type metrics struct {
	verdicts, failures, workers, loads *prometheus.CounterVec
	took                               prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	m := &metrics{
		verdicts: counter("assent_module_verdicts_total", "What the checks of permission modules said of calls.", "verdict"),
		failures: counter("assent_module_failures_total", "Checks that could say nothing.", "reason"),
		workers:  counter("assent_module_workers_ended_total", "Worker processes that ended under a check.", "reason"),
		loads:    counter("assent_module_load_failures_total", "Modules that did not load.", "level"),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "assent_module_seconds", Help: "Time that the checks of a call took.",
			Buckets: []float64{.00005, .0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .5, 1, 5},
		}),
	}
	if r != nil {
		r.MustRegister(m.verdicts, m.failures, m.workers, m.loads, m.took)
	}
	return m
}

func (m *metrics) verdict(v *Verdict) {
	word := v.Decision.String()
	if v.Failure != "" {
		word = "failure"
	}
	m.verdicts.WithLabelValues(word).Inc()
	m.took.Observe(v.Took.Seconds())
}

func (m *metrics) worker(reason string) { m.workers.WithLabelValues(reason).Inc() }

func (m *metrics) loadFailed(l Level) {
	if !l.Valid() {
		l = "unknown"
	}
	m.loads.WithLabelValues(string(l)).Inc()
}

// noteFailure counts and logs a check that could say nothing.
func (e *Engine) noteFailure(c Check, err error) {
	reason := "error"
	switch {
	case errors.Is(err, errTime):
		reason = "time"
	case errors.Is(err, errDied):
		reason = "died"
	case errors.Is(err, errAnswer):
		reason = "answer"
	case errors.Is(err, errNoWorker), errors.Is(err, ErrClosed):
		reason = "worker"
	}
	e.metrics.failures.WithLabelValues(reason).Inc()
	e.cfg.Logger.Warn("a check of a permission module failed", "check", c.ID(), "version", c.Version, "err", line(err.Error(), maxFailure))
}
