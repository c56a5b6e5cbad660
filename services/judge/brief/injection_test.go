package brief

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
)

// injection is a text that would talk a judge into an allow.
type injection struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

func injections(t testing.TB) []injection {
	t.Helper()
	data, err := os.ReadFile("testdata/injections.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var list []injection
	for line := range bytes.Lines(data) {
		var in injection
		if err := json.Unmarshal(line, &in); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		list = append(list, in)
	}
	if len(list) < 40 {
		t.Fatalf("%d injections", len(list))
	}
	return list
}

const testMark = "00112233445566778899aabbccddeeff"

// places are where the text of an agent can come to stand in an ask. Each gives
// the request, the JSON pointer of the fact that must hold the text, and how it
// stands there.
var places = map[string]func(text string) (r link.Request, fact, holds string){
	"a comment of a command": func(s string) (link.Request, string, string) {
		c := "rm -rf build # " + s
		return bash(c), "/command", c
	},
	"a comment, as it is listed": func(s string) (link.Request, string, string) {
		s = oneLine(s)
		return bash("rm -rf build # " + s), "/comments/0/text", strings.TrimRight("# "+s, " \t")
	},
	"a here-document": func(s string) (link.Request, string, string) {
		c := "cat <<'E' | sh\n" + s + "\nE\n"
		return bash(c), "/command", c
	},
	"an open entry": func(s string) (link.Request, string, string) {
		return call("fetch", "fetch", s, nil), "/open/0/value", s
	},
	"a unit of a command": func(s string) (link.Request, string, string) {
		r := bash("ls")
		r.Units[0].Text = s
		return r, "/units/0/text", s
	},
	"a word of a list": func(s string) (link.Request, string, string) {
		return call("shell", "bash", "x", map[string]any{"command": []string{"sh", "-c", s}}), "/argv/2", s
	},
	"a file's name": func(s string) (link.Request, string, string) {
		return call("read", "read", "x", map[string]any{"file_path": "/repo/" + s}), "/arguments/file_path/0", "/repo/" + s
	},
	"a path as resolved": func(s string) (link.Request, string, string) {
		r := call("read", "read", "x", nil)
		r.Ask.Paths = []protocol.Path{{Raw: "x", Resolved: "/srv/" + s}}
		return r, "/paths/0/resolved", "/srv/" + s
	},
	"the working directory": func(s string) (link.Request, string, string) {
		r := bash("ls")
		r.Ask.Cwd = "/repo/" + s
		return r, "/cwd", "/repo/" + s
	},
	"the project's root": func(s string) (link.Request, string, string) {
		r := bash("ls")
		r.Ask.Project.Root = "/" + s
		return r, "/project_root", "/" + s
	},
	"the tool's name": func(s string) (link.Request, string, string) {
		return call("mcp__x__"+s, "mcp", "x", nil), "/tool", "mcp__x__" + s
	},
	"the person's words": func(s string) (link.Request, string, string) {
		r := bash("ls")
		r.Ask.Intent = s
		return r, "/intent", s
	},
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\\' {
			return '_'
		}
		return r
	}, s)
}

// TestInjectionsAreData puts every text into every place: what the model
// receives is three lines, the outer two of them the fence, and the text is the
// value of its fact in the JSON between them and nothing else anywhere.
func TestInjectionsAreData(t *testing.T) {
	t.Parallel()
	for _, in := range injections(t) {
		text := strings.ReplaceAll(in.Text, "{mark}", testMark)
		for place, put := range places {
			r, fact, holds := put(text)
			data := fenced(t, in.Name+" in "+place, written(t, r).User(testMark))
			if got := at(t, data, fact); got != holds {
				t.Errorf("%s in %s: the fact %s says %q, want %q", in.Name, place, fact, got, holds)
			}
		}
	}
}

// TestInjectionsInNamesAreNotShown: the names of arguments are an agent's to
// choose, and are shown only where they are no sentence.
func TestInjectionsInNamesAreNotShown(t *testing.T) {
	t.Parallel()
	for _, in := range injections(t) {
		data := fenced(t, in.Name, written(t, call("mcp__x__y", "mcp", "x:y", map[string]any{in.Text: "v"})).User(testMark))
		if strings.Contains(data, "arguments_not_shown") || !strings.Contains(data, `"arguments_without_a_fit_name":1`) {
			t.Errorf("%s: %s", in.Name, data)
		}
	}
	if data := written(t, call("mcp__x__y", "mcp", "x:y", map[string]any{"to_whom": "v"})).Data; !strings.Contains(data, `"arguments_not_shown":["to_whom"]`) {
		t.Errorf("an ordinary name: %s", data)
	}
}

// fenced is the one line between the lines of the fence.
func fenced(t testing.TB, what, user string) string {
	t.Helper()
	lines := strings.FieldsFunc(user, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' })
	if len(lines) != 3 || lines[0] != "facts-"+testMark || lines[2] != lines[0] || strings.Count(user, "\n") != 2 {
		t.Fatalf("%s: the model receives %q", what, user)
	}
	for _, r := range lines[1] {
		if hidden(r) || r < ' ' || strings.ContainsRune("<>&", r) {
			t.Fatalf("%s: %q stands raw in %q", what, r, lines[1])
		}
	}
	return lines[1]
}

func at(t testing.TB, data, pointer string) string {
	t.Helper()
	dec := jsontext.NewDecoder(strings.NewReader(data))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return ""
		}
		if tok.Kind() == '"' && string(dec.StackPointer()) == pointer {
			if kind, n := dec.StackIndex(dec.StackDepth()); kind != '{' || n%2 == 0 {
				return tok.String()
			}
		}
	}
}

// FuzzBrief: whatever stands in a command, a path or the person's words, what
// the model receives is one line of JSON in its fence, and says the same.
func FuzzBrief(f *testing.F) {
	for _, in := range injections(f) {
		f.Add(in.Text, in.Text)
	}
	f.Fuzz(func(t *testing.T, command, path string) {
		if !utf8.ValidString(command) {
			return // no tool input that was read holds such a text
		}
		r := bash(command)
		r.Ask.Cwd = path
		b, err := New(r, 0)
		if err != nil {
			if b.Data != "" || utf8.ValidString(path) && command != "" && len(command)+len(path) < 1000 {
				t.Errorf("%q in %q: %v", command, path, err)
			}
			return
		}
		data := fenced(t, "fuzz", b.User(testMark))
		if got := at(t, data, "/command"); got != Mask(command) && len(b.Masked) == 0 {
			t.Errorf("command %q is shown as %q", command, got)
		}
		if got := at(t, data, "/cwd"); got != path && len(b.Masked) == 0 {
			t.Errorf("cwd %q is shown as %q", path, got)
		}
	})
}
