package bundle

import (
	"reflect"
	"strings"
	"testing"
)

// one is a module of one check.
func one(matcher, handler string) string {
	return `import { block, request, highlightSpans } from "@assent/permissions";
export default (api) => api.onToolUse({ name: "n", description: "d", ` + matcher + ` handler: ` + handler + ` });`
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ matcher, handler, want string }{
		"nothing":                      {"", "() => {}", "none"},
		"null":                         {"", "() => null", "none"},
		"a condition that is false":    {"", "() => 1 > 2 && block('x')", "none"},
		"block":                        {"", "() => block('Use make.')", "block: Use make."},
		"block without a reason":       {"", "() => block()", "block: "},
		"block by hand":                {"", "() => ({ decision: 'block', reason: 'x' })", "block: x"},
		"request":                      {"", "() => request()", "request []"},
		"later":                        {"", "async () => { await null; await 0; return request({ guidance: 'g' }); }", "request g []"},
		"an answer that is thenable":   {"", "() => ({ then(f) { f(block('x')); } })", "block: x"},
		"a matcher that picks":         {"matcher: (input) => input.tool.command.length === 8,", "() => block('x')", "block: x"},
		"a matcher that does not":      {"matcher: ({ cwd }) => cwd === '/other',", "() => block('x')", "none"},
		"a matcher that waits":         {"matcher: async () => false,", "() => block('x')", "none"},
		"a matcher that throws":        {"matcher: () => { throw new Error('oh'); },", "() => block('x')", "none Error: oh"},
		"throw":                        {"", "() => { throw new RangeError('far'); }", "none RangeError: far"},
		"throw of a text":              {"", "() => { throw 'far'; }", "none it threw far"},
		"throw of what has no text":    {"", "() => { throw { toString() { throw 1; } }; }", "none it threw something that has no text"},
		"reject":                       {"", "async () => { throw new Error('late'); }", "none Error: late"},
		"allow":                        {"", "() => ({ decision: 'allow' })", "none Error: it answered allow: a module can only block or request"},
		"a decision of its own":        {"", "() => ({ decision: 'maybe' })", `none Error: it answered the decision "maybe": not block or request`},
		"no decision":                  {"", "() => ({})", "none Error: it answered the decision undefined: not block or request"},
		"true":                         {"", "() => true", "none Error: it answered true: not nothing, block(…) or request(…)"},
		"a text":                       {"", "() => 'block'", "none Error: it answered block: not nothing, block(…) or request(…)"},
		"a function":                   {"", "() => block", "none Error: it answered"},
		"a text to highlight":          {"", "(i) => request({ highlight: 'g' })", "request [g]"},
		"patterns to highlight":        {"", "(i) => request({ highlight: ['t p', /h/] })", "request [t p|h]"},
		"spans":                        {"", "() => request({ highlight: [{ start: 4, end: 99 }, { start: -3, end: 1 }] })", "request [g|push]"},
		"spans that meet":              {"", "() => request({ highlight: [{ start: 2, end: 4 }, { start: 0, end: 3 }] })", "request [git ]"},
		"spans that are none":          {"", "() => request({ highlight: [{ start: 4, end: 2 }, { start: NaN, end: 2 }, { start: '1', end: 2 }, 7, null] })", "request []"},
		"a function that highlights":   {"", "() => request({ highlight: (d) => highlightSpans(d, /u/).filter((s) => s.start > 0) })", "request [u]"},
		"one that throws":              {"", "() => request({ highlight: () => { throw 1; } })", "request []"},
		"a pattern that is everywhere": {"", "() => request({ highlight: /(?:)/ })", "request []"},
		"a pattern that is sticky":     {"", "() => request({ highlight: /s/y })", "request [s]"},
		"guidance that is no text":     {"", "() => request({ guidance: 7, approveLabel: {} })", "request []"},
		"a prompt that is no object":   {"", "() => request('look')", "request []"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := running(t, one(row.matcher, row.handler))
			for range 2 { // and the second call as the first
				if got := s.says(t, bashCall("git push")).says("git push"); got != row.want && !(name == "a function" && strings.HasPrefix(got, row.want)) {
					t.Errorf("it says %q, want %q", got, row.want)
				}
			}
		})
	}
}

func TestWhatAModuleRegisters(t *testing.T) {
	t.Parallel()
	s := running(t, `export default (api) => {
  const handler = () => {};
  api.onToolUse({ name: "all", description: "A", handler });
  api.onToolUse({ name: "one", description: "B", matcher: "bash", handler });
  api.onToolUse({ name: "some", description: "C", matcher: ["read", "mcp__x"], handler });
  api.onToolUse({ name: "picked", description: "D", matcher: () => true, handler });
};`)
	got, err := s.checks()
	want := []check{{"all", "A", nil, false}, {"one", "B", &[]string{"bash"}, false}, {"some", "C", &[]string{"read", "mcp__x"}, false}, {"picked", "D", nil, true}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %+v", err, got)
	}
	for name, row := range map[string]struct{ module, want string }{
		"no function":              {"export default 1;", "default export is no function"},
		"no default export":        {"export const x = 1;", "default export is no function"},
		"it throws":                {"export default () => { throw new Error('oh'); };", "oh"},
		"it rejects":               {"export default async () => { throw new Error('oh'); };", "oh"},
		"it waits for ever":        {"export default () => new Promise(() => {});", "waits for something that never comes"},
		"no name":                  {"export default (api) => api.onToolUse({ description: 'd', handler() {} });", "a check has no name"},
		"no description":           {"export default (api) => api.onToolUse({ name: 'n', handler() {} });", `check "n" has no description`},
		"no handler":               {"export default (api) => api.onToolUse({ name: 'n', description: 'd' });", `check "n" has no handler`},
		"nothing":                  {"export default (api) => api.onToolUse();", "onToolUse takes"},
		"one name for two":         {"export default (api) => { for (const i of [1, 2]) api.onToolUse({ name: 'n', description: 'd', handler() {} }); };", `two checks are called "n"`},
		"a list of no tools":       {"export default (api) => api.onToolUse({ name: 'n', description: 'd', matcher: [], handler() {} });", `the matcher of check "n" is no tool name`},
		"a list of no names":       {"export default (api) => api.onToolUse({ name: 'n', description: 'd', matcher: [1], handler() {} });", `the matcher of check "n"`},
		"a pattern":                {"export default (api) => api.onToolUse({ name: 'n', description: 'd', matcher: /x/, handler() {} });", `the matcher of check "n"`},
		"matchCommand for nothing": {"import { matchCommand } from '@assent/permissions';\nexport default () => matchCommand({ program: [], onMatch() {} });", "matchCommand takes {program"},
		"matchCommand of an input": {"import { matchCommand } from '@assent/permissions';\nexport default () => matchCommand({}, 'git', 'tag', {});", "matchCommand takes {program"},
		"matchCommand, no action":  {"import { matchCommand } from '@assent/permissions';\nexport default () => matchCommand({ program: 'git' });", "matchCommand takes {program"},
		"no subcommands":           {"import { matchCommand } from '@assent/permissions';\nexport default () => matchCommand({ program: 'git', subcommands: [], onMatch() {} });", "which no command matches"},
		"one that is no list":      {"import { matchCommand } from '@assent/permissions';\nexport default () => matchCommand({ program: 'git', subcommands: 'push', onMatch() {} });", "subcommands is a list of words"},
		"code that throws":         {"throw new Error('at once'); export default () => {};", "at once"},
		"a timer":                  {"export default () => setTimeout(() => {}, 1);", "setTimeout is not defined"},
		"the process":              {"export default () => process.env.HOME;", "process is not defined"},
		"what it cannot know":      {"export default () => fetch('x');", "fetch is not defined"},
	} {
		source := source(t, row.module)
		s, err := start(source)
		if err == nil {
			_, err = s.checks()
		}
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

// A check that fails is noted; those after it are asked, the first that decides
// ends the walk.
func TestTheOrderOfChecks(t *testing.T) {
	t.Parallel()
	s := running(t, `import { block, request } from "@assent/permissions";
const asked = [];
export default (api) => {
  const check = (name, handler) => api.onToolUse({ name, description: "d", handler });
  check("quiet", () => {});
  check("broken", (input) => { input.tool.command = "changed"; throw new Error("oh"); });
  check("asks", ({ tool }) => request({ guidance: tool.command }));
  check("blocks", () => block("x"));
  check("late", () => { throw new Error("it was asked"); });
};`)
	for order, want := range map[string]string{
		"0 1 2 3 4": "request 2 ls; 1 Error: oh",
		"3 2 1":     "block 3 ",
		"0":         "none 0 ",
		"":          "none 0 ",
		"1 9 3":     "block 3 ; 1 Error: oh; 9 Error: there is no such check",
	} {
		var numbers []any
		for _, n := range strings.Fields(order) {
			numbers = append(numbers, int(n[0]-'0'))
		}
		got, err := s.answer(s.vm.NewArray(numbers...), bashCall("ls"))
		if err != nil {
			t.Fatal(err)
		}
		text := got.Decision + " " + string(rune('0'+got.Check)) + " "
		if got.Prompt != nil {
			text += got.Prompt.Guidance
		}
		for _, f := range got.Failures {
			text += "; " + string(rune('0'+f.Check)) + " " + f.Error
		}
		if text != want {
			t.Errorf("%s: %q, want %q", order, text, want)
		}
	}
	if _, err := s.vm.RunString("onToolUse"); err == nil {
		t.Error("the library is a global")
	}
}

// A module keeps what it declares, and registers nothing once it runs.
func TestNothingIsRegisteredInACall(t *testing.T) {
	t.Parallel()
	s := running(t, `export default (api) => api.onToolUse({ name: "n", description: "d", handler() { api.onToolUse({ name: "m", description: "d", handler() {} }); } });`)
	if got := s.says(t, bashCall("ls")).says("ls"); got != "none Error: a check can only be registered while the module loads" {
		t.Error(got)
	}
	if checks, _ := s.checks(); len(checks) != 1 {
		t.Errorf("%d checks", len(checks))
	}
}
