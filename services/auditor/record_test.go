package auditor

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/pkg/protocol"
)

const (
	ask      = "01JD0000000000000000000000"
	otherAsk = "01JD0000000000000000000001"
)

func decision(change func(*protocol.Decision)) []byte {
	d := protocol.Decision{
		Ask: ask, Node: "main", Gate: "g1", Agent: "a1", Result: protocol.FinalDeny, Outcome: protocol.DeniedByLink,
		Reason: "no", Tool: "bash", Surface: "bash", Value: "git push",
		DecidedBy: protocol.Decider{Kind: protocol.DeciderLink, Name: "model-judge", Node: "main"},
		Trail:     []protocol.TrailEntry{{Link: "model-judge", Verdict: protocol.ChoiceDeny, MS: 12}},
	}
	if change != nil {
		change(&d)
	}
	b, err := protocol.Write(d)
	if err != nil {
		panic(err)
	}
	return b
}

func review(change func(*protocol.ReviewRecord)) []byte {
	r := protocol.ReviewRecord{Ask: ask, Event: "model_judge.decision", Node: "main", At: time.Unix(1, 0).UTC()}
	if change != nil {
		change(&r)
	}
	b, err := protocol.Write(r)
	if err != nil {
		panic(err)
	}
	return b
}

const (
	decisionSubject = "assent.v1.main.decision." + ask + ".a1.bash.deny"
	reviewSubject   = "assent.v1.main.review." + ask + ".model_judge.decision"
)

// TestNewRecord: what is sound is not called broken, and what is broken is
// called so and kept byte for byte.
func TestNewRecord(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name    string
		stream  string
		subject string
		data    []byte
		ask     string
		broken  string // "" is sound
	}{
		{"a decision", protocol.StreamDecisions, decisionSubject, decision(nil), ask, ""},
		{"a decision with an outcome of a later version", protocol.StreamDecisions, decisionSubject,
			decision(func(d *protocol.Decision) { d.Outcome = "denied_by_moon" }), ask, ""},
		{"a decision on a surface that is no token", protocol.StreamDecisions, "assent.v1.main.decision." + ask + ".a1.other.deny",
			decision(func(d *protocol.Decision) { d.Surface = "mcp exa.search" }), ask, ""},
		{"a decision larger than a message may be", protocol.StreamDecisions, decisionSubject,
			decision(func(d *protocol.Decision) { d.Value = strings.Repeat("x", protocol.DefaultMaxBytes) }), ask, ""},
		{"a review record", protocol.StreamReview, reviewSubject, review(nil), ask, ""},
		{"a review record with fields", protocol.StreamReview, reviewSubject,
			review(func(r *protocol.ReviewRecord) { r.Fields = []byte(`{"a":[1,2]}`) }), ask, ""},

		{"an ask other than the subject's", protocol.StreamDecisions, decisionSubject,
			decision(func(d *protocol.Decision) { d.Ask = otherAsk }), ask, "reply is for ask"},
		{"an agent other than the subject's", protocol.StreamDecisions, decisionSubject,
			decision(func(d *protocol.Decision) { d.Agent = "a2" }), ask, "agent"},
		{"a node other than the subject's", protocol.StreamDecisions, decisionSubject,
			decision(func(d *protocol.Decision) { d.Node = "side" }), ask, "node is"},
		{"a surface other than the subject's", protocol.StreamDecisions, decisionSubject,
			decision(func(d *protocol.Decision) { d.Surface = "read" }), ask, "surface is"},
		{"a result other than the subject's", protocol.StreamDecisions, decisionSubject,
			decision(func(d *protocol.Decision) { d.Result, d.Outcome = protocol.FinalAllow, protocol.AllowedByRule }), ask, "result is"},
		{"another node's subject", protocol.StreamDecisions, strings.Replace(decisionSubject, ".main.", ".side.", 1), decision(nil), ask, "on node"},
		{"an id in another spelling", protocol.StreamDecisions, strings.Replace(decisionSubject, ask, strings.ToLower(ask), 1), decision(nil), "", "ask id"},
		{"a review subject among the decisions", protocol.StreamDecisions, reviewSubject, review(nil), ask, "in the stream"},
		{"a subject that is none of ours", protocol.StreamDecisions, "else.where", decision(nil), "", "does not begin"},
		{"an event other than the subject's", protocol.StreamReview, reviewSubject,
			review(func(r *protocol.ReviewRecord) { r.Event = "gate_error" }), ask, "event is"},
		{"an ask other than the review subject's", protocol.StreamReview, reviewSubject,
			review(func(r *protocol.ReviewRecord) { r.Ask = otherAsk }), ask, "ask is"},
		{"an empty body", protocol.StreamDecisions, decisionSubject, nil, ask, "malformed"},
		{"junk", protocol.StreamDecisions, decisionSubject, []byte("\x00\xff{"), ask, "malformed"},
		{"invalid UTF-8 in a string", protocol.StreamDecisions, decisionSubject, []byte("{\"v\":1,\"ask\":\"\xff\"}"), ask, "malformed"},
		{"a key twice", protocol.StreamDecisions, decisionSubject, append([]byte(`{"result":"allow",`), decision(nil)[1:]...), ask, "malformed"},
		{"a version that nobody knows", protocol.StreamDecisions, decisionSubject, []byte(`{"v":9}`), ask, "version"},
		{"a line break inside", protocol.StreamDecisions, decisionSubject, []byte("{\n\"v\":1}"), ask, "ask id"},
		{"two values", protocol.StreamDecisions, decisionSubject, append(decision(nil), " {}"...), ask, "malformed"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := Message{Stream: row.stream, Seq: 7, At: time.Unix(100, 5), Subject: row.subject, Data: row.data}
			rec := NewRecord("main", m)
			if rec.Ask != row.ask {
				t.Errorf("the record is kept under ask %q, want %q", rec.Ask, row.ask)
			}
			if (rec.Broken == "") != (row.broken == "") || !strings.Contains(rec.Broken, row.broken) {
				t.Errorf("broken: %q, want %q", rec.Broken, row.broken)
			}
			wantVerbatim(t, rec, row.data)
		})
	}
}

// wantVerbatim reads the record's line with another reader of JSON and looks
// for the body in it.
func wantVerbatim(t *testing.T, rec Record, data []byte) {
	t.Helper()
	line, err := rec.AppendLine([]byte("before\n"))
	if err != nil {
		t.Fatal(err)
	}
	line, ok := bytes.CutPrefix(line, []byte("before\n"))
	if !ok || bytes.Count(line, []byte("\n")) != 1 || line[len(line)-1] != '\n' {
		t.Fatalf("not one line: %q", line)
	}
	var got struct {
		Record json.RawMessage
		Raw    []byte
		Seq    uint64
		Broken string
	}
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatalf("the line is no JSON: %v\n%s", err, line)
	}
	if got.Seq != rec.Seq || got.Broken != rec.Broken {
		t.Errorf("the line says %d %q", got.Seq, got.Broken)
	}
	if body := append(got.Record, got.Raw...); !bytes.Equal(body, data) {
		t.Errorf("the line holds %q, want %q", body, data)
	}
	if k, ok := keyOf(line); !ok || k != rec.key() {
		t.Errorf("read back as %v %v, want %v", k, ok, rec.key())
	}
}

// FuzzRecord: whatever body and subject a message has, it becomes one line that
// another reader of JSON reads, with the body in it byte for byte.
func FuzzRecord(f *testing.F) {
	f.Add(protocol.StreamDecisions, decisionSubject, decision(nil))
	f.Add(protocol.StreamReview, reviewSubject, review(nil))
	f.Add(protocol.StreamReview, "a.b\nc", []byte("{\"a\":1,\"a\":\"\u2028\"}"))
	f.Add(protocol.StreamDecisions, "\xff", []byte(" 1 "))
	f.Fuzz(func(t *testing.T, stream, subject string, data []byte) {
		rec := NewRecord("main", Message{Stream: stream, Seq: 1, At: time.Unix(1, 1), Subject: subject, Data: data})
		line, err := rec.AppendLine(nil)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Count(line, []byte("\n")) != 1 {
			t.Fatalf("not one line: %q", line)
		}
		var got struct {
			Record json.RawMessage
			Raw    []byte
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("the line is no JSON: %v\n%s", err, line)
		}
		if body := append(bytes.Clone(got.Record), got.Raw...); !bytes.Equal(body, bytes.TrimSpace(data)) && !bytes.Equal(body, data) {
			t.Fatalf("the line holds %q, want %q", body, data)
		}
	})
}

// readLines reads the whole log in order of its files' names.
func readLines(t *testing.T, dir string) []Record {
	t.Helper()
	var out []Record
	for _, name := range logNames(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(b) {
			var rec struct {
				Ask, Stream, Subject, Broken string
				Kind                         Kind
				Seq                          uint64
				At                           time.Time
				Record                       json.RawMessage
				Raw                          []byte
			}
			if err := json.Unmarshal(line, &rec); err != nil || line[len(line)-1] != '\n' {
				t.Fatalf("%s holds a torn line: %v: %q", name, err, line)
			}
			out = append(out, Record{Ask: rec.Ask, Stream: rec.Stream, Subject: rec.Subject, Broken: rec.Broken, Kind: rec.Kind,
				Seq: rec.Seq, At: rec.At, Record: []byte(rec.Record), Raw: rec.Raw})
		}
	}
	return out
}
