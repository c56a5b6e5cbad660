package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/auditor"
)

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
	s := &sheet{w: env.Stdout, width: widthOf(env.Stdout), seen: isTerminal(env.Stdout), colour: isTerminal(env.Stdout) && env.Getenv("NO_COLOR") == ""}
	return shower{line: s.line, whole: s.whole}
}

// sheet prints records for people. Whatever it prints was chosen by an agent, a
// judge or somebody with rights to a stream: all of it goes through Safe.
type sheet struct {
	w      io.Writer
	colour bool
	// width is how wide a line may be, in columns; seen is whether a terminal shows
	// it. What reads from a pipe gets the last column whole.
	width  int
	seen   bool
	headed bool
}

// unknownWidth is the width where there is no terminal: all columns have room.
const unknownWidth = 160

func widthOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return max(width, 60)
		}
	}
	return unknownWidth
}

// Widths of texts from elsewhere, in bytes.
const (
	shortText = 60
	longText  = 2000
)

// listTime is the form of times in a list.
const listTime = "01-02 15:04:05"

// column is one column of the list. A line ends in the id, so that the others
// may be cut.
type column struct {
	head  string
	width int
}

// Widths of columns. The call gets what the others leave.
const (
	endOfID     = 8
	broadFrom   = 120
	broadest    = 140
	gapOfColumn = 2
)

// columns are those that a line of this width has room for.
func (s *sheet) columns() []column {
	cols := []column{{"TIME", len(listTime)}, {"RESULT", 6}}
	if s.width >= broadest {
		cols = append(cols, column{"OUTCOME", 17})
	}
	agent := column{"AGENT", 12}
	if s.width >= broadest {
		agent.width = 18 // room for the node that it is at
	}
	cols = append(cols, agent, column{"CALL", 0})
	if s.width >= broadFrom {
		cols = append(cols, column{"BY", 18}, column{"ASK", len(protocol.NewAskID())})
	} else {
		cols = append(cols, column{"ASK ENDS", endOfID})
	}
	left := s.width
	for _, c := range cols {
		left -= c.width + gapOfColumn
	}
	for i := range cols {
		if cols[i].width == 0 {
			cols[i].width = max(left+gapOfColumn, 12)
		}
	}
	return cols
}

// row prints one line of the list; cells are by head. Each is cut to its
// column.
func (s *sheet) row(cells map[string]string) error {
	var b strings.Builder
	for i, c := range s.columns() {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gapOfColumn))
		}
		text := cut(protocol.Safe(cells[c.head], 4*c.width, false), c.width)
		pad := strings.Repeat(" ", c.width-utf8.RuneCountInString(text))
		if c.head == "RESULT" {
			text = s.paintResult(text)
		}
		b.WriteString(text + pad)
	}
	return s.print("%s\n", strings.TrimRight(b.String(), " "))
}

// cut shortens text to so many characters.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// head prints the list's first line, once.
func (s *sheet) head(review bool) error {
	if s.headed {
		return nil
	}
	s.headed = true
	if review {
		return s.reviewRow(heading("TIME"), "ASK", "EVENT", "WHO", "FIELDS")
	}
	cells := map[string]string{}
	for _, c := range s.columns() {
		cells[c.head] = c.head
	}
	cells["TIME"] = heading("TIME")
	return s.row(cells)
}

func (s *sheet) line(rec auditor.Record) error {
	review := rec.Kind == auditor.KindReview
	if err := s.head(review); err != nil {
		return err
	}
	at := zoned(rec.At).Format(listTime)
	if rec.Broken != "" {
		return s.broken(at, rec)
	}
	if review {
		return s.reviewLine(at, rec)
	}
	d, err := rec.Decision()
	if err != nil {
		return fmt.Errorf("record %d of %s: %w", rec.Seq, rec.Stream, err)
	}
	return s.row(map[string]string{
		"TIME": at, "RESULT": d.Result.String(), "OUTCOME": string(d.Outcome), "AGENT": whose(d.Agent, d.Hops), "CALL": callOf(d),
		"BY": decidedBy(d), "ASK": d.Ask, "ASK ENDS": d.Ask[len(d.Ask)-endOfID:],
	})
}

func (s *sheet) broken(at string, rec auditor.Record) error {
	return s.print("%s  %s  %s %d: %s  %s\n", at, s.paint(red, "BROKEN"), rec.Stream, rec.Seq, protocol.Safe(rec.Broken, 4*shortText, false), rec.Ask)
}

func (s *sheet) reviewLine(at string, rec auditor.Record) error {
	r, err := rec.Review()
	if err != nil {
		return fmt.Errorf("record %d of %s: %w", rec.Seq, rec.Stream, err)
	}
	return s.reviewRow(at, r.Ask, short(r.Event), short(reviewer(r)), protocol.Safe(string(r.Fields), longText, false))
}

func (s *sheet) reviewRow(at, ask, event, who, fields string) error {
	line := fmt.Sprintf("%-14s  %-26s  %-36s  %-18s  %s", at, ask, event, who, fields)
	if s.seen {
		line = cut(line, s.width)
	}
	return s.print("%s\n", line)
}

func reviewer(r protocol.ReviewRecord) string {
	if r.Link != "" {
		return "link " + r.Link
	}
	return "gate " + r.Gate
}

// callOf is the call in one line: the tool and what it would do, else the value
// that the rules looked at.
func callOf(d protocol.Decision) string {
	what := d.Value
	if len(d.Input) > 0 { // an older record has none
		what = mainArgument(d.Tool, d.Input)
	}
	return strings.TrimSuffix(d.Tool+": "+what, ": ")
}

// whole prints everything about one record.
func (s *sheet) whole(rec auditor.Record) error {
	at := cell(rec.At)
	if !s.headed {
		s.headed = true
		if err := s.print("ask %s%s\n", rec.Ask, heading(", times")); err != nil {
			return err
		}
	}
	if rec.Broken != "" {
		return s.broken(at, rec)
	}
	if rec.Kind == auditor.KindReview {
		r, err := rec.Review()
		if err != nil {
			return fmt.Errorf("record %d of %s: %w", rec.Seq, rec.Stream, err)
		}
		return s.print("%s  %-36s  %-22s  %s\n", at, short(r.Event), short(reviewer(r)), protocol.Safe(string(r.Fields), longText, false))
	}
	d, err := rec.Decision()
	if err != nil {
		return fmt.Errorf("record %d of %s: %w", rec.Seq, rec.Stream, err)
	}
	head := fmt.Sprintf("%s  %s  %s, by %s\n", at, s.result(d.Result), short(string(d.Outcome)), decidedBy(d))
	return s.print("%s%s%s", head, details(d), trail(d.Trail))
}

func details(d protocol.Decision) string {
	rows := [][2]string{
		{"agent", whose(d.Agent, d.Hops)}, {"session", d.Session.ID}, {"tool", d.Tool}, {"input", string(d.Input)}, {"surface", d.Surface}, {"value", d.Value},
		{"rule", d.MatchedPattern}, {"origin", d.Origin}, {"reason", d.Reason}, {"note", d.Note}, {"answered by", d.Approver},
		{"policy", fmt.Sprintf("revision %d, %s", d.Policy.Revision, d.Policy.Digest)}, {"call", d.CallDigest}, {"gate", d.Gate},
	}
	if d.Abort {
		rows = append(rows, [2]string{"abort", "the agent was told to stop"})
	}
	if len(d.EditedInput) > 0 && d.EditedInput.Kind() != 'n' {
		rows = append(rows, [2]string{"edited to", string(d.EditedInput)})
	}
	if d.Grant != nil {
		rows = append(rows, [2]string{"granted", grantLine(*d.Grant)})
	}
	if d.Policy.Modules != "" {
		rows = append(rows, [2]string{"modules", d.Policy.Modules})
	}
	if d.Policy.Grants != "" {
		rows = append(rows, [2]string{"by grant", strings.ReplaceAll(d.Policy.Grants, ",", ", ")})
	}
	if !d.AskedAt.IsZero() && !d.DecidedAt.IsZero() {
		rows = append(rows, [2]string{"took", d.DecidedAt.Sub(d.AskedAt).Round(time.Millisecond).String()})
	}
	var b strings.Builder
	for _, r := range rows {
		if r[1] != "" {
			fmt.Fprintf(&b, "    %-11s %s\n", r[0], protocol.Safe(r[1], max(longText, len(d.Input)), false))
		}
	}
	return b.String()
}

func trail(entries []protocol.TrailEntry) string {
	var b strings.Builder
	for _, e := range entries {
		why := strings.Join(slices.DeleteFunc([]string{e.Failure, cappedWord(e), e.Reason}, func(s string) bool { return s == "" }), ", ")
		fmt.Fprintf(&b, "    %-11s %-20s %-6s %6.0f ms  %s\n", "trail", short(strings.Trim(e.Node+"/"+e.Link, "/")), e.Verdict, e.MS, protocol.Safe(why, longText, false))
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
	by := strings.TrimSpace(string(d.DecidedBy.Kind) + " " + d.DecidedBy.Name)
	if d.DecidedBy.Kind == protocol.DeciderParent {
		by += " at " + d.DecidedBy.Node
	}
	return short(by)
}

func short(s string) string { return protocol.Safe(s, shortText, false) }

const (
	red   = "31"
	green = "32"
)

func (s *sheet) result(r protocol.FinalChoice) string { return s.paintResult(r.String()) }

func (s *sheet) paintResult(word string) string {
	switch word {
	case protocol.FinalAllow.String():
		return s.paint(green, word)
	case protocol.FinalDeny.String():
		return s.paint(red, word)
	default:
		return word
	}
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
