package bundle

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/module"
)

// names are what a folder gives: the modules' names and the problems.
func names(t *testing.T, dir string) (loaded []string, problems []string) {
	t.Helper()
	sources, said, err := Dir(dir, module.LevelProject)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		loaded = append(loaded, s.Name)
	}
	for _, p := range said {
		problems = append(problems, p.Module+": "+p.Message)
	}
	return loaded, problems
}

func TestAFolderOfModules(t *testing.T) {
	t.Parallel()
	const pack = `{"assent":{"permissions":["./index.ts"]}}`
	for name, row := range map[string]struct {
		files    map[string]string
		loaded   []string
		problems []string // each a part of one, in order
	}{
		"files in the order of their names": {
			files:  map[string]string{"b.ts": plainModule, "a.js": plainModule, "c.d.ts": "declare const x: number;", "README.md": "# x", ".hidden.ts": plainModule, "tsconfig.json": "{"},
			loaded: []string{"a", "b"},
		},
		"a folder that names its module": {
			files:  map[string]string{"z.ts": plainModule, "pack/package.json": pack, "pack/index.ts": plainModule, "pack/other.ts": plainModule},
			loaded: []string{"pack", "z"},
		},
		"under the published key": {
			files:  map[string]string{"pack/package.json": `{"pi":{"permissions":["rules.ts"]}}`, "pack/rules.ts": plainModule},
			loaded: []string{"pack"},
		},
		"our key stands for both": {
			files:  map[string]string{"pack/package.json": `{"pi":{"permissions":["a.ts"]},"assent":{"permissions":["b.ts"]}}`, "pack/b.ts": plainModule},
			loaded: []string{"pack"},
		},
		"several files, folders and globs": {
			files: map[string]string{"p/package.json": `{"assent":{"permissions":["./one.ts","rules/**/*.ts","more","!rules/skip.ts"]}}`, "p/one.ts": plainModule, "p/rules/a.ts": plainModule,
				"p/rules/deep/b.ts": plainModule, "p/rules/skip.ts": plainModule, "p/more/c.js": plainModule, "p/more/d.md": "", "p/two.ts": plainModule},
			loaded: []string{"p.one", "p.rules.a", "p.rules.deep.b", "p.more.c"},
		},
		"an empty list": {
			files: map[string]string{"p/package.json": `{"assent":{"permissions":[]}}`, "p/index.ts": plainModule},
		},
		"index.ts alone": {
			files:    map[string]string{"p/index.ts": plainModule, "q/package.json": "{}", "q/index.js": plainModule, "a.ts": plainModule},
			loaded:   []string{"a"},
			problems: []string{"p: index.ts alone is not loaded: name it in p/package.json", "q: index.js alone is not loaded"},
		},
		"a folder that holds no module": {
			files:  map[string]string{"lib/x.ts": "export const x = 1;", "a.ts": "import { x } from './lib/x';\nexport default (api) => { x; };", "node_modules/p/package.json": pack},
			loaded: []string{"a"},
		},
		"what is named and not there": {
			files:    map[string]string{"p/package.json": `{"assent":{"permissions":["gone.ts","index.ts","x/*.ts","README.md"]}}`, "p/index.ts": plainModule, "p/README.md": ""},
			loaded:   []string{"p"},
			problems: []string{`p: package.json: it names "gone.ts": no such file or directory it names "x/*.ts": it matches no .ts or .js file it names "README.md": only .ts and .js`},
		},
		"a package.json that cannot be read": {
			files:    map[string]string{"p/package.json": `{"assent":`, "p/index.ts": plainModule, "q/package.json": `{"assent":{"permissions":"index.ts"}}`, "a.ts": plainModule},
			loaded:   []string{"a"},
			problems: []string{"p: package.json: it cannot be read", "q: package.json: it cannot be read"},
		},
		"two of one name": {
			files:    map[string]string{"a.ts": plainModule, "a.js": plainModule, "b/package.json": pack, "b/index.ts": plainModule, "b.ts": plainModule},
			loaded:   []string{"a", "b"},
			problems: []string{"a: a.ts: another module is called a too", "b: b.ts: another module is called b too"},
		},
		"endings of which an author expects more": {
			files:    map[string]string{"a.mjs": plainModule, "b.cts": plainModule, "c.ts": plainModule},
			loaded:   []string{"c"},
			problems: []string{"a.mjs: it is not loaded: only .ts and .js", "b.cts: it is not loaded"},
		},
		"one that is broken stops no other": {
			files:    map[string]string{"a.ts": "const", "b.ts": plainModule},
			loaded:   []string{"b"},
			problems: []string{"a: a.ts:1:6: Expected identifier but found end of file: const"},
		},
		"a folder that is a package itself": {
			files:  map[string]string{"package.json": `{"assent":{"permissions":["rules.ts"]}}`, "rules.ts": plainModule, "other.ts": plainModule},
			loaded: []string{"self"},
		},
	} {
		dir := filepath.Join(write(t, nil), "self")
		if err := os.Rename(write(t, row.files), dir); err != nil {
			t.Fatal(err)
		}
		loaded, problems := names(t, dir)
		if !reflect.DeepEqual(loaded, row.loaded) || len(problems) != len(row.problems) {
			t.Errorf("%s: it loads %q, want %q; problems %q", name, loaded, row.loaded, problems)
			continue
		}
		for i, want := range row.problems {
			if !strings.HasPrefix(problems[i], want) {
				t.Errorf("%s: problem %q, want %q", name, problems[i], want)
			}
		}
	}
}

func TestAFolderThatIsNotThere(t *testing.T) {
	t.Parallel()
	sources, problems, err := Dir(filepath.Join(t.TempDir(), "none"), module.LevelUser)
	if len(sources)+len(problems) > 0 || err != nil {
		t.Error(sources, problems, err)
	}
	file := filepath.Join(write(t, map[string]string{"x": ""}), "x")
	if _, _, err := Dir(file, module.LevelUser); err == nil {
		t.Error("a file is taken for a folder of modules")
	}
	if _, err := File(file, module.LevelUser); err == nil || !strings.Contains(err.Error(), "is no module") {
		t.Error(err)
	}
}

// A folder's own dependencies are in its bundle: CommonJS and modules, by main,
// index and exports, and the version that is nearest.
func TestDependenciesAreBundled(t *testing.T) {
	t.Parallel()
	sources, problems, err := Dir("testdata/depends", module.LevelUser)
	if err != nil || len(problems) > 0 || len(sources) != 1 {
		t.Fatal(err, problems)
	}
	s, err := start(sources[0].Code)
	if err != nil {
		t.Fatal(err)
	}
	checks, err := s.checks()
	if err != nil || len(checks) != 1 || checks[0].Description != "Ask before a release is tagged." || !reflect.DeepEqual(checks[0].Tools, &[]string{"bash"}) {
		t.Errorf("%v, %+v", err, checks)
	}
	for command, want := range map[string]string{"git tag v1.2.3 HEAD": "request v1.2.3! [v1.2.3]", "git tag v1.2": "none"} {
		if got := s.says(t, bashCall(command)).says(command); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
	if abs, _ := filepath.Abs("testdata/depends"); sources[0].Root != abs {
		t.Errorf("its root is %s, want %s", sources[0].Root, abs)
	}
}

// The same files give the same bundle, wherever they lie: what it is called by
// is what it does.
func TestABundleIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	var all []string
	for range 3 {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("testdata/depends")); err != nil {
			t.Fatal(err)
		}
		sources, _, err := Dir(dir, module.LevelUser)
		if err != nil || len(sources) != 1 {
			t.Fatal(err)
		}
		if code := sources[0].Code; strings.Contains(code, dir) || strings.Contains(code, filepath.Dir(dir)) {
			t.Error("the bundle holds the name of a folder of this machine")
		}
		all = append(all, sources[0].Version())
	}
	if all[0] != all[1] || all[1] != all[2] {
		t.Error(all)
	}
}

// Without the library's parts that nobody uses, and with one line for each import
// that was followed, a bundle can be read by who signs it.
func TestABundleHoldsWhatItNeeds(t *testing.T) {
	t.Parallel()
	source, err := File(filepath.Join(write(t, map[string]string{"m.ts": plainModule}), "m.ts"), module.LevelUser)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(source.Code, "__assentParseShell") || !strings.Contains(source.Code, "// module:m.ts") || len(source.Code) > 12<<10 {
		t.Errorf("%d bytes:\n%s", len(source.Code), source.Code)
	}
}
