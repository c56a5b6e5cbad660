package protocol

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const docsPath = "../../docs/protocol.md"

// docSample is a sample in the docs: a mark that names a golden file, then its text.
var docSample = regexp.MustCompile("(?s)<!-- sample: ([a-z_]+) -->\n```json\n(.*?)```\n")

func readDocs(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDocsShowTheGoldenMessages keeps what people read equal to what is sent.
func TestDocsShowTheGoldenMessages(t *testing.T) {
	docs := readDocs(t)
	if *update {
		docs = docSample.ReplaceAllStringFunc(docs, func(block string) string {
			name := docSample.FindStringSubmatch(block)[1]
			return "<!-- sample: " + name + " -->\n```json\n" + goldenText(t, name) + "```\n"
		})
		if err := os.WriteFile(docsPath, []byte(docs), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var shown, want []string
	for _, m := range docSample.FindAllStringSubmatch(docs, -1) {
		shown = append(shown, m[1])
		if d := cmp.Diff(goldenText(t, m[1]), m[2]); d != "" {
			t.Errorf("%s: run with -update (-golden +docs):\n%s", m[1], d)
		}
	}
	for _, s := range samples() {
		want = append(want, s.name)
	}
	slices.Sort(shown)
	slices.Sort(want)
	if d := cmp.Diff(want, shown); d != "" {
		t.Errorf("samples in the docs (-want +shown):\n%s", d)
	}
}

func goldenText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(goldenPath(name + ".json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDocsTablesAreComplete: each word of the contract has a row, and no row
// tells of a word that does not exist.
func TestDocsTablesAreComplete(t *testing.T) {
	docs := readDocs(t)
	want := map[string][]string{"subjects": nil, "outcomes": nil, "codes": nil, "roles": nil}
	for k := range subjectTokens {
		want["subjects"] = append(want["subjects"], string(k))
	}
	for _, o := range outcomes {
		want["outcomes"] = append(want["outcomes"], string(o))
	}
	for _, c := range []Code{CodeInvalid, CodeTooLarge, CodeForbidden, CodeConflict, CodeExpired, CodeNeedProject, CodeUnavailable} {
		want["codes"] = append(want["codes"], string(c))
	}
	for _, r := range Roles {
		want["roles"] = append(want["roles"], string(r))
	}
	for table, words := range want {
		got := firstColumn(t, docs, table)
		slices.Sort(got)
		slices.Sort(words)
		if d := cmp.Diff(words, got); d != "" {
			t.Errorf("table of %s (-source +docs):\n%s", table, d)
		}
	}
}

// firstColumn is the first `word` of each row of the table behind a mark; of a
// subject it is the token after the node.
func firstColumn(t *testing.T, docs, table string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(docs, "<!-- table: "+table+" -->\n")
	if !ok {
		t.Fatalf("no table of %s", table)
	}
	var words []string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if m := regexp.MustCompile("^\\| `(?:…\\.)?([a-z_]+)").FindStringSubmatch(line); m != nil {
			words = append(words, m[1])
		}
	}
	return words
}
