package judge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/assent-dev/assent/internal/llm/llmtest"
	"github.com/assent-dev/assent/internal/node"
	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	name = "model-judge"
	typo = "/home/dev/shop/packages/shop/src/a.ts"
)

// gate plays the gate's side of the wire and keeps what links log.
type gate struct {
	t  *testing.T
	n  *nodetest.Node
	nc *nats.Conn

	mu   sync.Mutex
	logs []protocol.LogRecord
}

func newGate(t *testing.T, n *nodetest.Node) *gate {
	t.Helper()
	g := &gate{t: t, n: n, nc: n.Connect(t, protocol.RoleGate, "g1")}
	logs, _ := n.Subjects.Logs("g1")
	if _, err := g.nc.Subscribe(logs, g.log); err != nil {
		t.Fatal(err)
	}
	if err := g.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *gate) log(m *nats.Msg) {
	rec, err := protocol.Read[protocol.LogRecord](m.Data)
	if err != nil {
		g.t.Errorf("log record: %v", err)
		return
	}
	g.mu.Lock()
	g.logs = append(g.logs, rec)
	g.mu.Unlock()
	data, err := protocol.Write(protocol.LogReceipt{Ask: m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]})
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		g.t.Errorf("receipt: %v", err)
	}
}

// decisions are the model_judge.decision records so far.
func (g *gate) decisions() []map[string]any {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []map[string]any
	for _, r := range g.logs {
		if r.Event != "model_judge.decision" {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(r.Fields, &fields); err != nil || r.Level != protocol.LevelReview {
			g.t.Errorf("record %+v: %v", r, err)
		}
		all = append(all, fields)
	}
	return all
}

// ask puts a read of path to the link and reads the verdict as a gate does.
func (g *gate) ask(link, path string) (protocol.Verdict, error) {
	return g.askWithin(link, path, 8*time.Second)
}

// askWithin is ask with that much time left.
func (g *gate) askWithin(link, path string, left time.Duration) (protocol.Verdict, error) {
	id := protocol.NewAskID()
	query, _ := g.n.Subjects.Query("g1", id)
	log, _ := g.n.Subjects.Log("g1", id)
	input, _ := json.Marshal(map[string]string{"file_path": path})
	data, err := protocol.Write(protocol.LinkRequest{
		Link:     link,
		Ask:      protocol.Ask{V: 1, ID: id, Agent: "ci-42", Tool: protocol.Tool{Name: "read", Input: input}},
		Asks:     []protocol.Entry{{Surface: "external_directory", Value: path, MatchedPattern: "*", Origin: "fleet"}},
		Deadline: time.Now().Add(left), Query: query, Log: log,
	})
	if err != nil {
		return protocol.Verdict{}, err
	}
	subject, err := g.n.Subjects.Link(link)
	if err != nil {
		return protocol.Verdict{}, err
	}
	m, err := g.nc.Request(subject, data, 8*time.Second)
	if err != nil {
		return protocol.Verdict{}, err
	}
	return protocol.ReadVerdictFor(id, m.Data)
}

func fileFor(t *testing.T, url, more string) File {
	t.Helper()
	f, err := Read([]byte(with(fmt.Sprintf(`,"baseURL":%q,"typoPatterns":["([^/]+)/packages/\\1(/|$)"]%s`, url, more))))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// run serves f until the test is over, and waits until its links are ready.
func run(t *testing.T, g *gate, f File, env map[string]string) {
	t.Helper()
	ready := make(chan struct{})
	j, err := New(Deps{
		NC: g.n.Connect(t, protocol.RoleJudge, "j1"), Node: g.n.Name(), File: f, Log: slog.New(slog.DiscardHandler),
		Env:   func(k string) (string, bool) { v, ok := env[k]; return v, ok },
		Ready: func() { close(ready) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- j.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	select {
	case <-ready:
	case <-time.After(10 * time.Second):
		t.Fatal("the links are not ready")
	}
}

var key = map[string]string{DefaultKeyEnv: "sk-test-0123456789\n"}

func TestFromTheFileToTheVerdict(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name    string
		answer  llmtest.Answer
		more    string
		env     map[string]string
		verdict protocol.Choice
		reason  string
		cause   any // deferReason
		called  bool
	}{
		{"a model that confirms denies and teaches", llmtest.Calls(`{"verdict":"deny","reason":"shop is doubled: use /home/dev/shop/src"}`), "", key, protocol.ChoiceDeny, "shop is doubled: use /home/dev/shop/src", nil, true},
		{"another variable holds the key", llmtest.Calls(`{"verdict":"deny","reason":"doubled"}`), `,"apiKeyEnv":"MY_KEY"`, map[string]string{"MY_KEY": "sk-mine"}, protocol.ChoiceDeny, "doubled", nil, true},

		{"a model that is unsure defers", llmtest.Calls(`{"verdict":"unsure","reason":""}`), "", key, protocol.ChoiceDefer, "", "non-deny-verdict", true},
		{"a model that would allow defers", llmtest.Calls(`{"verdict":"allow","reason":"go on"}`), "", key, protocol.ChoiceDefer, "", "non-deny-verdict", true},
		{"a key that is not taken defers", llmtest.Fails(401, "authentication_error", "no"), "", key, protocol.ChoiceDefer, "", "auth-failed", false},
		{"an unknown model defers", llmtest.Fails(404, "not_found_error", "model: m"), "", key, protocol.ChoiceDefer, "", "model-unresolved", false},
		{"prose defers", llmtest.Says("This is a typo, deny it."), "", key, protocol.ChoiceDefer, "", "no-tool-call", true},
		{"a cut-off deny defers", llmtest.CutOff(`{"verdict":"deny","reason":"dou"}`), "", key, protocol.ChoiceDefer, "", "no-tool-call", true},
		{"a model that hangs defers", llmtest.Hangs(), `,"timeoutMs":200`, key, protocol.ChoiceDefer, "", "timeout", true},
		{"a broken server defers", llmtest.Fails(500, "api_error", "oops"), `,"timeoutMs":5000`, key, protocol.ChoiceDefer, "", "call-failed", true},
		{"junk defers", llmtest.Raw(200, "application/json", `"deny"`), "", key, protocol.ChoiceDefer, "", "call-failed", true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, nodetest.Start(t))
			server := llmtest.Start(t, row.answer)
			run(t, g, fileFor(t, server.URL, row.more), row.env)
			v, err := g.ask(name, typo)
			if err != nil || v.Verdict != row.verdict || row.reason != "" && v.Reason != row.reason {
				t.Fatalf("verdict %+v, %v", v, err)
			}
			ds := g.decisions()
			if len(ds) != 1 {
				t.Fatalf("records %v", ds)
			}
			d := ds[0]
			if d["verdict"] != row.verdict.String() || d["deferReason"] != row.cause || d["modelCalled"] != row.called || d["path"] != typo || d["requestId"] != v.Ask {
				t.Errorf("record %v", d)
			}
			if len(d) != 10 {
				t.Errorf("the record has %d fields, want 10: %v", len(d), d)
			}
		})
	}
}

// A link without its key takes no asks, so that gates ask a judge that has one, and
// whoever lists running links sees why.
func TestALinkWithoutItsKeyTakesNoAsks(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{"": DefaultKeyEnv + " is not set", "sk-test": link.HealthOK} {
		g := newGate(t, nodetest.Start(t))
		run(t, g, fileFor(t, "http://127.0.0.1:1", `,"timeoutMs":200`), map[string]string{DefaultKeyEnv: env})
		if _, err := g.ask(name, typo); errors.Is(err, nats.ErrNoResponders) != (env == "") {
			t.Errorf("key %q: asked, it says %v", env, err)
		}
		subject, err := micro.ControlSubject(micro.InfoVerb, protocol.ServiceLink, "")
		if err != nil {
			t.Fatal(err)
		}
		m, err := g.n.Connect(t, protocol.RoleOperator, "op").Request(subject, nil, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		var info micro.Info
		if err := json.Unmarshal(m.Data, &info); err != nil || !strings.Contains(info.Metadata[link.MetadataHealth], want) {
			t.Errorf("key %q: %v, %v; want %q", env, err, info.Metadata, want)
		}
	}
}

func TestDeadModelServer(t *testing.T) {
	t.Parallel()
	g := newGate(t, nodetest.Start(t))
	run(t, g, fileFor(t, "http://127.0.0.1:1", `,"timeoutMs":1000`), key)
	v, err := g.ask(name, typo)
	if err != nil || v.Verdict != protocol.ChoiceDefer || v.Failure != "call-failed" {
		t.Errorf("verdict %+v, %v", v, err)
	}
	if ds := g.decisions(); len(ds) != 1 || ds[0]["deferReason"] != "call-failed" {
		t.Errorf("records %v", ds)
	}
}

func TestEveryLinkOfTheFileIsServed(t *testing.T) {
	t.Parallel()
	g := newGate(t, nodetest.Start(t))
	one := llmtest.Start(t, llmtest.Calls(`{"verdict":"deny","reason":"says one"}`))
	two := llmtest.Start(t, llmtest.Calls(`{"verdict":"deny","reason":"says two"}`))
	f := fileFor(t, one.URL, "")
	second := fileFor(t, two.URL, "").Links[name]
	f.Links["second"] = second
	run(t, g, f, key)
	for link, want := range map[string]string{name: "says one", "second": "says two"} {
		if v, err := g.ask(link, typo); err != nil || v.Reason != want {
			t.Errorf("%s: %+v, %v", link, v, err)
		}
	}
	if _, err := g.ask("third", typo); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("a link that is not in the file: %v", err)
	}
}

func TestCredentialForAnotherLink(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	j, err := New(Deps{
		NC: n.Connect(t, protocol.RoleJudge, "j1", node.IssueOptions{Links: []string{"other"}}), Node: n.Name(),
		File: fileFor(t, "http://127.0.0.1:1", ""), Env: func(string) (string, bool) { return "k", true }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := j.Run(ctx); !errors.Is(err, link.ErrForbidden) {
		t.Errorf("Run: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t)
	nc := n.Connect(t, protocol.RoleJudge, "j1")
	env := func(string) (string, bool) { return "k", true }
	good := fileFor(t, "", "")
	unchecked := File{Links: map[string]LinkConfig{name: {Kind: "typopath"}}}
	if _, err := New(Deps{NC: nc, Node: "main", File: good, Env: env}); err != nil {
		t.Errorf("a good file: %v", err)
	}
	for what, d := range map[string]Deps{
		"no connection":                    {Node: "main", File: good, Env: env},
		"no environment":                   {NC: nc, Node: "main", File: good},
		"no links":                         {NC: nc, Node: "main", Env: env},
		"settings that were never checked": {NC: nc, Node: "main", File: unchecked, Env: env},
	} {
		if j, err := New(d); err == nil || j != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
