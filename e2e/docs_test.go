package e2e

import (
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
	mdLink     = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
)

// TestInvariantsNameRealTests: a table of promises is worth what its tests are.
func TestInvariantsNameRealTests(t *testing.T) {
	text := read(t, "../docs/invariants.md")
	have := map[string]bool{}
	eachFile(t, "_test.go", func(_, code string) {
		for _, m := range testFunc.FindAllStringSubmatch(code, -1) {
			have[m[1]] = true
		}
	})
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
