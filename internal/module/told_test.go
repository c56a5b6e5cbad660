package module

import (
	"fmt"
	"strings"
	"testing"
)

// asks is a module whose ask is this function.
func asks(name, ask string) Source {
	m := module(name, checkJS{name: "c"})
	m.Code = `({checks: JSON.stringify([{name: "c", description: "about c", tools: null, function: false}]), ask: ` + ask + `})`
	return m
}

// A script answers by a text or the promise of one. Only a text that says so is
// nothing: whatever else comes back is a failure.
func TestWhatAnAskGivesBack(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	const none, block = `'{"decision":"none"}'`, `'{"decision":"block","check":0,"reason":"no"}'`
	for _, row := range []struct {
		does, gives string
		says        Decision
	}{
		{"nothing, as a text", none, Pass},
		{"nothing, as a promise", `Promise.resolve(` + none + `)`, Pass},
		{"nothing, with its failures listed", `'{"decision":"none","failures":[]}'`, Pass},
		{"a text put together", `'{"decision":' + '"none"}'`, Pass},
		{"a block, as a text", block, Block},
		{"a block, as a promise", `Promise.resolve(` + block + `)`, Block},

		{"undefined", `undefined`, Request},
		{"null", `null`, Request},
		{"false", `false`, Request},
		{"zero", `0`, Request},
		{"an empty text", `""`, Request},
		{"a word", `"none"`, Request},
		{"nothing, with more behind it", none + ` + " "+ "x"`, Request},
		{"nothing, with an unknown failure", `'{"decision":"none","failures":[{"check":9,"error":""}]}'`, Request},
		{"an object", `({decision: "none"})`, Request},
		{"the object of a text", `new String(` + none + `)`, Request},
		{"a list of a text", `[` + none + `]`, Request},
		{"the promise of undefined", `Promise.resolve()`, Request},
		{"the promise of an object", `Promise.resolve({decision: "none"})`, Request},
		{"what is only like a promise", `({then(f) { f(` + none + `) }})`, Request},
		{"too long a text", `" ".repeat(1 << 17) + ` + none, Request},
	} {
		v := set(t, e, asks("m", `() => `+row.gives)).Check(t.Context(), bash("ls"))
		if v.Decision != row.says || (v.Failure != "") != (row.says == Request) {
			t.Errorf("%s: got %s (%s), want %s", row.does, v.Decision, v.Failure, row.says)
		}
	}
}

// A script that fails without a word has failed, and begins anew as any other.
func TestAFailureWithoutAWord(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	for _, row := range []struct{ does, fails, says string }{
		{"it throws an error", `throw new Error("no")`, "no"},
		{"it rejects with a word", `return Promise.reject("no")`, "no"},
		{"it rejects with an empty text", `return Promise.reject("")`, "does not say why"},
	} {
		s := set(t, e, asks("m", `(() => { let calls = 0; return () => { if (++calls === 2) { `+row.fails+` } return JSON.stringify({decision: "block", check: 0, reason: "" + calls}) } })()`))
		for _, want := range []string{"1", "", "1", ""} {
			v := s.Check(t.Context(), bash("ls"))
			if v.Reason != want || (v.Failure == "") != (want != "") || want == "" && !strings.Contains(v.Failure, row.says) {
				t.Errorf("%s: got %q (%s), want %q", row.does, v.Reason, v.Failure, want)
			}
		}
	}
}

// What is read once for all is made anew for each: what one check does to the call
// that it is told of is not seen by the next, nor by the next module or call.
func TestWhatACheckDoesToItsInputStaysThere(t *testing.T) {
	e := engine(t, Config{Workers: 1})
	const spoils = `(order, text) => {
		const call = JSON.parse(text), again = JSON.parse(text), fresh = JSON.stringify(call);
		for (const o of [call, call.session, call.project, call.tool, call.tool.input, call.tool.input.list, call.tool.input.list[1]])
			for (const k of Object.keys(o)) { if (typeof o[k] !== "object") o[k] = "spoiled"; }
		call.tool.input.list.push("more"); delete call.tool.input.deep; call.added = Object.getPrototypeOf(call) === Object.prototype;
		Object.freeze(call); Object.defineProperty(call.tool, "command", {value: "hidden", writable: false});
		const told = fresh === text && JSON.stringify(again) === text && JSON.stringify(JSON.parse(text)) === text;
		return JSON.stringify(told && call.added && call.tool.command === "hidden" ? {decision: "none"} : {decision: "block", check: 0, reason: fresh});
	}`
	first, second := asks("first", spoils), asks("second", spoils)
	second.Root = "/elsewhere"
	s := set(t, e, first, second, asks("first-again", spoils))
	input := `{"command":"ls","list":[1,{"a":"b"},null,true],"deep":{"__proto__":{"x":1},"constructor":2,"é":"𝄞"},"long":"` + strings.Repeat("long ", 20) + `"}`
	for i := range 3 {
		c := call("bash", input)
		c.Ask.Cwd = fmt.Sprint("/repo", i/2) // the same call twice, then another
		if v := s.Check(t.Context(), c); v.Decision != Pass {
			t.Fatalf("call %d: got %s by %s: %s %s", i, v.Decision, v.Check.ID(), v.Reason, v.Failure)
		}
	}
}

// A script that parses many texts, or long ones, has its worker remember few.
func TestFewTextsAreRemembered(t *testing.T) {
	texts := newJSONTexts()
	for i := range 10 * rememberedTexts {
		for _, text := range []string{fmt.Sprint("[", i, "]"), `"` + strings.Repeat("x", rememberedSize) + fmt.Sprint(i) + `"`} {
			if _, err := texts.read(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, l := range texts.last {
		if l.text == "" || len(l.text) > rememberedSize {
			t.Errorf("a text of %d bytes is remembered", len(l.text))
		}
	}
}
