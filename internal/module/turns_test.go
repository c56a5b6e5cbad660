package module

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func got(turn chan struct{}) bool {
	select {
	case <-turn:
		return true
	default:
		return false
	}
}

// Tokens go round by whom they are for, and none is lost or made by who gives up.
func TestTokensGoRound(t *testing.T) {
	t.Parallel()
	s := newTurns(1)
	first := s.ask("a")
	if !got(first) || !s.busy() {
		t.Fatal("the free token is not given")
	}
	names := []string{"a", "a", "a", "b", "c", "b"}
	turns := make([]chan struct{}, len(names))
	for i, who := range names {
		turns[i] = s.ask(who)
	}
	s.leave("c", turns[4])
	var order []string
	for range 5 {
		s.give()
		i := slices.IndexFunc(turns, func(turn chan struct{}) bool { return turn != nil && got(turn) })
		if i < 0 {
			t.Fatalf("nobody gets the token after %v", order)
		}
		order = append(order, names[i])
		turns[i] = nil
	}
	if want := []string{"a", "b", "a", "b", "a"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
	late := s.ask("d")
	s.give() // d has it, and does not want it any more
	s.leave("d", late)
	if s.busy() || len(s.waiting) != 0 || len(s.next) != 0 {
		t.Errorf("%d free, %d wait, %d in turn", s.free, len(s.waiting), len(s.next))
	}
}

func TestTokensAreNeitherLostNorMade(t *testing.T) {
	t.Parallel()
	const tokens = 3
	s := newTurns(tokens)
	var now, most atomic.Int32
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			who := fmt.Sprint(i % 5)
			for n := range 200 {
				turn := s.ask(who)
				if n%7 == i%7 {
					s.leave(who, turn)
					continue
				}
				<-turn
				if k := now.Add(1); k > most.Load() {
					most.Store(k)
				}
				now.Add(-1)
				s.give()
			}
		})
	}
	wg.Wait()
	if most.Load() > tokens || s.free != tokens || len(s.waiting) != 0 || len(s.next) != 0 {
		t.Errorf("%d at once; then %d free, %d wait, %d in turn", most.Load(), s.free, len(s.waiting), len(s.next))
	}
}

// An agent that makes many calls at once, each of which takes long, does not keep
// the calls of another one waiting for all of them; nor does a node below, however
// many agents it says it has.
func TestAnAgentsCallsDoNotStandInFrontOfAllOthers(t *testing.T) {
	for does, as := range map[string]func(c *Call, i int){
		"an agent":     func(c *Call, _ int) { c.Ask.Agent = "greedy" },
		"a node below": func(c *Call, i int) { c.Ask.Agent, c.Ask.Hops = fmt.Sprint("agent", i), []string{"child"} },
	} {
		t.Run(does, func(t *testing.T) {
			e := engine(t, Config{Workers: 1, CallTime: 5 * time.Second})
			s := set(t, e, module("m", checkJS{name: "c", body: `if (input.tool.command !== "quick") for (let i = 0; i < 1e5; i++);`}))
			const many = 12
			var done atomic.Int32
			var wg sync.WaitGroup
			for i := range many {
				wg.Go(func() {
					c := bash("slow")
					as(&c, i)
					s.Check(t.Context(), c)
					done.Add(1)
				})
			}
			for e.pool.serving.mu.Lock(); len(e.pool.serving.next) == 0; e.pool.serving.mu.Lock() {
				e.pool.serving.mu.Unlock()
				time.Sleep(time.Millisecond)
			}
			e.pool.serving.mu.Unlock()
			before := done.Load()
			if v := s.Check(t.Context(), bash("quick")); v.Decision != Pass {
				t.Errorf("got %s (%s)", v.Decision, v.Failure)
			}
			if n := done.Load() - before; n > 3 {
				t.Errorf("it waited for %d of the %d calls of %s", n, many, does)
			}
			wg.Wait()
		})
	}
}
