package shell

import (
	"slices"
	"strings"
)

// gitValued are git's own options that take the next word, also those that only
// some versions have: "git --attr-source HEAD push" pushes.
const gitValued = " -C --git-dir --work-tree --namespace -c --config-env --super-prefix --attr-source --shallow-file "

// gitGlobal are the doors in front of the subcommand. Another repository has
// settings of its own, which may name programs.
var gitGlobal = doorway{short: "c", valued: "C", long: []string{"config-env", "exec-path", "git-dir", "work-tree"}}

// gitCommon are the doors behind every subcommand: options that mean the same
// wherever git takes them.
var gitCommon = doorway{words: []string{"ext::"}, long: []string{"ext-diff", "upload-pack", "receive-pack", "exec", "open-files-in-pager", "extcmd", "output"}}

// gitDoors are more of them, by subcommand.
var gitDoors = map[string]doorway{
	"rebase":     {short: "x", valued: "sXCS"},
	"clone":      {short: "cu", valued: "obj", long: []string{"config", "template"}},
	"init":       {long: []string{"template"}},
	"grep":       {short: "O", valued: "efABCm"},
	"archive":    {short: "o"},
	"send-email": {long: []string{"smtp-server", "sendmail-cmd", "to-cmd", "cc-cmd", "header-cmd"}},
}

// gitRunners are git's subcommands that run what they are handed, with the
// word that makes them do so ("" for any use).
var gitRunners = map[string]string{
	"bisect": "run", "submodule": "foreach", "hook": "run", "filter-branch": "", "difftool": "", "mergetool": "", "for-each-repo": "",
	"instaweb": "", "web--browse": "", "remote-ext": "", "remote-fd": "", "shell": "", "daemon": "",
}

// gitWhy is programWhy for git.
func gitWhy(args []string) string {
	global, rest := cut(args, gitValued)
	if door := gitGlobal.open(global); door != "" {
		return WhyOption + ":git " + door
	}
	if len(rest) == 0 {
		return ""
	}
	sub, rest := rest[0], rest[1:]
	if strings.ContainsAny(sub, "/.") {
		return WhyOption + ":git " + sub // "git x/y" runs ./git-x/y
	}
	if mark, ok := gitRunners[sub]; ok && (mark == "" || slices.Contains(rest, mark)) {
		return WhyOption + ":git " + strings.TrimSpace(sub+" "+mark)
	}
	if door := gitDoors[sub].open(rest); door != "" {
		return WhyOption + ":git " + sub + " " + door
	}
	if door := gitCommon.open(rest); door != "" {
		return WhyOption + ":git " + door
	}
	if sub == "config" && !gitSettingHarmless(rest) {
		return WhyRuns + ":git config"
	}
	return ""
}

var (
	gitConfigReads = []string{"--get", "--get-all", "--get-regexp", "--get-urlmatch", "--get-color", "--get-colorbool", "--list", "-l"}
	gitConfigScope = []string{"--global", "--local", "--system", "--worktree", "--show-origin", "--show-scope", "--name-only", "-z", "--null",
		"--bool", "--int", "--path", "--includes", "--no-includes"}
	// gitSettings are settings that name no program; one ending in '.' is a
	// section.
	gitSettings = []string{"user.name", "user.email", "color.", "advice.", "push.default", "push.autosetupremote", "pull.rebase", "pull.ff",
		"fetch.prune", "init.defaultbranch", "core.autocrlf", "core.filemode", "core.ignorecase", "core.longpaths", "branch."}
)

// gitSettingHarmless says whether "git config" only reads, or sets what names
// no program: many settings are commands that git runs later.
func gitSettingHarmless(args []string) bool {
	var operands []string
	for _, a := range args {
		switch {
		case slices.Contains(gitConfigReads, a):
			return true
		case slices.Contains(gitConfigScope, a), strings.HasPrefix(a, "--type="):
		case strings.HasPrefix(a, "-"):
			return false
		default:
			operands = append(operands, a)
		}
	}
	if len(operands) > 0 && (operands[0] == "get" || operands[0] == "list") {
		return true
	}
	if len(operands) > 1 && operands[0] == "set" {
		operands = operands[1:]
	}
	if len(operands) < 2 {
		return len(operands) == 0 || strings.Contains(operands[0], ".")
	}
	key := strings.ToLower(operands[0])
	return slices.ContainsFunc(gitSettings, func(s string) bool {
		return key == s || strings.HasSuffix(s, ".") && strings.HasPrefix(key, s)
	})
}
