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
}

// FieldsOf reads them from the arguments from which rules read them.
func FieldsOf(tool string, input jsontext.Value) ToolFields {
	name := canonicalTool(strings.TrimSpace(tool))
	sh, isShell := shellTools[name]
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
	if paths, odd := namedTexts(args, file.paths); len(paths) == 1 && !odd && !file.patch {
		f.Path = paths[0]
	}
	return f
}
