package claudecode

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

const hookCall = `/usr/local/bin/assent hook claude-code --local '/home/dev/my files/local.json'`

var settingsFiles = map[string]string{
	"nothing":        "",
	"empty-object":   "{}\n",
	"one-line":       `{"model":"opus"}`,
	"other-settings": "{\n  \"model\": \"opus\",\n  \"env\": {\n    \"A\": \"1\"\n  }\n}\n",
	"tabs-and-crlf":  "{\r\n\t\"model\": \"opus\"\r\n}\r\n",
	"other-hooks": `{
  "hooks": {
    "PostToolUse": [
      { "matcher": "Edit", "hooks": [ { "type": "command", "command": "fmt" } ] }
    ],
    "PreToolUse": [
      {
        "matcher": "Bash"  ,
        "hooks": [{"type": "command", "command": "check", "timeout": 5}]
      }
    ]
  },
  "model": "opus"
}
`,
	"empty-lists": "{\n  \"hooks\": {\n    \"PreToolUse\": []\n  }\n}\n",
	"no-newline":  "{\n  \"model\": \"opus\"\n}",
}

func TestInstallAndUninstall(t *testing.T) {
	for name, text := range settingsFiles {
		t.Run(name, func(t *testing.T) {
			s := parsed(t, text)
			if s.Installed() {
				t.Error("installed before it was")
			}
			if string(s.Text()) != text && text != "" {
				t.Errorf("reading changes the text: %q", s.Text())
			}
			if !s.Install(hookCall) || !s.Installed() || s.Command() != hookCall {
				t.Error("not installed")
			}
			golden(t, filepath.Join("testdata/settings", name+".json"), s.Text())

			again := parsed(t, string(s.Text()))
			if again.Install(hookCall) || string(again.Text()) != string(s.Text()) {
				t.Errorf("installing twice changes the text:\n%s", again.Text())
			}
			if !again.Uninstall() || again.Installed() || again.Uninstall() {
				t.Error("not uninstalled")
			}
			switch name {
			case "nothing", "one-line", "empty-lists", "empty-object":
				// Where the brackets stood cannot be told from the text.
			default:
				if string(again.Text()) != text {
					t.Errorf("uninstalling leaves\n%s\nwant\n%s", again.Text(), text)
				}
			}
		})
	}
}

func parsed(t testing.TB, text string) *Settings {
	t.Helper()
	s, err := ParseSettings([]byte(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return s
}

// What stands there already, but would let a call pass, is put right.
func TestInstallMendsAHookOfOurs(t *testing.T) {
	const right = `{"type":"command","command":"/usr/local/bin/assent hook claude-code","timeout":600,"onFailure":"block"}`
	const command = "/usr/local/bin/assent hook claude-code"
	for name, hooks := range map[string]string{
		"another path":      `[{"matcher":"*","hooks":[{"type":"command","command":"/old/assent hook claude-code","timeout":600,"onFailure":"block"}]}]`,
		"no onFailure":      `[{"matcher":"*","hooks":[{"type":"command","command":"/usr/local/bin/assent hook claude-code","timeout":600}]}]`,
		"a short timeout":   `[{"matcher":"*","hooks":[{"type":"command","command":"/usr/local/bin/assent hook claude-code","timeout":60,"onFailure":"block"}]}]`,
		"one tool":          `[{"matcher":"Bash","hooks":[` + right + `]}]`,
		"no matcher":        `[{"hooks":[` + right + `]}]`,
		"a condition":       `[{"matcher":"*","hooks":[{"type":"command","command":"/usr/local/bin/assent hook claude-code","timeout":600,"onFailure":"block","if":"Bash(rm *)"}]}]`,
		"beside the call":   `[{"matcher":"*","hooks":[{"type":"command","command":"/usr/local/bin/assent hook claude-code","timeout":600,"onFailure":"block","async":true}]}]`,
		"twice":             `[{"matcher":"*","hooks":[` + right + `]},{"matcher":"*","hooks":[` + right + `]}]`,
		"in another's list": `[{"matcher":"*","hooks":[{"type":"command","command":"check"},` + right + `]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			s := parsed(t, `{"hooks":{"PreToolUse":`+hooks+`}}`)
			if !s.Install(command) {
				t.Fatal("left as it is")
			}
			s = parsed(t, string(s.Text()))
			if s.Install(command) || !s.installed(command) {
				t.Errorf("not put right: %s", s.Text())
			}
			if strings.Contains(hooks, "check") != strings.Contains(string(s.Text()), "check") {
				t.Errorf("another's hook is gone: %s", s.Text())
			}
		})
	}
	s := parsed(t, `{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[`+right+`]}]}}`)
	if s.Install(command) {
		t.Errorf("changed though it is right: %s", s.Text())
	}
}

func TestUninstallLeavesTheOthers(t *testing.T) {
	s := parsed(t, settingsFiles["other-hooks"])
	s.Install(hookCall)
	// Somebody adds a hook behind ours.
	text := strings.Replace(string(s.Text()), `"PreToolUse": [`, `"PreToolUse": [ {"matcher":"Read","hooks":[{"type":"command","command":"late"}]},`, 1)
	s = parsed(t, text)
	if !s.Uninstall() {
		t.Fatal("nothing found")
	}
	for _, theirs := range []string{"late", "check", "fmt", `"Bash"  ,`} {
		if !strings.Contains(string(s.Text()), theirs) {
			t.Errorf("%q is gone: %s", theirs, s.Text())
		}
	}
	if strings.Contains(string(s.Text()), "assent") {
		t.Errorf("ours is still there: %s", s.Text())
	}
}

func TestParseSettingsRefuses(t *testing.T) {
	for name, row := range map[string]struct{ text, where string }{
		"not JSON":            {"{\n  \"a\": nope\n}", "line 2, column 9"},
		"cut short":           {"{\n  \"a\": 1", "line 2"},
		"a list":              {"[]", "line 1, column 1"},
		"a text":              {`"x"`, "line 1, column 1"},
		"hooks as a list":     {"{\n  \"hooks\": []\n}", "line 2, column 12"},
		"an event as a text":  {"{\"hooks\": {\n\"PreToolUse\": \"x\"}}", "line 2, column 15"},
		"hooks twice":         {"{\"hooks\": {},\n \"hooks\": {}}", "line 2, column 2"},
		"an event twice":      {"{\"hooks\": {\"PreToolUse\": [],\n\"PreToolUse\": []}}", "line 2, column 1"},
		"two documents":       {"{} {}", "line 1, column 5"},
		"a key without value": {"{\"a\"}", "line 1"},
		"a comment":           {"{\n  // mine\n}", "line 2, column 3"},
		"a comment in front":  {"/* mine */ {}", "line 1, column 1"},
		"a comment behind":    {"{}\n// end\n", "line 2, column 1"},
		"a trailing comma":    {"{\n  \"a\": 1,\n}", "line 2, column 9"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSettings([]byte(row.text))
			if !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), row.where) {
				t.Errorf("error %v, want ErrSettings at %s", err, row.where)
			}
		})
	}
}

func TestHooksDisabled(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "{}": false, `{"disableAllHooks": false}`: false, `{"env":{"disableAllHooks":true}}`: false,
		`{"disableAllHooks": true}`: true, `{"disableAllHooks": "yes"}`: true, `{"disableAllHooks":false,"disableAllHooks":true}`: true,
	} {
		if got := parsed(t, text).HooksDisabled(); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestCheckVersion(t *testing.T) {
	for printed, ok := range map[string]bool{
		"2.1.295 (Claude Code)\n": true, "2.1.332 (Claude Code)": true, "2.2.0": true, "3.0.1": true, "v2.10.0": true, "2.1.1000": true,
		"2.1.294 (Claude Code)": false, "2.1.197": false, "2.0.999": false, "1.99.999": false, "": false, "Claude Code": false, "2.1": false,
		"12345678901234567890.0.0": false, "not 2.1.300": false,
	} {
		if err := CheckVersion(printed); (err == nil) != ok || err != nil && !errors.Is(err, ErrVersion) {
			t.Errorf("%q: %v, want ok %v", printed, err, ok)
		}
	}
}

// Whatever the settings hold: after Install they say the same and hold one hook
// of ours, and after Uninstall they say what they said before, but for lists
// that are empty.
func FuzzSettings(f *testing.F) {
	for _, text := range settingsFiles {
		f.Add(text)
	}
	files, _ := filepath.Glob("testdata/settings/*.json")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSettings([]byte(text))
		if err != nil || s.Installed() {
			return
		}
		before, ok := plain(s.Text())
		if !ok {
			return
		}
		if !s.Install(hookCall) {
			t.Fatal("not installed")
		}
		if err := strict(s.Text()); err != nil {
			t.Fatalf("strict JSON became lax: %v: %s", err, s.Text())
		}
		after := parsed(t, string(s.Text()))
		if !after.installed(hookCall) || after.Install(hookCall) {
			t.Fatalf("not as it should be: %s", after.Text())
		}
		if !after.Uninstall() {
			t.Fatal("not uninstalled")
		}
		if err := strict(after.Text()); err != nil {
			t.Fatalf("strict JSON became lax: %v: %s", err, after.Text())
		}
		gone, ok := plain(parsed(t, string(after.Text())).Text())
		if !ok || !reflect.DeepEqual(withoutEmpty(before), withoutEmpty(gone)) {
			t.Fatalf("changed beyond ours:\n%s\nto\n%s", text, after.Text())
		}
	})
}

func plain(text []byte) (map[string]any, bool) {
	v, err := hujson.Parse(text)
	if err != nil {
		return nil, false
	}
	v.Standardize()
	var m map[string]any
	return m, json.Unmarshal(v.Pack(), &m, jsontext.AllowInvalidUTF8(true)) == nil
}

func withoutEmpty(m map[string]any) map[string]any {
	hooks, _ := m["hooks"].(map[string]any)
	if list, ok := hooks[EventPreToolUse].([]any); ok && len(list) == 0 {
		delete(hooks, EventPreToolUse)
	}
	if hooks != nil && len(hooks) == 0 {
		delete(m, "hooks")
	}
	return m
}
