package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	namedTest  = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	namedStory = regexp.MustCompile("story `([a-z-]+)`")
	testFunc   = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	storyRow   = regexp.MustCompile(`(?m)^\| (BR-\d+) \| [^|]+ \| (.+) \|$`)
	mdLink     = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
)

// TestInvariantsNameRealTests: a table of promises is worth what its tests are.
func TestInvariantsNameRealTests(t *testing.T) {
	text := read(t, "../docs/invariants.md")
	have := allTests(t)
	for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
		if !have[m[1]] {
			t.Errorf("docs/invariants.md names %s, which is no test", m[1])
		}
	}
	for _, m := range namedStory.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat("testdata/story/" + m[1] + ".txtar"); err != nil {
			t.Errorf("docs/invariants.md names the story %s: %v", m[1], err)
		}
	}
	for n := 1; n <= 16; n++ {
		if !regexp.MustCompile(`(?m)^\| ` + strconv.Itoa(n) + ` \|.*(Test|story)`).MatchString(text) {
			t.Errorf("invariant %d has no row with a test", n)
		}
	}
}

// TestEachStoryIsATestOrSaysWhyNot: docs/stories.md has a row for each accident
// that was collected, and each row names tests that exist, or its reason.
func TestEachStoryIsATestOrSaysWhyNot(t *testing.T) {
	rows := map[string]string{}
	for _, m := range storyRow.FindAllStringSubmatch(read(t, "../docs/stories.md"), -1) {
		if rows[m[1]] != "" {
			t.Errorf("%s has two rows", m[1])
		}
		rows[m[1]] = m[2]
	}
	have := allTests(t)
	for _, n := range stories {
		id := fmt.Sprintf("BR-%03d", n)
		row := rows[id]
		delete(rows, id)
		named := namedTest.FindAllStringSubmatch(row, -1)
		if len(named) == 0 && !strings.HasPrefix(row, "no test: ") {
			t.Errorf("%s is neither a test nor says why not: %q", id, row)
		}
		for _, m := range named {
			if !have[m[1]] {
				t.Errorf("%s names %s, which is no test", id, m[1])
			}
		}
		for _, m := range namedStory.FindAllStringSubmatch(row, -1) {
			if _, err := os.Stat("testdata/story/" + m[1] + ".txtar"); err != nil {
				t.Errorf("%s names the story %s: %v", id, m[1], err)
			}
		}
	}
	for id := range rows {
		t.Errorf("%s is a row of no story that is known here", id)
	}
}

// stories are the numbers of the accidents that were collected.
var stories = []int{
	12, 26, 27, 37, 48, 55, 56, 58, 61, 62, 63, 64, 65, 66, 67, 70, 73, 75, 76, 77, 81, 82, 83, 84, 85, 86, 87, 88, 90, 91, 92, 93, 94, 95, 98,
	100, 101, 103, 104, 105, 108, 109, 111, 112, 114, 117, 118, 123, 124, 125, 126, 127, 128, 129,
}

// allTests are the names of the tests of this repository.
func allTests(t *testing.T) map[string]bool {
	t.Helper()
	have := map[string]bool{}
	eachFile(t, "_test.go", func(_, code string) {
		for _, m := range testFunc.FindAllStringSubmatch(code, -1) {
			have[m[1]] = true
		}
	})
	return have
}

// TestLinksInDocsLeadSomewhere: every relative link of every page is a file.
func TestLinksInDocsLeadSomewhere(t *testing.T) {
	eachFile(t, ".md", func(path, text string) {
		for _, m := range mdLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			}
		}
	})
}

// TestEachFolderSaysWhatItIs: a folder of code has a README, or a package
// comment where it is a part of the folder above.
func TestEachFolderSaysWhatItIs(t *testing.T) {
	folders := map[string]bool{}
	eachFile(t, ".go", func(path, _ string) { folders[filepath.Dir(path)] = true })
	for dir := range folders {
		if strings.Contains(dir, "testdata") || dir == ".." {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "README.md")); err == nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "README.md")); err != nil || filepath.Dir(dir) == ".." {
			t.Errorf("%s has no README.md, and the folder above has none either", dir)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// eachFile calls f for each file of the repository with that ending.
func eachFile(t *testing.T, ending string, f func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "dist" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(path, ending) {
			f(path, read(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
