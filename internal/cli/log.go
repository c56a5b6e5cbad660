package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/auditor"
)

// logFlags are the flags of `assent log` as they were typed.
type logFlags struct {
	agent, result, outcome, surface, since string

	limit                  int
	follow, review, asJSON bool
}

// Log is `assent log`: the record, read from the streams themselves.
func Log(env *Env) *cobra.Command {
	var t target
	var f logFlags
	cmd := &cobra.Command{
		Use:   "log [ASK-ID]",
		Short: "What was decided, by whom and why",
		Long: "Shows the record of a node: its newest decisions, the newest last, or with an ask id everything\n" +
			"that is known about this one ask. It reads the streams as an auditor, not the auditor's files.\n\n" +
			"--since takes a time span (90s, 15m, 24h) or a moment (2026-01-31T08:00:00Z).",
		Example: "  assent log --result deny --since 1h\n  assent log 01JD0000000000000000000000\n  assent log --follow --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s takes at most one ask id, got %d arguments: see `%s --help`", cmd.CommandPath(), len(args), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
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
		if err := protocol.CheckAskID(args[0]); err != nil {
			return q, usagef("%w", err)
		}
	}
	if f.review {
		q.Kind = auditor.KindReview
	}
	if f.result != "" {
		if err := q.Result.UnmarshalText([]byte(f.result)); err != nil {
			return q, usagef("--result: %w", err)
		}
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
	records, end, err := r.Last(ctx, q)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, rec := range records {
		if err := show.line(rec); err != nil {
			return err
		}
	}
	if f.follow {
		return r.Follow(ctx, q, end, log, show.line)
	}
	return nil
}

func logAsk(ctx context.Context, r *auditor.Reader, ask string, show shower) error {
	records, err := r.Of(ctx, ask)
	if err != nil {
		return err
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

// shower prints records: one line each, or everything about one.
type shower struct{ line, whole func(auditor.Record) error }

func (f *logFlags) shower(env *Env) shower {
	if f.asJSON {
		lines := func(rec auditor.Record) error {
			b, err := rec.AppendLine(nil)
			if err != nil {
				return err
			}
			_, err = env.Stdout.Write(b)
			return err
		}
		return shower{line: lines, whole: lines}
	}
	s := &sheet{w: env.Stdout, colour: isTerminal(env.Stdout) && env.Getenv("NO_COLOR") == ""}
	return shower{line: s.line, whole: s.whole}
}

// sheet prints records for people. Whatever it prints was chosen by an agent, a
// judge or somebody with rights to a stream: all of it goes through Safe.
type sheet struct {
	w      io.Writer
	colour bool
}

// Widths of texts from elsewhere, in bytes.
const (
	shortText = 60
	longText  = 2000
)

const sheetTime = "2006-01-02 15:04:05"

func (s *sheet) line(rec auditor.Record) error {
	at := rec.At.Local().Format(sheetTime)
	if rec.Broken != "" {
		return s.print("%s  %s  %s %d: %s  %s\n", at, s.paint(red, "BROKEN"), rec.Stream, rec.Seq, protocol.Safe(rec.Broken, 4*shortText, false), rec.Ask)
	}
	if rec.Kind == auditor.KindReview {
		return s.reviewLine(at, rec, 2*shortText)
	}
	d, err := rec.Decision()
	if err != nil {
		return fmt.Errorf("record %d of %s: %w", rec.Seq, rec.Stream, err)
	}
	return s.print("%s  %s  %-17s  %-12s  %-18s  %-40s  %-22s  %s\n", at, s.result(d.Result), short(string(d.Outcome)),
		short(d.Agent), short(d.Surface), short(d.Value), decidedBy(d), d.Ask)
}

func (s *sheet) reviewLine(at string, rec auditor.Record, width int) error {
	r, err := rec.Review()
	if err != nil {
		return fmt.Errorf("record %d of %s: %w", rec.Seq, rec.Stream, err)
	}
	who := "gate " + r.Gate
	if r.Link != "" {
		who = "link " + r.Link
	}
	return s.print("%s  %-36s  %-22s  %s  %s\n", at, short(r.Event), short(who), r.Ask, protocol.Safe(string(r.Fields), width, false))
}

// whole prints everything about one record.
func (s *sheet) whole(rec auditor.Record) error {
	if rec.Kind == auditor.KindReview || rec.Broken != "" {
		if rec.Broken == "" {
			return s.reviewLine(rec.At.Local().Format(sheetTime), rec, longText)
		}
		return s.line(rec)
	}
	d, err := rec.Decision()
	if err != nil {
		return fmt.Errorf("record %d of %s: %w", rec.Seq, rec.Stream, err)
	}
	head := fmt.Sprintf("%s  %s  %s, by %s\n", rec.At.Local().Format(sheetTime), strings.TrimSpace(s.result(d.Result)), short(string(d.Outcome)), decidedBy(d))
	return s.print("%s%s%s", head, details(d), trail(d.Trail))
}

func details(d protocol.Decision) string {
	rows := [][2]string{
		{"agent", d.Agent}, {"session", d.Session.ID}, {"tool", d.Tool}, {"surface", d.Surface}, {"value", d.Value},
		{"rule", d.MatchedPattern}, {"origin", d.Origin}, {"reason", d.Reason}, {"note", d.Note},
		{"policy", fmt.Sprintf("revision %d, %s", d.Policy.Revision, d.Policy.Digest)}, {"call", d.CallDigest}, {"gate", d.Gate},
	}
	if d.Abort {
		rows = append(rows, [2]string{"abort", "the agent was told to stop"})
	}
	if len(d.EditedInput) > 0 && d.EditedInput.Kind() != 'n' {
		rows = append(rows, [2]string{"edited to", string(d.EditedInput)})
	}
	if !d.AskedAt.IsZero() && !d.DecidedAt.IsZero() {
		rows = append(rows, [2]string{"took", d.DecidedAt.Sub(d.AskedAt).Round(time.Millisecond).String()})
	}
	var b strings.Builder
	for _, r := range rows {
		if r[1] != "" {
			fmt.Fprintf(&b, "    %-10s %s\n", r[0], protocol.Safe(r[1], longText, false))
		}
	}
	return b.String()
}

func trail(entries []protocol.TrailEntry) string {
	var b strings.Builder
	for _, e := range entries {
		why := strings.Join(slices.DeleteFunc([]string{e.Failure, cappedWord(e), e.Reason}, func(s string) bool { return s == "" }), ", ")
		fmt.Fprintf(&b, "    %-10s %-20s %-6s %6.0f ms  %s\n", "trail", short(e.Link), e.Verdict, e.MS, protocol.Safe(why, longText, false))
	}
	return b.String()
}

func cappedWord(e protocol.TrailEntry) string {
	if e.Capped {
		return "its allow was outside the envelope"
	}
	return ""
}

func decidedBy(d protocol.Decision) string {
	return short(strings.TrimSpace(string(d.DecidedBy.Kind) + " " + d.DecidedBy.Name))
}

func short(s string) string { return protocol.Safe(s, shortText, false) }

const (
	red   = "31"
	green = "32"
)

func (s *sheet) result(r protocol.FinalChoice) string {
	if r == protocol.FinalAllow {
		return s.paint(green, "allow")
	}
	return s.paint(red, fmt.Sprintf("%-5s", r))
}

func (s *sheet) paint(colour, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (s *sheet) print(format string, args ...any) error {
	_, err := fmt.Fprintf(s.w, format, args...)
	return err
}
