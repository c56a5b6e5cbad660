package eval

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/llm"
	"github.com/assent-dev/assent/internal/llm/replay"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/services/judge"
)

const folder = "../../../examples/judges/"

// shipped are the data sets that come with Assent, with the model that plays
// for each.
var shipped = []struct {
	kind, link string
	model      scripted
}{
	{"typopath", "typo-judge", typist},
	{"shellcommand", "shell-judge", decomposer},
}

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(folder + name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func shippedRules(t *testing.T) *policy.Snapshot {
	t.Helper()
	doc, err := os.ReadFile(folder + "policy.jsonc")
	if err != nil {
		t.Fatal(err)
	}
	return compiled(t, string(doc))
}

func shippedCases(t *testing.T, kind string) []Case {
	t.Helper()
	cases, err := ReadCases(open(t, kind+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func shippedLink(t *testing.T, kind, name string, model llm.Provider) link.Link {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	file, err := judge.ReadFile(folder + kind + ".jsonc")
	if err != nil {
		t.Fatal(err)
	}
	config, ok := file.Links[name]
	if !ok {
		t.Fatalf("%s.jsonc has no link %s", kind, name)
	}
	config.Denials = &judge.DenialsConfig{} // each case is asked about
	l, err := config.Link(model, log)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// scoreOf puts a shipped data set to its link over a model.
func scoreOf(t *testing.T, kind, name string, model llm.Provider, workers int) Scored {
	t.Helper()
	l := shippedLink(t, kind, name, Metered(model))
	results, err := Run(t.Context(), shippedCases(t, kind), shippedRules(t), Subject{Name: name, Link: l, Concurrency: workers}, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return Scored{Title: kind + ".jsonc", Results: results, Score: NewScore(name, results, llm.Price{})}
}

// The recordings hold what the scripted models say, no more and no less, and
// playing them comes to the same score as asking.
func TestTheRecordingsAreWhatTheScriptedModelsSay(t *testing.T) {
	for _, s := range shipped {
		t.Run(s.kind, func(t *testing.T) {
			var out bytes.Buffer
			tape := replay.NewTape(&out)
			asked := scoreOf(t, s.kind, s.link, tape.Provider(s.model), 1)
			if err := tape.Err(); err != nil {
				t.Fatal(err)
			}
			golden(t, folder+s.kind+".answers.jsonl", out.Bytes())
			rec, err := replay.Read(open(t, s.kind+".answers.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			played := scoreOf(t, s.kind, s.link, rec, 8)
			if rec.Unused() != 0 {
				t.Errorf("%d answers of which nobody asks", rec.Unused())
			}
			if a, b := object(asked.Score), object(played.Score); a != b {
				t.Errorf("asked\n%s\nplayed\n%s", a, b)
			}
		})
	}
}

// A recorded score is worth something only if it moves with what it scores.
func TestTheScoreMovesWithTheModel(t *testing.T) {
	for _, s := range shipped {
		mute := scripted(func(map[string]any) (string, error) { return "", llm.ErrProse })
		dumb, careless := scoreOf(t, s.kind, s.link, mute, 8), scoreOf(t, s.kind, s.link, s.model, 8)
		if dumb.Score.Right.N >= careless.Score.Right.N || dumb.Score.FalseDenies.N > careless.Score.FalseDenies.N {
			t.Errorf("%s: a mute model is right %d times, the careless one %d", s.kind, dumb.Score.Right.N, careless.Score.Right.N)
		}
	}
}

// What a page says between these two lines is made by this test.
const (
	tablesBegin = "<!-- scores: made by `go test ./services/judge/eval -update` -->\n"
	tablesEnd   = "<!-- scores: end -->\n"
)

func TestTheTablesOnThePageAreTheScores(t *testing.T) {
	var tables strings.Builder
	for _, s := range shipped {
		rec, err := replay.Read(open(t, s.kind+".answers.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		scored := scoreOf(t, s.kind, s.link, rec, 8)
		fmt.Fprintf(&tables, "\n## %s, %d cases, a careless scripted model\n", s.kind, len(scored.Results))
		Markdown(&tables, Report{Links: []Scored{scored}, Bare: true}.Grids())
	}
	tables.WriteString("\n")
	const page = "../../../docs/judges-scores.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tablesBegin)
	_, after, closed := strings.Cut(rest, tablesEnd)
	if !ok || !closed {
		t.Fatalf("%s has no place for the scores", page)
	}
	golden(t, page, []byte(before+tablesBegin+tables.String()+tablesEnd+after))
}

// A set that the rules settle would score something else than it says.
func TestTheShippedSetsTestTheLink(t *testing.T) {
	all := 0
	for _, s := range shipped {
		scored, wants := scoreOf(t, s.kind, s.link, s.model, 8), map[string]int{}
		for _, r := range scored.Results {
			if wants[r.Case.Want.String()]++; !r.Asked() {
				t.Errorf("%s: the rules settle %s (%s)", s.kind, r.Case.ID, r.Ruled)
			}
		}
		for want, n := range wants {
			if n < len(scored.Results)/10 {
				t.Errorf("%s: %d of %d cases want %s", s.kind, n, len(scored.Results), want)
			}
		}
		all += len(scored.Results)
	}
	if all < 150 {
		t.Errorf("%d cases, want 150 at least", all)
	}
}

// A careless model, and one that does what the agent's text says, may cost a
// link its right verdicts, but nobody may get an allow out of it.
func TestNoCarelessnessOfAModelMakesAnAllow(t *testing.T) {
	for _, s := range shipped {
		scored := scoreOf(t, s.kind, s.link, s.model, 8)
		for _, r := range scored.Results {
			if r.Outcome() == FalseAllow {
				t.Errorf("%s: %s is allowed: %s", s.kind, r.Case.ID, r.Case.Call.Input)
			}
		}
	}
	if allowed := scoreOf(t, "shellcommand", "shell-judge", scripted(decomposer), 8).Score.Confuse; !slices.ContainsFunc(allowed, func(r Row) bool { return r.Allow > 0 }) {
		t.Error("nothing is allowed at all, so that this test cannot fail")
	}
}

func TestTheExampleFilesRead(t *testing.T) {
	t.Parallel()
	for file, provider := range map[string]string{"typopath": "anthropic", "shellcommand": "anthropic", "ollama": "openai-compatible"} {
		f, err := judge.ReadFile(folder + file + ".jsonc")
		if err != nil {
			t.Error(err)
			continue
		}
		for name, c := range f.Links {
			if c.Provider != provider {
				t.Errorf("%s: link %s is served by %s", file, name, c.Provider)
			}
		}
	}
}
