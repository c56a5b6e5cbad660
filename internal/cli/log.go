package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/auditor"
)

// logFlags are the flags of `assent log` as they were typed.
type logFlags struct {
	agent, result, outcome, surface, since string

	limit                  int
	follow, review, asJSON bool
	all                    bool
}

// Log is `assent log`: the record, read from the streams themselves.
func Log(env *Env) *cobra.Command {
	var t target
	var f logFlags
	cmd := &cobra.Command{
		Use:   "log [ASK-ID]",
		Short: "What was decided, by whom and why",
		Long: "Shows the record of a node: its newest decisions, the newest last, or with an ask id everything\n" +
			"that is known about this one ask. At least six of the first or last characters of an id will do,\n" +
			"where they fit one of the newest records alone. It reads the streams as an auditor, not the\n" +
			"auditor's files.\n\n" +
			"The test calls of `assent doctor` are left out unless --all or --json is given. A narrow terminal\n" +
			"shows the ends of the ids. Times are in the zone of this machine, which the heading names; --json\n" +
			"has UTC.\n\n" +
			"--since takes a time span (90s, 15m, 24h) or a moment (2026-01-31T08:00:00Z).",
		Example: "  assent log --result deny --since 1h\n  assent log 01JD0000000000000000000000\n  assent log --follow --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return wrongArgs(cmd, "at most one ask id", args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				var err error
				if args[0], err = typedID(args[0]); err != nil {
					return usagef("%w", err)
				}
			}
			q, err := f.query(time.Now(), args)
			if err != nil {
				return err
			}
			return runLog(cmd.Context(), env, t, q, f, args)
		},
	}
	t.flags(cmd.Flags())
	f.add(cmd)
	return cmd
}

func (f *logFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.agent, "agent", "", "only asks of this agent")
	fl.StringVar(&f.result, "result", "", "only allow, or only deny")
	fl.StringVar(&f.outcome, "outcome", "", "only this outcome, as denied_by_rule or expired")
	fl.StringVar(&f.surface, "surface", "", "only this surface, as bash or external_directory")
	fl.StringVar(&f.since, "since", "", "only what was recorded since then")
	fl.IntVar(&f.limit, "limit", 50, "how many records at most, the newest; 0 for all")
	fl.BoolVar(&f.follow, "follow", false, "go on with what is recorded from now on, until interrupted")
	fl.BoolVar(&f.review, "review", false, "the review log instead of the decisions")
	fl.BoolVar(&f.all, "all", false, "also the test calls of assent doctor")
	fl.BoolVar(&f.asJSON, "json", false, "one record a line, as the auditor writes them")
}

// query turns the flags into a question, or says what is wrong with them.
func (f *logFlags) query(now time.Time, args []string) (auditor.Query, error) {
	q := auditor.Query{Agent: f.agent, Surface: f.surface, Limit: f.limit}
	if len(args) == 1 {
		filters := f.agent + f.surface + f.result + f.outcome + f.since
		if f.follow || f.review || filters != "" {
			return q, usagef("an ask id shows everything about this ask; leave the other flags out, except --json")
		}
	}
	if f.review {
		q.Kind = auditor.KindReview
	}
	if f.result != "" {
		if err := q.Result.UnmarshalText([]byte(f.result)); err != nil {
			return q, usagef("--result %q: want one of allow, deny", f.result)
		}
	}
	if f.limit < 0 {
		return q, usagef("--limit %d: want a number of records, or 0 for all", f.limit)
	}
	var err error
	if q.Outcome, err = outcomeFlag(f.outcome); err != nil {
		return q, err
	}
	if q.Since, err = sinceFlag(f.since, now); err != nil {
		return q, err
	}
	if err := q.Check(); err != nil {
		return q, usagef("%w", err)
	}
	return q, nil
}

// outcomes are the words that --outcome takes. A typo would find nothing, and
// nothing reads like "it never happened".
var outcomes = []protocol.Outcome{
	protocol.AllowedByRule, protocol.AllowedByGrant, protocol.AllowedByYolo, protocol.AllowedByLink, protocol.AllowedByHuman,
	protocol.DeniedByRule, protocol.DeniedByModule, protocol.DeniedByLink, protocol.DeniedByHuman,
	protocol.NoApprover, protocol.Expired, protocol.Cancelled, protocol.Frozen, protocol.RateLimited, protocol.Unavailable, protocol.Invalid,
}

func outcomeFlag(s string) (protocol.Outcome, error) {
	if o := protocol.Outcome(s); s == "" || slices.Contains(outcomes, o) {
		return o, nil
	}
	words := make([]string, len(outcomes))
	for i, o := range outcomes {
		words[i] = string(o)
	}
	return "", usagef("--outcome %q is none: want one of %s", s, strings.Join(words, ", "))
}

func sinceFlag(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at, nil
	}
	return time.Time{}, usagef("--since %q: want a time span as 15m or 24h, or a moment as 2026-01-31T08:00:00Z", s)
}

func runLog(ctx context.Context, env *Env, t target, q auditor.Query, f logFlags, args []string) error {
	p, err := t.resolve(env, protocol.RoleAuditor)
	if err != nil {
		return err
	}
	log := (&logging{quiet: true}).logger(env)
	nc, err := bus.Connect(ctx, bus.Config{URL: p.NATS, Creds: p.Creds, Role: protocol.RoleAuditor, Logger: log})
	if err != nil {
		return err
	}
	defer nc.Close()
	r, err := auditor.NewReader(nc, p.Node)
	if err != nil {
		return err
	}
	show := f.shower(env)
	if len(args) == 1 {
		return logAsk(ctx, r, args[0], show)
	}
	newest, err := f.newest(ctx, r, q)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return unprepared(err)
	}
	for _, rec := range newest.records {
		if err := show.line(rec); err != nil {
			return err
		}
	}
	if f.follow {
		return r.Follow(ctx, q, newest.end, log, func(rec auditor.Record) error {
			if f.hides(rec) {
				return nil
			}
			return show.line(rec)
		})
	}
	if len(newest.records) == 0 {
		fmt.Fprintln(env.Stderr, "assent: no record matches"+newest.hint())
	}
	return nil
}

// newest is the end of the record, as far as it is shown.
type newest struct {
	records []auditor.Record
	hidden  int
	end     uint64
}

func (n newest) hint() string {
	if n.hidden == 0 {
		return ""
	}
	return fmt.Sprintf(" but %s of the doctor: --all shows them", count(n.hidden, "test call"))
}

// newest reads as many records as are to be shown, further back where some of
// them are not.
func (f *logFlags) newest(ctx context.Context, r *auditor.Reader, q auditor.Query) (newest, error) {
	limit := q.Limit
	for {
		records, end, err := r.Last(ctx, q)
		if err != nil {
			return newest{}, err
		}
		shown := slices.DeleteFunc(slices.Clone(records), f.hides)
		if limit == 0 || len(shown) >= limit || len(records) < q.Limit {
			n := newest{records: shown, hidden: len(records) - len(shown), end: end}
			if limit > 0 && len(shown) > limit {
				n.records = shown[len(shown)-limit:]
			}
			return n, nil
		}
		q.Limit *= 4
	}
}

// hides says whether rec is a test call of the doctor's, which nobody has made.
func (f *logFlags) hides(rec auditor.Record) bool {
	if f.all || f.asJSON || rec.Kind != auditor.KindDecision || rec.Broken != "" {
		return false
	}
	d, err := rec.Decision()
	return err == nil && d.Tool == policy.ToolCanary && d.Result == protocol.FinalDeny
}

func logAsk(ctx context.Context, r *auditor.Reader, ask string, show shower) error {
	ask, err := recordedID(ctx, r, ask)
	if err != nil {
		return err
	}
	records, err := r.Of(ctx, ask)
	if err != nil {
		return unprepared(err)
	}
	if len(records) == 0 {
		return fmt.Errorf("no record of ask %s on this node: it waits (see `assent pending`), or it was never asked here", ask)
	}
	for _, rec := range records {
		if err := show.whole(rec); err != nil {
			return err
		}
	}
	return nil
}

// idsAmong is how many of the newest decisions are looked through for an id that
// was typed in part.
const idsAmong = 1000

// recordedID completes an id that was typed in part, from the newest records.
func recordedID(ctx context.Context, r *auditor.Reader, id string) (string, error) {
	if protocol.CheckAskID(id) == nil {
		return id, nil
	}
	records, _, err := r.Last(ctx, auditor.Query{Limit: idsAmong})
	if err != nil {
		return "", unprepared(err)
	}
	var ids []string
	for _, rec := range records {
		if rec.Ask != "" && !slices.Contains(ids, rec.Ask) {
			ids = append(ids, rec.Ask)
		}
	}
	return oneID(id, ids, fmt.Sprintf("among the newest %d decisions: name it whole", idsAmong))
}
