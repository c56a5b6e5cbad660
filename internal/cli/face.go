package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/desk"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// face shows each waiting ask on a terminal under a number and takes answers to
// numbers. An answer always names its ask: a key that was pressed for one ask
// must never fall on another that took its place on the screen.
type face struct {
	desk  *desk.Desk
	out   io.Writer
	lines <-chan string
	look  chan struct{}
	last  int
	shown []*shownAsk // open ones, in the order in which they were shown
}

// shownAsk is an ask on the screen.
type shownAsk struct {
	number int
	item   pending.Item
}

const faceHelp = "  a N = allow ask N this once · d N [REASON] = deny it · Enter = list what waits · q = leave the desk, the node goes on\n"

// runFace runs a face until ctx ends. Its approver counts as present meanwhile.
func runFace(ctx context.Context, env *Env, nc *nats.Conn, node, approver string) error {
	d, err := desk.New(nc, node, approver)
	if err != nil {
		return err
	}
	f := &face{desk: d, out: env.Stdout, lines: readLines(env.Stdin), look: make(chan struct{}, 1)}
	var wg sync.WaitGroup
	defer wg.Wait()
	work, leave := context.WithCancel(ctx)
	defer leave()
	wg.Go(func() {
		if err := d.Present(work); err != nil {
			fmt.Fprintln(env.Stderr, "assent: "+err.Error())
		}
	})
	wg.Go(func() {
		if err := d.Notices(work, func(protocol.Notice) { f.nudge() }); err != nil {
			fmt.Fprintln(env.Stderr, "assent: "+err.Error())
		}
	})
	fmt.Fprintf(f.out, "You are the approver %q: asks that wait for a person are shown here.\n%s\n", approver, faceHelp)
	if f.run(work) {
		fmt.Fprintf(f.out, "You have left the desk. `assent pending` and `assent answer` go on working.\n")
		leave()
		<-ctx.Done()
	}
	return nil
}

// readLines hands over lines of r. The goroutine ends with r or the process: a
// read from a terminal cannot be called off.
func readLines(r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for sc := bufio.NewScanner(r); sc.Scan(); {
			lines <- sc.Text()
		}
	}()
	return lines
}

func (f *face) nudge() {
	select {
	case f.look <- struct{}{}:
	default:
	}
}

// run shows and answers until ctx ends, or the person leaves: then it is true.
func (f *face) run(ctx context.Context) (left bool) {
	again := time.NewTicker(desk.LookAgain)
	defer again.Stop()
	for {
		if err := f.refresh(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(f.out, "assent: "+err.Error())
		}
		select {
		case <-ctx.Done():
			return false
		case <-f.look:
		case <-again.C:
		case line, open := <-f.lines:
			if !open {
				f.lines = nil // no more input: go on showing
				continue
			}
			if f.take(ctx, line) {
				return true
			}
		}
	}
}

// refresh shows what has come and says what has gone.
func (f *face) refresh(ctx context.Context) error {
	items, err := f.desk.Pending(ctx)
	if err != nil && len(items) == 0 {
		return err
	}
	now := time.Now()
	f.shown = slices.DeleteFunc(f.shown, func(s *shownAsk) bool {
		still := slices.ContainsFunc(items, func(i pending.Item) bool { return i.Ask.ID == s.item.Ask.ID && desk.Waiting(i, now) })
		if !still {
			fmt.Fprintf(f.out, "   ask %d is over (assent log %s)\n", s.number, s.item.Ask.ID)
		}
		return !still
	})
	for _, item := range items {
		known := slices.ContainsFunc(f.shown, func(s *shownAsk) bool { return s.item.Ask.ID == item.Ask.ID })
		if known || !desk.Waiting(item, now) {
			continue
		}
		f.last++
		s := &shownAsk{number: f.last, item: item}
		f.shown = append(f.shown, s)
		f.show(s)
	}
	return err
}

// take carries one line out; left when the person leaves the desk. Whatever is
// not whole changes nothing.
func (f *face) take(ctx context.Context, line string) (left bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch strings.ToLower(word) {
	case "":
		f.list()
	case "q", "quit":
		return true
	case "a", "allow":
		f.answer(ctx, protocol.FinalAllow, rest)
	case "d", "deny":
		f.answer(ctx, protocol.FinalDeny, rest)
	default:
		fmt.Fprint(f.out, "   please say:\n"+faceHelp)
	}
	return false
}

func (f *face) list() {
	if len(f.shown) == 0 {
		fmt.Fprintln(f.out, "   nothing waits for you")
		return
	}
	for _, s := range f.shown {
		fmt.Fprintf(f.out, "   %d  %s, for %s  %s\n", s.number, s.item.Ask.Agent, age(time.Since(s.item.Since)), callLine(s.item.Pending, 100))
	}
}

// answer answers the ask that words begin with the number of.
func (f *face) answer(ctx context.Context, verdict protocol.FinalChoice, words string) {
	number, reason, _ := strings.Cut(strings.TrimSpace(words), " ")
	n, err := strconv.Atoi(number)
	i := slices.IndexFunc(f.shown, func(s *shownAsk) bool { return s.number == n })
	if err != nil || i < 0 {
		fmt.Fprintf(f.out, "   which one? say its number, as in `a %d`\n", max(f.last, 1))
		f.list()
		return
	}
	a := protocol.Answer{Ask: f.shown[i].item.Ask.ID, Verdict: verdict, Reason: strings.TrimSpace(reason)}
	closed, stop := f.desk.Closing(ctx, a.Ask)
	defer stop()
	r, err := f.desk.Answer(ctx, a)
	var fault *protocol.Fault
	switch {
	case errors.As(err, &fault):
		fmt.Fprintf(f.out, "   refused: %s\n", protocol.Safe(fault.Error(), 500, false))
	case err != nil:
		fmt.Fprintf(f.out, "   %v: try again\n", err)
		return
	case !r.Accepted:
		fmt.Fprintf(f.out, "   the answer does not stand: %s\n", protocol.Safe(r.Error, 500, false))
	default:
		f.outcome(n, a, closed)
	}
	f.shown = slices.DeleteFunc(f.shown, func(s *shownAsk) bool { return s.number == n })
}

// outcome says what became of an answer that stands: the rules of this moment
// have the last word.
func (f *face) outcome(n int, a protocol.Answer, closed <-chan protocol.Outcome) {
	select {
	case o := <-closed:
		if a.Verdict == protocol.FinalAllow && o != protocol.AllowedByHuman {
			fmt.Fprintf(f.out, "   %d was NOT allowed after all: %s (assent log %s)\n", n, o, a.Ask)
			return
		}
		fmt.Fprintf(f.out, "   %d: %s\n", n, o)
	case <-time.After(outcomeWait):
		fmt.Fprintf(f.out, "   %d: your answer is stored and will be carried out\n", n)
	}
}

func (f *face) show(s *shownAsk) {
	p := s.item.Pending
	text := func(v string, limit int) string { return protocol.Safe(v, limit, false) }
	fmt.Fprintf(f.out, "\n── ask %d ── %s asks, session %s ── %s\n", s.number, p.Ask.Agent, firstOf(text(p.Ask.Session.ID, 40), "-"), p.Ask.ID)
	fmt.Fprintf(f.out, "   %s\n", callLine(p, 4000))
	if more := string(p.Ask.Tool.Input); !strings.Contains(more, mainArgument(p.Ask.Tool.Input)) || len(p.Asks) > 0 {
		fmt.Fprintf(f.out, "   input   %s\n", text(more, 2000))
	}
	fmt.Fprintf(f.out, "   in      %s\n", text(p.Ask.Cwd, 400))
	for _, e := range p.Asks {
		only := ""
		if e.HumanOnly {
			only = ", for a person alone"
		}
		fmt.Fprintf(f.out, "   open    %s %s, by the rule %q of %s%s\n", e.Surface, text(e.Value, 400), text(e.MatchedPattern, 200), text(e.Origin, 80), only)
	}
	for _, t := range p.Trail {
		fmt.Fprintf(f.out, "   judge   %s: %s %s %s\n", t.Link, t.Verdict, t.Failure, text(t.Reason, 400))
	}
	if g := p.Prompt.Guidance; g != "" {
		fmt.Fprintf(f.out, "   note    %s\n", text(g, 1000))
	}
	fmt.Fprintf(f.out, "   until   %s (%s left)        a %d · d %d [REASON]\n", p.Deadline.Local().Format(time.DateTime+" MST"), age(time.Until(p.Deadline)), s.number, s.number)
}
