package judge

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/internal/llm/llmtest"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// aboutAsks is how often the model was asked about an ask, self-tests aside.
func aboutAsks(s *llmtest.Server) (n int) {
	for _, q := range s.Asked() {
		if q.Tools[0].Name != SelfTestTool {
			n++
		}
	}
	return n
}

// exceptSelfTests passes each self-test and answers everything else with answer.
func exceptSelfTests(answer llmtest.Answer) llmtest.Answer {
	return func(w http.ResponseWriter, q llmtest.Question) {
		if q.Tools[0].Name == SelfTestTool {
			answer := llmtest.Calls(`{"ready":true}`)
			answer(w, q)
			return
		}
		answer(w, q)
	}
}

// TestAModelThatFailsIsLeftAlone: after three failures nobody waits for it, the
// link says so, and when it is tried again and answers, it judges again.
func TestAModelThatFailsIsLeftAlone(t *testing.T) {
	t.Parallel()
	g := newGate(t, nodetest.Start(t))
	fails := llmtest.Fails(401, "authentication_error", "no")
	well := make(chan struct{})
	server := llmtest.Start(t, exceptSelfTests(func(w http.ResponseWriter, q llmtest.Question) {
		select {
		case <-well:
			llmtest.Calls(`{"verdict":"unsure","reason":""}`)(w, q)
		default:
			fails(w, q)
		}
	}))
	run(t, g, fileFor(t, server.URL, `,"breaker":{"openMs":1500}`), key)
	state := func(want string) {
		t.Helper()
		nodetest.CheckFor(t, 15*time.Second, 10*time.Millisecond, func() error {
			if got := announced(t, g.n); got[StateBreaker] != want {
				return fmt.Errorf("announced %v, want breaker %q", got, want)
			}
			return nil
		})
	}
	state(llm.BreakerClosed)
	for range 5 {
		if v, err := g.ask(name, typo); err != nil || v.Verdict != protocol.ChoiceDefer || v.Failure == "" {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	if n := aboutAsks(server); n != 3 {
		t.Errorf("the model was asked %d times, want 3", n)
	}
	state(llm.BreakerOpen)
	close(well)
	nodetest.CheckFor(t, 15*time.Second, 50*time.Millisecond, func() error {
		if v, err := g.ask(name, typo); err != nil || v.Failure != "" {
			return fmt.Errorf("%+v, %v", v, err)
		}
		return nil
	})
	state(llm.BreakerClosed)
	if got := announced(t, g.n); got[StateFailing] != "" {
		t.Errorf("well again, announced %v", got)
	}
}

// TestAModelThatHangsIsLeftAlone after three timeouts, be the link's own time
// as short as it may; but asks that left the model no time prove nothing.
func TestAModelThatHangsIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name0, row := range map[string]struct {
		left time.Duration
		want string
	}{
		"asks with all of the link's time": {8 * time.Second, llm.BreakerOpen},
		"asks with next to no time left":   {500 * time.Millisecond, llm.BreakerClosed},
	} {
		t.Run(name0, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, nodetest.Start(t))
			server := llmtest.Start(t, exceptSelfTests(llmtest.Hangs()))
			run(t, g, fileFor(t, server.URL, `,"timeoutMs":900`), key)
			for range 3 {
				if v, err := g.askWithin(name, typo, row.left); err != nil || v.Failure != "timeout" {
					t.Fatalf("%+v, %v", v, err)
				}
			}
			nodetest.CheckFor(t, 15*time.Second, 10*time.Millisecond, func() error {
				if got := announced(t, g.n); got[StateModel] != StateOK || got[StateBreaker] != row.want {
					return fmt.Errorf("announced %v, want breaker %q", got, row.want)
				}
				return nil
			})
		})
	}
}

// TestOverItsBudgetALinkDefers at once, without a call; within it, it does not.
func TestOverItsBudgetALinkDefers(t *testing.T) {
	t.Parallel()
	for name0, row := range map[string]struct {
		more  string
		calls int
	}{
		"calls of the link":  {`,"budget":{"callsPerMinute":2}`, 2},
		"calls of an agent":  {`,"budget":{"agentCallsPerMinute":1}`, 1},
		"dollars":            {`,"budget":{"dollarsPerDay":0.000001},"price":{"outputPerMillion":15}`, 0},
		"no bound":           {``, 4},
		"a price, no bound":  {`,"price":{"outputPerMillion":15}`, 4},
		"dollars, and ample": {`,"budget":{"dollarsPerDay":100},"price":{"outputPerMillion":15}`, 4},
	} {
		t.Run(name0, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, nodetest.Start(t))
			server := llmtest.Start(t, exceptSelfTests(llmtest.Calls(`{"verdict":"unsure","reason":""}`)))
			run(t, g, fileFor(t, server.URL, row.more), key)
			deferred := 0
			for range 4 {
				v, err := g.ask(name, typo)
				if err != nil || v.Verdict != protocol.ChoiceDefer {
					t.Fatalf("%+v, %v", v, err)
				}
				if v.Failure != "" {
					deferred++
					if !strings.Contains(v.Reason, "budget") {
						t.Errorf("the reason is %q", v.Reason)
					}
				}
			}
			if n := aboutAsks(server); n != row.calls || deferred != 4-row.calls {
				t.Errorf("the model was asked %d times, want %d; %d asks were deferred without it", n, row.calls, deferred)
			}
		})
	}
}

// TestTheOtherProvidersAndKindAreServed, from the file to the verdict.
func TestTheOtherProvidersAndKindAreServed(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{ProviderAnthropic, ProviderOpenAI, ProviderCompatible} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, nodetest.Start(t))
			server := llmtest.Start(t, exceptSelfTests(llmtest.Calls(`{"verdict":"deny","reason":"shop is doubled"}`)))
			f := fileFor(t, server.URL, "")
			c := f.Links[name]
			c.Provider, c.APIKeyEnv = provider, "K"
			f.Links[name] = c
			c.Kind, c.TypoPatterns, c.Instructions, c.Rounds, c.MaxBytes = "shellcommand", nil, "", 4, 1024
			f.Links["shell"] = c
			run(t, g, f, map[string]string{"K": "sk-test"})
			if v, err := g.ask(name, typo); err != nil || v.Verdict != protocol.ChoiceDeny || v.Reason != "shop is doubled" {
				t.Errorf("%+v, %v", v, err)
			}
			if v, err := g.ask("shell", typo); err != nil || v.Verdict != protocol.ChoiceDefer || v.Failure != "" {
				t.Errorf("what is no shell command: %+v, %v", v, err)
			}
		})
	}
}
