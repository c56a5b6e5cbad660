package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/desk"
	"github.com/assent-dev/assent/internal/pending"
	"github.com/assent-dev/assent/pkg/protocol"
)

// face shows each waiting ask on a terminal and takes the answer in one line.
type face struct {
	desk  *desk.Desk
	out   io.Writer
	lines <-chan string
	look  chan struct{}
	shown map[string]bool
}

// runFace runs a face until ctx ends. Its approver counts as present meanwhile.
func runFace(ctx context.Context, env *Env, nc *nats.Conn, node, approver string) error {
	d, err := desk.New(nc, node, approver)
	if err != nil {
		return err
	}
	f := &face{desk: d, out: env.Stdout, lines: readLines(env.Stdin), look: make(chan struct{}, 1), shown: map[string]bool{}}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() {
		if err := d.Present(ctx); err != nil {
			fmt.Fprintln(env.Stderr, "assent: "+err.Error())
		}
	})
	wg.Go(func() {
		if err := d.Notices(ctx, func(protocol.Notice) { f.nudge() }); err != nil {
			fmt.Fprintln(env.Stderr, "assent: "+err.Error())
		}
	})
	fmt.Fprintf(f.out, "You are the approver %q: asks that wait for a person are shown here.\n\n", approver)
	return f.run(ctx)
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

func (f *face) run(ctx context.Context) error {
	again := time.NewTicker(desk.LookAgain)
	defer again.Stop()
	for {
		if err := f.showAll(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(f.out, "assent: "+err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.look:
		case <-again.C:
		case line, open := <-f.lines:
			if !open {
				f.lines = nil // no more input: go on showing
				continue
			}
			if strings.TrimSpace(line) != "" {
				fmt.Fprintln(f.out, "no ask is shown; `assent answer ASK allow|deny` answers any")
			}
		}
	}
}

// showAll puts each ask that has not been shown to the person, one at a time.
func (f *face) showAll(ctx context.Context) error {
	items, err := f.desk.Pending(ctx)
	for _, item := range items {
		if f.shown[item.Ask.ID] || !desk.Waiting(item, time.Now()) {
			continue
		}
		f.shown[item.Ask.ID] = true
		f.prompt(ctx, item)
	}
	return err
}

// prompt shows one ask and takes lines until it is answered, left for later or
// decided elsewhere.
func (f *face) prompt(ctx context.Context, item pending.Item) {
	closed, stop := f.desk.Closing(ctx, item.Ask.ID)
	defer stop()
	f.show(item)
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-closed:
			fmt.Fprintf(f.out, "decided elsewhere: %s\n\n", o)
			return
		case line, open := <-f.lines:
			if !open {
				f.lines = nil
				return
			}
			if f.take(ctx, item, line) {
				return
			}
		}
	}
}

func (f *face) show(item pending.Item) {
	p := item.Pending
	fmt.Fprintf(f.out, "── %s asks ─ %s\n", p.Ask.Agent, p.Ask.ID)
	fmt.Fprintf(f.out, "  tool    %s\n", protocol.Safe(p.Ask.Tool.Name, 200, false))
	fmt.Fprintf(f.out, "  input   %s\n", protocol.Safe(string(p.Ask.Tool.Input), 4000, false))
	fmt.Fprintf(f.out, "  in      %s\n", protocol.Safe(p.Ask.Cwd, 400, false))
	for _, e := range p.Asks {
		fmt.Fprintf(f.out, "  open    %s %s (%s)\n", e.Surface, protocol.Safe(e.Value, 400, false), protocol.Safe(e.MatchedPattern, 200, false))
	}
	for _, t := range p.Trail {
		fmt.Fprintf(f.out, "  link    %s: %s %s %s\n", t.Link, t.Verdict, t.Failure, protocol.Safe(t.Reason, 400, false))
	}
	if g := p.Prompt.Guidance; g != "" {
		fmt.Fprintf(f.out, "  note    %s\n", protocol.Safe(g, 1000, false))
	}
	fmt.Fprintf(f.out, "  until   %s\n", p.Deadline.Local().Format(time.DateTime))
	fmt.Fprint(f.out, "  a = allow this once · d [REASON] = deny · l = later > ")
}

// take carries one line out; done when the prompt is over. Only the whole words
// answer: anything else changes nothing.
func (f *face) take(ctx context.Context, item pending.Item, line string) (done bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	a := protocol.Answer{Ask: item.Ask.ID, Reason: strings.TrimSpace(rest)}
	switch strings.ToLower(word) {
	case "a", "allow":
		a.Verdict = protocol.FinalAllow
	case "d", "deny":
		a.Verdict = protocol.FinalDeny
	case "l", "later":
		fmt.Fprintf(f.out, "left for later: assent answer %s allow|deny\n\n", item.Ask.ID)
		return true
	default:
		fmt.Fprint(f.out, "  please say a, d or l > ")
		return false
	}
	r, err := f.desk.Answer(ctx, a)
	var fault *protocol.Fault
	switch {
	case errors.As(err, &fault):
		fmt.Fprintf(f.out, "refused: %s\n\n", protocol.Safe(fault.Error(), 500, false))
	case err != nil:
		fmt.Fprintf(f.out, "  %v; try again > ", err)
		return false
	case !r.Accepted:
		fmt.Fprintf(f.out, "the answer does not stand: %s\n\n", protocol.Safe(r.Error, 500, false))
	default:
		fmt.Fprintf(f.out, "%s, by %s\n\n", r.Verdict, r.AnsweredBy)
	}
	return true
}
