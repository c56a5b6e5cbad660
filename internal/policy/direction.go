package policy

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// readers are programs that only read the files in their arguments, whatever
// their options.
var readers = programSet("cat head tail grep egrep fgrep zgrep wc diff cmp file stat ls cut nl tac rev base64 md5sum sha1sum " +
	"sha256sum sha512sum od hexdump strings comm join paste fold readlink realpath test [ cd pushd less more rg jq du zcat cksum fmt expand tail")

// writers are programs that only change what is in their arguments.
var writers = programSet("tee touch mkdir rmdir rm unlink mkfifo chmod chown chgrp truncate shred")

// copiers are programs whose last argument is what they write to.
var copiers = programSet("cp mv ln install")

// printers are programs that print or compare their arguments and open nothing
// by them: a word that nobody knows does no harm there. A word that looks like a
// path is ruled on all the same, as what is printed often goes where it is read.
var printers = programSet("echo printf : true false seq expr basename dirname sleep exit return test [ export local declare shift date uname whoami id pwd")

// namers are programs that show of the files in their arguments no more than
// their names, sizes and kinds.
var namers = programSet("ls du stat file wc echo printf test [ realpath readlink basename dirname")

func programSet(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// programOf is the name by which a command's program is known here.
func programOf(u shell.Unit) string {
	name := u.Program()
	return name[strings.LastIndexAny(name, `/\`)+1:]
}

// wordDirections says of each word of a command which way a path in it is used.
// What is not known goes both ways.
func wordDirections(u shell.Unit) []direction {
	out := make([]direction, len(u.Words))
	if len(out) == 0 {
		return out
	}
	name := programOf(u)
	dir := both
	switch {
	case readers[name], name == "sed" && !slices.ContainsFunc(u.Words[1:], inPlace), name == "git" && gitReads(u):
		dir = reads
	case writers[name]:
		dir = writes
	case copiers[name]:
		dir = reads
		if name == "mv" {
			dir = both // what is moved away is gone
		}
	}
	for i := range out {
		out[i] = dir
	}
	out[0] = reads
	if copiers[name] && !slices.ContainsFunc(u.Words[1:], func(w string) bool { return strings.HasPrefix(w, "-t") || strings.HasPrefix(w, "--t") }) {
		out[len(out)-1] = writes
		if name == "ln" {
			out[len(out)-1] = both
		}
	} else if copiers[name] {
		for i := range out[1:] {
			out[i+1] = both
		}
	}
	return out
}

// inPlace says whether an option makes sed write its files.
func inPlace(w string) bool {
	return strings.HasPrefix(w, "--in") || len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.Contains(w, "i")
}

// gitReads says whether a git command only shows what is there.
func gitReads(u shell.Unit) bool {
	words := u.Subcommand()
	if len(words) < 2 || slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--output") || strings.HasPrefix(w, "-O") }) {
		return false
	}
	switch words[1] {
	case "status", "diff", "log", "show", "blame", "grep", "ls-files", "ls-tree", "cat-file", "rev-parse", "describe", "shortlog":
		return true
	}
	return false
}

// standardFolders are where the programs of a system lie: naming one by its
// path is no visit to another directory.
var standardFolders = []string{"/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/"}

// standardProgram says whether a command's program is one of the system.
func standardProgram(word string) bool {
	return slices.ContainsFunc(standardFolders, func(dir string) bool {
		rest, ok := strings.CutPrefix(word, dir)
		return ok && rest != "" && !strings.Contains(rest, "/")
	})
}
