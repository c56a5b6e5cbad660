package protocol

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func indented(t *testing.T, b []byte) []byte {
	t.Helper()
	v := jsontext.Value(slices.Clone(b))
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		t.Fatal(err)
	}
	return append(v, '\n')
}

// TestGolden holds the wire form of every message still: a field that is
// renamed, dropped or reordered shows here.
func TestGolden(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			b, err := s.write()
			if err != nil {
				t.Fatal(err)
			}
			golden(t, s.name+".json", indented(t, b))

			file, err := os.ReadFile(goldenPath(s.name + ".json"))
			if err != nil {
				t.Fatal(err)
			}
			got, again, err := s.read(file)
			if err != nil {
				t.Fatalf("the golden file does not read: %v", err)
			}
			if d := cmp.Diff(s.value, got, alike); d != "" {
				t.Errorf("read back differently (-written +read):\n%s", d)
			}
			if d := cmp.Diff(string(b), string(again)); d != "" {
				t.Errorf("written again differently:\n%s", d)
			}
		})
	}
}

// TestGoldenFilesAreAllOfASample fails on a golden file that nothing compares.
func TestGoldenFilesAreAllOfASample(t *testing.T) {
	files, err := filepath.Glob(goldenPath("*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, s := range samples() {
		want = append(want, goldenPath(s.name+".json"))
	}
	slices.Sort(want)
	if d := cmp.Diff(want, files); d != "" {
		t.Errorf("(-samples +files):\n%s", d)
	}
}

// TestEveryMessageHasASample finds the messages in the source, so that a new one
// cannot come without golden file, reading table and fuzz target.
func TestEveryMessageHasASample(t *testing.T) {
	var have []string
	for _, s := range samples() {
		have = append(have, reflect.TypeOf(s.value).Name())
	}
	want := messageTypes(t)
	slices.Sort(have)
	have = slices.Compact(have) // a message may have one sample more for what seldom stands in it
	slices.Sort(want)
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("(-messages in the source +samples):\n%s", d)
	}
}

// messageTypes are the types with the method that Read asks for the version.
func messageTypes(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, f := range parseFiles(t, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != "version" {
				continue
			}
			if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok {
				names = append(names, star.X.(*ast.Ident).Name)
			}
		}
	}
	return names
}

func parseFiles(t *testing.T, want func(string) bool) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, p := range paths {
		if !want(p) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// TestWriteIsCompactAndStable: the same message is the same bytes.
func TestWriteIsCompactAndStable(t *testing.T) {
	for _, s := range samples() {
		a, errA := s.write()
		b, errB := s.write()
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if string(a) != string(b) {
			t.Errorf("%s: written twice, two texts", s.name)
		}
		c := jsontext.Value(slices.Clone(a))
		if err := c.Compact(); err != nil || string(c) != string(a) {
			t.Errorf("%s: not compact: %s (%v)", s.name, a, err)
		}
	}
}

// TestWriteStatesTheVersion: the version is not the writer's to forget.
func TestWriteStatesTheVersion(t *testing.T) {
	for _, v := range []Version{0, 1, 2, 255} {
		b, err := Write(LogReceipt{V: v, Ask: askID})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(b), `{"v":1,`) {
			t.Errorf("V %d: %s", v, b)
		}
	}
}
