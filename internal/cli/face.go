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
	told  chan string // what gates say of permission modules
	heard map[string]bool
	last  int
	shown []*shownAsk // open ones, in the order in which they were shown
	// styled: the screen shows parts of a line in bold.
	styled bool
}

// shownAsk is an ask on the screen.
type shownAsk struct {
	number int
	item   pending.Item
}

const faceHelp = "  a N = allow ask N this once · d N [REASON] = deny it · e N COMMAND = allow that in its place · Enter = list what waits · q = leave the desk, the node goes on\n" +
	"  g N = allow ask N, and what its line \"grant\" says for the rest of its session, 8 hours at most\n" +
	"  m N = allow ask N, and the permission check that asks does not ask again for the rest of its session, 8 hours at most\n"

// runFace runs a face until ctx ends. Its approver counts as present meanwhile.
func runFace(ctx context.Context, env *Env, nc *nats.Conn, node, approver string) error {
	d, err := desk.New(nc, node, approver)
	if err != nil {
		return err
	}
	f := &face{desk: d, out: env.Stdout, lines: readLines(env.Stdin), look: make(chan struct{}, 1), told: make(chan string, 16), heard: map[string]bool{}, styled: isTerminal(env.Stdout) && env.Getenv("NO_COLOR") == ""}
	var wg sync.WaitGroup
	defer wg.Wait()
	work, leave := context.WithCancel(ctx)
	defer leave()
	listening := make(chan struct{})
	wg.Go(func() {
		select { // who comes is told what is wrong: not before it can be heard
		case <-listening:
		case <-work.Done():
		}
		if err := d.Present(work); err != nil {
			fmt.Fprintln(env.Stderr, "assent: "+err.Error())
		}
	})
	wg.Go(func() {
		heard := sync.OnceFunc(func() { close(listening) })
		defer heard() // a desk that hears no notices is a desk all the same
		if err := d.Notices(work, f.notice, heard); err != nil {
			fmt.Fprintln(env.Stderr, "assent: "+err.Error())
		}
	})
	f.printf("You are the approver %q: asks that wait for a person are shown here.\n%s\n", approver, faceHelp)
	if f.run(work) {
		f.printf("You have left the desk. `assent pending` and `assent answer` go on working.\n")
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

// notice takes a live notice: a nudge to look, or a text to show.
func (f *face) notice(n protocol.Notice) {
	if n.Kind != protocol.NoticeModules {
		f.nudge()
		return
	}
	select {
	case f.told <- n.Text:
	default: // the log and the doctor say it too
	}
}

// maxHeard bounds what a face remembers having shown of modules.
const maxHeard = 256

// tell shows what is wrong with a permission module, once however many gates say it.
func (f *face) tell(text string) {
	if text = protocol.Safe(text, 600, false); f.heard[text] || len(f.heard) >= maxHeard {
		return
	}
	f.heard[text] = true
	f.printf("! a permission module is not in force: %s\n", text)
}

// run shows and answers until ctx ends, or the person leaves: then it is true.
func (f *face) run(ctx context.Context) (left bool) {
	again := time.NewTicker(desk.LookAgain)
	defer again.Stop()
	for {
		if err := f.refresh(ctx); err != nil && ctx.Err() == nil {
			f.printf("assent: %v\n", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-f.look:
		case text := <-f.told:
			f.tell(text)
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
			f.printf("   ask %d is over (assent log %s)\n", s.number, s.item.Ask.ID)
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
		f.show(s, frozenLines(ctx, f.desk))
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
		f.answer(ctx, protocol.FinalAllow, rest, nil)
	case "g", "grant":
		f.answer(ctx, protocol.FinalAllow, rest, sessionGrant)
	case "m", "mute":
		f.answer(ctx, protocol.FinalAllow, rest, muteOf)
	case "e", "edit":
		f.edit(ctx, rest)
	case "d", "deny":
		f.answer(ctx, protocol.FinalDeny, rest, nil)
	default:
		f.printf("   please say:\n%s", faceHelp)
	}
	return false
}

func (f *face) list() {
	if len(f.shown) == 0 {
		f.printf("   nothing waits for you\n")
		return
	}
	for _, s := range f.shown {
		f.printf("   %d  %s, for %s  %s\n", s.number, whose(s.item.Ask.Agent, s.item.Ask.Hops), age(time.Since(s.item.Since)), callLine(s.item.Pending, 100))
	}
}

// picked is the ask that words begin with the number of, and the words behind it.
func (f *face) picked(words string) (s *shownAsk, rest string, ok bool) {
	number, rest, _ := strings.Cut(strings.TrimSpace(words), " ")
	n, err := strconv.Atoi(number)
	i := slices.IndexFunc(f.shown, func(s *shownAsk) bool { return s.number == n })
	if err != nil || i < 0 {
		f.printf("   which one? say its number, as in `a %d`\n", max(f.last, 1))
		f.list()
		return nil, "", false
	}
	return f.shown[i], strings.TrimSpace(rest), true
}

// answer answers the ask that words begin with the number of, and grants what
// granting makes of it, if that is wanted.
func (f *face) answer(ctx context.Context, verdict protocol.FinalChoice, words string, granting func(pending.Item) (protocol.Grant, error)) {
	s, reason, ok := f.picked(words)
	if !ok {
		return
	}
	a := protocol.Answer{Ask: s.item.Ask.ID, Verdict: verdict, Reason: reason}
	if granting != nil {
		g, err := granting(s.item)
		if err != nil {
			f.printf("   nothing is answered: %v; `a %d` allows this call alone\n", err, s.number)
			return
		}
		f.printf("   %d: granting %s\n", s.number, grantLine(g))
		for _, line := range leftLines(s.item, g) {
			f.printf("      %s\n", line)
		}
		a.Grant = &g
	}
	f.send(ctx, s.number, a)
}

// edit allows the ask that words begin with the number of, with the words behind
// it in the place of what it would have done.
func (f *face) edit(ctx context.Context, words string) {
	s, text, ok := f.picked(words)
	if !ok {
		return
	}
	input, err := editedInput(s.item.Ask, text)
	if err != nil {
		f.printf("   nothing is answered: %v\n", err)
		return
	}
	f.printf("   %d: allowing instead %s\n", s.number, input)
	f.send(ctx, s.number, protocol.Answer{Ask: s.item.Ask.ID, Verdict: protocol.FinalAllow, EditedInput: input})
}

// send sends an answer to the ask shown as n and says what became of it.
func (f *face) send(ctx context.Context, n int, a protocol.Answer) {
	closed, stop := f.desk.Closing(ctx, a.Ask)
	defer stop()
	r, err := f.desk.Answer(ctx, a)
	var fault *protocol.Fault
	switch {
	case errors.As(err, &fault):
		f.printf("   refused: %s\n", protocol.Safe(fault.Error(), 500, false))
	case err != nil:
		f.printf("   %v: try again\n", err)
		return
	case !r.Accepted:
		f.printf("   the answer does not stand: %s\n", protocol.Safe(r.Error, 500, false))
	default:
		f.outcome(n, a, closed)
	}
	f.shown = slices.DeleteFunc(f.shown, func(s *shownAsk) bool { return s.number == n })
}

// sessionGrant is what the face offers to grant on an ask: for its session, or
// where it names none for the agent. A grant without a session would be refused.
func sessionGrant(item pending.Item) (protocol.Grant, error) {
	scope := protocol.ScopeSession
	if item.Ask.Session.ID == "" {
		scope = protocol.ScopeAgent
	}
	return desk.Grant(item, scope, "", nil, time.Now().Add(desk.GrantLife), 0)
}

// outcome says what became of an answer that stands: the rules of this moment
// have the last word.
func (f *face) outcome(n int, a protocol.Answer, closed <-chan protocol.Outcome) {
	select {
	case o := <-closed:
		if a.Verdict == protocol.FinalAllow && o != protocol.AllowedByHuman {
			f.printf("   %d was NOT allowed after all: %s (assent log %s)\n", n, o, a.Ask)
			return
		}
		f.printf("   %d: %s\n", n, o)
	case <-time.After(outcomeWait):
		f.printf("   %d: your answer is stored and will be carried out\n", n)
	}
}

// Bounds of what the face shows of one field and of a whole input, in bytes.
const (
	shownField = 600
	shownInput = 6000
)

func (f *face) show(s *shownAsk, frozen []string) {
	p := s.item.Pending
	f.printf("\n── ask %d ── %s asks, session %s ── %s\n", s.number, whose(p.Ask.Agent, p.Ask.Hops), firstOf(p.Ask.Session.ID, "-"), p.Ask.ID)
	for _, line := range frozen {
		f.printf("   FROZEN  %s\n", line)
	}
	_, asked := byModule(p)
	if asked {
		f.authorization(p)
	} else {
		f.printf("   %s\n", callLine(p, 4000))
	}
	f.input(p.Ask)
	f.printf("   in      %s\n", p.Ask.Cwd)
	for _, e := range p.Asks {
		if e.ByModule() {
			continue // it is what the prompt is about
		}
		only := ""
		if e.HumanOnly {
			only = ", for a person alone"
		}
		f.printf("   open    %s %s, by the rule %q of %s%s\n", e.Surface, protocol.Safe(e.Value, 400, false), e.MatchedPattern, e.Origin, only)
	}
	for _, t := range p.Trail {
		f.printf("   judge   %s: %s %s %s\n", t.Link, t.Verdict, t.Failure, protocol.Safe(t.Reason, 400, false))
	}
	if g := p.Prompt.Guidance; g != "" && !asked {
		f.printf("   note    %s\n", protocol.Safe(g, 1000, false))
	}
	keys := labelled(fmt.Sprintf("a %d", s.number), p.Prompt.ApproveLabel) + " · " + labelled(fmt.Sprintf("d %d [REASON]", s.number), p.Prompt.RejectLabel)
	if g, err := sessionGrant(s.item); err == nil {
		f.printf("   grant   %s\n", grantLine(g))
		for _, line := range leftLines(s.item, g) {
			f.printf("           %s\n", line)
		}
		keys += fmt.Sprintf(" · g %d", s.number)
	}
	if label := p.Prompt.EditLabel; label != "" {
		keys += " · " + labelled(fmt.Sprintf("e %d COMMAND", s.number), label)
	}
	if _, err := muteOf(s.item); err == nil {
		keys += fmt.Sprintf(" · m %d = allow, and don't ask again", s.number)
	}
	f.printf("   until   %s (%s left)        %s\n", moment(p.Deadline), age(time.Until(p.Deadline)), keys)
}

// authorization shows what a permission module asks a person for. Not by printf,
// which lets no style through: each piece of it went through Safe.
func (f *face) authorization(p protocol.Pending) {
	for _, line := range (authorization{p: p, styled: f.styled}).lines() {
		io.WriteString(f.out, "   "+line+"\n") //nolint:errcheck // a screen that is gone shows nothing
	}
}

// input shows every field of a call, long ones cut, and says what it does not
// show: padding must not push the field that matters off the screen.
func (f *face) input(ask protocol.Ask) {
	short := protocol.Shorten(ask.Tool.Input, shownField, shownInput)
	switch {
	case short == nil:
		f.printf("   input   %d bytes, TOO LONG TO SHOW: look at `assent pending --json` before you allow it\n", len(ask.Tool.Input))
	case len(short) < len(ask.Tool.Input):
		f.printf("   input   %s\n           LONG FIELDS ARE CUT, %d bytes in all: `assent pending --json` shows the whole\n", short, len(ask.Tool.Input))
	default:
		f.printf("   input   %s\n", short)
	}
}

// printf is the only way onto the screen: whatever comes from an agent, a judge
// or a rule can neither redraw it nor hide a part of it.
func (f *face) printf(format string, args ...any) {
	io.WriteString(f.out, protocol.Safe(fmt.Sprintf(format, args...), 32<<10, true)) //nolint:errcheck // a screen that is gone shows nothing
}
