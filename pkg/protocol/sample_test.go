package protocol

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "rewrite golden files and the samples in docs/protocol.md")

const (
	askID   = "01KB9XYZ8P3N5Q7R9S1T3V5W7X"
	otherID = "01KB9XYZ8P00000000000000AA"
)

// at is the moment of every sample, seconds after a fixed start.
func at(seconds int) time.Time {
	return time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

// sample is one message with its type hidden, so that one table runs over all.
type sample struct {
	name  string
	value any
	// limit is the size that Read accepts by default.
	limit int
	write func() ([]byte, error)
	// read returns the value read and what Write makes of it.
	read func([]byte, ...ReadOption) (value any, again []byte, err error)
	zero func() ([]byte, error)
}

func newSample[M any, P Message[M]](name string, m M) sample {
	return sample{
		name: name, value: m, limit: limitsOf(P(&m), nil).bytes,
		write: func() ([]byte, error) { return Write[M, P](m) },
		read: func(b []byte, opts ...ReadOption) (any, []byte, error) {
			v, err := Read[M, P](b, opts...)
			if err != nil {
				return v, nil, err
			}
			again, err := Write[M, P](v, opts...)
			if err != nil {
				err = notWritten{err}
			}
			return v, again, err
		},
		zero: func() ([]byte, error) { var z M; return Write[M, P](z) },
	}
}

// notWritten is what read returns when Write refused what Read accepted.
type notWritten struct{ error }

func sampleAsk() Ask {
	return Ask{
		V: 1, ID: askID, Agent: "ci-42", AgentName: "reviewer", Source: SourceToolCall,
		Session:  Session{ID: "s2", Parent: "s1", Root: "s1"},
		Tool:     Tool{Name: "bash", CallID: "t1", Input: jsontext.Value(`{"command":"git push origin main"}`)},
		Cwd:      "/repo",
		Home:     "/home/dev",
		Platform: "linux",
		Paths:    []Path{{Raw: "../shared", Resolved: "/srv/shared"}},
		Project:  Project{ID: "github.com/acme/shop", Root: "/repo", Digest: "sha256:5f2a"},
		Intent:   "publish the release",
	}
}

const sampleProjectPolicy = `{"permission":{"bash":{"npm *":"deny"}}}`

func sampleEntries() []Entry {
	return []Entry{{Surface: "bash", Value: "git push origin main", MatchedPattern: "*", Origin: "fleet"}}
}

func sampleUnits() []Unit {
	return []Unit{{Text: "git push origin main", Decision: ActionAsk, Pattern: "*", Note: ""}}
}

func sampleTrail() []TrailEntry {
	return []TrailEntry{{Link: "model-judge", Verdict: ChoiceDefer, Reason: "not sure", Failure: "", MS: 412.5}}
}

func samplePrompt() Prompt {
	return Prompt{Name: "Push", Description: "Pushes to a remote", Guidance: "Only from main", Highlight: []Span{{Start: 0, End: 8}}, Check: "user:release/Push"}
}

func sampleGrant() *Grant {
	return &Grant{Scope: ScopeSession, Surface: "bash", Patterns: []string{"git push *"}, Expires: "2026-03-02T18:00:00Z", Uses: 5}
}

func sampleBoundGrant() Grant {
	g := *sampleGrant()
	g.Node, g.Agent, g.Session, g.Root, g.Project, g.GrantedBy, g.Ask = "main", "ci-42", "s2", "s1", "github.com/acme/shop", "oncall-1", askID
	return g
}

func sampleTerminalVerdict() TerminalVerdict {
	return TerminalVerdict{V: 1, Ask: askID, Verdict: FinalAllow, Outcome: AllowedByHuman, Reason: "release day", Note: "tag it too",
		EditedInput: jsontext.Value(`{"command":"git push --tags origin main"}`), Grant: sampleGrant(), Approver: "oncall-1", At: at(40)}
}

func sampleDecision() Decision {
	return Decision{
		V: 1, Ask: askID, Node: "main", Gate: "g-7f3a", Agent: "ci-42", Session: Session{ID: "s2", Parent: "s1", Root: "s1"},
		Result: FinalDeny, Outcome: DeniedByLink, Reason: "The path lies outside the project.", Tool: "read", Input: jsontext.Value(`{"file_path":"/srv/shared"}`), Approver: "oncall-1",
		Surface: "external_directory", Value: "/srv/shared", MatchedPattern: "*", Origin: "authorizer:model-judge",
		DecidedBy: Decider{Kind: DeciderLink, Name: "model-judge", Node: "main"},
		Trail:     []TrailEntry{{Link: "model-judge", Verdict: ChoiceDeny, Reason: "The path lies outside the project.", MS: 412}},
		Asks:      []Entry{{Surface: "external_directory", Value: "/srv/shared", MatchedPattern: "*", Origin: "fleet"}},
		Policy:    PolicyRef{Revision: 12, Digest: "sha256:77aa"}, CallDigest: "sha256:c0de",
		Requester: Requester{User: "UAGENTKEY", Host: "10.0.0.7"}, AskedAt: at(0), DecidedAt: at(1),
	}
}

func samplePending() Pending {
	v := sampleTerminalVerdict()
	return Pending{
		V: 1, Ask: sampleAsk(), Digest: "sha256:c0de", Node: "main", Requester: Requester{User: "UAGENTKEY"},
		Asks: sampleEntries(), Units: sampleUnits(), Suggest: []string{"git push *"}, Prompt: samplePrompt(),
		Policy: PolicyRef{Revision: 12, Digest: "sha256:77aa"}, Role: TerminalHuman, Chain: []string{"model-judge"},
		Trail: sampleTrail(), Stage: "terminal:human", Since: at(2), Deadline: at(3600), Owner: "g-7f3a", Lease: at(12), Taken: at(3),
		Verdict: &v, Withdrawn: &Cancel{V: 1, Ask: askID, Reason: "changed my mind"},
	}
}

// sampleModules are a module that was bundled and one that could not be.
func sampleModules() []ProjectModule {
	return []ProjectModule{
		{Name: "release", Code: "(() => { /* one script */ })()"},
		{Name: "corpus", Error: "corpus.ts:3:1: import \"node:fs\": modules import nothing but @assent/permissions and their own folder"},
	}
}

// samples has one valid value of every message of the contract.
func samples() []sample {
	const inv = "assent.v1.main."
	return []sample{
		newSample("ask", sampleAsk()),
		newSample("cancel", Cancel{V: 1, Ask: askID, Reason: "no longer needed"}),
		newSample("cancel_receipt", CancelReceipt{V: 1, Ask: askID, Cancelled: true}),
		newSample("project_upload", ProjectUpload{V: 1, Project: "github.com/acme/shop", Digest: ProjectDigest(sampleProjectPolicy), Policy: sampleProjectPolicy}),
		newSample("project_upload_modules", ProjectUpload{V: 1, Project: "github.com/acme/shop", Digest: ProjectDigest(sampleProjectPolicy, sampleModules()...), Policy: sampleProjectPolicy, Modules: sampleModules()}),
		newSample("project_receipt", ProjectReceipt{V: 1, Digest: ProjectDigest(sampleProjectPolicy)}),
		newSample("progress", Progress{V: 1, Ask: askID, Status: StatusPending, Stage: "terminal:human", Since: at(2)}),
		newSample("verdict", Verdict{V: 1, Ask: askID, Verdict: ChoiceDeny, Reason: "The path lies outside the project."}),
		newSample("link_request", LinkRequest{V: 1, Link: "model-judge", Ask: sampleAsk(), Asks: sampleEntries(), Units: sampleUnits(),
			Deadline: at(8), Query: inv + "query.g-7f3a.cap1", Log: inv + "log.g-7f3a.cap1", PolicyRevision: 12}),
		newSample("query", Query{V: 1, Surface: "bash", Value: "rm -rf build", Cwd: "/repo", AgentName: "reviewer"}),
		newSample("check", Check{V: 1, State: ActionDeny, MatchedPattern: "rm *", Origin: "fleet", Reason: "Use the trash."}),
		newSample("log_record", LogRecord{V: 1, Level: LevelReview, Event: "model_judge.decision", Fields: jsontext.Value(`{"tokens":312}`)}),
		newSample("log_receipt", LogReceipt{V: 1, Ask: askID, Kept: true}),
		newSample("terminal_request", TerminalRequest{V: 1, Kind: TerminalHuman, Ask: sampleAsk(), Asks: sampleEntries(), Units: sampleUnits(),
			Trail: sampleTrail(), Suggest: []string{"git push *"}, Deadline: at(3600), Prompt: samplePrompt()}),
		newSample("terminal_verdict", sampleTerminalVerdict()),
		newSample("parent_sign", ParentSign{V: 1, Parent: "root", Reason: "no connection", Release: "1.4.0", At: at(5)}),
		newSample("answer", Answer{V: 1, Ask: askID, Verdict: FinalAllow, Approver: "oncall-1", Reason: "release day", Note: "tag it too",
			EditedInput: jsontext.Value(`{"command":"git push --tags origin main"}`), Grant: sampleGrant()}),
		newSample("answer_receipt", AnswerReceipt{V: 1, Ask: askID, Accepted: true, AnsweredBy: "oncall-1", Verdict: FinalAllow, At: at(40)}),
		newSample("decision", sampleDecision()),
		newSample("review_record", ReviewRecord{V: 1, Event: "model_judge.decision", Ask: askID, Node: "main", At: at(1), Gate: "g-7f3a",
			Link: "model-judge", Fields: jsontext.Value(`{"tokens":312}`)}),
		newSample("notice", Notice{V: 1, Kind: NoticePrompt, Node: "main", At: at(3), Ask: askID, Agent: "ci-42"}),
		newSample("error_reply", ErrorReply{V: 1, Ask: askID, Error: Fault{Code: CodeConflict, Message: "this id stands for another call",
			Remedy: "ask again with a new id"}}),
		newSample("pending", samplePending()),
		newSample("freeze", Freeze{V: 1, Reason: "incident 7: wait for word", By: "op", At: at(5)}),
		newSample("confirm", Confirm{V: 1, Key: "freeze.agent.ci-42", Revision: 14}),
		newSample("confirmed", Confirmed{V: 1, Gate: "g-7f3a", Key: "freeze.agent.ci-42", Revision: 14}),
		newSample("stored_grant", StoredGrant{V: 1, Grant: sampleBoundGrant()}),
	}
}

func sampleNamed(tb testing.TB, name string) sample {
	tb.Helper()
	for _, s := range samples() {
		if s.name == name {
			return s
		}
	}
	tb.Fatalf("no sample %q", name)
	return sample{}
}

// alike compares messages: raw JSON by its content with numbers as spelled, and
// no list like an empty one.
var alike = cmp.Options{
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type() != reflect.TypeFor[jsontext.Value]() }, cmpopts.EquateEmpty()),
	cmp.Comparer(func(a, b jsontext.Value) bool { return bytes.Equal(canonical(a), canonical(b)) }),
}

func canonical(v jsontext.Value) []byte {
	c := v.Clone()
	if len(c) == 0 {
		return nil
	}
	if err := c.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return []byte("bad JSON: " + err.Error())
	}
	return c
}

func goldenPath(name string) string { return filepath.Join("testdata", "golden", name) }

// golden compares got with the golden file, or writes it under -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(goldenPath(name), got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenPath(name))
	if err != nil {
		t.Fatalf("%v; write it with: go test ./pkg/protocol -update", err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (-golden +got); if the change of the contract is meant, run with -update:\n%s", name, d)
	}
}
