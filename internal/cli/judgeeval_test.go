package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/llm/llmtest"
)

const shippedJudges = "../../examples/judges/"

// evalArgs score the shipped set for typopath from its recording.
func evalArgs(more ...string) []string {
	return append([]string{"judge", "eval", shippedJudges + "typopath.jsonl", "--judges", shippedJudges + "typopath.jsonc",
		"--policy", shippedJudges + "policy.jsonc"}, more...)
}

const evalReplay = "--replay=" + shippedJudges + "typopath.answers.jsonl"

func ran(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	env, o, e := testEnv()
	code = Main(env, args, all...)
	return code, o.String(), e.String()
}

func TestARecordedScoreNeedsNoModelAndNoKey(t *testing.T) {
	code, out, errs := ran(t, evalArgs(evalReplay)...)
	if code != ExitOK || errs != "" {
		t.Fatalf("exit %d, stderr %q", code, errs)
	}
	for _, want := range []string{"typo-judge", "false allows", "0 of 93, 0.0 % (0.0 to 4.0)", "pattern-miss", "looks-like-a-typo-03"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report does not say %q:\n%s", want, out)
		}
	}
	if _, again, _ := ran(t, evalArgs(evalReplay)...); again != out {
		t.Errorf("a second run says something else:\n%s", again)
	}
}

func TestTheReportForProgramsHoldsEveryCase(t *testing.T) {
	code, out, _ := ran(t, evalArgs(evalReplay, "--json")...)
	var report struct {
		Reports []struct {
			Judges string
			Cases  []struct{ ID, Want, Got, Outcome string }
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != ExitOK {
		t.Fatalf("exit %d, %v", code, err)
	}
	data, err := os.ReadFile(shippedJudges + "typopath.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Reports) != 1 || len(report.Reports[0].Cases) != bytes.Count(data, []byte("\n")) {
		t.Errorf("%+v", report)
	}
}

// written makes a file in a folder of the test.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const typoCase = `{"id":"doubled","category":"c","want":"deny","why":"w","call":{"tool":"read","input":{"file_path":"/srv/src/src/a"}}}`

// judgesAt is a judges' file whose model is at url.
func judgesAt(t *testing.T, name, url, instructions string) string {
	t.Helper()
	return written(t, name, `{"links":{"typo":{"kind":"typopath","provider":"anthropic","model":"m","apiKeyEnv":"EVAL_TEST_KEY","baseURL":"`+url+
		`","instructions":"`+instructions+`","typoPatterns":["/([^/]+)/\\1(/|$)"]}}}`)
}

func TestWhatIsRecordedCanBeReplayed(t *testing.T) {
	t.Setenv("EVAL_TEST_KEY", "key")
	server := llmtest.Start(t, llmtest.Calls(`{"verdict":"deny","reason":"src is there twice"}`))
	data, judges := written(t, "data.jsonl", typoCase), judgesAt(t, "judges.jsonc", server.URL, "i")
	answers := filepath.Join(t.TempDir(), "answers.jsonl")
	code, live, errs := ran(t, "judge", "eval", data, "--judges", judges, "--record", answers)
	if code != ExitOK || !strings.Contains(live, "1 of 1, 100.0 %") || len(server.Asked()) != 1 {
		t.Fatalf("exit %d, asked %d times, %q\n%s", code, len(server.Asked()), errs, live)
	}
	if text, err := os.ReadFile(answers); err != nil || bytes.Contains(text, []byte("EVAL_TEST_KEY")) || !bytes.Contains(text, []byte("twice")) {
		t.Errorf("%v: %s", err, text)
	}
	t.Setenv("EVAL_TEST_KEY", "")
	code, played, errs := ran(t, "judge", "eval", data, "--judges", judges, "--replay", answers)
	if code != ExitOK || played != live || len(server.Asked()) != 1 {
		t.Errorf("exit %d, asked %d times, %q\nlive:\n%s\nplayed:\n%s", code, len(server.Asked()), errs, live, played)
	}
}

func TestTwoJudgesStandSideBySide(t *testing.T) {
	t.Setenv("EVAL_TEST_KEY", "key")
	data := written(t, "data.jsonl", typoCase)
	sure := judgesAt(t, "sure.jsonc", llmtest.Start(t, llmtest.Calls(`{"verdict":"deny","reason":"src is there twice"}`)).URL, "i")
	shy := judgesAt(t, "shy.jsonc", llmtest.Start(t, llmtest.Calls(`{"verdict":"defer","reason":"may be"}`)).URL, "j")
	code, out, errs := ran(t, "judge", "eval", data, "--judges", sure, "--against", shy)
	if code != ExitOK {
		t.Fatalf("exit %d, %q", code, errs)
	}
	for _, want := range []string{"sure.jsonc", "shy.jsonc", "Where they differ\ncase     wanted  sure.jsonc  shy.jsonc                why\ndoubled  deny    deny        defer: non-deny-verdict  w"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report does not say %q:\n%s", want, out)
		}
	}
}

func TestARunThatComesToNothingSaysWhy(t *testing.T) {
	server := llmtest.Start(t, llmtest.Says("hm"))
	data, judges := written(t, "data.jsonl", typoCase), judgesAt(t, "judges.jsonc", server.URL, "i")
	two := written(t, "two.jsonc", `{"links":{"a":{"kind":"typopath","provider":"anthropic","model":"m","instructions":"i"},"b":{"kind":"typopath","provider":"anthropic","model":"m","instructions":"i"}}}`)
	old := written(t, "answers.jsonl", "")
	for name, row := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no judges' file":                 {[]string{data}, ExitUsage, "judges"},
		"no data":                         {[]string{"--judges", judges}, ExitUsage, "a data set"},
		"data that is not there":          {[]string{data + ".not", "--judges", judges}, ExitFailure, "data.jsonl.not"},
		"data that is none":               {[]string{judges, "--judges", judges}, ExitFailure, "line 1"},
		"a link that is not there":        {[]string{data, "--judges", judges, "--link", "other"}, ExitUsage, "--link"},
		"two links and no name":           {[]string{data, "--judges", two}, ExitUsage, "a, b"},
		"a policy that is none":           {[]string{data, "--judges", judges, "--policy", judges}, exitBadPolicy, "links"},
		"recording and replaying at once": {[]string{data, "--judges", judges, "--record", "x", "--replay", "y"}, ExitUsage, "--replay"},
		"a recording over another":        {[]string{data, "--judges", judges, "--record", old}, ExitUsage, "exists"},
		"an answer that is not recorded":  {[]string{data, "--judges", judges, "--replay", old}, ExitFailure, "sha256:"},
		"no key":                          {[]string{data, "--judges", judges}, ExitFailure, "EVAL_TEST_KEY"},
	} {
		code, out, errs := ran(t, append([]string{"judge", "eval"}, row.args...)...)
		if code != row.code || !strings.Contains(errs, row.says) || out != "" {
			t.Errorf("%s: exit %d, stderr %q, stdout %q", name, code, errs, out)
		}
	}
	if n := len(server.Asked()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// Without a key nothing is recorded: the name must be free for the next run.
func TestARecordingOfNothingIsNotLeftBehind(t *testing.T) {
	data, judges := written(t, "data.jsonl", typoCase), judgesAt(t, "judges.jsonc", "http://127.0.0.1:1", "i")
	answers := filepath.Join(t.TempDir(), "answers.jsonl")
	if code, _, errs := ran(t, "judge", "eval", data, "--judges", judges, "--record", answers); code != ExitFailure {
		t.Errorf("exit %d, %q", code, errs)
	}
	if _, err := os.Stat(answers); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

// The exit code is what a pipeline that guards a judges' file looks at.
func TestAFalseAllowIsAnErrorAndNoOtherMistakeIs(t *testing.T) {
	nothing := written(t, "answers.jsonl", "")
	for want, code := range map[string]int{"allow": ExitOK, "defer": ExitFailure, "deny": ExitFailure} {
		data := written(t, "data.jsonl", `{"id":"one","category":"c","want":"`+want+`","why":"w","call":{"tool":"bash","input":{"command":"bash -c 'ls src'"}}}`)
		got, out, errs := ran(t, "judge", "eval", data, "--judges", shippedJudges+"shellcommand.jsonc", "--policy", shippedJudges+"policy.jsonc", "--replay", nothing)
		if got != code || !strings.Contains(out, "cases judged") || (code == ExitFailure) != strings.Contains(errs, "1 false allow: ") {
			t.Errorf("%s: exit %d, stderr %q\n%s", want, got, errs, out)
		}
	}
}

// A table without one false allow says nothing where the model never answered.
func TestAModelThatNeverAnswersIsAnError(t *testing.T) {
	t.Setenv("EVAL_TEST_KEY", "k")
	data := written(t, "data.jsonl", typoCase)
	for name, row := range map[string]struct {
		answer llmtest.Answer
		code   int
		says   string
	}{
		"it talks":   {llmtest.Says("hm"), ExitFailure, "link typo answered none of 1 question"},
		"it answers": {llmtest.Calls(`{"verdict":"defer","reason":"a path like any other"}`), ExitOK, ""},
	} {
		server := llmtest.Start(t, row.answer)
		code, out, errs := ran(t, "judge", "eval", data, "--judges", judgesAt(t, "judges.jsonc", server.URL, "i"))
		if code != row.code || !strings.Contains(errs, row.says) || !strings.Contains(out, "questions it answered") {
			t.Errorf("%s: exit %d, stderr %q\n%s", name, code, errs, out)
		}
	}
}

func TestWhatItCostIsSaidWhereThereIsAPrice(t *testing.T) {
	code, out, errs := ran(t, "judge", "eval", shippedJudges+"shellcommand.jsonl", "--judges", shippedJudges+"shellcommand.jsonc",
		"--policy", shippedJudges+"policy.jsonc", "--replay", shippedJudges+"shellcommand.answers.jsonl")
	if code != ExitOK || errs != "" || !strings.Contains(out, "cost                         $0.0") {
		t.Errorf("exit %d, %q\n%s", code, errs, out)
	}
	if _, out, _ := ran(t, evalArgs(evalReplay)...); !strings.Contains(out, "no price is known") {
		t.Errorf("%s", out)
	}
}
