package paths

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/pkg/protocol"
)

// tree is a real folder: app (the working folder) with links that lead out.
func tree(t testing.TB) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"app/sub", "secret/deep"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "secret/key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"app/out":      "../secret/deep",
		"app/key":      filepath.Join(root, "secret/key"),
		"app/loop":     "loop",
		"app/dangling": "../nowhere/file",
		"app/knot":     "gone/../knot",
		"app/knot2":    "loop/../knot2",
		"linked":       "app",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestPathsResolveOnThisHost(t *testing.T) {
	t.Parallel()
	root := tree(t)
	in := func(rel string) string { return filepath.Join(root, rel) }
	for _, row := range []struct {
		name, raw string
		want      []string
	}{
		{"a plain file", "sub/a.go", []string{in("app/sub/a.go")}},
		{"an absolute file", in("app/x"), []string{in("app/x")}},
		{"a link out of the folder", "key", []string{in("secret/key")}},
		{"below a linked folder", "out/new.txt", []string{in("secret/deep/new.txt")}},
		{"up from a linked folder: both readings", "out/../key", []string{in("secret/key")}},
		{"up from a linked folder, elsewhere", "out/../sub/a", []string{in("secret/sub/a"), in("app/sub/a")}},
		{"beyond what is missing, a link", "gone/../key", []string{in("secret/key")}},
		{"a dangling link", "dangling", []string{in("nowhere/file")}},
		{"a loop", "loop/x", []string{in("app/loop/x")}},
		{"a link into its own missing part", "knot", []string{in("app/knot")}},
		{"a link into a loop and back", "knot2", []string{in("app/knot2")}},
		{"above the root", "/../../etc/../srv", []string{"/srv"}},
		{"home", "~/a/../b", []string{"/nobody/b"}},
		{"home itself", "~", []string{"/nobody"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := resolve(in("app"), "/nobody", row.raw); !slices.Equal(got, row.want) {
				t.Errorf("%q leads to %q, want %q", row.raw, got, row.want)
			}
		})
	}
}

func TestPathsOfACall(t *testing.T) {
	t.Parallel()
	root := tree(t)
	app := filepath.Join(root, "app")
	for _, row := range []struct {
		name, cwd, input string
		want             []protocol.Path
	}{
		{"a file", app, `{"file_path":"key"}`, []protocol.Path{{Raw: "key", Resolved: filepath.Join(root, "secret/key")}}},
		{"a file named twice", app, `{"file_path":"key","path":"key"}`, []protocol.Path{{Raw: "key", Resolved: filepath.Join(root, "secret/key")}}},
		{"two readings", app, `{"notebook_path":"out/../sub"}`, []protocol.Path{
			{Raw: "out/../sub", Resolved: filepath.Join(root, "secret/sub")}, {Raw: "out/../sub", Resolved: filepath.Join(app, "sub")}}},
		{"no path", app, `{"command":"cat key"}`, nil},
		{"a linked working folder", filepath.Join(root, "linked"), `{"command":"ls"}`, []protocol.Path{{Raw: filepath.Join(root, "linked"), Resolved: app}}},
		{"a list", app, `{"paths":["key",3,"sub"]}`, []protocol.Path{
			{Raw: "key", Resolved: filepath.Join(root, "secret/key")}, {Raw: "sub", Resolved: filepath.Join(app, "sub")}}},
		{"a path that is none", app, `{"file_path":{"a":1},"path":""}`, nil},
		{"no object", app, `["key"]`, nil},
		{"no input", app, ``, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := Resolve(row.cwd, "/nobody", Typed(jsontext.Value(row.input)))
			if !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// Where the system can open a path, our reading names the same file.
func FuzzFollowAgreesWithTheSystem(f *testing.F) {
	for _, s := range []string{"out/../key", "sub/./..//key", "knot", "loop", "dangling", "out/..", "../linked/out/../key"} {
		f.Add(s)
	}
	root := tree(f)
	f.Fuzz(func(t *testing.T, raw string) {
		abs := absolute(filepath.Join(root, "app"), "/nobody", raw)
		got := resolve(filepath.Join(root, "app"), "/nobody", raw)
		want, err := filepath.EvalSymlinks(abs)
		if err == nil && exists(abs) && !slices.Contains(got, want) {
			t.Errorf("%q leads to %q, the system says %q", raw, got, want)
		}
		for _, p := range got {
			if !filepath.IsAbs(p) || filepath.Clean(p) != p {
				t.Errorf("%q leads to %q, which is not absolute and tidy", raw, p)
			}
		}
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestOtherNamesOfTheWorkingFolder(t *testing.T) {
	t.Parallel()
	root := tree(t)
	in := func(rel string) string { return filepath.Join(root, rel) }
	if err := os.Symlink(in("app/sub"), in("door")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, raw string
		want      []protocol.Path
	}{
		{"by another name of it", in("linked/sub/a"), []protocol.Path{{Raw: in("app"), Resolved: in("linked")}}},
		{"by another name of a folder in it", in("door/a"), []protocol.Path{{Raw: in("app"), Resolved: in("door")}}},
		{"by its own name", in("app/sub/a"), nil},
		{"a file elsewhere", in("secret/key"), nil},
		{"a link in it that leads out", "key", nil},
		{"through another name and out again", in("linked/out/x"), nil},
		{"the disk", "/", nil},
	} {
		if got := aliases(in("app"), "/nobody", []string{row.raw}); !slices.Equal(got, row.want) {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}
