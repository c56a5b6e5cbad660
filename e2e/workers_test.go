package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/internal/llm/llmtest"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/client"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge"
)

// The tests of this file run judges as processes of their own: one that is
// stopped, one that dies again and again, one that is told to leave.

const (
	doubled   = "shop is doubled: use /home/dev/shop/src"
	typoPath  = "/home/dev/shop/packages/shop/src/a.ts"
	typoRules = `{"permission":{"*":"ask","external_directory":"ask","read":"allow"},"authorizerChain":["model-judge"],"linkTimeout":"8s",` +
		`"terminal":{"kind":"deny"},"limits":{"asksPerSecond":1000,"pending":1000}}`
	// acceptance is the gate's: how long it waits for a worker's sign of life.
	acceptance = 500 * time.Millisecond
)

// judges are processes that serve one link over one model server.
type judges struct {
	*place
	model  *llmtest.Server
	config string
	looks  *nats.Conn
	agents []*client.Client
}

func newJudges(t *testing.T, answer llmtest.Answer, more string) *judges {
	t.Helper()
	j := &judges{place: newPlace(t, typoRules), model: llmtest.Start(t, answer)}
	j.gate("g1")
	j.terminal("t1")
	j.looks = j.Connect(t, protocol.RoleOperator, "looks")
	j.config = filepath.Join(t.TempDir(), "judges.jsonc")
	doc := fmt.Sprintf(`{"links":{"model-judge":{"kind":"typopath","provider":"anthropic","model":"m","baseURL":%q,"instructions":"i",
		"typoPatterns":["([^/]+)/packages/\\1(/|$)"],"denialCache":{"entries":0}%s}}}`, j.model.URL, more)
	ok(0, os.WriteFile(j.config, []byte(doc), 0o600))(t)
	for i := range 4 {
		name := fmt.Sprintf("a%d", i)
		j.agents = append(j.agents, ok(client.New(j.Connect(t, protocol.RoleAgent, name), nodetest.Name, name))(t))
	}
	return j
}

// start starts one judge; it ends with the test.
func (j *judges) start(name string) *exec.Cmd {
	j.t.Helper()
	creds := filepath.Join(j.t.TempDir(), name+".creds")
	ok(0, os.WriteFile(creds, j.Creds(j.t, protocol.RoleJudge, name, node.IssueOptions{Links: []string{"model-judge"}}), 0o600))(j.t)
	return j.launch(creds)
}

func (j *judges) launch(creds string) *exec.Cmd {
	cmd := exec.Command(binary, "judge", "--nats", j.ClientURL(), "--creds", creds, "--node", nodetest.Name, "--config", j.config, "--quiet")
	cmd.Env = append(os.Environ(), "ANTHROPIC_API_KEY=test-key")
	ok(0, cmd.Start())(j.t)
	j.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// well waits until n workers answer discovery and their models passed the self-test.
func (j *judges) well(n int) {
	j.t.Helper()
	subject := ok(micro.ControlSubject(micro.InfoVerb, protocol.ServiceLink, ""))(j.t)
	nodetest.CheckFor(j.t, 2*patience, 100*time.Millisecond, func() error {
		inbox := j.looks.NewInbox()
		sub, err := j.looks.SubscribeSync(inbox)
		if err != nil {
			return err
		}
		defer sub.Unsubscribe() //nolint:errcheck // a look
		if err := j.looks.PublishRequest(subject, inbox, nil); err != nil {
			return err
		}
		well := map[string]bool{}
		for len(well) < n {
			m, err := sub.NextMsg(500 * time.Millisecond)
			if err != nil {
				return fmt.Errorf("%d of %d judges are well: %w", len(well), n, err)
			}
			var info micro.Info
			if json.Unmarshal(m.Data, &info) == nil && info.Metadata[judge.StateModel] == judge.StateOK {
				well[info.Metadata["worker"]] = true
			}
		}
		return nil
	})
}

// ask has one agent ask about the mistyped path.
func (j *judges) ask(agent int) (protocol.Decision, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	began := time.Now()
	d, err := j.agents[agent].Ask(ctx, protocol.Ask{
		ID: protocol.NewAskID(), Source: protocol.SourceToolCall, Session: protocol.Session{ID: "s1"}, Cwd: "/repo", Home: "/home/dev", Platform: "linux",
		Tool: protocol.Tool{Name: "read", Input: jsontext.Value(`{"file_path":"` + typoPath + `"}`)},
	})
	return d, time.Since(began), err
}

// heard is what became of many asks.
type heard struct {
	took []time.Duration
	// orphans are those that the link did not decide: a worker died with them after
	// it had said that it was at work.
	orphans int
}

func (h *heard) p(share float64) time.Duration {
	slices.Sort(h.took)
	return h.took[min(int(share*float64(len(h.took))), len(h.took)-1)]
}

func (h *heard) String() string {
	return fmt.Sprintf("%d asks: p50 %s, p95 %s, p99 %s, longest %s", len(h.took), ms(h.p(.5)), ms(h.p(.95)), ms(h.p(.99)), ms(h.p(1)))
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// askFor asks from all agents at once for a while; every ask must be decided by the
// link, with the model's reason, but for those whose worker was killed with them.
func (j *judges) askFor(d time.Duration) *heard {
	j.t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	h := &heard{}
	for i := range j.agents {
		wg.Go(func() {
			for end := time.Now().Add(d); time.Now().Before(end); {
				decision, took, err := j.ask(i)
				mu.Lock()
				switch {
				case err != nil:
					j.t.Errorf("an ask failed: %v", err)
				case decision.Outcome == protocol.DeniedByLink && decision.Reason == doubled:
					h.took = append(h.took, took)
				case decision.Outcome == protocol.NoApprover && len(decision.Trail) == 1 && decision.Trail[0].Failure == protocol.FailureTimeout:
					h.orphans++
				default:
					j.t.Errorf("decided %s, %q, trail %+v", decision.Outcome, decision.Reason, decision.Trail)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(h.took) == 0 {
		j.t.Fatal("no ask was decided by the link")
	}
	return h
}

// crash kills a judge again and again and starts it anew, until ctx ends.
func (j *judges) crash(ctx context.Context, creds string, kills *atomic.Int64) {
	for ctx.Err() == nil {
		cmd := exec.Command(binary, "judge", "--nats", j.ClientURL(), "--creds", creds, "--node", nodetest.Name, "--config", j.config, "--quiet")
		cmd.Env = append(os.Environ(), "ANTHROPIC_API_KEY=test-key")
		if err := cmd.Start(); err != nil {
			j.t.Errorf("starting the judge that dies: %v", err)
			return
		}
		select { // long enough to join and to be at work
		case <-time.After(400 * time.Millisecond):
		case <-ctx.Done():
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		kills.Add(1)
	}
}

// TestFourJudgesOfOneLinkWithOneStoppedAndOneDying: no ask fails. A stopped process
// is still in the queue group, so that it gets its share of the asks; each of those
// costs the attempt that went to it and no more, for the second goes to a worker
// that is awake.
func TestFourJudgesOfOneLinkWithOneStoppedAndOneDying(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	j := newJudges(t, llmtest.Calls(`{"verdict":"deny","reason":"`+doubled+`"}`), "")
	for _, name := range []string{"j1", "j2"} {
		j.start(name)
	}
	stopped, dying := j.start("j3"), filepath.Join(t.TempDir(), "j4.creds")
	ok(0, os.WriteFile(dying, j.Creds(t, protocol.RoleJudge, "j4", node.IssueOptions{Links: []string{"model-judge"}}), 0o600))(t)
	fourth := j.launch(dying)
	j.well(4)
	before := j.askFor(4 * time.Second)
	if before.orphans > 0 {
		t.Errorf("with four well ones %d asks were lost to the link", before.orphans)
	}
	t.Logf("four judges: %s", before)

	ok(0, stopped.Process.Signal(syscall.SIGSTOP))(t)
	_ = fourth.Process.Kill()
	ctx, cancel := context.WithCancel(t.Context())
	var kills atomic.Int64
	crashes := make(chan struct{})
	go func() { defer close(crashes); j.crash(ctx, dying, &kills) }()
	during := j.askFor(12 * time.Second)
	cancel()
	<-crashes
	t.Logf("one stopped and one killed %d times: %s; %d asks were with it when it died", kills.Load(), during, during.orphans)
	if int64(during.orphans) > kills.Load() {
		t.Errorf("%d asks were lost to the link, and one process was killed %d times", during.orphans, kills.Load())
	}
	// What a machine with other work on it adds is no matter of the attempt.
	if rise, most := during.p(.95)-before.p(.95), acceptance+250*time.Millisecond; rise > most {
		t.Errorf("p95 rose by %s, want %s at most", ms(rise), most)
	}
	ok(0, stopped.Process.Signal(syscall.SIGCONT))(t)
}

// TestFullJudgesJudgeEveryAskInTurn: each of two judges one ask at a time, slowly,
// and four agents ask without a pause.
func TestFullJudgesJudgeEveryAskInTurn(t *testing.T) {
	answer := llmtest.Calls(`{"verdict":"deny","reason":"` + doubled + `"}`)
	slowly := func(w http.ResponseWriter, q llmtest.Question) {
		time.Sleep(50 * time.Millisecond)
		answer(w, q)
	}
	j := newJudges(t, slowly, `,"concurrency":1`)
	for _, name := range []string{"j1", "j2"} {
		j.start(name)
	}
	j.well(2)
	h := j.askFor(5 * time.Second)
	if h.orphans > 0 {
		t.Errorf("%d asks were lost to the link", h.orphans)
	}
	t.Logf("two judges with room for one ask each, four agents: %s", h)
}

// TestAJudgeThatIsToldToLeaveLosesNoAsk: it ends what it has taken up, exits in
// order, and the others get the rest.
func TestAJudgeThatIsToldToLeaveLosesNoAsk(t *testing.T) {
	j := newJudges(t, llmtest.Calls(`{"verdict":"deny","reason":"`+doubled+`"}`), "")
	first := j.start("j1")
	j.start("j2")
	j.well(2)
	left := make(chan error, 1)
	go func() {
		time.Sleep(time.Second)
		if err := first.Process.Signal(syscall.SIGTERM); err != nil {
			left <- err
			return
		}
		left <- first.Wait()
	}()
	h := j.askFor(3 * time.Second)
	if err := <-left; err != nil {
		t.Errorf("the one that was told to leave: %v", err)
	}
	if h.orphans > 0 {
		t.Errorf("%d asks were lost to the link", h.orphans)
	}
	t.Logf("one of two judges left: %s", h)
}
