package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assent-dev/assent/internal/bus"
	"github.com/assent-dev/assent/internal/llm/llmtest"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge"
)

// modelCalls is the model server of a story.
type modelCalls struct{ server *llmtest.Server }

// aboutAsks is how often the model was asked about an ask: the judge's self-test at
// its start is none.
func (m *modelCalls) aboutAsks() (n int) {
	for _, q := range m.server.Asked() {
		if len(q.Tools) != 1 || q.Tools[0].Name != judge.SelfTestTool {
			n++
		}
	}
	return n
}

// cleaner lets a story own what is made for a test.
type cleaner struct {
	testing.TB
	s *story
}

func (c cleaner) Helper()          {}
func (c cleaner) Cleanup(f func()) { c.s.ends = append(c.s.ends, f) }

// cmdModel starts a model server on loopback and writes judges.jsonc for it:
// "model deny REASON", "model unsure", "model prose", "model hang", "model dead".
// "model claim COMMAND…" says of every shell text that these are its commands,
// and the link is one on shell texts.
// "model asked N" wants it to have been asked N times.
func cmdModel(ts *testscript.TestScript, neg bool, args []string) {
	s := storyOf(ts)
	if neg || len(args) == 0 {
		ts.Fatalf("usage: model deny REASON|unsure|prose|hang|dead|claim COMMAND…|asked N")
	}
	settings := `"kind":"typopath","instructions":"A package's own name before packages/ is a typing mistake.","typoPatterns":["([^/]+)/packages/\\1(/|$)"]`
	var answer llmtest.Answer
	url := ""
	switch args[0] {
	case "deny":
		answer = llmtest.Calls(`{"verdict":"deny","reason":` + strconv.Quote(args[1]) + `}`)
	case "claim":
		claims, err := json.Marshal(args[1:])
		ts.Check(err)
		answer = llmtest.Calls(`{"commands":` + string(claims) + `,"complete":true}`)
		settings = `"kind":"shellcommand"`
	case "unsure":
		answer = llmtest.Calls(`{"verdict":"unsure","reason":""}`)
	case "prose":
		answer = llmtest.Says("I would rather not say.")
	case "hang":
		answer = llmtest.Hangs()
	case "dead":
		url = "http://127.0.0.1:1" // nothing listens there
	case "asked":
		if got := s.calls.aboutAsks(); strconv.Itoa(got) != args[1] {
			ts.Fatalf("the model was asked %d times, want %s", got, args[1])
		}
		return
	default:
		ts.Fatalf("unknown model %q", args[0])
	}
	if url == "" {
		s.calls = &modelCalls{llmtest.Start(cleaner{s: s}, answer)}
		url = s.calls.server.URL
	}
	ts.Setenv("ANTHROPIC_API_KEY", "test-key")
	ts.Check(os.WriteFile(ts.MkAbs("judges.jsonc"), fmt.Appendf(nil, `{"links":{"model-judge":{
		"provider":"anthropic","model":"claude-haiku-4-5","baseURL":%q,"apiKeyEnv":"ANTHROPIC_API_KEY","timeoutMs":1500,%s}}}`, url, settings), 0o600))
}

// cmdLink serves a link of the story's own with the local judge's credentials:
// "link NAME allow|deny|defer|junk|slow [REASON]". Each ask adds a line to
// NAME.asked.
func cmdLink(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: link NAME allow|deny|defer|junk|slow [REASON]")
	}
	s := storyOf(ts)
	name, reason := args[0], strings.Join(args[2:], " ")
	ctx, cancel := context.WithCancel(context.Background())
	nc, err := bus.Connect(ctx, bus.Config{URL: ts.Getenv("NATS"), Creds: ts.Getenv("CREDS_JUDGE"), Role: protocol.RoleJudge, Logger: slog.New(slog.DiscardHandler)})
	ts.Check(err)
	asked := filepath.Join(ts.Getenv("WORK"), name+".asked")
	if args[1] == "junk" {
		sub, err := nc.QueueSubscribe("assent.v1.main.link."+name, name, func(m *nats.Msg) {
			note(asked)
			m.Respond([]byte(`{"v":1,"verdict":"allow"`)) //nolint:errcheck // a story's judge
		})
		ts.Check(err)
		ts.Check(nc.Flush())
		s.ends = append(s.ends, func() { sub.Unsubscribe(); cancel(); nc.Close() }) //nolint:errcheck // the story is over
		return
	}
	decide := func(ctx context.Context, r link.Request) (protocol.Verdict, error) {
		note(asked)
		switch args[1] {
		case "allow":
			return protocol.Verdict{Verdict: protocol.ChoiceAllow, Reason: reason}, nil
		case "deny":
			return protocol.Verdict{Verdict: protocol.ChoiceDeny, Reason: reason}, nil
		case "slow":
			<-ctx.Done()
			return protocol.Verdict{}, ctx.Err()
		default:
			return protocol.Verdict{Verdict: protocol.ChoiceDefer}, nil
		}
	}
	done := make(chan error, 1)
	go func() { done <- link.Serve(ctx, nc, name, decide, link.Grace(time.Second)) }()
	s.ends = append(s.ends, func() { cancel(); <-done; nc.Close() })
	waitForLink(ts, name)
}

// waitForLink returns when the link answers discovery.
func waitForLink(ts *testscript.TestScript, name string) {
	cmdAwait(ts, false, []string{`"name":"` + name + `"[^}]*"running":[1-9]`, binary, "links", "--json"})
}

func note(file string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, "asked")
		f.Close()
	}
}
