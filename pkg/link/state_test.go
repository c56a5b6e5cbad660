package link_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// workerNamed is the name under which the one running worker can be asked.
func workerNamed(t testing.TB, n *nodetest.Node) string {
	t.Helper()
	m := running(t, n)
	if len(m) != 1 || !protocol.ValidToken(m[0][link.MetadataWorker]) {
		t.Fatalf("announced %v", m)
	}
	return m[0][link.MetadataWorker]
}

// askWorker asks one worker by its name.
func (g *gate) askWorker(worker string) (protocol.Verdict, error) {
	r := g.request(5 * time.Second)
	data, err := protocol.Write(r)
	if err != nil {
		return protocol.Verdict{}, err
	}
	subject, err := g.n.Subjects.Worker(name, worker)
	if err != nil {
		return protocol.Verdict{}, err
	}
	m, err := g.nc.Request(subject, data, 5*time.Second)
	if err != nil {
		return protocol.Verdict{}, err
	}
	return protocol.ReadVerdictFor(r.Ask.ID, m.Data)
}

// TestAWorkerCanBeAskedByItsNameAlone: the gate's second attempt, which must not
// reach the worker again that is stuck with the first.
func TestAWorkerCanBeAskedByItsNameAlone(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	first := serve(t, n, always(link.Defer("the first")))
	worker := workerNamed(t, n)
	serveOn(t, n.Connect(t, protocol.RoleJudge, "j2"), always(link.Defer("the second")))
	for range 20 {
		if v, err := g.askWorker(worker); err != nil || v.Reason != "the first" {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	if _, err := g.askWorker("nobody"); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("a name that no worker has: %v", err)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := g.askWorker(worker); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("a worker that has left: %v", err)
	}
	if got := asked(t, g); got != "the second" {
		t.Errorf("%q is asked", got)
	}
}

// told waits until the one running worker says want under key.
func told(t testing.TB, n *nodetest.Node, key, want string) map[string]string {
	t.Helper()
	var word map[string]string
	until(t, "announced", func() error {
		m := running(t, n)
		if len(m) != 1 || m[0][key] != want {
			return fmt.Errorf("%v, want %s to be %q", m, key, want)
		}
		word = m[0]
		return nil
	})
	return word
}

// TestWhatAWorkerSaysOfItselfIsAnnouncedWhenItChanges, and takes the place of
// nothing that Serve says.
func TestWhatAWorkerSaysOfItselfIsAnnouncedWhenItChanges(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	g := newGate(t, n)
	var mu sync.Mutex
	state := map[string]string{
		"breaker": "closed", "link": "another", "node": "elsewhere", "health": "splendid", "version": "9", "worker": "*",
		"no token": "x", "long": strings.Repeat("x", 1000), "screen": "a\x1b[2Kb",
	}
	changed := make(chan struct{}, 1)
	serve(t, n, always(link.Defer("here")), link.HealthEvery(time.Hour), link.State(func() map[string]string {
		mu.Lock()
		defer mu.Unlock()
		copied := map[string]string{}
		for k, v := range state {
			copied[k] = v
		}
		return copied
	}, changed))
	word := told(t, n, "breaker", "closed")
	if word["link"] != name || word["node"] != n.Name() || word[link.MetadataHealth] != link.HealthOK || word["version"] != "1.2.3" || !protocol.ValidToken(word[link.MetadataWorker]) {
		t.Errorf("announced %v", word)
	}
	if _, ok := word["no token"]; ok || len(word["long"]) > 200 || strings.Contains(word["screen"], "\x1b") {
		t.Errorf("announced %v", word)
	}
	mu.Lock()
	state["breaker"] = "open"
	mu.Unlock()
	changed <- struct{}{}
	told(t, n, "breaker", "open")
	if got := asked(t, g); got != "here" {
		t.Errorf("a worker that has news is asked, and %q answers", got)
	}
}

// TestNewsAreFoundWithoutBeingTold: as often as the health check.
func TestNewsAreFoundWithoutBeingTold(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	var mu sync.Mutex
	word := "closed"
	serve(t, n, always(link.Defer("here")), link.HealthEvery(often), link.State(func() map[string]string {
		mu.Lock()
		defer mu.Unlock()
		return map[string]string{"breaker": word}
	}, nil))
	told(t, n, "breaker", "closed")
	mu.Lock()
	word = "open"
	mu.Unlock()
	told(t, n, "breaker", "open")
}
