package bundle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/module"
)

// FuzzFile: whatever a file holds, it becomes a bundle that is the same wherever
// the file lies, or an error of one line that names no folder of the machine.
func FuzzFile(f *testing.F) {
	for _, s := range []string{
		plainModule, "", "export default 1", "await x", "import x from 'y'", "import './m.ts'; export default () => {}", "import x from './package.json'", "\xff", "a`${", "/(?<a>b)/", "<a>b</a>",
		"export * from '.'", "import('./' + x)", "require(y)", "@d class A {}", "enum E {}", "import x = require('./m')", "declare module 'x'", "#!/usr/bin/env node\n1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var codes, errs [2]string
		for i := range codes {
			dir := filepath.Join(t.TempDir(), "d")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "m.ts"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			source, err := File(filepath.Join(dir, "m.ts"), module.LevelUser)
			if err != nil {
				errs[i] = err.Error()
			}
			codes[i] = source.Code
		}
		if codes[0] != codes[1] || errs[0] != errs[1] || (codes[0] == "") != (errs[0] != "") {
			t.Fatalf("%q: %q and %q", text, errs[0], errs[1])
		}
		if strings.ContainsAny(errs[0], "\n\r\x1b") || strings.Contains(errs[0], os.TempDir()) || strings.Contains(codes[0], os.TempDir()) {
			t.Errorf("%q: %q", text, errs[0])
		}
	})
}

// FuzzResolve: an import from wherever means a file of the folder that is there,
// or nothing.
func FuzzResolve(f *testing.F) {
	outside := f.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "x.ts"), nil, 0o600); err != nil {
		f.Fatal(err)
	}
	dir, err := filepath.Abs("testdata/depends")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"./index", "tiny-list", "@acme/tags/marks/suffix", "../x", "@acme/tags/marks/../../../../x", "tiny-list/../../index", "shout/", ".", "./", "@", "@/x", "#x", "node:fs", "fs", "./lib/words.js", "./\x00"} {
		f.Add("index.ts", s)
		f.Add("node_modules/tiny-list/lib/list.js", s)
	}
	f.Fuzz(func(t *testing.T, importer, spec string) {
		folder, err := open(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		defer folder.close()
		if !filepath.IsLocal(importer) || filepath.Clean(importer) != importer {
			return // the bundler hands on what resolve returned
		}
		found, err := folder.resolve(importer, spec, false)
		if err != nil {
			if found != "" || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%q from %q: %q, %v", spec, importer, found, err)
			}
			return
		}
		info, err := os.Lstat(filepath.Join(dir, found))
		if err != nil || !info.Mode().IsRegular() || !filepath.IsLocal(found) {
			t.Errorf("%q from %q is %q: %v", spec, importer, found, err)
		}
	})
}
