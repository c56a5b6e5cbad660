package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// evalOf rules lines by the command and returns the lines that it prints.
func evalOf(t *testing.T, lines ...string) (code int, out []evaluated, errs string) {
	t.Helper()
	env, o, e := testEnv()
	env.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	code = Main(env, []string{"policy", "eval"}, Policy)
	for _, l := range strings.Split(strings.TrimSpace(o.String()), "\n") {
		var one evaluated
		if err := json.Unmarshal([]byte(l), &one, json.RejectUnknownMembers(true)); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		out = append(out, one)
	}
	return code, out, e.String()
}

// TestErrorsNameNoTypeOfThisProgram: whoever writes a line or a case knows keys.
func TestErrorsNameNoTypeOfThisProgram(t *testing.T) {
	t.Parallel()
	const layers = `"layers":{"fleet":{"permission":{"*":"allow"}}},`
	for line, want := range map[string]string{
		`{"id":"a",` + layers + `"tool":5}`:                           `"tool" is a number; expected a text`,
		`{"id":"a",` + layers + `"tol":"x"}`:                          `unknown key "tol"`,
		`{"id":"a",` + layers + `"trusted":"no","tool":"x"}`:          `"trusted" is a text; expected true or false`,
		`{"id":"a",` + layers + `"tool":"x","grants":[{"surf":"x"}]}`: `unknown key "surf" in "grants.0"`,
		`{"id":"a",` + layers + `"tool":"x","tool":"y"}`:              `the key "tool" stands twice`,
		`{"id":"a",` + layers:                                         "it ends too early",
		`[]`:                                                          "this is a list; expected an object",
		`{"id":"a",` + layers + `"tool":"x","platform":"macos"}`:      `platform "macos" is unknown; expected linux, darwin or windows; write "darwin"`,
		`{"id":"a",` + layers + `"tool":"x","cwd":"repo"}`:            `cwd "repo" is not absolute; expected a path as /repo`,
		`{"id":"a",` + layers + `"tool":"x","home":"~"}`:              `home "~" is not absolute`,
		`{"id":"a",` + layers + `"tool":"x","cwd":"C:\\repo"}`:        `is not absolute`,
	} {
		code, out, _ := evalOf(t, line)
		if code != ExitFailure || len(out) != 1 || !strings.Contains(out[0].Error, want) || strings.Contains(out[0].Error, "Go ") || strings.Contains(out[0].Error, "cli.") {
			t.Errorf("%s: exit %d, %+v, want %s", line, code, out, want)
		}
	}
	for _, place := range []string{`"cwd":"/repo"`, `"cwd":"C:\\repo","platform":"windows"`, `"cwd":"\\\\host\\share","platform":"windows"`, `"platform":"darwin"`, `"home":"/home/dev"`} {
		if code, out, errs := evalOf(t, `{"id":"a",`+layers+`"tool":"x",`+place+`}`); code != ExitOK || out[0].Decision != "allow" || errs != "" {
			t.Errorf("%s: exit %d, %+v, %s", place, code, out, errs)
		}
	}
}

// TestABrokenLayerIsSaid: the ruling goes on without it, clamped, and both the
// line and standard error say why.
func TestABrokenLayerIsSaid(t *testing.T) {
	t.Parallel()
	const call = `"tool":"bash","input":{"command":"ls"}}`
	broken := `{"id":"b","layers":{"fleet":{"permission":{"*":"allow"}},"project":{"permision":{}}},` + call
	whole := `{"id":"w","layers":{"fleet":{"permission":{"*":"allow"}},"project":{"permission":{}}},` + call
	code, out, errs := evalOf(t, broken, whole, broken)
	if code != ExitOK || len(out) != 3 {
		t.Fatalf("exit %d, %+v", code, out)
	}
	if out[0].Decision != "ask" || !strings.Contains(out[0].Clamped, `unknown key "permision"`) || out[0].Error != "" {
		t.Errorf("the broken layer: %+v", out[0])
	}
	if out[1].Decision != "allow" || out[1].Clamped != "" {
		t.Errorf("the whole layer: %+v", out[1])
	}
	if strings.Count(errs, "every allow is held to ask") != 1 || !strings.Contains(errs, "project:1:2") {
		t.Errorf("standard error says %q", errs)
	}
}

// TestExplainSaysThatALayerIsBroken: once, and that mending it is what helps.
func TestExplainSaysThatALayerIsBroken(t *testing.T) {
	t.Parallel()
	code, out, errs := explain(t, `{"layers":{"fleet":{"permission":{"*":"allow"}},"project":{"permision":{}}},"tool":"bash","input":{"command":"ls"}}`, "--call", "-")
	if code != ExitOK || strings.Count(out, `"*": allow, held to ask`) != 1 || !strings.Contains(out, "(mending the layer lifts this)") ||
		!strings.Contains(errs, "every allow is held to ask") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// TestCaseFilesAreReadInWords: a place, and no type of this program.
func TestCaseFilesAreReadInWords(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct{ text, want string }{
		"a call of no kind":        {`{"cases":[{"description":"x","call":5,"want":"ask"}]}`, `"cases.0.call": expected a shell command as a text, or {"tool": `},
		"an unknown key":           {`{"cases":[{"description":"x","cal":"ls","want":"ask"}]}`, `unknown key "cal" in "cases.0"`},
		"a policy of no kind":      {`{"policy":5,"cases":[]}`, `"policy" is a number; expected a text`},
		"no JSON":                  {"{\n  \"policy\": \"p\" \"cases\":[]}", `:2:17: invalid character '"' after object value`},
		"a system":                 {`{"platform":"macos","cases":[{"description":"x","call":"ls","want":"ask"}]}`, `write "darwin"`},
		"a folder":                 {`{"cwd":"web","cases":[{"description":"x","call":"ls","want":"ask"}]}`, `cwd "web" is not absolute`},
		"a folder of one call":     {`{"cases":[{"description":"x","call":{"tool":"read","cwd":"web"},"want":"ask"}]}`, `cwd "web" is not absolute`},
		"a wanted action misspelt": {`{"cases":[{"description":"x","call":"ls","want":"alow"}]}`, `wants "alow"; expected allow, ask or deny`},
	} {
		dir := filesAt(t, map[string]string{"c.jsonc": r.text})
		_, err := readCaseFile(filepath.Join(dir, "c.jsonc"))
		if err == nil || !strings.Contains(err.Error(), r.want) || strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "hujson") {
			t.Errorf("%s: %v, want %s", name, err, r.want)
		}
	}
}
