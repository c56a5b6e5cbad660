package cli

import (
	"slices"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge"
)

// linkState is what one running link says of its model.
type linkState struct {
	// text is for people; "" when it says nothing.
	text string
	// rank is how bad that is: the higher, the worse.
	rank    int
	breaker string
}

// How bad a state is. From rankFailing on the link gets no verdict out of its model.
const (
	rankSilent = iota
	rankOK
	rankUntested
	rankFailing
)

// breakerWorse are the states of a circuit breaker, from well to worst.
var breakerWorse = []string{"", llm.BreakerClosed, llm.BreakerHalfOpen, llm.BreakerOpen}

// stateOf reads what a link announces of its model; whatever is not known is shown
// as it is, without what could redraw a screen.
func stateOf(meta map[string]string) linkState {
	said := func(key string) string { return protocol.Safe(meta[key], 4*shortText, false) }
	s := linkState{breaker: said(judge.StateBreaker)}
	if !slices.Contains(breakerWorse, s.breaker) {
		s.breaker = ""
	}
	model, failing := said(judge.StateModel), said(judge.StateFailing)
	switch {
	case s.breaker == llm.BreakerOpen:
		s.text, s.rank = "breaker open", rankFailing
		if failing != "" {
			s.text += ", " + failing
		}
	case failing != "":
		s.text, s.rank = "fails safe "+failing, rankFailing
	case model == judge.StateOK:
		s.text, s.rank = model, rankOK
	case model == judge.StateUntested:
		s.text, s.rank = model, rankUntested
	case model != "":
		s.text, s.rank = "self-test: "+model, rankFailing
	}
	return s
}

// add takes in what one of the running links says.
func (r *linkRow) add(s linkState) {
	if s.rank >= rankFailing {
		r.Failing++
	}
	if s.rank > r.worst {
		r.worst, r.State = s.rank, s.text
	}
	if slices.Index(breakerWorse, s.breaker) > slices.Index(breakerWorse, r.Breaker) {
		r.Breaker = s.breaker
	}
}
