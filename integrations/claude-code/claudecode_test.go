package claudecode

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/pkg/protocol"
)

var update = flag.Bool("update", false, "write the golden files anew")

const askID = "01KBAKQ5Y0000000000000000Z"

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", path, got, want)
	}
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v, jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/input", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(t testing.TB, name string) Input {
	t.Helper()
	in, err := ReadInput(recorded(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// Every recorded PreToolUse input becomes an ask that the contract's own reader
// takes.
func TestInputBecomesAsk(t *testing.T) {
	files, err := filepath.Glob("testdata/input/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			in, err := ReadInput(recorded(t, name))
			if name == "permission-request" || name == "post-tool-use" {
				if err == nil {
					t.Fatal("an event before which nothing can be stopped was taken")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			ask := in.Ask(Host{Home: "/home/dev", Platform: "linux"})
			ask.ID, ask.Agent = askID, "laptop"
			if _, err := protocol.Write(ask); err != nil {
				t.Errorf("the ask is refused: %v", err)
			}
			golden(t, filepath.Join("testdata/ask", name+".json"), indented(t, ask))
		})
	}
}

func TestReadInputRefuses(t *testing.T) {
	ok := string(recorded(t, "bash"))
	swap := func(old, with string) string {
		if !strings.Contains(ok, old) {
			t.Fatalf("the recorded input has no %q", old)
		}
		return strings.Replace(ok, old, with, 1)
	}
	for name, data := range map[string]string{
		"nothing":                  "",
		"white space":              " \n",
		"plain text":               "allow",
		"a list":                   "[]",
		"null":                     "null",
		"an empty object":          "{}",
		"two objects":              ok + ok,
		"cut short":                ok[:len(ok)/2],
		"a duplicate key":          swap(`"tool_name": "Bash"`, `"tool_name": "Bash", "tool_name": "Read"`),
		"a duplicate inside":       swap(`"command":`, `"command": "true", "command":`),
		"a key in another case":    swap(`"tool_name"`, `"Tool_Name"`),
		"invalid UTF-8":            swap("scripted", "\xff"),
		"a tool that is no text":   swap(`"Bash"`, `["Bash"]`),
		"no tool":                  swap(`"Bash"`, `""`),
		"an input that is a text":  swap(`"tool_input": {`, `"x": {`),
		"a folder that floats":     swap(`"cwd": "/home/dev/app"`, `"cwd": "app"`),
		"no session":               swap(`"session_id": "2f847d82-2ae4-45ee-a20c-480df470b290"`, `"session_id": ""`),
		"no event":                 swap(`"hook_event_name"`, `"event"`),
		"an event in another case": swap(`"PreToolUse"`, `"pretooluse"`),
	} {
		t.Run(name, func(t *testing.T) {
			in, err := ReadInput([]byte(data))
			if err == nil {
				t.Fatalf("taken as %+v", in)
			}
			if v := decisionOf(t, in.Refuse(err.Error())); v != wordDeny {
				t.Errorf("refused with %q", v)
			}
		})
	}
}

func decision(result protocol.FinalChoice, outcome protocol.Outcome, change func(*protocol.Decision)) protocol.Decision {
	d := protocol.Decision{
		V: protocol.CurrentVersion, Ask: askID, Node: "main", Gate: "g-1", Agent: "laptop", Result: result, Outcome: outcome,
		Tool: "bash", Surface: "bash", MatchedPattern: "npm *", DecidedAt: time.Unix(1, 0).UTC(),
		DecidedBy: protocol.Decider{Kind: protocol.DeciderRule, Name: "fleet", Node: "main"},
	}
	if change != nil {
		change(&d)
	}
	return d
}

func TestDecisionBecomesOutput(t *testing.T) {
	edit := func(input string) func(*protocol.Decision) {
		return func(d *protocol.Decision) { d.EditedInput = jsontext.Value(input) }
	}
	for _, row := range []struct {
		name, input string
		d           protocol.Decision
		want        string
	}{
		{"allowed-by-rule", "bash", decision(protocol.FinalAllow, protocol.AllowedByRule, nil), wordAllow},
		{"allowed-by-human-edited", "bash", decision(protocol.FinalAllow, protocol.AllowedByHuman, edit(`{"command":"ls"}`)), wordAllow},
		{"allowed-by-a-word-of-a-later-version", "bash", decision(protocol.FinalAllow, "allowed_by_quorum", nil), wordAllow},
		{"mcp-edited", "mcp", decision(protocol.FinalAllow, protocol.AllowedByHuman, edit(`{"server":"files","tool":"read_file","arguments":{"path":"a"}}`)), wordAllow},
		{"mcp-edited-to-another-tool", "mcp", decision(protocol.FinalAllow, protocol.AllowedByHuman, edit(`{"server":"files","tool":"write_file","arguments":{"path":"a"}}`)), wordDeny},
		{"mcp-edited-without-arguments", "mcp", decision(protocol.FinalAllow, protocol.AllowedByHuman, edit(`{"path":"a"}`)), wordDeny},
		{"edited-to-no-object", "bash", decision(protocol.FinalAllow, protocol.AllowedByHuman, edit(`"ls"`)), wordDeny},
		{"denied-by-rule", "bash", decision(protocol.FinalDeny, protocol.DeniedByRule, func(d *protocol.Decision) { d.Reason = "Use pnpm instead" }), wordDeny},
		{"denied-by-human-abort", "bash", decision(protocol.FinalDeny, protocol.DeniedByHuman, func(d *protocol.Decision) { d.Abort, d.Note = true, "stop here" }), wordDeny},
		{"expired", "bash", decision(protocol.FinalDeny, protocol.Expired, nil), wordDeny},
		{"allow-with-an-outcome-of-deny", "bash", decision(protocol.FinalAllow, protocol.DeniedByRule, nil), wordDeny},
		{"deny-with-an-outcome-of-allow", "bash", decision(protocol.FinalDeny, protocol.AllowedByRule, nil), wordDeny},
		{"allow-without-an-outcome", "bash", decision(protocol.FinalAllow, "", nil), wordDeny},
		{"allow-for-no-ask", "bash", decision(protocol.FinalAllow, protocol.AllowedByRule, func(d *protocol.Decision) { d.Ask = "" }), wordDeny},
		{"no-decision", "bash", protocol.Decision{}, wordDeny},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := read(t, row.input).Output(row.d)
			if got := decisionOf(t, out); got != row.want {
				t.Errorf("verdict %q, want %q", got, row.want)
			}
			golden(t, filepath.Join("testdata/output", row.name+".json"), out)
		})
	}
}

func TestRefuseSpeaksTheEventsDialect(t *testing.T) {
	in, err := ReadInput(recorded(t, "permission-request"))
	if err == nil {
		t.Fatal("taken")
	}
	golden(t, "testdata/output/refused-permission-request.json", in.Refuse("no gate answers: start `assent up`"))
	in, err = ReadInput(recorded(t, "post-tool-use"))
	if err == nil {
		t.Fatal("taken")
	}
	golden(t, "testdata/output/refused-post-tool-use.json", in.Refuse("misplaced"))
	golden(t, "testdata/output/refused.json", Refuse("no gate answers: start `assent up`"))
	golden(t, "testdata/output/refused-without-a-reason.json", Refuse(""))
	hostile := Refuse("a\x1b[2J\xff\u202e\n" + strings.Repeat("x", 20<<10))
	if decisionOf(t, hostile) != wordDeny || bytes.Contains(hostile, []byte("\x1b")) || len(hostile) > 10<<10 {
		t.Errorf("a hostile reason reaches the terminal: %d bytes", len(hostile))
	}
}

// decisionOf reads an output as Claude Code would, and fails the test unless it
// is one JSON object with an explicit verdict.
func decisionOf(t testing.TB, out []byte) string {
	t.Helper()
	var v struct {
		Specific struct {
			Event    string `json:"hookEventName"`
			Decision any    `json:"permissionDecision"`
			Request  struct {
				Behavior string `json:"behavior"`
			} `json:"decision"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("not JSON: %v: %s", err, out)
	}
	word, _ := v.Specific.Decision.(string)
	if v.Specific.Event == EventPermissionRequest {
		word = v.Specific.Request.Behavior
	}
	if word != wordAllow && word != wordDeny {
		t.Fatalf("no explicit verdict: %s", out)
	}
	return word
}

// Whatever comes in and whatever is decided, out comes one JSON object with an
// explicit verdict, and allow only for a decision that allows.
func FuzzInputToOutput(f *testing.F) {
	files, _ := filepath.Glob("testdata/input/*.json")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "reason", `{"command":"ls"}`, byte(1))
	}
	f.Add([]byte("{}"), "\xff\u2028", `{"a":`, byte(2))
	f.Fuzz(func(t *testing.T, data []byte, reason, edited string, result byte) {
		in, err := ReadInput(data)
		if err != nil {
			if decisionOf(t, in.Refuse(reason)) != wordDeny {
				t.Fatal("an unreadable input was allowed")
			}
			return
		}
		ask := in.Ask(Host{Home: "/home/dev", Platform: "linux"})
		if ask.Tool.Input.Kind() != '{' {
			t.Fatal("an ask without an input")
		}
		d := decision(protocol.FinalChoice(result), protocol.AllowedByHuman, func(d *protocol.Decision) {
			d.Reason, d.EditedInput = reason, jsontext.Value(edited)
		})
		if decisionOf(t, in.Output(d)) == wordAllow && !d.Allowed() {
			t.Fatal("allowed without a decision that allows")
		}
	})
}

// TestAnMCPNameIsTakenApartWhereThereIsOneWay: a server named after another and
// one of its tools must not pass for that.
func TestAnMCPNameIsTakenApartWhereThereIsOneWay(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]string{
		"mcp__exa__search": "exa/search", "mcp__exa_x__a_b": "exa_x/a_b", "mcp__exa__x_": "exa/x_", "mcp__exa__x__": "exa/x__",
		"mcp__exa__evil__x": "", "mcp__exa___x": "", "mcp__a__b__c__d": "", "mcp__exa__x___": "", "mcp__exa__": "", "mcp____x": "", "exa__x": "",
	} {
		call, ok := Input{Tool: tool}.mcp()
		if got := call.Server + "/" + call.Tool; ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, %v", tool, got, ok)
		}
	}
}
