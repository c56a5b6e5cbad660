package judge

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// What a judge says of a link beside its health, for those who list running links.
const (
	// StateModel is StateOK once the model has answered, StateUntested before, or
	// why the self-test failed, beginning with the word of llm.Reason.
	StateModel = "model"
	// StateFailing is since when every ask that needed the model was deferred
	// without it, and the word for the last one's reason; not there while it answers.
	StateFailing = "failing"
	// StateBreaker is the state of the model's circuit breaker: see llm.GuardState.
	StateBreaker = "breaker"

	StateOK       = "ok"
	StateUntested = "untested"
)

const (
	// failingAfter is how many asks in a row must fail safe before that is said.
	failingAfter = 3
	// loudEvery is how often it is said in the log, as long as it goes on.
	loudEvery = time.Minute

	maxStateText = 200
)

// vitals is how a link does: what its self-test said, and whether it judges or
// fails safe. A judge that defers everything looks like one that finds nothing;
// this is what tells them apart. Safe for concurrent use.
type vitals struct {
	link    string
	log     *slog.Logger
	now     func() time.Time
	metrics *metrics
	// breaker is how the guard before the model stands.
	breaker func() llm.GuardState
	// changed tells that state is another; answeredOnce is closed when the model
	// has answered an ask.
	changed      chan struct{}
	answeredOnce chan struct{}

	mu    sync.Mutex
	model string
	since time.Time // of the first fail-safe in a row
	row   int
	why   string
	loud  time.Time
}

func newVitals(name string, log *slog.Logger, m *metrics) *vitals {
	return &vitals{
		link: name, log: log, now: time.Now, metrics: m, model: StateUntested,
		changed: make(chan struct{}, 1), answeredOnce: make(chan struct{}),
	}
}

// state is what the link says of itself: see link.State.
func (v *vitals) state() map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := map[string]string{StateModel: v.model}
	if v.breaker != nil {
		s[StateBreaker] = v.breaker().Breaker
	}
	if v.row >= failingAfter {
		s[StateFailing] = fmt.Sprintf("since %s: %s", v.since.UTC().Format(time.RFC3339), v.why)
	}
	return s
}

// tested notes what a self-test said.
func (v *vitals) tested(word string) {
	v.mu.Lock()
	v.model = protocol.Safe(word, maxStateText, false)
	v.mu.Unlock()
	v.tell()
}

// turned notes that the breaker opened, tries the model or closed.
func (v *vitals) turned(s llm.GuardState) {
	if s.Breaker == llm.BreakerOpen {
		v.log.Error("the model fails and is left alone; asks are deferred at once", "failures", s.Failures, "reason", s.Reason)
	} else {
		v.log.Info("the model's breaker changed", "state", s.Breaker)
	}
	v.tell()
}

// consultation is what became of the model within one ask.
type consultation struct {
	mu       sync.Mutex
	answered bool
	reason   string
}

type consultationKey struct{}

// watchModel notes what becomes of each question in the ask's consultation.
func (v *vitals) watchModel(p llm.Provider) llm.Provider { return watched{p} }

type watched struct{ llm.Provider }

// Ask implements llm.Provider.
func (w watched) Ask(ctx context.Context, r llm.Request) (llm.ToolCall, llm.Info, error) {
	call, info, err := w.Provider.Ask(ctx, r)
	if c, ok := ctx.Value(consultationKey{}).(*consultation); ok {
		c.mu.Lock()
		c.answered, c.reason = err == nil, llm.Reason(err)
		c.mu.Unlock()
	}
	return call, info, err
}

// watchLink counts what judge says and notes when it fails safe.
func (v *vitals) watchLink(judge link.Link) link.Link {
	return func(ctx context.Context, r link.Request) (protocol.Verdict, error) {
		c := &consultation{}
		verdict, err := judge(context.WithValue(llm.WithAgent(ctx, r.Ask.Agent), consultationKey{}, c), r)
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case err != nil:
			v.failed(r.Ask.ID, protocol.FailureError)
		case verdict.Failure != "" && c.reason != "":
			v.failed(r.Ask.ID, c.reason)
		case verdict.Failure != "":
			v.failed(r.Ask.ID, verdict.Failure)
		default:
			v.judged(verdict.Verdict, c.answered)
		}
		return verdict, err
	}
}

// judged notes a verdict; a model that answered ends a row of fail-safes, one
// that was not asked says nothing about it.
func (v *vitals) judged(choice protocol.Choice, byModel bool) {
	v.metrics.verdict(v.link, choice.String())
	if !byModel {
		return
	}
	v.mu.Lock()
	news := v.row >= failingAfter || v.model != StateOK
	if v.row >= failingAfter {
		v.log.Info("the link judges again", "after", v.now().Sub(v.since).Round(time.Second).String(), "asks", v.row)
	}
	v.row, v.why, v.loud = 0, "", time.Time{}
	if v.model != StateOK {
		if v.model != StateUntested && v.row < failingAfter {
			v.log.Info("the model answers now", "before", v.model)
		}
		v.model = StateOK
		close(v.once())
	}
	v.mu.Unlock()
	if news {
		v.tell()
	}
}

// once is answeredOnce, or a channel of nobody's when that is closed already.
func (v *vitals) once() chan struct{} {
	select {
	case <-v.answeredOnce:
		return make(chan struct{})
	default:
		return v.answeredOnce
	}
}

// breakerOpen is the word of an ask that was deferred for the breaker alone.
var breakerOpen = llm.Reason(llm.ErrBreakerOpen)

// failed notes an ask that was deferred because something was missing, late or
// broken. The first few may be a moment's; from then on it is said aloud, at most
// once a minute, until the model answers.
func (v *vitals) failed(ask, why string) {
	v.metrics.verdict(v.link, protocol.ChoiceDefer.String())
	v.metrics.fail(v.link, why)
	v.mu.Lock()
	now := v.now()
	if v.row == 0 {
		v.since = now
	}
	v.row++
	was := v.why
	if why != breakerOpen || was == "" {
		v.why = why // a breaker that is open says nothing of what opened it
	}
	news := v.row == failingAfter || v.row > failingAfter && v.why != was
	loud := v.row >= failingAfter && now.Sub(v.loud) >= loudEvery
	if loud {
		v.loud = now
	}
	row, since, why := v.row, v.since, v.why
	v.mu.Unlock()
	if loud {
		v.log.Error("the link fails safe: it judges nothing, and every ask goes on to the next judge or to a person",
			"asks", row, "since", since.UTC().Format(time.RFC3339), "reason", why, "ask", ask)
	}
	if news {
		v.tell()
	}
}

func (v *vitals) tell() {
	select {
	case v.changed <- struct{}{}:
	default: // told already, and not looked at yet
	}
}

// metrics counts what links say. The labels are the file's names and words of
// closed sets: nothing that an agent or a model could fill.
type metrics struct {
	verdicts, failSafe *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "assent_judge_verdicts_total", Help: "Verdicts of a link.",
		}, []string{"link", "verdict"}),
		failSafe: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "assent_judge_fail_safe_total", Help: "Asks that a link deferred because something was missing, late or broken.",
		}, []string{"link", "reason"}),
	}
	if r != nil {
		r.MustRegister(m.verdicts, m.failSafe)
	}
	return m
}

func (m *metrics) verdict(name, choice string) { m.verdicts.WithLabelValues(name, choice).Inc() }
func (m *metrics) fail(name, why string)       { m.failSafe.WithLabelValues(name, why).Inc() }
