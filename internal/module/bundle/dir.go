package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/module"
)

// maxEntries bounds what is looked at in one folder.
const maxEntries = 4096

// maxStars bounds the "**" of one glob: each multiplies the ways to match.
const maxStars = 3

// Dir bundles the modules of a folder: its .ts and .js files in the order of
// their names, and each folder in it whose package.json names modules in
// "assent": {"permissions": […]} (or "pi"). A folder that names modules itself is
// that one package. What cannot be bundled is a problem, and the others are
// returned; a folder that is not there holds none. The error is of the folder as a
// whole.
func Dir(dir string, level module.Level) ([]module.Source, []module.Problem, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("reading modules of %s: %w", dir, err)
	}
	f, err := open(abs, false)
	if missing(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.close()
	b := batch{level: level, names: map[string]bool{}}
	if entries, named := f.named(); named {
		f.close()
		b.folder(abs, filepath.Base(abs), entries)
		return b.sources, b.problems, nil
	}
	if err := b.all(f); err != nil {
		return nil, nil, fmt.Errorf("reading modules of %s: %w", dir, err)
	}
	return b.sources, b.problems, nil
}

// named are the modules that the folder's own package.json names.
func (f *folder) named() (entries []string, named bool) {
	text, ok, err := f.readIfThere("package.json")
	if !ok || err != nil {
		return nil, false
	}
	m, err := readManifest(text)
	if err != nil {
		return nil, false
	}
	return m.permissions()
}

// batch gathers the modules of one level.
type batch struct {
	level    module.Level
	sources  []module.Source
	problems []module.Problem
	names    map[string]bool
}

func (b *batch) problem(name string, err error) {
	b.problems = append(b.problems, module.Problem{Module: oneLine(name), Level: b.level, Message: oneLine(err.Error())})
}

func (b *batch) all(f *folder) error {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return plain(err)
	}
	if len(entries) > maxEntries {
		return fmt.Errorf("it holds more than %d files", maxEntries)
	}
	for _, e := range entries { // in the order of their names
		name := e.Name()
		info, err := os.Stat(filepath.Join(f.real, name)) // whatever a link leads to; it is not read
		switch {
		case strings.HasPrefix(name, "."), name == "node_modules":
		case err != nil:
			b.problem(name, plain(err))
		case info.IsDir():
			b.subfolder(f, name)
		case isScript(name):
			b.file(f, stem(name), name)
		case other[filepath.Ext(name)]:
			b.problem(name, errors.New("it is not loaded: only .ts and .js files are"))
		}
	}
	return nil
}

// other are the endings of files whose author expects a module.
var other = map[string]bool{".mts": true, ".cts": true, ".mjs": true, ".cjs": true, ".tsx": true, ".jsx": true}

// file adds one file of f as a module.
func (b *batch) file(f *folder, name, file string) {
	if settled, ok, err := f.settle(file); err != nil || !ok {
		b.problem(name, cmp.Or(err, fmt.Errorf("%s: there is no such file", quote(file))))
		return
	} else if f.packages {
		file = settled
	}
	if b.names[name] {
		b.problem(name, fmt.Errorf("%s: another module is called %s too: rename one", file, name))
		return
	}
	b.names[name] = true
	if len(b.sources) >= module.MaxSources {
		b.problem(name, fmt.Errorf("there are more than %d modules", module.MaxSources))
		return
	}
	f.renew()
	s, err := f.source(name, file, b.level)
	if err != nil {
		b.problem(name, err)
		return
	}
	b.sources = append(b.sources, s)
}

// subfolder adds the modules that a folder in the folder of modules names.
func (b *batch) subfolder(parent *folder, name string) {
	if real, err := filepath.EvalSymlinks(filepath.Join(parent.real, name)); err != nil || !within(parent.real, real) {
		b.problem(name, cmp.Or(err, errOutside))
		return
	}
	f, err := open(filepath.Join(parent.dir, name), true)
	if err != nil {
		b.problem(name, err)
		return
	}
	defer f.close()
	text, ok, err := f.readIfThere("package.json")
	var m *manifest
	if ok && err == nil {
		m, err = readManifest(text)
	}
	if err != nil {
		b.problem(name, fmt.Errorf("package.json: %w", err))
		return
	}
	if m != nil {
		if entries, named := m.permissions(); named {
			b.entries(f, name, entries)
			return
		}
	}
	for _, index := range []string{"index.ts", "index.js"} {
		if _, ok, _ := f.settle(index); ok {
			b.problem(name, fmt.Errorf(`%s alone is not loaded: name it in %s/package.json, {"assent": {"permissions": ["./%s"]}}`, index, name, index))
			return
		}
	}
}

// folder adds a folder that is a package of modules by itself.
func (b *batch) folder(dir, name string, entries []string) {
	f, err := open(dir, true)
	if err != nil {
		b.problem(name, err)
		return
	}
	defer f.close()
	b.entries(f, name, entries)
}

// entries adds the files that a package.json names: one is called like its
// folder, several by folder and file.
func (b *batch) entries(f *folder, name string, entries []string) {
	files, err := f.match(entries)
	if err != nil {
		b.problem(name, fmt.Errorf("package.json: %w", err))
	}
	for _, file := range files {
		own := name
		if len(files) > 1 {
			own = name + "." + strings.ReplaceAll(strings.TrimSuffix(file, path.Ext(file)), "/", ".")
		}
		b.file(f, own, file)
	}
}

// match is the files that entries name, in their order; those of a glob by name.
// "!" or "-" in front leaves out what an entry matches. What names no file is an
// error beside the files of the others: an author expects it to be in force.
func (f *folder) match(entries []string) (files []string, err error) {
	if len(entries) > module.MaxSources {
		return nil, fmt.Errorf("it names more than %d modules", module.MaxSources)
	}
	var out []string
	for _, e := range entries {
		if rest, is := strings.CutPrefix(e, "!"); is {
			out = append(out, clean(rest))
		} else if rest, is := strings.CutPrefix(e, "-"); is {
			out = append(out, clean(rest))
		}
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e, "!") || strings.HasPrefix(e, "-") {
			continue
		}
		found, err := f.entry(clean(strings.TrimPrefix(e, "+")))
		if err != nil {
			errs = append(errs, fmt.Errorf("it names %s: %w", quote(e), err))
		}
		for _, file := range found {
			left := slices.ContainsFunc(out, func(o string) bool { return file == o || strings.HasPrefix(file, o+"/") || glob(o, file) })
			if !left && !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files, errors.Join(errs...)
}

func clean(entry string) string { return path.Clean(strings.TrimPrefix(entry, "./")) }

// entry is the files that one entry means: a file, the scripts under a folder, or
// those that a glob matches.
func (f *folder) entry(entry string) ([]string, error) {
	if path.IsAbs(entry) || entry == ".." || strings.HasPrefix(entry, "../") {
		return nil, errors.New("it is outside the folder")
	}
	if !strings.ContainsAny(entry, "*?[") {
		if info, err := f.root.Stat(filepath.FromSlash(entry)); err == nil && !info.IsDir() {
			if !isScript(path.Base(entry)) {
				return nil, errors.New("only .ts and .js files are modules")
			}
			return []string{entry}, nil
		} else if err != nil {
			return nil, plain(err)
		}
	}
	if strings.Count(entry, "**") > maxStars {
		return nil, errors.New("it has too many **")
	}
	scripts, err := f.scripts()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, s := range scripts {
		if entry == "." || strings.HasPrefix(s, entry+"/") || glob(entry, s) {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("it matches no .ts or .js file")
	}
	return found, nil
}

// scripts are all scripts of the folder but those of its dependencies, by name.
// Links are not followed.
func (f *folder) scripts() (out []string, err error) {
	seen := 0
	err = fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return plain(err)
		case d.IsDir() && name != "." && (base == "node_modules" || base[0] == '.'):
			return fs.SkipDir
		case !d.IsDir() && isScript(base):
			out = append(out, name)
		}
		if seen++; seen > maxEntries {
			return fmt.Errorf("the folder holds more than %d files", maxEntries)
		}
		return nil
	})
	slices.Sort(out)
	return out, err
}

// glob says whether a pattern matches a path: "*" and "?" within one part of it,
// "**" any number of parts.
func glob(pattern, name string) bool {
	return globParts(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

func globParts(pattern, name []string) bool {
	for len(pattern) > 0 && pattern[0] != "**" {
		if len(name) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], name[0]); !ok || err != nil {
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	if len(pattern) == 0 {
		return len(name) == 0
	}
	for i := range len(name) + 1 {
		if globParts(pattern[1:], name[i:]) {
			return true
		}
	}
	return false
}

// within says whether a path without links lies in dir.
func within(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rel)
}
