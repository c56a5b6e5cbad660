package modules

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/bundle"
	"github.com/assent-dev/assent/pkg/protocol"
)

var update = flag.Bool("update", false, "write the examples into docs/modules.md, and that into the skill")

const (
	guide = "../../docs/modules.md"
	skill = "../../integrations/skills/assent-module/SKILL.md"
)

// The test binary is its own worker of modules, as the real one is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == module.WorkerCommand {
		if err := module.Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var shown = regexp.MustCompile("(?s)<!-- file: (\\S+) -->\n```(\\w+)\n(.*?)```\n")

// The guide shows each file of each example as it is.
func TestTheGuideShowsTheExamples(t *testing.T) {
	text := read(t, guide)
	now := shown.ReplaceAllStringFunc(text, func(block string) string {
		m := shown.FindStringSubmatch(block)
		return fmt.Sprintf("<!-- file: %s -->\n```%s\n%s```\n", m[1], m[2], read(t, m[1]))
	})
	if *update {
		if err := os.WriteFile(guide, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if now != text {
		t.Error("docs/modules.md does not show the examples as they are: run `go test ./examples/modules -update`")
	}
	_ = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err == nil && !d.IsDir() && (ext == ".ts" || ext == ".json" && path != "tsconfig.json") && !strings.Contains(text, "<!-- file: "+path+" -->") {
			t.Errorf("docs/modules.md does not show %s", path)
		}
		return err
	})
}

// The skill for agents is the guide, with the lines in front by which an agent
// finds it.
func TestTheSkillIsTheGuide(t *testing.T) {
	want := `---
name: assent-module
description: Write, test and put in force an Assent permission module (a TypeScript check of tool calls) from what somebody wants in plain words. Use when somebody wants to be asked before, or to block, certain commands, file changes or tool calls of an agent.
---

` + read(t, guide)
	if *update {
		if err := os.MkdirAll(filepath.Dir(skill), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(skill, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, skill) != want {
		t.Error("the skill is not the guide: run `go test ./examples/modules -update`")
	}
}

var asked = regexp.MustCompile("(?s)<!-- calls: (\\S+) -->\n```text\n(.*?)```\n")

// What the guide says that an example says, it says.
func TestTheExamplesSayWhatTheGuideSays(t *testing.T) {
	engine, err := module.New(module.Config{CallTime: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	examples := asked.FindAllStringSubmatch(read(t, guide), -1)
	if len(examples) != 6 {
		t.Fatalf("the guide has calls of %d examples, want 6", len(examples))
	}
	for _, e := range examples {
		t.Run(e[1], func(t *testing.T) {
			set, problems := engine.Load(t.Context(), sources(t, e[1]))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			lines := strings.Split(strings.TrimSuffix(e[2], "\n"), "\n")
			objects, passes := 0, 0
			for i := 0; i+1 < len(lines); i += 2 {
				got := says(t, set, lines[i])
				if got != lines[i+1] {
					t.Errorf("%s\n got %s\nwant %s", lines[i], got, lines[i+1])
				}
				if got == "nothing" {
					passes++
				} else {
					objects++
				}
			}
			if len(lines)%2 != 0 || objects < 2 || passes < 2 {
				t.Errorf("%d lines, %d calls that it objects to, %d that go on", len(lines), objects, passes)
			}
		})
	}
}

func sources(t *testing.T, name string) []module.Source {
	t.Helper()
	if filepath.Ext(name) == ".ts" {
		source, err := bundle.File(name, module.LevelUser)
		if err != nil {
			t.Fatal(err)
		}
		return []module.Source{source}
	}
	all, problems, err := bundle.Dir(name, module.LevelUser)
	if err != nil || len(problems) > 0 || len(all) != 1 {
		t.Fatal(err, problems, len(all))
	}
	return all
}

// says is what the modules make of a line of the guide: "$ command", or a call.
func says(t *testing.T, set *module.Set, line string) string {
	t.Helper()
	call := struct {
		Tool    string           `json:"tool"`
		Input   jsontext.Value   `json:"input"`
		Session protocol.Session `json:"session"`
	}{Session: protocol.Session{ID: "s1", Interactive: true}}
	if command, ok := strings.CutPrefix(line, "$ "); ok {
		call.Tool = "bash"
		call.Input, _ = json.Marshal(map[string]string{"command": command})
	} else if err := json.Unmarshal([]byte(line), &call, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	ask := protocol.Ask{V: 1, ID: ulid.Make().String(), Agent: "a", Session: call.Session, Tool: protocol.Tool{Name: call.Tool, Input: call.Input}, Cwd: "/repo", Platform: "linux"}
	v := set.Check(t.Context(), module.Call{Ask: ask})
	switch {
	case v.Failure != "":
		return "failure: " + v.Failure
	case v.Decision == module.Block:
		return "block: " + v.Reason
	case v.Decision == module.Request:
		return "request: " + marked(module.Detail(&ask), v.Prompt.Highlight)
	case v.Decision == module.Pass:
		return "nothing"
	}
	return v.Decision.String()
}

// marked is a text with its highlighted parts between marks.
func marked(detail string, spans []protocol.Span) string {
	out, last := "", 0
	for _, s := range spans {
		out += detail[last:s.Start] + "»" + detail[s.Start:s.End] + "«"
		last = s.End
	}
	return out + detail[last:]
}
