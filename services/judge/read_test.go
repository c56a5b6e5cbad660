package judge

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assent-dev/assent/services/judge/typopath"
)

func TestMain(m *testing.M) {
	code := m.Run()
	regexp2.StopTimeoutClock()
	if err := goleak.Find(); code == 0 && err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// with is a good file with more in its link; a later key must not stand twice.
func with(more string) string {
	return `{"links":{"model-judge":{"kind":"typopath","provider":"anthropic","model":"m","instructions":"i"` + more + `}}}`
}

// shellLink is a good file with a link on shell texts.
func shellLink(more string) string {
	return `{"links":{"model-judge":{"kind":"shellcommand","provider":"anthropic","model":"m"` + more + `}}}`
}

func TestReadTakes(t *testing.T) {
	t.Parallel()
	full := LinkConfig{Kind: "typopath", Provider: "anthropic", Model: "m", Instructions: "i", APIKeyEnv: "ANTHROPIC_API_KEY", TimeoutMS: 5000, Concurrency: 8}
	changed := func(f func(*LinkConfig)) LinkConfig { c := full; f(&c); return c }
	rows := []struct {
		name, doc string
		want      LinkConfig
	}{
		{"the least, with its defaults", with(``), full},
		{"comments and trailing commas", "// judges\n" + with(", /* none */") + "\n", full},
		{"an address", with(`,"baseURL":"http://127.0.0.1:9/x"`), changed(func(c *LinkConfig) { c.BaseURL = "http://127.0.0.1:9/x" })},
		{"an address of another machine", with(`,"baseURL":"https://llm.example/v1"`), changed(func(c *LinkConfig) { c.BaseURL = "https://llm.example/v1" })},
		{"a key over http, where that is wanted", with(`,"baseURL":"http://llm.example:4000","insecureHTTP":true`), changed(func(c *LinkConfig) { c.BaseURL, c.InsecureHTTP = "http://llm.example:4000", true })},
		{"an empty address is the provider's own", with(`,"baseURL":""`), full},
		{"another variable", with(`,"apiKeyEnv":"MY_KEY"`), changed(func(c *LinkConfig) { c.APIKeyEnv = "MY_KEY" })},
		{"patterns with back-reference and look-ahead", with(`,"typoPatterns":["([^/]+)/packages/\\1(/|$)","pi/(?!pi-packages/)pi-[^/]+"]`),
			changed(func(c *LinkConfig) {
				c.TypoPatterns = []string{`([^/]+)/packages/\1(/|$)`, `pi/(?!pi-packages/)pi-[^/]+`}
			})},
		{"no patterns", with(`,"typoPatterns":[]`), changed(func(c *LinkConfig) { c.TypoPatterns = []string{} })},
		{"a key's file", with(`,"apiKeyFile":"/run/key"`), changed(func(c *LinkConfig) { c.APIKeyEnv, c.APIKeyFile = "", "/run/key" })},
		{"another provider, with its own variable", strings.Replace(with(``), "anthropic", "openai", 1), changed(func(c *LinkConfig) { c.Provider, c.APIKeyEnv = "openai", "OPENAI_API_KEY" })},
		{"a local server without a key", strings.Replace(with(`,"baseURL":"http://127.0.0.1:11434/v1"`), "anthropic", "openai-compatible", 1),
			changed(func(c *LinkConfig) {
				c.Provider, c.APIKeyEnv, c.BaseURL = "openai-compatible", "", "http://127.0.0.1:11434/v1"
			})},
		{"another machine's server without a key", strings.Replace(with(`,"baseURL":"http://gpu.example:11434/v1"`), "anthropic", "openai-compatible", 1),
			changed(func(c *LinkConfig) {
				c.Provider, c.APIKeyEnv, c.BaseURL = "openai-compatible", "", "http://gpu.example:11434/v1"
			})},
		{"a local server with one", strings.Replace(with(`,"baseURL":"http://127.0.0.1:11434/v1","apiKeyEnv":"K"`), "anthropic", "openai-compatible", 1),
			changed(func(c *LinkConfig) {
				c.Provider, c.APIKeyEnv, c.BaseURL = "openai-compatible", "K", "http://127.0.0.1:11434/v1"
			})},
		{"a part of the breaker", with(`,"breaker":{"failures":5}`), changed(func(c *LinkConfig) {
			c.Breaker = &BreakerConfig{Failures: 5, Rate: 0.5, Least: 10, WindowMS: 60000, OpenMS: 60000}
		})},
		{"a budget and a price", with(`,"budget":{"callsPerMinute":60,"agentDollarsPerDay":0.5},"price":{"inputPerMillion":1,"outputPerMillion":5}`), changed(func(c *LinkConfig) {
			c.Budget, c.Price = &BudgetConfig{CallsPerMinute: 60, AgentDollarsPerDay: 0.5}, &PriceConfig{Input: 1, Output: 5}
		})},
		{"a budget of calls alone", with(`,"budget":{"agentCallsPerMinute":6}`), changed(func(c *LinkConfig) { c.Budget = &BudgetConfig{AgentCallsPerMinute: 6} })},
		{"no denials remembered", with(`,"denialCache":{"entries":0}`), changed(func(c *LinkConfig) { c.Denials = &DenialsConfig{Entries: 0, Minutes: 10} })},
		{"the least time and room", with(`,"timeoutMs":1,"concurrency":1`), changed(func(c *LinkConfig) { c.TimeoutMS, c.Concurrency = 1, 1 })},
		{"the most time and room", with(`,"timeoutMs":600000,"concurrency":1024`), changed(func(c *LinkConfig) { c.TimeoutMS, c.Concurrency = 600000, 1024 })},
	}
	shell := changed(func(c *LinkConfig) { c.Kind, c.Instructions, c.Rounds = "shellcommand", "", 4; c.MaxBytes = 32768 })
	for _, more := range []struct {
		name, more string
		change     func(*LinkConfig)
	}{
		{"a shell link, with its own instructions", ``, func(*LinkConfig) {}},
		{"a shell link with the operator's", `,"instructions":"i"`, func(c *LinkConfig) { c.Instructions = "i" }},
		{"one turn", `,"rounds":1`, func(c *LinkConfig) { c.Rounds = 1 }},
		{"the most turns and bytes", `,"rounds":16,"maxBytes":65536`, func(c *LinkConfig) { c.Rounds, c.MaxBytes = 16, 65536 }},
		{"the least bytes", `,"maxBytes":256`, func(c *LinkConfig) { c.MaxBytes = 256 }},
	} {
		want := shell
		more.change(&want)
		rows = append(rows, struct {
			name, doc string
			want      LinkConfig
		}{more.name, shellLink(more.more), want})
	}
	schema := compiledSchema(t)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			f, err := Read([]byte(row.doc))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(row.want, f.Links["model-judge"]); d != "" {
				t.Error(d)
			}
			if !schemaTakes(t, schema, []byte(row.doc)) {
				t.Error("the schema refuses what the reader takes")
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, doc, want string }{
		{"nothing", ``, "line 1, column 1"},
		{"no JSON", "{\n  links: 1}", "line 2, column 3"},
		{"no object", `[]`, "line 1, column 1: this is a list; expected an object"},
		{"no links", `{}`, `line 1, column 1: "links" is required`},
		{"links without a link", `{"links":{}}`, `"links" is required`},
		{"an unknown key in the file", "{\n \"link\":{}}", `line 2, column 2: unknown key "link"; did you mean "links"?`},
		{"an unknown key in a link", "// judges\n" + with(",\n  \"modle\":\"x\""), `line 3, column 3: unknown key "modle" in "links.model-judge"; did you mean "model"?`},
		{"a key in another case", with(`,"baseurl":""`), `unknown key "baseurl" in "links.model-judge"; did you mean "baseURL"?`},
		{"the key itself", with(`,"apiKey":"sk-ant-0123456789"`), `unknown key "apiKey" in "links.model-judge"; a key never stands in this file: name its variable in apiKeyEnv`},
		{"a key twice", with(`,"model":"n"`), `line 1, column 98: the key "model" stands twice`},
		{"a link twice", `{"links":{"a":{},"a":{}}}`, `the key "a" stands twice`},
		{"a text for a number", with(`,"timeoutMs":"5000"`), `"links.model-judge.timeoutMs" is a text; expected a number`},
		{"half a millisecond", with(`,"timeoutMs":0.5`), "timeoutMs"},
		{"null", with(`,"timeoutMs":null`), "null is no value here"},
		{"a null link", `{"links":{"a":null}}`, "null is no value here"},
		{"a link name that is no token", `{"links":{"a.b":{"kind":"typopath"}}}`, `link "a.b"`},
		{"invalid UTF-8", strings.Replace(with(``), `"m"`, "\"\xff\"", 1), "UTF-8"},

		{"no kind", strings.Replace(with(``), `"kind":"typopath",`, ``, 1), "link model-judge: kind: unknown kind (none)"},
		{"another kind", strings.Replace(with(``), `typopath`, `shell`, 1), `unknown kind "shell": want one of typopath, shellcommand`},
		{"no model", strings.Replace(with(``), `"model":"m",`, ``, 1), "model: it is required"},
		{"a blank model", strings.Replace(with(``), `"m"`, `" "`, 1), "model: it is required"},
		{"no instructions", strings.Replace(with(``), `,"instructions":"i"`, ``, 1), "instructions: it is required"},
		{"no provider", strings.Replace(with(``), `"provider":"anthropic",`, ``, 1), `unknown provider (none): want one of anthropic, openai, openai-compatible`},
		{"a compatible provider without its address", strings.Replace(with(``), `anthropic`, `openai-compatible`, 1), `baseURL: it is required`},
		{"a key from two places", with(`,"apiKeyEnv":"A","apiKeyFile":"/run/key"`), "apiKeyEnv: the key comes from apiKeyEnv or from apiKeyFile"},
		{"a key's file that is the key", with(`,"apiKeyFile":"sk-ant-0123456789"`), "apiKeyFile: want the absolute path"},
		{"a key's file that is none", with(`,"apiKeyFile":""`), "apiKeyFile: want the absolute path"},
		{"a key's variable that is none", with(`,"apiKeyEnv":""`), "apiKeyEnv: want the name"},
		{"a breaker that never opens", with(`,"breaker":{"failures":0}`), "breaker: failures: 0 is out of bounds"},
		{"a rate that is none", with(`,"breaker":{"rate":1.5}`), "breaker: rate: 1.5 is out of bounds"},
		{"a breaker that never closes", with(`,"breaker":{"openMs":86400000}`), "breaker: openMs"},
		{"an unknown key of the breaker", with(",\n\"breaker\":{\"opens\":3}"), `line 2, column 12: unknown key "opens"`},
		{"dollars without a price", with(`,"budget":{"dollarsPerDay":5}`), `budget: a bound in dollars needs "price"`},
		{"dollars at no price", with(`,"budget":{"agentDollarsPerDay":5},"price":{}`), `budget: a bound in dollars needs "price"`},
		{"less than no calls", with(`,"budget":{"callsPerMinute":-1}`), "budget: callsPerMinute: -1"},
		{"a price that pays", with(`,"price":{"inputPerMillion":-1}`), "price: inputPerMillion: -1"},
		{"denials remembered for ever", with(`,"denialCache":{"minutes":100000}`), "denialCache: minutes: 100000"},
		{"a budget that is none", with(`,"budget":[]`), `"links.model-judge.budget" is a list; expected an object`},
		{"an unknown provider", strings.Replace(with(``), `anthropic`, `acme`, 1), `unknown provider "acme"`},
		{"no time", with(`,"timeoutMs":0`), "timeoutMs: 0 is out of bounds"},
		{"no room", with(`,"concurrency":0`), "concurrency: 0 is out of bounds"},
		{"less than no room", with(`,"concurrency":-1`), "concurrency: -1 is out of bounds"},
		{"a key that would go over the network in the clear", with(`,"baseURL":"http://llm.example:4000/v1"`), `baseURL: the key would go to "llm.example:4000" in the clear`},
		{"an address that is none", with(`,"baseURL":"api.anthropic.com"`), "baseURL: base URL"},
		{"a key in the file", with(`,"apiKeyEnv":"sk-ant-0123456789"`), "the key itself never stands in this file"},
		{"a pattern that is none", with(",\n\"typoPatterns\":[\"ok\",\"([^/]+\"]"), `line 2, column 16: link model-judge: typoPatterns: invalid typo pattern: "([^/]+"`},
		{"an empty pattern", with(`,"typoPatterns":[""]`), "an empty one would match every path"},
		{"no turns", shellLink(`,"rounds":0`), "rounds: 0 is out of bounds"},
		{"more turns than there are", shellLink(`,"rounds":17`), "rounds: 17 is out of bounds"},
		{"turns of a link that has none", with(`,"rounds":2`), "rounds: only shellcommand has it"},
		{"bytes of a link that has none", with(`,"maxBytes":1000`), "maxBytes: only shellcommand has it"},
		{"patterns of a link that has none", shellLink(`,"typoPatterns":["a"]`), "typoPatterns: only typopath has patterns"},
		{"instructions that say nothing", shellLink(`,"instructions":" "`), "instructions: it is required"},
		{"no bytes", shellLink(`,"maxBytes":0`), "maxBytes: 0 is out of bounds"},
		{"more bytes than there are", shellLink(`,"maxBytes":65537`), "maxBytes: 65537 is out of bounds"},
		{"too large a file", with(`,"x":"` + strings.Repeat("x", MaxFile) + `"`), "the limit is"},
	}
	schema := compiledSchema(t)
	onlyReader := []string{"dollars without a price", "dollars at no price", "instructions that say nothing", "a blank model", "an address that is none", "a pattern that is none", "a key that would go over the network in the clear", "a key twice", "a link twice", "invalid UTF-8"}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := Read([]byte(row.doc))
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("Read: %v; want %q", err, row.want)
			}
			if err != nil && strings.Contains(err.Error(), "sk-ant") {
				t.Error("the error shows a key")
			}
			if takes := schemaTakes(t, schema, []byte(row.doc)); takes && !slices.Contains(onlyReader, row.name) {
				t.Error("the schema takes what the reader refuses")
			}
		})
	}
}

func TestInvalidPatternIsNamedBySentinel(t *testing.T) {
	t.Parallel()
	if _, err := Read([]byte(with(`,"typoPatterns":["(?<"]`))); !errors.Is(err, typopath.ErrPattern) || !errors.Is(err, ErrConfig) {
		t.Errorf("Read: %v", err)
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "judges.jsonc")
	if _, err := ReadFile(path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); !errors.Is(err, ErrConfig) || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("half a file: %v", err)
	}
}

// FuzzRead: what the reader takes, the schema takes too, it reads the same when
// it is written out again, and it is a file that can be served.
func FuzzRead(f *testing.F) {
	for _, doc := range []string{
		with(``), with(`,"typoPatterns":["([^/]+)/packages/\\1(/|$)"],"timeoutMs":10`), `{"links":{"a":null}}`,
		shellLink(`,"rounds":2,"denialCache":{"entries":0}`), with(`,"breaker":{"rate":0.1},"budget":{"callsPerMinute":1},"price":{}`),
		"{// c\n}", with(`,"apiKeyEnv":"A"`), with(`,"apiKeyFile":"/k"`), strings.Repeat("[", 100), `{"links":{"a":{"kind":"typopath","kind":1}}}`,
	} {
		f.Add([]byte(doc))
	}
	schema := compiledSchema(f)
	f.Fuzz(func(t *testing.T, doc []byte) {
		start := time.Now()
		file, err := Read(doc)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("reading took %s", d)
		}
		if err != nil {
			if !errors.Is(err, ErrConfig) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		if !schemaTakes(t, schema, doc) {
			t.Error("the schema refuses what the reader takes")
		}
		for name, c := range file.Links {
			if key, err := c.check(); err != nil {
				t.Errorf("link %q, %s: %v", name, key, err)
			}
		}
		again, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Read(again)
		if d := cmp.Diff(withoutEmpty(file), withoutEmpty(back)); err != nil || d != "" {
			t.Errorf("written out and read again: %v, %s", err, d)
		}
	})
}

func withoutEmpty(f File) File {
	for name, c := range f.Links {
		if len(c.TypoPatterns) == 0 {
			c.TypoPatterns = nil
		}
		f.Links[name] = c
	}
	return f
}
