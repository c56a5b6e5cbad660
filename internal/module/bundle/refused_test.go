package bundle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/assent-dev/assent/internal/module"
)

const plainModule = `export default function (api) { api.onToolUse({ name: "n", description: "d", handler() {} }); }`

func TestWhatAFileCannotBe(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("(", maxLevels+1)
	for name, row := range map[string]struct {
		text  string
		wants []string
	}{
		"a syntax error":           {"export default function (api) {\n  const x = ;\n}", []string{"m.ts:2:13: Unexpected \";\": const x = ;"}},
		"top-level await":          {"await fetch('x');\nexport default () => {};", []string{"m.ts:1:1: top-level await: ", "await fetch('x');"}},
		"a module of Node":         {"import { readFileSync } from \"node:fs\";\nexport default () => readFileSync;", []string{"m.ts:1:30: it imports \"node:fs\"", "nothing of Node"}},
		"one without the prefix":   {"import fs from 'fs';\nexport default () => fs;", []string{"m.ts:1:16: it imports \"fs\"", "nothing of Node"}},
		"a part of one":            {"import fs from 'fs/promises';\nexport default () => fs;", []string{"it imports \"fs/promises\"", "nothing of Node"}},
		"require":                  {"const cp = require('child_process');\nexport default () => cp;", []string{"m.ts:1:20: it imports \"child_process\""}},
		"a dynamic import":         {"export default async () => { await import('node:net'); };", []string{"it imports \"node:net\""}},
		"a package":                {"import x from 'left-pad';\nexport default x;", []string{"m.ts:1:15: it imports \"left-pad\"", "folder with a package.json"}},
		"a file above":             {"import x from '../x';\nexport default x;", []string{"it imports \"../x\", which is outside"}},
		"a file far above":         {"import x from './a/../../x';\nexport default x;", []string{"it imports \"./a/../../x\", which is outside"}},
		"an absolute file":         {"import x from '/etc/passwd';\nexport default x;", []string{"it imports \"/etc/passwd\""}},
		"an address":               {"import x from 'https://example.org/x.js';\nexport default x;", []string{"it imports \"https://example.org/x.js\": nothing is fetched"}},
		"data":                     {"import x from 'data:text/javascript,1';\nexport default x;", []string{"nothing is fetched"}},
		"a file that is not there": {"import x from './x';\nexport default x;", []string{"m.ts:1:15: it imports \"./x\": there is no such file"}},
		"a part of the library":    {"import x from '@assent/permissions/runner';\nexport default x;", []string{"it imports \"@assent/permissions/runner\""}},
		"the runner":               {"import { run } from 'assent:runner';\nexport default run;", []string{"it imports \"assent:runner\""}},
		"what the library has not": {"import { allow } from '@assent/permissions';\nexport default () => allow();", []string{"m.ts:1:10: ", "\"allow\"", "import { allow }"}},
		"a stack of brackets":      {deep, []string{"m.ts", "more brackets"}},
		"a group with a name":      {"export default () => /(?<y>\\d+)/.test('1');", []string{"m.ts:1:24: this pattern uses what is not known here", "(?<y>"}},
		"a class of Unicode":       {"export default () => /^\\p{L}$/u.test('x');", []string{"m.ts:1:24: this pattern uses what is not known here"}},
		"one in a text":            {"export default () => new RegExp('\\\\p{Script=Greek}', 'u');", []string{"m.ts: ", "not known here"}},
		"a name in a text":         {"export default () => new RegExp('(?<year>a)');", []string{"m.ts: ", "(?<year>", "not known here"}},
		"a style sheet":            {"import './x.css';\nexport default () => {};", []string{"it imports \"./x.css\""}},
	} {
		_, err := File(filepath.Join(write(t, map[string]string{"m.ts": row.text}), "m.ts"), module.LevelUser)
		for _, want := range row.wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\n\r") || strings.Contains(err.Error(), os.TempDir())) {
			t.Errorf("%s: it is not one line, or names a folder of this machine: %q", name, err)
		}
	}
}

func TestWhatAFileMayBe(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"types of anything":         "import type { Stats } from \"node:fs\";\nimport { type PermissionsAPI } from '@assent/permissions';\n" + plainModule + "\nexport type S = Stats;",
		"types without the word":    "import { Stats } from \"node:fs\";\nimport { PermissionsAPI } from \"@thurstonsand/pi-permissions\";\nexport default (api: PermissionsAPI, s?: Stats) => {};",
		"an async function":         "export default async (api) => { await null; api.onToolUse({ name: 'n', description: 'd', async handler() {} }); };",
		"a class with private data": "class A { #x = 1; static y = 2n; get x() { return this.#x ?? A.y; } }\nexport default (api) => { api.onToolUse({ name: String(new A().x), description: 'd', handler() {} }); };",
		"CommonJS":                  "module.exports = function (api) { api.onToolUse({ name: 'n', description: 'd', handler() {} }); };",
		"enums and namespaces":      "enum E { A = 1 }\nnamespace N { export const x = E.A; }\nexport default (api) => { api.onToolUse({ name: 'n' + N.x, description: 'd', handler() {} }); };",
		"words that are no imports": "export default (api) => { api.onToolUse({ name: 'n', description: 'import x from \"fs\"', handler() {} }); };",
		"patterns that look so":     "export default (api) => { api.onToolUse({ name: 'n', description: '(?<=x) (?<!y) p{L}', handler() { return /\\p{/.test('p{') && /[p]{2}/s.test('pp') ? undefined : 1; } }); };",
		"a look behind":             "export default (api) => { api.onToolUse({ name: 'n', description: 'd', handler() { return /(?<=a)b/.test('ab') ? undefined : undefined; } }); };",
	} {
		source, err := File(filepath.Join(write(t, map[string]string{"m.ts": text}), "m.ts"), module.LevelFleet)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s, err := start(source.Code)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := s.checks(); err != nil || source.Level != module.LevelFleet || source.Name != "m" {
			t.Errorf("%s: %v, %s %s", name, err, source.Level, source.Name)
		}
		if a := s.says(t, bashCall("ls")); a.Decision != "none" || len(a.Failures) > 0 {
			t.Errorf("%s: it says %+v", name, a)
		}
	}
}

// What leads out of the folder is not read, whatever leads there.
func TestNothingOutsideTheFolderIsRead(t *testing.T) {
	t.Parallel()
	secret := write(t, map[string]string{"secret.ts": "export default 'leaked';", "dir/index.ts": "export default 'leaked';", "pkg/package.json": `{"main":"index.js"}`, "pkg/index.js": "module.exports = 'leaked';"})
	dir := write(t, map[string]string{
		"plain.ts":                              plainModule,
		"link-file.ts":                          "import x from './linked';\nexport default () => x;",
		"link-folder.ts":                        "import x from './folder';\nexport default () => x;",
		"pack/package.json":                     `{"assent":{"permissions":["index.ts"]}}`,
		"pack/index.ts":                         "import x from 'pkg';\nexport default () => x;",
		"escape/package.json":                   `{"assent":{"permissions":["../plain.ts","./index.ts"]}}`,
		"escape/index.ts":                       "import x from '../plain';\nexport default x;",
		"up/package.json":                       `{"assent":{"permissions":["index.ts"]}}`,
		"up/index.ts":                           "import x from 'above';\nexport default x;",
		"node_modules/above/index.js":           "module.exports = 'leaked';",
		"exports/package.json":                  `{"assent":{"permissions":["index.ts"]}}`,
		"exports/index.ts":                      "import x from 'sly';\nexport default () => x;",
		"exports/node_modules/sly/package.json": `{"exports":"./../../../plain.ts"}`,
	})
	for link, target := range map[string]string{
		"linked.ts": "secret.ts", "folder": "dir", "self.ts": "secret.ts", "pack/node_modules": ".", "packlink": "pkg",
	} {
		if err := os.Symlink(filepath.Join(secret, target), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.ts"), 0o600); err != nil {
		t.Fatal(err)
	}
	sources, problems, err := Dir(dir, module.LevelUser)
	if err != nil || len(sources) != 1 || sources[0].Name != "plain" {
		t.Errorf("%v: %v", err, sources)
	}
	var all []string
	for _, p := range problems {
		all = append(all, p.String())
		if strings.Contains(p.Message, "leaked") || strings.Contains(p.Message, secret) {
			t.Error(p)
		}
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{
		"user module link-file: link-file.ts:1:15: it imports \"./linked\": it is a link to a place outside the folder",
		"user module link-folder: link-folder.ts:1:15: it imports \"./folder\": it is a link to a place outside",
		"user module folder: it is a link to a place outside the folder",
		"user module linked: it is a link to a place outside the folder",
		"user module self: it is a link to a place outside the folder",
		"user module pack: index.ts:1:15: it imports \"pkg\": it is a link to a place outside",
		"user module escape: package.json: it names \"../plain.ts\": it is outside the folder",
		"user module escape: index.ts:1:15: it imports \"../plain\", which is outside",
		"user module up: index.ts:1:15: it imports \"above\", which is not in the node_modules",
		"user module exports: index.ts:1:15: it imports \"sly\": \"./../../../plain.ts\" is outside the package",
		"user module pipe: ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no problem says %q:\n%s", want, text)
		}
	}
	for _, name := range []string{"self.ts", "linked.ts", "pipe.ts"} {
		if s, err := File(filepath.Join(dir, name), module.LevelUser); err == nil || s.Code != "" {
			t.Errorf("%s: %v, %q", name, err, s.Code)
		}
	}
}

func TestBoundsOfAModule(t *testing.T) {
	t.Parallel()
	half := "export const x = '" + strings.Repeat("a", maxFile/2) + "';\n"
	files := map[string]string{
		"large.ts":  plainModule + "//" + strings.Repeat("a", maxFile),
		"bundle.ts": "import { x } from './lib/a'; import { x as y } from './lib/b'; import { x as z } from './lib/c';\nexport default () => x + y + z;",
		"lib/a.ts":  half, "lib/b.ts": half, "lib/c.ts": half,
		strings.Repeat("n", 65) + ".ts": plainModule,
		"sp ace.ts":                     plainModule,
		"good.ts":                       plainModule,
	}
	sources, problems, err := Dir(write(t, files), module.LevelUser)
	if err != nil || len(sources) != 1 || sources[0].Name != "good" || len(problems) != 4 {
		t.Fatalf("%v, %d sources, %v", err, len(sources), problems)
	}
	for i, want := range []string{"once bundled, the limit is 1048576", "is larger than 1048576 bytes", "cannot be a module's name", "cannot be a module's name"} {
		if !strings.Contains(problems[i].Message, want) {
			t.Errorf("%s, want %q", problems[i], want)
		}
	}
}

// Many files within their bounds are bounded together, and each module anew.
func TestBoundsOfAllFilesOfAModule(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		files, size int
		want        string
	}{
		"few of them":  {7, maxFile - 100, ""},
		"too large":    {9, maxFile - 100, "files have more than 8388608 bytes"},
		"one too many": {maxFiles, 10, "consists of more than 2000 files"}, // with the module's own
	} {
		var imports strings.Builder
		files := map[string]string{}
		for i := range row.files {
			fmt.Fprintf(&imports, "import './lib/%d';\n", i)
			files[fmt.Sprintf("lib/%d.ts", i)] = "//" + strings.Repeat("x", row.size)
		}
		files["a.ts"], files["b.ts"] = imports.String()+plainModule, imports.String()+plainModule
		sources, problems, err := Dir(write(t, files), module.LevelUser)
		if err != nil || row.want == "" && len(sources) != 2 || row.want != "" && len(problems) != 2 {
			t.Errorf("%s: %v, %d sources, %v", name, err, len(sources), problems)
		}
		for _, p := range problems {
			if !strings.Contains(p.Message, row.want) {
				t.Errorf("%s: %s", name, p)
			}
		}
	}
}

// Data may be long, but not deep.
func TestHostileData(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ data, want string }{
		"a long list":       {"[" + strings.TrimSuffix(strings.Repeat("[1],", maxLevels*2), ",") + "]", ""},
		"a deep list":       {strings.Repeat("[", maxFile/2) + strings.Repeat("]", maxFile/2), "nests too deeply"},
		"one without ends":  {strings.Repeat("[", maxFile), "nests too deeply"},
		"a deep object":     {strings.Repeat(`{"":`, maxFile/5) + "1" + strings.Repeat("}", maxFile/5), "nests too deeply"},
		"a small one is so": {"[", "data.json:1:2: "},
	} {
		dir := write(t, map[string]string{"m.ts": "import data from './data.json';\nexport default (api) => api.onToolUse({ name: 'n' + data.length, description: 'd', handler() {} });", "data.json": row.data})
		_, err := File(filepath.Join(dir, "m.ts"), module.LevelUser)
		if (row.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What opens many levels of the bundler's stack is refused before it sees it; a
// stack that overflows ends the process.
func TestHostileScripts(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"(", "[", "{", "!", "a=>", "a=", "if(a)", "x<", "`${", "typeof ", "(/*)*/", "'(',(", "else ", "-"} {
		text := strings.Repeat(level, maxFile/len(level))
		if level == "-" {
			text = strings.Repeat("-a=", maxFile/3)
		}
		if _, err := File(filepath.Join(write(t, map[string]string{"m.js": text}), "m.js"), module.LevelUser); err == nil || !strings.Contains(err.Error(), "than are read in one file") {
			t.Errorf("%q: %v", level, err)
		}
	}
}
