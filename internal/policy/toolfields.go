package policy

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ToolName is the name under which a tool is known here, in whatever letter case
// it is written.
func ToolName(tool string) string { return canonicalTool(strings.TrimSpace(tool)) }

// ToolNames are the names under which a tool is known here: its own, and those
// of its kind. "Bash" is "bash" too, "run_shell_command" also: what is said of
// the one must not be lost to the name by which an agent knows it.
func ToolNames(tool string) []string {
	names := []string{tool}
	kind, own := kindOfTool(strings.TrimSpace(tool))
	for _, n := range []string{kind, own} {
		if n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// ToolFields is what a call of a known tool is about.
type ToolFields struct {
	// Kind is the name under which rules speak of tools of its kind: bash, read,
	// write, edit, grep, find, ls, glob; "" for a tool that nobody here knows.
	Kind string
	// Command is what it runs, Path the one file or directory that it names; ""
	// where it names none, or more than one.
	Command, Path string
	// Paths are all that it names where there are several, or a patch does, each
	// once.
	Paths []string
}

// FieldsOf reads them from the arguments from which rules read them.
func FieldsOf(tool string, input jsontext.Value) ToolFields {
	return fieldsOf(tool, input, nil, nil)
}

// FieldsOf is FieldsOf with what the policy declares: tools that run commands,
// and arguments that name files.
func (s *Snapshot) FieldsOf(tool string, input jsontext.Value) ToolFields {
	return fieldsOf(tool, input, s.shells, s.pathArguments)
}

func fieldsOf(tool string, input jsontext.Value, shells map[string]shellTool, named map[string][]pathArg) ToolFields {
	name := canonicalTool(strings.TrimSpace(tool))
	sh, isShell := shells[name]
	if !isShell {
		sh, isShell = shellTools[name]
	}
	file, isFile := fileTools[name]
	if !isShell && !isFile {
		return ToolFields{}
	}
	args, _ := arguments(input)
	if isShell {
		e := evaluation{args: args}
		text, _ := e.commandText(sh)
		return ToolFields{Kind: surfaceBash, Command: text}
	}
	f := ToolFields{Kind: file.surface}
	paths := pathsOf(file, args, named[name])
	if len(paths) == 1 && !file.patch { // a patch is about more than the file's name
		f.Path = paths[0]
	} else {
		f.Paths = paths
	}
	return f
}

// pathsOf are the files that a call of a file tool names, each once: by any of the
// arguments that may hold one, whichever of them the tool goes by, or in a patch.
func pathsOf(tool fileTool, args map[string]any, declared []pathArg) (paths []string) {
	add := func(p string) {
		if p != "" && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	keys := slices.Clone(tool.paths)
	for _, a := range declared {
		keys = append(keys, a.name)
	}
	typed, _ := namedTexts(args, keys)
	for _, t := range typed {
		for _, p := range fromURL(t) {
			add(p)
		}
	}
	if tool.patch {
		found, _ := patchedFiles(args, tool.paths)
		for _, f := range found {
			add(f.text)
		}
	}
	return paths
}
