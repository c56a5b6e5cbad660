package cli

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/policy"
)

const casesDir = "../policy/testdata/cases/"

// ruleCase is one line of a file of cases: what the rule engine that ours grew
// from answers, what evades it, and what people reported of others.
type ruleCase struct {
	ID   string         `json:"id"`
	In   jsontext.Value `json:"in"`
	Want string         `json:"want"`
	// How is "at_least" where a stricter ruling is right too.
	How     string  `json:"how"`
	Suggest *string `json:"want_suggest"`
	Why     string  `json:"why"`
	FS      []struct {
		Path   string `json:"path"`
		Type   string `json:"type"`
		Target string `json:"target"`
	} `json:"fs"`
}

// TestCases rules every case as `policy eval` does. What does not hold stands in
// skip.txt with its reason, and nothing else does.
func TestCases(t *testing.T) {
	t.Parallel()
	skip := skipped(t)
	for _, name := range []string{"holes", "reports", "parity"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := evaluator{read: map[string]readLayer{}}
			for _, c := range cases(t, name) {
				got := e.line(c.made(t))
				problem := c.problem(got)
				switch why, listed := skip[c.ID]; {
				case problem != "" && !listed:
					t.Errorf("%s: %s\n  %s\n  %s", c.ID, problem, c.In, c.Why)
				case problem == "" && listed:
					t.Errorf("%s holds, and skip.txt says that it does not: %s", c.ID, why)
				}
			}
		})
	}
}

// problem says how a ruling differs from what the case wants, "" if it holds.
func (c ruleCase) problem(got evaluated) string {
	have, okHave := policy.ParseAction(got.Decision)
	want, okWant := policy.ParseAction(c.Want)
	first := ""
	if len(got.Suggest) > 0 {
		first = got.Suggest[0]
	}
	switch {
	case got.Error != "":
		return "error: " + got.Error
	case c.Suggest != nil && (len(got.Suggest) == 0 || first != *c.Suggest):
		return "suggests " + first + ", want " + *c.Suggest
	case c.Suggest != nil:
		return ""
	case !okHave || !okWant:
		return "no ruling"
	case have == want || c.How == "at_least" && have < want:
		return ""
	case have > want:
		return "LOOSER: " + got.Decision + " by " + got.MatchedPattern + ", want " + c.Want
	}
	return "stricter: " + got.Decision + " by " + got.Surface + " " + got.MatchedPattern + ", want " + c.Want
}

// made makes the case's files and returns its line with the places filled in.
func (c ruleCase) made(t *testing.T) []byte {
	t.Helper()
	tmp, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fill := func(s string) string {
		return strings.NewReplacer("{{TMP_PARENT}}", filepath.Dir(tmp), "{{TMP}}", tmp).Replace(s)
	}
	must := func(err error) {
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
	}
	must(os.Mkdir(filepath.Join(tmp, "home"), 0o755))
	must(os.Mkdir(filepath.Join(tmp, "proj"), 0o755))
	for _, f := range c.FS {
		path := fill(f.Path)
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		switch f.Type {
		case "symlink":
			must(os.Symlink(fill(f.Target), path))
		case "dir":
			must(os.MkdirAll(path, 0o755))
		default:
			must(os.WriteFile(path, nil, 0o600))
		}
	}
	line := map[string]jsontext.Value{}
	must(json.Unmarshal([]byte(fill(string(c.In))), &line))
	id, err := json.Marshal(c.ID)
	must(err)
	line["id"] = id
	out, err := json.Marshal(line)
	must(err)
	return out
}

func cases(t *testing.T, name string) []ruleCase {
	t.Helper()
	text, err := os.ReadFile(casesDir + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []ruleCase
	for line := range bytes.Lines(text) {
		var c ruleCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, c)
	}
	return out
}

// skipped are the cases that do not hold, each with its reason.
func skipped(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(casesDir + "skip.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		id, why, _ := strings.Cut(strings.TrimSpace(s.Text()), " ")
		switch {
		case id == "" || id == "#":
		case strings.TrimSpace(why) == "":
			t.Errorf("skip.txt: %s has no reason", id)
		default:
			out[id] = strings.TrimSpace(why)
		}
	}
	return out
}

// TestThePageOnCompatibilityNamesEveryCase: what does not hold is a difference
// that somebody who comes from there has to know of.
func TestThePageOnCompatibilityNamesEveryCase(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	skip, named := skipped(t), map[string]bool{}
	for _, id := range regexp.MustCompile(`\bv-[a-z-]+-\d+\b`).FindAllString(string(page), -1) {
		if named[id] = true; skip[id] == "" {
			t.Errorf("docs/compatibility.md names %s, which holds", id)
		}
	}
	for id, why := range skip {
		if !named[id] {
			t.Errorf("docs/compatibility.md does not name %s: %s", id, why)
		}
	}
	for _, name := range []string{"holes", "reports"} {
		for _, c := range cases(t, name) {
			if skip[c.ID] != "" {
				t.Errorf("%s is left out, and none of %s may be", c.ID, name)
			}
		}
	}
}
