package gate

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/assent-dev/assent/pkg/protocol"
)

// newFailSafe counts what the gate did because something was missing, late or
// broken: a fail-safe is never silent.
func newFailSafe(r prometheus.Registerer) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "assent_gate_fail_safe_total",
		Help: "Deferred, denied or delayed because something was missing, late or broken.",
	}, []string{"what", "reason"})
	if r != nil {
		r.MustRegister(c)
	}
	return c
}

// count counts one. Words that a judge chose are counted together: a label is
// not a judge's to fill.
func (g *Gate) count(what, reason string) {
	if what == "link" {
		switch reason {
		case protocol.FailureUnregistered, protocol.FailureTimeout, protocol.FailureError, protocol.FailureMalformed, protocol.FailureExpired:
		default:
			reason = "own_word"
		}
	}
	g.failSafe.WithLabelValues(what, reason).Inc()
}

// fail counts, logs and records a failure of the gate's own.
func (g *Gate) fail(what, message, id string, err error) {
	g.count(what, "error")
	g.log.Error(message, "ask", id, "err", err)
	if protocol.CheckAskID(id) == nil {
		g.review.gateError(id, what, err)
	}
}
