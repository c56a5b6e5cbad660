package bundle

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// resolve is the file that an import means, as Node would find it, but never
// outside the folder: nothing above it is looked at.
func (f *folder) resolve(importer, spec string, required bool) (string, error) {
	name := quote(spec)
	from := path.Dir(importer)
	switch {
	case strings.HasPrefix(spec, "node:") || builtins[strings.SplitN(spec, "/", 2)[0]] && !f.hasPackage(from, spec):
		return "", fmt.Errorf("it imports %s: a module has nothing of Node, no file, no network and no process", name)
	case strings.Contains(spec, "://") || strings.HasPrefix(spec, "data:"):
		return "", fmt.Errorf("it imports %s: nothing is fetched", name)
	case strings.HasPrefix(spec, "/") || strings.Contains(spec, `\`):
		return "", fmt.Errorf("it imports %s: only what is in the module's folder can be imported", name)
	case spec == "." || spec == ".." || strings.HasPrefix(spec, "./") || strings.HasPrefix(spec, "../"):
		return f.relative(from, spec)
	case strings.HasPrefix(spec, "#"):
		return "", fmt.Errorf("it imports %s: a package's own \"imports\" are not read", name)
	case !f.packages:
		return "", fmt.Errorf("it imports %s: a single file has no dependencies but the library; give the module a folder with a package.json", name)
	}
	return f.bare(from, spec, required)
}

// builtins are the modules of Node, which can be imported without "node:".
var builtins = func() map[string]bool {
	out := map[string]bool{}
	for _, name := range strings.Fields("assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain events fs http " +
		"http2 https inspector module net os path perf_hooks process punycode querystring readline repl stream string_decoder sys timers tls " +
		"trace_events tty url util v8 vm wasi worker_threads zlib") {
		out[name] = true
	}
	return out
}()

// hasPackage says whether a package of the name of one of Node's modules stands
// in for it, as there are for events and punycode.
func (f *folder) hasPackage(from, spec string) bool {
	if !f.packages {
		return false
	}
	_, err := f.bare(from, spec, false)
	return err == nil
}

func (f *folder) relative(from, spec string) (string, error) {
	target := path.Join(from, spec)
	if target == ".." || strings.HasPrefix(target, "../") {
		return "", fmt.Errorf("it imports %s, which is outside the module's folder", quote(spec))
	}
	found, ok, err := f.at(target)
	if err != nil {
		return "", fmt.Errorf("it imports %s: %w", quote(spec), err)
	}
	if !ok {
		return "", fmt.Errorf("it imports %s: there is no such file in the module's folder", quote(spec))
	}
	return found, nil
}

// endings of files that an import may leave out.
var endings = []string{".ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".json"}

// at is the file that a path means: itself, with an ending, or what its folder
// begins with.
func (f *folder) at(target string) (found string, ok bool, err error) {
	tries := []string{target}
	for js, ts := range map[string]string{".js": ".ts", ".mjs": ".mts", ".cjs": ".cts"} {
		if front, is := strings.CutSuffix(target, js); is { // TypeScript names the file that it will become
			tries = append(tries, front+ts)
		}
	}
	for _, e := range endings {
		tries = append(tries, target+e)
	}
	for _, e := range endings {
		tries = append(tries, path.Join(target, "index"+e))
	}
	for _, try := range tries {
		if found, ok, err = f.settle(try); ok || err != nil {
			return found, ok, err
		}
	}
	return "", false, nil
}

// bare is the file of a package that a node_modules at or above from holds.
func (f *folder) bare(from, spec string, required bool) (string, error) {
	name, sub := splitPackage(spec)
	for dir := from; ; dir = path.Dir(dir) {
		if path.Base(dir) != "node_modules" {
			found, ok, err := f.inPackage(path.Join(dir, "node_modules", name), sub, required)
			if err != nil {
				return "", fmt.Errorf("it imports %s: %w", quote(spec), err)
			}
			if ok {
				return found, nil
			}
		}
		if dir == "." {
			return "", fmt.Errorf("it imports %s, which is not in the node_modules of the module's folder: install it there", quote(spec))
		}
	}
}

func splitPackage(spec string) (name, sub string) {
	n := 2
	if strings.HasPrefix(spec, "@") {
		n = 3
	}
	parts := strings.SplitN(spec, "/", n)
	if len(parts) == n {
		return strings.Join(parts[:n-1], "/"), parts[n-1]
	}
	return spec, ""
}

// inPackage is the file that a package has for sub.
func (f *folder) inPackage(dir, sub string, required bool) (string, bool, error) {
	text, ok, err := f.readIfThere(path.Join(dir, "package.json"))
	if err != nil {
		return "", false, err
	}
	if !ok {
		return f.at(path.Join(dir, sub)) // a package of loose files
	}
	m, err := readManifest(text)
	if err != nil {
		return "", false, fmt.Errorf("its package.json: %w", err)
	}
	if m.Exports != nil {
		target := exported(*m.Exports, "./"+sub, required)
		if sub == "" {
			target = exported(*m.Exports, ".", required)
		}
		if target == "" || !strings.HasPrefix(target, "./") {
			return "", false, fmt.Errorf("its package.json exports no such file")
		}
		return f.within(dir, target)
	}
	if sub != "" {
		return f.within(dir, sub)
	}
	for _, main := range m.mains(required) {
		if found, ok, err := f.within(dir, main); ok || err != nil {
			return found, ok, err
		}
	}
	return f.within(dir, "index")
}

// within is a file of a package, and of no other.
func (f *folder) within(dir, sub string) (string, bool, error) {
	target := path.Join(dir, sub)
	if target != dir && !strings.HasPrefix(target, dir+"/") {
		return "", false, fmt.Errorf("%s is outside the package", quote(sub))
	}
	return f.at(target)
}

// readIfThere reads a file that need not be there.
func (f *folder) readIfThere(name string) (text string, ok bool, err error) {
	settled, ok, err := f.settle(name)
	if !ok || err != nil {
		return "", false, err
	}
	text, err = f.read(settled)
	return text, err == nil, err
}

// conditions of a package's exports that hold here, beside import or require.
var conditions = []string{"default", "module", "es2015"}

// exported is what a package's exports give for a path, "" for nothing.
func exported(exports exportsOf, want string, required bool) string {
	if exports.paths == nil {
		if want != "." {
			return ""
		}
		return exports.target(required)
	}
	if e, ok := exports.paths[want]; ok {
		return e.target(required)
	}
	best, middle := "", ""
	for pattern := range exports.paths {
		front, back, ok := strings.Cut(pattern, "*")
		if ok && len(want) >= len(front)+len(back) && strings.HasPrefix(want, front) && strings.HasSuffix(want, back) && len(front) >= len(best) {
			best, middle = pattern, want[len(front):len(want)-len(back)]
		}
	}
	if best == "" {
		return ""
	}
	e := exports.paths[best]
	return strings.ReplaceAll(e.target(required), "*", middle)
}

// target is the file that holds under the conditions here.
func (e *exportsOf) target(required bool) string {
	for _, c := range e.conditions {
		if c.name == "" || slices.Contains(conditions, c.name) || c.name == "import" && !required || c.name == "require" && required {
			if t := c.value.target(required); t != "" {
				return t
			}
		}
	}
	return e.file
}
