package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/grafana/sobek"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/shellview"
)

// script is a bundle that runs, with nothing of the world but what the engine
// gives it too.
type script struct {
	vm     *sobek.Runtime
	object *sobek.Object
	ask    sobek.Callable
}

type check struct {
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Tools       *[]string `json:"tools"`
	Function    bool      `json:"function"`
}

type answer struct {
	Decision string `json:"decision"`
	Check    int    `json:"check"`
	Reason   string `json:"reason"`
	Prompt   *struct {
		Guidance, ApproveLabel, EditLabel, RejectLabel string
		Highlight                                      []struct{ Start, End int }
	} `json:"prompt"`
	Failures []struct {
		Check int    `json:"check"`
		Error string `json:"error"`
	} `json:"failures"`
}

func start(code string) (s *script, err error) {
	s = &script{vm: sobek.New()}
	_ = s.vm.Set("__assentParseShell", func(command, options string) string {
		out, err := shellview.Parse(command, options)
		if err != nil {
			panic(s.vm.NewGoError(err))
		}
		return out
	})
	program, err := sobek.Compile("module", code, true)
	if err != nil {
		return nil, err
	}
	value, err := s.vm.RunProgram(program)
	if err != nil {
		return nil, err
	}
	s.object = value.(*sobek.Object)
	s.ask, _ = sobek.AssertFunction(s.object.Get("ask"))
	return s, nil
}

// checks is what the script registered.
func (s *script) checks() (out []check, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return out, json.Unmarshal([]byte(s.object.Get("checks").String()), &out)
}

// says asks all checks about a call.
func (s *script) says(t *testing.T, call string) answer {
	t.Helper()
	checks, err := s.checks()
	if err != nil {
		t.Fatal(err)
	}
	order := make([]any, len(checks))
	for i := range order {
		order[i] = i
	}
	a, err := s.answer(s.vm.NewArray(order...), call)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// answer asks the checks of these numbers.
func (s *script) answer(order *sobek.Object, call string) (a answer, err error) {
	value, err := s.ask(sobek.Undefined(), order, s.vm.ToValue(call))
	if err != nil {
		return a, err
	}
	// A promise only where a check waited for something.
	if promise, ok := value.Export().(*sobek.Promise); ok {
		if promise.State() != sobek.PromiseStateFulfilled {
			return a, fmt.Errorf("%s: state %v, %v", call, promise.State(), promise.Result())
		}
		value = promise.Result()
	}
	return a, json.Unmarshal([]byte(value.String()), &a, json.MatchCaseInsensitiveNames(true))
}

// bashCall is the input of a bash call.
func bashCall(command string) string {
	c, _ := json.Marshal(command)
	return fmt.Sprintf(`{"cwd":"/repo","permissionRoot":"/p","session":{"id":"s","parent":"","root":"s","interactive":false},`+
		`"tool":{"toolName":"bash","input":{"command":%s},"detail":%s,"command":%s}}`, c, c, c)
}

// toolCall is the input of a call of another tool.
func toolCall(name, input string, more string) string {
	detail, _ := json.Marshal(input)
	return fmt.Sprintf(`{"cwd":"/repo","permissionRoot":"/p","session":{"id":"s","parent":"","root":"s","interactive":false},`+
		`"tool":{"toolName":%q,"input":%s,"detail":%s%s}}`, name, input, detail, more)
}

// fileCall is the input of a call of a built-in tool on a file in the project.
func fileCall(name, path string) string {
	return fmt.Sprintf(`{"cwd":"/repo","permissionRoot":"/p","session":{"id":"s","parent":"","root":"s","interactive":false},`+
		`"tool":{"toolName":%q,"input":{"path":%q},"detail":%q,"path":%q,"absolutePath":"/repo/%s","projectPath":%q}}`, name, path, path, path, path, path)
}

// write makes a folder of files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// running bundles one file and starts it.
func running(t *testing.T, text string) *script {
	t.Helper()
	code := source(t, text)
	s, err := start(code)
	if err != nil {
		t.Fatalf("%v\n%s", err, code)
	}
	return s
}

// source bundles one file.
func source(t *testing.T, text string) string {
	t.Helper()
	source, err := File(filepath.Join(write(t, map[string]string{"m.ts": text}), "m.ts"), module.LevelUser)
	if err != nil {
		t.Fatal(err)
	}
	return source.Code
}

// says is an answer in one line, with the highlighted parts of the detail.
func (a answer) says(detail string) string {
	switch a.Decision {
	case "block":
		return "block: " + a.Reason
	case "request":
		var parts []string
		for _, s := range a.Prompt.Highlight {
			parts = append(parts, detail[s.Start:s.End])
		}
		return strings.Join(strings.Fields("request "+a.Prompt.Guidance), " ") + " [" + strings.Join(parts, "|") + "]"
	}
	var failures []string
	for _, f := range a.Failures {
		failures = append(failures, f.Error)
	}
	return strings.TrimSpace(a.Decision + " " + strings.Join(failures, "; "))
}

func detailOf(t *testing.T, call string) string {
	t.Helper()
	var in struct {
		Tool struct {
			Detail string `json:"detail"`
		} `json:"tool"`
	}
	if err := json.Unmarshal([]byte(call), &in); err != nil {
		t.Fatal(err)
	}
	return in.Tool.Detail
}
