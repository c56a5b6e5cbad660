package denials

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge/brief"
)

// fileTools are tools that run nothing: their call is all there is to it.
var fileTools = []string{"read", "write", "edit", "multiedit", "notebookedit", "notebookread", "ls", "list", "grep", "glob", "find",
	"read_file", "read_many_files", "write_file", "replace", "list_directory", "search_file_content", "grep_search", "apply_patch", "patch",
	"view_image", "list_dir", "grep_files"}

// plainPrograms run no other program and no script whatever their words are.
// What is missing here is missing on purpose: git runs hooks, make and npm run
// what files say, find, tar, sort, sed and awk have options that run a program,
// printf and test evaluate what they are given.
var plainPrograms = []string{"basename", "cat", "cd", "chgrp", "chmod", "chown", "cp", "cut", "dd", "df", "dirname", "du", "echo", "false", "fold",
	"groups", "head", "hostname", "id", "kill", "killall", "ln", "ls", "mkdir", "mkfifo", "mv", "nl", "od", "paste", "pkill", "ps", "pwd",
	"readlink", "realpath", "rm", "rmdir", "seq", "shred", "sleep", "stat", "tac", "tail", "tee", "touch", "tr", "true", "truncate", "uname",
	"unlink", "wc", "whoami"}

// scriptFree says whether the call is proven to run no script of the host.
// Whatever is not known runs one.
func scriptFree(r link.Request) bool {
	if slices.ContainsFunc(r.Asks, func(e protocol.Entry) bool { return e.Surface == "bash" }) || brief.Command(r.Ask.Tool) != "" {
		return plainCommand(brief.Command(r.Ask.Tool))
	}
	return slices.Contains(fileTools, strings.ToLower(r.Ask.Tool.Name))
}

// evaluates are expansions in which a shell runs what a variable holds.
var evaluates = []string{"((", "$[", "[[", "${!", "@P"}

func plainCommand(text string) bool {
	if slices.ContainsFunc(evaluates, func(sign string) bool { return strings.Contains(text, sign) }) {
		return false
	}
	c := shell.Read(text)
	if c.Opaque || c.Structure != "" || len(c.Units) == 0 {
		return false
	}
	return !slices.ContainsFunc(c.Units, func(u shell.Unit) bool {
		// PATH=. in front of a command makes any name one of a local script.
		return len(u.Assigns) > 0 || u.Kind(0) != shell.Fixed || !slices.Contains(plainPrograms, u.Program())
	})
}
