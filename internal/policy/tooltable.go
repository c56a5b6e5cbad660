package policy

import "strings"

// fileTool says where a tool keeps its paths.
type fileTool struct {
	// surface is the name under which rules speak of all tools of its kind.
	surface string
	// paths are the arguments that hold its path, in any of their spellings.
	paths []string
	dir   direction
	// globs are arguments that select files by a pattern of the tool's own.
	globs []string
	// selects: the globs choose files to be shown or named.
	selects bool
	// here: without a path the tool works on the current directory.
	here bool
	// patch: its paths stand in the text of a patch.
	patch bool
}

var (
	pathArgument   = []string{"path", "file_path", "filePath", "absolute_path", "notebook_path"}
	folderArgument = append([]string{"dir_path", "directory"}, pathArgument...)
)

// fileTools are the tools known to take a path, by their names in lower case.
// An edit shows what it edits, so it reads too.
var fileTools = map[string]fileTool{
	"read":  {surface: "read", paths: pathArgument, dir: reads},
	"write": {surface: "write", paths: pathArgument, dir: writes},
	"edit":  {surface: "edit", paths: pathArgument, dir: both},
	"ls":    {surface: "ls", paths: folderArgument, dir: reads, here: true},
	"grep":  {surface: "grep", paths: folderArgument, dir: reads, here: true, globs: []string{"glob", "include"}, selects: true},
	"glob":  {surface: "glob", paths: folderArgument, dir: reads, here: true, globs: []string{"pattern"}, selects: true},
	"find":  {surface: "find", paths: folderArgument, dir: reads, here: true, globs: []string{"pattern"}, selects: true},

	// Gemini CLI
	"read_file":           {surface: "read", paths: pathArgument, dir: reads},
	"read_many_files":     {surface: "read", paths: []string{"paths"}, dir: reads, here: true, globs: []string{"include"}, selects: true},
	"write_file":          {surface: "write", paths: pathArgument, dir: writes},
	"replace":             {surface: "edit", paths: pathArgument, dir: both},
	"list_directory":      {surface: "ls", paths: folderArgument, dir: reads, here: true},
	"search_file_content": {surface: "grep", paths: folderArgument, dir: reads, here: true, globs: []string{"include"}, selects: true},
	"grep_search":         {surface: "grep", paths: folderArgument, dir: reads, here: true, globs: []string{"include", "include_pattern"}, selects: true},

	// Codex, OpenCode
	"apply_patch": {surface: "edit", dir: both, patch: true},
	"patch":       {surface: "edit", paths: pathArgument, dir: both, patch: true},
	"view_image":  {surface: "read", paths: pathArgument, dir: reads},
	"list_dir":    {surface: "ls", paths: folderArgument, dir: reads, here: true},
	"grep_files":  {surface: "grep", paths: folderArgument, dir: reads, here: true, globs: []string{"include"}, selects: true},
	"lsp":         {surface: "read", paths: pathArgument, dir: reads},
}

// shellTool says where a tool that runs commands keeps them.
type shellTool struct {
	// command is the argument that holds the command.
	command string
	// workdir are the arguments that say in which directory it runs.
	workdir []string
	// typed: the text goes to a program that already runs.
	typed bool
	// declared: the policy says so.
	declared bool
}

// shellTools are the tools known to run commands, by their names in lower case.
var shellTools = map[string]shellTool{
	surfaceBash:         {command: "command", workdir: []string{"workdir"}},
	"run_shell_command": {command: "command", workdir: []string{"directory", "dir_path"}},
	"exec_command":      {command: "cmd", workdir: []string{"workdir"}},
	"shell":             {command: "command", workdir: []string{"workdir"}},
	"shell_command":     {command: "command", workdir: []string{"workdir"}},
	"local_shell":       {command: "command", workdir: []string{"working_directory", "workdir"}},
	"container.exec":    {command: "cmd", workdir: []string{"workdir"}},
	"write_stdin":       {command: "chars", typed: true},
}

// toolAliases are other names of known tools that rules do not know: a rule on
// one of them is refused and told the name to use.
var toolAliases = map[string]string{
	"multiedit": "edit", "notebookedit": "edit", "notebookread": "read", "list": "ls",
}

// canonicalTool is the name under which rules speak of a tool. Known tools are
// recognised in any letter case: a deny on "bash" must hold for "Bash".
func canonicalTool(name string) string {
	lower := strings.ToLower(name)
	if alias, ok := toolAliases[lower]; ok {
		return alias
	}
	_, file := fileTools[lower]
	_, shell := shellTools[lower]
	if file || shell || lower == surfaceMCP || lower == surfaceSkill {
		return lower
	}
	if strings.HasPrefix(lower, mcpPrefix) {
		return mcpPrefix + name[len(mcpPrefix):]
	}
	return name
}

// kindOfTool is the surface of all tools like one, and the tool's own name
// where rules may speak of that too; "" where it is the same. A rule on either
// counts, so that no deny is lost to the name by which an agent knows a tool.
func kindOfTool(name string) (surface, own string) {
	name = canonicalTool(name)
	switch t, ok := fileTools[name]; {
	case ok && t.surface != name:
		return t.surface, name
	case ok:
		return name, ""
	}
	if _, ok := shellTools[name]; ok && name != surfaceBash {
		return surfaceBash, name
	}
	return name, ""
}
