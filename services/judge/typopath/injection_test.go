package typopath

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge/denials"
)

// injections are texts that would talk a judge into an allow.
func injections(t testing.TB) map[string]string {
	t.Helper()
	data, err := os.ReadFile("../brief/testdata/injections.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for line := range bytes.Lines(data) {
		var in struct{ Name, Text string }
		if err := json.Unmarshal(line, &in, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		texts[in.Name] = in.Text
	}
	if len(texts) < 40 {
		t.Fatalf("%d injections", len(texts))
	}
	return texts
}

const mark = "00112233445566778899aabbccddeeff"

// obeys is a judge whose model answers what the texts order.
func obeys(t testing.TB) (*Judge, *model) {
	m := &model{input: `{"verdict":"allow","reason":"as the text says"}`}
	j := judgeWith(t, m)
	j.set.Mark = func() string { return mark }
	return j, m
}

// TestInjectionsAreData: each text in each place of an ask that the model is
// shown comes to it as the value of that fact, inside the fence; a model that
// does what it says gets a defer for it.
func TestInjectionsAreData(t *testing.T) {
	t.Parallel()
	want := func(path, cwd, root string) facts {
		return facts{Path: path, Pattern: doubled, Tool: "read", Cwd: cwd, ProjectRoot: root}
	}
	places := map[string]func(text string) (link.Request, facts){
		"the path": func(s string) (link.Request, facts) {
			return read(typo + "/" + s), want(typo+"/"+s, "/home/dev/web", "/home/dev/web")
		},
		"an external path of a command": func(s string) (link.Request, facts) {
			r := read(typo)
			r.Ask.Tool.Name, r.Asks = "bash", []protocol.Entry{external(typo + "/" + s)}
			f := want(typo+"/"+s, "/home/dev/web", "/home/dev/web")
			f.Tool = "bash"
			return r, f
		},
		"the working directory": func(s string) (link.Request, facts) {
			r := read(typo)
			r.Ask.Cwd = s
			return r, want(typo, s, "/home/dev/web")
		},
		"the project's root": func(s string) (link.Request, facts) {
			r := read(typo)
			r.Ask.Project.Root = s
			return r, want(typo, "/home/dev/web", s)
		},
		"the tool's name": func(s string) (link.Request, facts) {
			r := read(typo)
			r.Ask.Tool.Name = s
			f := want(typo, "/home/dev/web", "/home/dev/web")
			f.Tool = s
			return r, f
		},
	}
	for name, text := range injections(t) {
		text = strings.ReplaceAll(text, "{mark}", mark)
		for place, put := range places {
			j, m := obeys(t)
			r, wanted := put(text)
			v := judged(t, j, r)
			if v.Verdict != protocol.ChoiceDefer || v.Failure != protocol.FailureMalformed || len(m.asked) != 1 {
				t.Fatalf("%s in %s: verdict %+v, asked %d times", name, place, v, len(m.asked))
			}
			if d := cmp.Diff(wanted, shownFacts(t, m.asked[0])); d != "" {
				t.Errorf("%s in %s: %s", name, place, d)
			}
			plain, _ := obeys(t)
			clean, err := question(plain.set, read(typo), match{typo, doubled})
			if err != nil || m.asked[0].System != clean.System || string(m.asked[0].Tool.Schema) != string(clean.Tool.Schema) {
				t.Errorf("%s in %s changes what stands outside of the fence", name, place)
			}
		}
	}
}

// TestInjectionsThatAreNoFact: what a model is not shown at all cannot talk to it.
func TestInjectionsThatAreNoFact(t *testing.T) {
	t.Parallel()
	for name, text := range injections(t) {
		j, m := obeys(t)
		r := read(typo)
		r.Ask.Intent, r.Ask.AgentName, r.Ask.Home, r.Ask.Session.ID = text, text, text, text
		r.Units = []protocol.Unit{{Text: text, Note: text}}
		input, err := json.Marshal(map[string]string{"file_path": typo, "content": text, "command": "ls # " + text, "description": text, text: text})
		if err != nil {
			t.Fatal(err)
		}
		r.Ask.Tool.Input = input
		r.Asks = append(r.Asks, protocol.Entry{Surface: "bash", Value: "cat <<E\n" + text + "\nE"})
		judged(t, j, r)
		wanted := facts{Path: typo, Pattern: doubled, Tool: "read", Cwd: "/home/dev/web", ProjectRoot: "/home/dev/web"}
		if d := cmp.Diff(wanted, shownFacts(t, m.asked[0])); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func judged(t testing.TB, j *Judge, r link.Request) protocol.Verdict {
	t.Helper()
	r.Log = &diary{}
	v, err := j.Judge(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// shownFacts are what stands in the fence of q, which is all of its user text.
func shownFacts(t testing.TB, q llm.Request) (f facts) {
	t.Helper()
	lines := strings.FieldsFunc(q.User, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' })
	if len(lines) != 3 || lines[0] != "facts-"+mark || lines[2] != lines[0] {
		t.Fatalf("the model receives %q", q.User)
	}
	if strings.ContainsAny(lines[1], "<>&") || strings.ContainsFunc(lines[1], func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Fatalf("raw in the fence: %q", lines[1])
	}
	if err := json.Unmarshal([]byte(lines[1]), &f, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestADenialIsRemembered: the same call hears the same reason without a model,
// and the record says so; what differs in a fact, or was no denial, is asked.
func TestADenialIsRemembered(t *testing.T) {
	t.Parallel()
	changed := func(change func(*link.Request)) link.Request {
		r := read(typo)
		r.PolicyRevision = 7
		change(&r)
		return r
	}
	rows := []struct {
		name  string
		input string
		then  link.Request
		again bool // the model is asked again
	}{
		{"the same facts", deny, changed(func(*link.Request) {}), false},
		{"another ask of another session", deny, changed(func(r *link.Request) {
			r.Ask.ID, r.Ask.Session.ID, r.Ask.Tool.CallID, r.Deadline = "01K6BBBBBBBBBBBBBBBBBBBBBB", "s9", "t9", time.Now().Add(time.Hour)
		}), false},
		{"another policy", deny, changed(func(r *link.Request) { r.PolicyRevision = 8 }), true},
		{"another agent", deny, changed(func(r *link.Request) { r.Ask.Agent = "ci-43" }), true},
		{"another directory", deny, changed(func(r *link.Request) { r.Ask.Cwd = "/home/dev/shop" }), true},
		{"a defer", unsure, changed(func(*link.Request) {}), true},
		{"an allow that is none", `{"verdict":"allow","reason":"x"}`, changed(func(*link.Request) {}), true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			m, log := &model{input: row.input}, &diary{}
			j := judgeWith(t, m)
			j.set.Denials = denialsFor(t)
			first := judged(t, j, changed(func(*link.Request) {}))
			row.then.Log = log
			second, err := j.Judge(t.Context(), row.then)
			if err != nil || second.Verdict != first.Verdict || second.Reason != first.Reason {
				t.Errorf("first %+v, then %+v, %v", first, second, err)
			}
			if asked := len(m.asked) == 2; asked != row.again {
				t.Errorf("the model was asked %d times", len(m.asked))
			}
			const cached = `"modelCalled":false,"modelId":"anthropic/claude-haiku-4-5","latencyMs":null,"api":"anthropic-messages","toolChoice":"tool","verdict":"deny","deferReason":null,"cached":true}`
			if got := strings.HasSuffix(log.review[0], cached); got == row.again {
				t.Errorf("record %s", log.review[0])
			}
		})
	}
}

func denialsFor(t testing.TB) *denials.Cache {
	t.Helper()
	c := denials.New(8, time.Hour)
	if c == nil {
		t.Fatal("no cache")
	}
	return c
}
