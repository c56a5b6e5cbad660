package typopath

import (
	"context"

	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge/journal"
)

// EventDecision is written once for each ask whose path matched a pattern, at
// review level: a judge that defers everything must not look idle.
const EventDecision = journal.EventDecision

func (j *Judge) record(ctx context.Context, r link.Request, hit match, f finding) {
	d := journal.Decision{Path: hit.path, MatchedPattern: hit.pattern, Cached: f.cached}
	d.Put(f.info, f.err)
	d.Judged(f.verdict(), string(f.cause))
	j.out.Decision(ctx, r, d)
}

func (j *Judge) shortCircuit(ctx context.Context, r link.Request, path, miss string) protocol.Verdict {
	j.out.ShortCircuit(ctx, r, &path, miss)
	if miss == missTooLong {
		j.log.Warn("a typo pattern took too long and was given up; make it simpler", "ask", r.Ask.ID)
		return link.Unable(miss, "a typo pattern took too long")
	}
	return link.Defer("no typing mistake in sight: " + miss)
}
