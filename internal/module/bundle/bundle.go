// Package bundle makes permission modules out of files: each one script, with its
// dependencies and the library in it. It runs none of them, and reads no file
// outside the folder that it is given.
package bundle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/internal/module/sdk"
)

// File bundles one file as a module of its own. It may import the library, and
// files in its folder. The error is one line and says where in the file it is.
func File(path string, level module.Level) (module.Source, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return module.Source{}, fmt.Errorf("bundling %s: %w", path, err)
	}
	dir, base := filepath.Split(abs)
	if !isScript(base) {
		return module.Source{}, fmt.Errorf("%s is no module: a module is a .ts or .js file, or a folder whose package.json names some", path)
	}
	f, err := open(dir, false)
	if err != nil {
		return module.Source{}, err
	}
	defer f.close()
	return f.source(stem(base), base, level)
}

// stem is a file's name without its extension.
func stem(base string) string { return strings.TrimSuffix(base, filepath.Ext(base)) }

// isScript says whether a file may be a module. A declaration is none.
func isScript(name string) bool {
	ext := filepath.Ext(name)
	return (ext == ".ts" || ext == ".js") && !strings.HasSuffix(name, ".d.ts") && name[0] != '.'
}

// source bundles one file of the folder.
func (f *folder) source(name, file string, level module.Level) (module.Source, error) {
	s := module.Source{Name: name, Level: level, Root: filepath.Clean(f.dir)}
	if !module.ValidName(name) {
		return s, fmt.Errorf("%s cannot be a module's name: letters, digits, dot, dash and underscore, at most 64", quote(name))
	}
	code, err := f.bundle(file)
	if err != nil {
		return s, err
	}
	if len(code) > module.MaxCode {
		return s, fmt.Errorf("%s: it has %d bytes once bundled, the limit is %d", file, len(code), module.MaxCode)
	}
	s.Code = code
	return s, nil
}

// entry is the script that a bundle begins as. The library is loaded in front of
// the module.
const entry = `import { run } from "assent:runner";
import * as module from "assent:module";
export default run(module);
`

// bundle makes one script of a file and all it imports.
func (f *folder) bundle(file string) (string, error) {
	result := api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: entry, Sourcefile: "entry", Loader: api.LoaderJS},
		Bundle: true, Write: false, Outfile: "module.js",
		// Nothing of the machine: neither its folders' settings nor their names.
		AbsWorkingDir: string(filepath.Separator), TsconfigRaw: "{}", LogLevel: api.LogLevelSilent,
		Platform: api.PlatformNeutral, Format: api.FormatIIFE, GlobalName: "__assentModule",
		Target: api.ES2017, Supported: supported, LogOverride: map[string]api.LogLevel{"unsupported-regexp": api.LogLevelError}, Charset: api.CharsetASCII, LegalComments: api.LegalCommentsInline,
		Banner: map[string]string{"js": `(function () {"use strict";`},
		Footer: map[string]string{"js": "return __assentModule.default;})();"},
		Plugins: []api.Plugin{{Name: "assent", Setup: func(b api.PluginBuild) {
			b.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) { return f.onResolve(a, file) })
			b.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: sdkSpace}, loadSDK)
			b.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: moduleSpace}, f.onLoad)
		}}},
	})
	if len(result.Errors) > 0 {
		return "", errors.New(messages(result.Errors, file))
	}
	if len(result.OutputFiles) != 1 {
		return "", fmt.Errorf("%s: the bundler gave %d files, want one", file, len(result.OutputFiles))
	}
	code := string(result.OutputFiles[0].Contents)
	if found := unknownPattern.FindString(code); found != "" {
		return "", fmt.Errorf("%s: %s in the text of a pattern: groups with names and \\p{…} are not known here, and would silently match nothing", file, quote(found))
	}
	return code, nil
}

// supported is what the engine knows beyond the target. What it does not know in
// a pattern it does not refuse either: /\p{L}/u would match nothing, and a check
// that looks with it would never object. So the bundler refuses it.
var supported = map[string]bool{"bigint": true, "regexp-dot-all-flag": true, "regexp-lookbehind-assertions": true, "regexp-sticky-and-unicode-flags": true}

// unknownPattern finds the same in the texts of which a script may make patterns.
var unknownPattern = regexp.MustCompile(`\\\\[pP]\{[A-Za-z_=]+\}|\(\?<[A-Za-z_$][\w$]*>`)

// The namespaces of the files in a bundle.
const (
	sdkSpace    = "assent"
	moduleSpace = "module"
)

// onResolve says which file an import means.
func (f *folder) onResolve(a api.OnResolveArgs, file string) (api.OnResolveResult, error) {
	switch {
	case a.Importer == "entry" && a.Path == "assent:runner":
		return api.OnResolveResult{Path: sdk.Runner, Namespace: sdkSpace}, nil
	case a.Importer == "entry" && a.Path == "assent:module":
		return api.OnResolveResult{Path: filepath.ToSlash(file), Namespace: moduleSpace}, nil
	case a.Namespace == sdkSpace:
		return api.OnResolveResult{Path: strings.TrimPrefix(a.Path, "./") + ".ts", Namespace: sdkSpace}, nil
	case a.Path == sdk.Name || a.Path == sdk.PublishedName:
		return api.OnResolveResult{Path: sdk.Index, Namespace: sdkSpace}, nil
	}
	found, err := f.resolve(a.Importer, a.Path, a.Kind == api.ResolveJSRequireCall)
	if err != nil {
		return api.OnResolveResult{}, err // the bundler says where the import stands
	}
	return api.OnResolveResult{Path: found, Namespace: moduleSpace}, nil
}

func loadSDK(a api.OnLoadArgs) (api.OnLoadResult, error) {
	text, err := sdk.Files.ReadFile(a.Path)
	if err != nil {
		return api.OnLoadResult{}, err
	}
	contents := string(text)
	return api.OnLoadResult{Contents: &contents, Loader: api.LoaderTS}, nil
}

// onLoad reads a file of the folder.
func (f *folder) onLoad(a api.OnLoadArgs) (api.OnLoadResult, error) {
	loader, ok := loaders[filepath.Ext(a.Path)]
	if !ok {
		return problem("%s is neither TypeScript, JavaScript nor JSON", quote(a.Path))
	}
	text, err := f.read(a.Path)
	if err != nil {
		return problem("%v", err)
	}
	if loader == api.LoaderJSON && tooMuch(text) && !jsontext.Value(text).IsValid() { // whose own bound of depth is low
		return problem("%s is no JSON, or nests too deeply", quote(a.Path))
	}
	if loader != api.LoaderJSON && tooMuch(text) {
		return problem("%s has more brackets, conditions or assignments than are read in one file", quote(a.Path))
	}
	return api.OnLoadResult{Contents: &text, Loader: loader}, nil
}

func problem(format string, what ...any) (api.OnLoadResult, error) {
	return api.OnLoadResult{Errors: []api.Message{{Text: fmt.Sprintf(format, what...)}}}, nil
}

var loaders = map[string]api.Loader{
	".ts": api.LoaderTS, ".mts": api.LoaderTS, ".cts": api.LoaderTS, ".js": api.LoaderJS, ".mjs": api.LoaderJS, ".cjs": api.LoaderJS, ".json": api.LoaderJSON,
}

// messages is what the bundler found wrong, in one line: the first error with
// its place and the line it is in.
func messages(errs []api.Message, file string) string {
	m := errs[0]
	text, at := m.Text, file
	switch {
	case m.ID == "unsupported-regexp":
		text = "this pattern uses what is not known here (groups with names, \\p{…}, the flags d and v)"
	case strings.HasPrefix(text, "Top-level await"):
		text = "top-level await: a module loads at once; await in its handlers"
	}
	if in, ok := inModule(m.Location); ok {
		l := m.Location
		at = fmt.Sprintf("%s:%d:%d", in, l.Line, l.Column+1)
		if line := strings.TrimSpace(l.LineText); line != "" {
			text += ": " + line
		}
	}
	if len(errs) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(errs)-1)
	}
	return oneLine(at + ": " + text)
}

// inModule is the file of the module that a place is in.
func inModule(l *api.Location) (string, bool) {
	if l == nil {
		return "", false
	}
	return strings.CutPrefix(l.File, moduleSpace+":")
}

// missing says whether err means that there is no such file or folder.
func missing(err error) bool { return errors.Is(err, os.ErrNotExist) }
