package module

import (
	"slices"
	"strings"
	"testing"
)

// outcome is what becomes of a call whose checks are an attacking module's one
// and, after it, one that passes or one that blocks.
type outcome struct {
	does    string
	body    string // of the attacking handler
	failure string // parts of the failure's text, one of which it has; "": it is no failure
	says    Decision
}

// Whatever a module does in a handler, the call ends as a request with the
// failure or as the module says; the checks after it are asked, and the next
// call finds a worker that is as good as new.
func TestAModuleThatMisbehavesInACall(t *testing.T) {
	e := engine(t, Config{Workers: 1, Memory: 256 << 20})
	neighbour := module("neighbour", checkJS{name: "ok", body: `if (({}).polluted || [].polluted) return {block: "polluted"}`})
	blocking := module("blocking", checkJS{name: "no", body: `return {block: "never"}`})
	for _, row := range []outcome{
		{"it throws", `throw new Error("boom")`, "boom", Request},
		{"it throws what is no error", `throw {toString() { throw 1 }}`, "1", Request},
		{"its promise is rejected", `return Promise.reject(new Error("rejected"))`, "rejected", Request},
		{"its promise never settles", `await new Promise(() => {})`, "does not settle", Request},
		{"it allows, which there is not", `return {decision: "allow"}`, "no such answer", Request},
		{"it loops for ever", `while (true) {}`, "out of time", Request},
		{"its promises loop for ever", `const f = () => Promise.resolve().then(f); await f()`, "out of time", Request},
		{"its regexp runs away", `/^(a+)+(?=b)\1$/.test("a".repeat(40))`, "out of time", Request},
		{"it takes a gigabyte at once", `"x".repeat(1 << 30)`, "memory", Request},
		{"it takes a gigabyte of numbers", `new ArrayBuffer(1 << 30)`, "memory", Request},
		{"it takes all there is, bit by bit", `const l = []; while (true) l.push(new ArrayBuffer(1 << 24))`, "memory|out of time", Request},
		{"it calls itself for ever", `const f = () => f() + 1; f()`, "nest deeper|out of time", Request},
		{"it calls itself for ever through the language", `const f = () => [1].map(f); f()`, "nest deeper|out of time", Request},
		{"it sorts by calling itself", `const o = {toString() { return String(o) }}; String(o)`, "nest deeper|out of time", Request},
		{"it adds to what all objects have", `Object.prototype.polluted = true`, "polluted", Request},
		{"it adds to it by a careless merge", `const m = (a, b) => { for (const k in b) { if (typeof b[k] === "object") m(a[k] ??= {}, b[k]); else a[k] = b[k] } };
			m({}, JSON.parse('{"__proto__":{"polluted":true}}'))`, "polluted", Request},
		{"it swaps a function of the language", `Array.prototype.map = () => []`, "map", Request},
		{"it evaluates a text", `eval("1 + 1")`, "no text becomes code", Request},
		{"it makes a function of a text", `new Function("return 1")()`, "no text becomes code", Request},
		{"it gets at the maker of functions sideways", `(() => 1).constructor("return 1")()`, "no text becomes code", Request},
		{"it gets at the maker of async functions", `(async () => 1).constructor("return 1")()`, "no text becomes code", Request},
		{"it wants a module of Node", `require("fs")`, "require is not defined", Request},
		{"it wants the process", `process.exit(0)`, "process is not defined", Request},
		{"it wants the network", `await fetch("http://127.0.0.1")`, "fetch is not defined", Request},
		{"it wants to wait", `await new Promise((r) => setTimeout(r, 1))`, "setTimeout is not defined", Request},
		{"it imports what was not bundled", `await import("node:fs")`, "not enabled", Request},
		{"it looks through the globals and finds none of a host", `const host = Object.getOwnPropertyNames(globalThis).filter((n) => /require|process|fetch|Deno|Bun|console|Timeout/.test(n));
			if (host.length) throw new Error(host.join())`, "", Pass},
		{"an error with a name of its own is no pollution", `class E extends Error { constructor(m) { super(m); this.name = "E" } };
			const o = {}; o.toString = () => "o"; o.constructor = 1; if (String(o) !== "o" || String(new E("x")) !== "E: x") throw new Error(String(new E("x")))`, "", Pass},
		{"a function of its own is one still", `if (!((() => 1) instanceof Function) || typeof Function !== "function") throw new Error("lost")`, "", Pass},
	} {
		t.Run(row.does, func(t *testing.T) {
			bad := module("bad", checkJS{name: "bad", body: row.body})
			v := set(t, e, bad, neighbour).Check(t.Context(), bash("ls"))
			if v.Decision != row.says || !oneOf(v.Failure, row.failure) {
				t.Errorf("got %s, failure %q, want %s with %q", v.Decision, v.Failure, row.says, row.failure)
			}
			if v := set(t, e, bad, blocking).Check(t.Context(), bash("ls")); v.Decision != Block {
				t.Errorf("the block after it: got %s (%s)", v.Decision, v.Failure)
			}
			if v := set(t, e, neighbour).Check(t.Context(), bash("ls")); v.Decision != Pass {
				t.Errorf("the next call: got %s (%s %s)", v.Decision, v.Reason, v.Failure)
			}
		})
	}
}

// oneOf says whether text holds one of the parts; "" is for no text.
func oneOf(text, parts string) bool {
	if parts == "" || text == "" {
		return parts == text
	}
	return slices.ContainsFunc(strings.Split(parts, "|"), func(p string) bool { return strings.Contains(text, p) })
}

// A module that does not load, or says of its checks what makes no sense, is a
// problem with its cause; the others run.
func TestAModuleThatDoesNotLoad(t *testing.T) {
	e := engine(t, Config{Workers: 1, Memory: 256 << 20})
	checks := func(list string) string {
		return `({checks: ` + list + `, ask: async () => '{"decision":"none"}'})`
	}
	for _, row := range []struct{ does, code, problem string }{
		{"it is empty", ``, "empty"},
		{"it is no script", `const = 1`, "SyntaxError"},
		{"it throws", `throw new Error("boom")`, "boom"},
		{"it throws what cannot be shown", `throw {toString() { throw new Error("worse") }}`, "fail"},
		{"it loops for ever", `for (;;);`, "more than 2s"},
		{"it takes all memory", `"x".repeat(1 << 30)`, "memory"},
		{"it says nothing", `undefined`, "not bundled"},
		{"it has no ask", `({checks: "[]"})`, "not bundled"},
		{"its checks are no text", `({checks: [], ask() {}})`, "not bundled"},
		{"its checks throw when looked at", `({get checks() { throw new Error("boom") }, ask() {}})`, "boom"},
		{"its checks are no list", checks(`"{}"`), "no sense"},
		{"its checks are endless", checks(`"x".repeat(2 << 20)`), "the limit"},
		{"a check has no name", checks(`'[{"name":"","description":"","tools":null,"function":false}]'`), "no name"},
		{"a check's name redraws a terminal", checks(`'[{"name":"a\u001b[2J","description":"","tools":null,"function":false}]'`), "control"},
		{"two checks have one name", checks(`'[{"name":"a","tools":null},{"name":"a","tools":null}]'`), "two checks"},
		{"a check is for no tool", checks(`'[{"name":"a","tools":[]}]'`), "never be asked"},
		{"a check says an unknown thing", checks(`'[{"name":"a","tools":null,"allow":true}]'`), "no sense"},
		{"it reads a file", `require("fs").readFileSync("/etc/passwd")`, "require"},
	} {
		t.Run(row.does, func(t *testing.T) {
			bad := Source{Name: "bad", Level: LevelUser, Code: row.code}
			s, problems := e.Load(t.Context(), []Source{module("a"), bad, module("z", checkJS{name: "no", body: `return {block: "no"}`})})
			if len(problems) != 1 || problems[0].Module != "bad" || problems[0].Level != LevelUser || !strings.Contains(problems[0].Message, row.problem) {
				t.Errorf("problems %v, want one of bad with %q", problems, row.problem)
			}
			if v := s.Check(t.Context(), bash("ls")); v.Decision != Block {
				t.Errorf("the module after it: got %s (%s)", v.Decision, v.Failure)
			}
		})
	}
}
