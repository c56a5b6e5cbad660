package cli

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/policy"
)

const policyPage = "../../docs/policy.md"

// docBlock is a policy on the page, and the rulings that the page says it gives.
type docBlock struct {
	line   int
	layers []*policy.Document
	rows   []docRow
}

// docRow is a line of a table of rulings: `call`, ruling, `pattern`.
type docRow struct {
	line                int
	call, want, pattern string
}

var (
	docLayer = regexp.MustCompile(`^// layer (\S+)`)
	docTable = regexp.MustCompile("^\\| `(.+?)` \\| (allow|ask|deny) \\|(?: `(.*)` \\|| *[^`]* \\|)?$")
	docFence = "```"
)

// pageReader reads the page line by line.
type pageReader struct {
	t       *testing.T
	blocks  []docBlock
	inTable bool
}

// readPage takes the policies and tables off the page. A block that begins with
// "// layer NAME" is laid over the one before it, untrusted.
func readPage(t *testing.T, page string) []docBlock {
	t.Helper()
	r := pageReader{t: t}
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		if lines[i] != docFence+"jsonc" {
			r.row(i+1, lines[i])
			continue
		}
		from := i + 1
		for i = from; i < len(lines) && lines[i] != docFence; {
			i++
		}
		r.block(from+1, strings.Join(lines[from:i], "\n"))
	}
	return r.blocks
}

// block reads a policy, or a file of cases.
func (r *pageReader) block(line int, text string) {
	if strings.Contains(text, `"cases"`) {
		if _, err := parseCases("docs/policy.md", []byte(text)); err != nil {
			r.t.Errorf("line %d: %v", line, err)
		}
		return
	}
	layer, b := policy.Fleet(), docBlock{line: line}
	if m := docLayer.FindStringSubmatch(text); m != nil && len(r.blocks) > 0 {
		var err error
		if layer, err = policy.ParseLayer(m[1]); err != nil {
			r.t.Fatalf("line %d: %v", line, err)
		}
		b.layers = slices.Clone(r.blocks[len(r.blocks)-1].layers)
	}
	doc, err := policy.Read(layer, fmt.Sprintf("docs/policy.md (from line %d)", line), []byte(text))
	if err != nil {
		r.t.Errorf("line %d: %v", line, err)
		return
	}
	b.layers = append(b.layers, doc)
	r.blocks = append(r.blocks, b)
}

// row reads a line that may be one of a table of rulings.
func (r *pageReader) row(line int, text string) {
	switch {
	case strings.HasPrefix(text, "| call |"):
		r.inTable = true
	case !strings.HasPrefix(text, "|"):
		r.inTable = false
	case r.inTable && !strings.HasPrefix(text, "|---"):
		m := docTable.FindStringSubmatch(text)
		if m == nil || len(r.blocks) == 0 {
			r.t.Errorf("line %d is no row of rulings: %s", line, text)
			return
		}
		last, unescape := &r.blocks[len(r.blocks)-1], strings.NewReplacer(`\|`, "|")
		last.rows = append(last.rows, docRow{line, unescape.Replace(m[1]), m[2], unescape.Replace(m[3])})
	}
}

// docCall reads a call of the page: a tool and its input, or a shell command.
func docCall(t *testing.T, text string) evalLine {
	t.Helper()
	l := evalLine{Cwd: caseCwd, Home: caseHome, Platform: casePlatform, Tool: "bash"}
	if tool, in, ok := strings.Cut(text, " {"); ok && !strings.ContainsAny(tool, " '\"$()") {
		l.Tool, l.Input = tool, []byte("{"+in)
		if !l.Input.IsValid() {
			t.Errorf("%s: no JSON", text)
		}
		return l
	}
	l.Input = shellInput(text)
	return l
}

// TestThePolicyPageIsTrue: every policy on the page is one that a gate takes
// and nothing is to be warned of, and rules as the page says.
func TestThePolicyPageIsTrue(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(policyPage)
	if err != nil {
		t.Fatal(err)
	}
	rulings := map[string]int{}
	for _, b := range readPage(t, string(page)) {
		for _, r := range b.rows {
			got := docCall(t, r.call).ruled(policy.Layered(false, b.layers...))
			if got.Error != "" || got.Decision != r.want || r.pattern != "" && got.MatchedPattern != r.pattern {
				t.Errorf("docs/policy.md:%d: %s: %s by %s %q (%s)%s, the page says %s by %q",
					r.line, r.call, got.Decision, got.Surface, got.MatchedPattern, got.Reason, got.Error, r.want, r.pattern)
			}
			rulings[r.want]++
		}
	}
	if rulings["allow"] < 15 || rulings["ask"] < 15 || rulings["deny"] < 15 {
		t.Errorf("the page shows %v: that is little", rulings)
	}
}

// TestThePolicyPageWarnsOfNothing: what the page shows to be copied is what
// policy check finds nothing in.
func TestThePolicyPageWarnsOfNothing(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(policyPage)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, part := range strings.Split(string(page), docFence+"jsonc\n")[1:] {
		block, _, _ := strings.Cut(part, "\n"+docFence)
		if strings.Contains(block, `"cases"`) || docLayer.MatchString(block) {
			continue
		}
		warnings, err := policy.Lint("docs/policy.md", []byte(block))
		if err != nil {
			t.Errorf("%v", err)
		}
		for _, w := range warnings {
			// A page that shows yolo and an open shell is warned of them.
			if !strings.Contains(w.Message, "yoloMode is on") && !strings.Contains(w.Message, "bash is open") {
				t.Errorf("%s\n%s", w, block)
			}
		}
		found++
	}
	if found < 8 {
		t.Errorf("%d policies on the page", found)
	}
}

// TestThePolicyPageNamesEveryKey: each key that the schema knows, and each group
// of built-in rules.
func TestThePolicyPageNamesEveryKey(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(policyPage)
	if err != nil {
		t.Fatal(err)
	}
	b, err := policy.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(b, &schema); err != nil {
		t.Fatal(err)
	}
	if len(schema.Properties) < 10 {
		t.Fatalf("the schema has %d keys", len(schema.Properties))
	}
	for _, word := range append(policy.SelfGroups(), slices.Sorted(maps.Keys(schema.Properties))...) {
		if !strings.Contains(string(page), "`"+word+"`") {
			t.Errorf("docs/policy.md does not speak of `%s`", word)
		}
	}
}

// TestThePolicyPageShowsWhatExplainPrints: the explanation on the page is that
// of its first policy.
func TestThePolicyPageShowsWhatExplainPrints(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(policyPage)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), docFence+"jsonc\n")
	doc, rest, _ := strings.Cut(rest, "\n"+docFence)
	_, rest, ok := strings.Cut(rest, docFence+"\n$ assent policy explain --policy policy.jsonc -- '")
	command, rest, _ := strings.Cut(rest, "'\n")
	want, _, _ := strings.Cut(rest, docFence)
	p := policyAt(t, doc)
	_, got, _ := explain(t, "", "--policy", p, "--cwd", caseCwd, "--home", caseHome, "--platform", casePlatform, "--", command)
	if got = strings.ReplaceAll(got, p, "policy.jsonc"); !ok || got != want {
		t.Errorf("the page shows\n%s\nand explain prints\n%s", want, got)
	}
}
