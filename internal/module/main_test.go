package module

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/assent-dev/assent/pkg/protocol"
)

// The test binary is its own worker, as the real one is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == WorkerCommand {
		if err := Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == doomedCommand {
		doomed()
	}
	goleak.VerifyTestMain(m)
}

// doomedCommand runs an engine whose worker is in an endless call, for a test
// that ends the engine's process under it.
const doomedCommand = "doomed-engine"

func doomed() {
	e, err := New(Config{Workers: 1, CallTime: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	s, problems := e.Load(context.Background(), []Source{module("a", checkJS{name: "c", body: `for (;;);`})})
	if len(problems) > 0 {
		panic(problems)
	}
	go s.Check(context.Background(), bash("ls"))
	for range time.Tick(5 * time.Millisecond) {
		e.pool.mu.Lock()
		busy := e.pool.serving.busy() && len(e.pool.all) == 1+reserve && len(e.pool.idle) == reserve
		for p := range e.pool.all {
			if busy {
				fmt.Println(p.cmd.Process.Pid)
			}
		}
		e.pool.mu.Unlock()
		if busy {
			select {}
		}
	}
}

// engine is an engine that ends with its test. Its time for a call is wide
// enough for a machine that has much else to do; what runs away does so for ever.
func engine(t testing.TB, cfg Config) *Engine {
	t.Helper()
	if cfg.CallTime == 0 {
		cfg.CallTime = callTime
	}
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// set loads sources, all of which must load.
func set(t testing.TB, e *Engine, sources ...Source) *Set {
	t.Helper()
	s, problems := e.Load(t.Context(), sources)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return s
}

// checkJS is one check in a test's script: how it is registered, and the body of
// its handler, which sees `input`.
type checkJS struct {
	name, tools, body string
}

// module is a bundled module as the SDK makes one, by hand: handlers return
// nothing, {block: reason} or {request: prompt}.
func module(name string, checks ...checkJS) Source {
	return Source{Name: name, Level: LevelFleet, Root: "/etc/assent/" + name, Code: script1("", checks...)}
}

// script1 is such a module's script; prelude runs as it loads.
func script1(prelude string, checks ...checkJS) string {
	var list, handlers []string
	for _, c := range checks {
		tools := c.tools
		if tools == "" {
			tools = "null"
		}
		list = append(list, fmt.Sprintf(`{name:%q,description:%q,tools:%s,function:false}`, c.name, "about "+c.name, tools))
		handlers = append(handlers, "async (input) => {"+c.body+"}")
	}
	return prelude + `;(() => {
const handlers = [` + strings.Join(handlers, ",\n") + `];
return {
  checks: JSON.stringify([` + strings.Join(list, ",") + `]),
  async ask(order, text) {
    const input = JSON.parse(text), failures = [];
    for (const n of order) {
      try {
        const said = await handlers[n](input);
        if (said === undefined) continue;
        if ("block" in said) return JSON.stringify({decision: "block", check: n, reason: said.block, failures});
        if ("request" in said) return JSON.stringify({decision: "request", check: n, prompt: said.request, failures});
        throw new Error("no such answer: " + JSON.stringify(said));
      } catch (e) { failures.push({check: n, error: String(e)}); }
    }
    return JSON.stringify({decision: "none", failures});
  },
};
})()`
}

// bash is a call of a shell command.
func bash(command string) Call {
	return call("bash", fmt.Sprintf(`{"command":%q}`, command))
}

func call(tool, input string) Call {
	return Call{Ask: protocol.Ask{
		V: 1, ID: "01JZZZZZZZZZZZZZZZZZZZZZZZ", Agent: "ci-42", Session: protocol.Session{ID: "s1", Root: "s0", Interactive: true},
		Tool: protocol.Tool{Name: tool, Input: []byte(input)}, Cwd: "/repo", Home: "/home/dev", Platform: "linux",
		Project: protocol.Project{ID: "github.com/acme/shop", Root: "/repo"},
	}}
}
