package auditor

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/pkg/protocol"
)

func (q Query) kind() Kind {
	if q.Kind == "" {
		return KindDecision
	}
	return q.Kind
}

// Check refuses a query that nothing could match.
func (q Query) Check() error {
	if q.Agent != "" {
		if err := protocol.CheckToken("agent", q.Agent); err != nil {
			return err
		}
	}
	if q.kind() == KindReview && (q.Agent != "" || q.Surface != "" || q.Result.Valid() || q.Outcome != "") {
		return fmt.Errorf("%w: records of the review log carry no agent, surface, result or outcome: look up one ask by its id instead", protocol.ErrField)
	}
	if q.Limit < 0 {
		return fmt.Errorf("%w: the limit is negative", protocol.ErrField)
	}
	return nil
}

// filterOf is the part of q that the server can answer from its index.
func (r *Reader) filterOf(q Query) (string, error) {
	if err := q.Check(); err != nil {
		return "", err
	}
	if q.kind() == KindReview {
		return r.filter(KindReview, ">"), nil
	}
	agent, surface, result := "*", "*", "*"
	if q.Agent != "" {
		agent = q.Agent
	}
	if q.Surface != "" {
		surface = protocol.TokenOr(q.Surface)
	}
	if q.Result.Valid() {
		result = q.Result.String()
	}
	return r.filter(KindDecision, "*", agent, surface, result), nil
}

// filter is a subject of kind on this node. The tokens are checked, or
// wildcards.
func (r *Reader) filter(kind Kind, tokens ...string) string {
	return strings.Join(append([]string{protocol.SubjectRoot, r.node, string(kind)}, tokens...), ".")
}

// matches checks what the subject does not tell. A broken record, of which
// nothing else is certain, is shown to whoever asks for nothing of its body.
func (q Query) matches(rec *Record) bool {
	if rec.At.Before(q.Since) {
		return false
	}
	bodyMatters := q.Outcome != "" || q.Surface != "" && !protocol.ValidToken(q.Surface)
	if !bodyMatters {
		return true
	}
	d, err := rec.Decision()
	if err != nil {
		return false
	}
	return (q.Outcome == "" || d.Outcome == q.Outcome) && (q.Surface == "" || d.Surface == q.Surface)
}
