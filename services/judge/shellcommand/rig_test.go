package shellcommand

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

const askID = "01K6AAAAAAAAAAAAAAAAAAAAAA"

// A policy that allows a few commands, and one that allows all but a few: under
// the second, nothing but the check of this package stands in a lie's way.
const (
	listed = `{"*":"ask","path":{"*":"allow","*.env":"deny"},"bash":{"*":"ask","git status *":"allow","git diff *":"allow","git log *":"allow","git fetch":"allow",
		"git -C *":"allow","ls *":"allow","cat *":"allow","echo *":"allow","cd *":"allow","make *":"allow","npm *":"allow","id":"allow","tee *":"allow","set *":"allow",
		"grep *":"allow","awk *":"allow","sed *":"allow","find *":"allow","tr *":"allow","rev":"allow","base64 *":"allow","curl *":"allow","python3 *":"allow",
		"git push *":{"action":"deny","reason":"Pushing is for people."}}}`
	open = `{"*":"allow","path":{"*":"allow"},"external_directory":"allow","bash":{"*":"allow","rm *":"ask","git push *":"ask"}}`
)

func compiled(t testing.TB, text string) *policy.Snapshot {
	t.Helper()
	s, err := policy.Compile("policy", []byte(`{"permission":`+text+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gateRules answers queries as a gate does, by a policy, and keeps them.
type gateRules struct {
	t      testing.TB
	policy *policy.Snapshot
	err    error

	mu    sync.Mutex
	asked []protocol.Query
}

func (q *gateRules) Check(_ context.Context, of protocol.Query) (protocol.Check, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked = append(q.asked, of)
	if q.err != nil {
		return protocol.Check{}, q.err
	}
	if _, err := protocol.Write(of); err != nil {
		q.t.Errorf("a query that no gate would take: %v", err)
	}
	cwd := of.Cwd
	if cwd == "" {
		cwd = "/repo"
	}
	c := q.policy.Check(policy.Query{Surface: of.Surface, Value: of.Value, Tool: of.Tool, Cwd: cwd, Home: "/home/dev", Platform: "linux", WithPaths: true})
	return protocol.Check{State: wire(c.State), MatchedPattern: c.MatchedPattern, Origin: c.Origin, Reason: c.Reason}, nil
}

func wire(a policy.Action) protocol.Action {
	switch a {
	case policy.Allow:
		return protocol.ActionAllow
	case policy.Ask:
		return protocol.ActionAsk
	default:
		return protocol.ActionDeny
	}
}

// call is what a gate with that policy makes of a command: how its rules rule
// it, and what it would hand a link.
func call(t testing.TB, s *policy.Snapshot, command string) (policy.Action, link.Request) {
	t.Helper()
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	return callOf(t, s, "bash", string(input))
}

func callOf(t testing.TB, s *policy.Snapshot, tool, input string) (policy.Action, link.Request) {
	t.Helper()
	got := s.Rule(policy.Call{Tool: tool, Input: jsontext.Value(input), Cwd: "/repo", Home: "/home/dev", Platform: "linux"})
	r := link.Request{
		Ask: protocol.Ask{ID: askID, Agent: "ci-42", Cwd: "/repo", Home: "/home/dev", Platform: "linux", Project: protocol.Project{Root: "/repo"},
			Tool: protocol.Tool{Name: tool, Input: jsontext.Value(input)}},
		Deadline: time.Now().Add(time.Minute), PolicyRevision: 7, Query: &gateRules{t: t, policy: s}, Log: &log{},
	}
	for _, e := range got.Open() {
		r.Asks = append(r.Asks, protocol.Entry{Surface: e.Surface, Value: e.Value, MatchedPattern: e.MatchedPattern, Origin: e.Origin, Unit: e.Unit, HumanOnly: e.HumanOnly, Floor: e.Floor})
	}
	for _, u := range got.Units {
		r.Units = append(r.Units, protocol.Unit{Text: u.Text, Decision: wire(u.Action), Pattern: u.Pattern, Note: u.Note})
	}
	return got.Action, r
}

// model is a provider that answers as told and remembers what it was asked.
type model struct {
	input string
	err   error
	// first runs before the answer, with the tools that the model was offered.
	first func(ctx context.Context, r llm.Request) error

	mu    sync.Mutex
	asked []llm.Request
	until []time.Time
}

func (m *model) Ask(ctx context.Context, r llm.Request) (llm.ToolCall, llm.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, r)
	deadline, _ := ctx.Deadline()
	m.until = append(m.until, deadline)
	info := llm.AnthropicInfo(r.Model)
	info.Attempts, info.Rounds, info.Latency, info.Usage = 1, 1, 1500*time.Microsecond, llm.Usage{Input: 900, Output: 40}
	if m.first != nil {
		if err := m.first(ctx, r); err != nil {
			return llm.ToolCall{}, info, err
		}
	}
	if m.err != nil {
		info.Text = "I cannot say."
		return llm.ToolCall{}, info, m.err
	}
	return llm.ToolCall{Input: jsontext.Value(m.input)}, info, nil
}

// claiming is a model that says these are all commands.
func claiming(t testing.TB, commands ...string) *model {
	t.Helper()
	if commands == nil {
		commands = []string{}
	}
	b, err := json.Marshal(said{Commands: commands, Complete: true})
	if err != nil {
		t.Fatal(err)
	}
	return &model{input: string(b)}
}

// log is a log capability that keeps what it gets.
type log struct {
	mu            sync.Mutex
	review, debug []string
}

func (j *log) Review(_ context.Context, event string, fields any) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.review = append(j.review, entry(event, fields))
	return nil
}

func (j *log) Debug(_ context.Context, event string, fields any) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.debug = append(j.debug, entry(event, fields))
	return nil
}

func entry(event string, fields any) string {
	b, err := json.Marshal(fields)
	if err != nil {
		return err.Error()
	}
	return event + " " + string(b)
}

func judgeWith(m llm.Provider) *Judge {
	return New(Settings{Model: "claude-haiku-4-5", Timeout: 5 * time.Second, Mark: func() string { return "mark" }}, m, slog.New(slog.DiscardHandler))
}

func verdictOn(t testing.TB, j *Judge, r link.Request) protocol.Verdict {
	t.Helper()
	v, err := j.Judge(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
