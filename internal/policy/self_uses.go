package policy

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// wordUses is how a command uses the paths among its words.
type wordUses struct {
	name string
	// each is the use of every word, rest that of one more; into is the index of
	// the word that names a folder to copy into, -1 for none.
	each []use
	rest use
	into int
	// known: the program is known to take paths. here: it works on the current
	// directory without being told. patches: its input names files.
	known, here, patches bool
}

func (w wordUses) of(k int) use {
	if k < len(w.each) {
		return w.each[k]
	}
	return w.rest
}

// usedName is the name of a command's program, as the tables here have it.
func usedName(u *shell.Unit) string { return strings.TrimSuffix(strings.ToLower(programOf(u)), ".exe") }

// usesOf says how a command uses its words. What is not known reads and writes.
func usesOf(u *shell.Unit) wordUses {
	out := wordUses{name: usedName(u), into: -1}
	args := u.Words[1:]
	switch name := out.name; {
	case name == "git":
		out.git(u)
	case name == "assent" && harmlessAssent(u):
		out.rest = use{dir: reads}
	case name == "find" || name == "fd" || name == "fdfind":
		out.rest = use{dir: reads}
		if slices.ContainsFunc(args, func(a string) bool {
			return a == "-delete" || strings.HasPrefix(a, "-f") && len(a) > 3 || strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok") || a == "-x" || a == "-X"
		}) {
			out.rest = use{dir: both, folder: true, home: true}
		}
	case name == "tar" || name == "bsdtar":
		out.tar(args)
		return out
	case looking[name], readers[name] && onlyReads(name, u), oneInput(name, u), name == "sed" && !slices.ContainsFunc(args, inPlace):
		out.rest, out.known = use{dir: reads}, true
		if _, ok := searchOf(u.Words); ok {
			out.rest.home = true
		}
	case name == "mkdir" || name == "rmdir" || name == "touch":
		out.rest, out.known = use{dir: writes}, true
	case copying[name]:
		out.copy(u.Words)
		return out
	default:
		out.rest = use{dir: both, folder: true, home: wholeFolder[name] || changesAll(name, args), gone: removing[name]}
		out.known = wholeFolder[name] || writers[name] || name == "sed" || name == "dd" || name == "perl"
		out.here = name == "unzip" || name == "cpio"
		out.patches = name == "patch" || name == "apply_patch"
	}
	out.fill(len(u.Words))
	return out
}

func (w *wordUses) fill(n int) {
	w.each = make([]use, n)
	for i := range w.each {
		w.each[i] = w.rest
	}
}

// removing are programs behind which what they name is gone.
var removing = programSet("rm srm trash trash-put shred")

// changesAll says whether a program changes a folder with all that is in it.
func changesAll(name string, args []string) bool {
	switch name {
	case "chmod", "chown", "chgrp", "setfacl", "chattr":
		return slices.ContainsFunc(args, func(a string) bool {
			return strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "R") || strings.HasPrefix(a, "--recursive")
		})
	}
	return false
}

// git: what reads, and what also only takes a file as it is into the history.
func (w *wordUses) git(u *shell.Unit) {
	words := u.Subcommand()
	w.rest = use{dir: both, folder: true}
	if len(words) < 2 {
		return
	}
	switch {
	case gitReads(u):
		w.rest = use{dir: reads}
	case slices.Contains([]string{"add", "commit", "stage", "check-ignore", "check-attr", "reset", "fetch", "push", "branch", "tag", "remote",
		"blame", "annotate", "rev-list", "merge-base", "name-rev", "hash-object", "notes"}, words[1]),
		words[1] == "update-index" && !slices.ContainsFunc(words[2:], staged):
		w.rest = use{dir: reads}
	}
	w.known = words[1] == "rm" || words[1] == "mv" || words[1] == "restore" || words[1] == "checkout"
	w.patches = bringers[words[1]] && (words[1] != "update-index" || slices.ContainsFunc(words[2:], staged))
}

// bringers are git's subcommands that make files, or what the next checkout
// makes files of, of content that no word names.
var bringers = programSet("apply am fast-import update-index")

// staged says whether an option makes git stage content that is no file yet: the
// next checkout writes it.
func staged(a string) bool {
	return strings.HasPrefix(a, "--cacheinfo") || strings.HasPrefix(a, "--index-info")
}

// tar reads what it puts in, writes the archive, and writes anything where it
// takes out.
func (w *wordUses) tar(args []string) {
	w.known = true
	mode := ""
	for i, a := range args {
		if i == 0 || strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") {
			mode += strings.TrimPrefix(a, "-")
		}
		if a == "--extract" || a == "--get" {
			mode += "x"
		}
	}
	w.rest = use{dir: reads, home: true}
	if strings.Contains(mode, "x") {
		w.rest, w.here = use{dir: both, folder: true, home: true}, true
	}
	w.fill(len(args) + 1)
	for i, a := range args {
		archive := i > 0 && (i == 1 || strings.HasPrefix(args[i-1], "-")) && strings.HasSuffix(args[i-1], "f")
		if archive || strings.HasPrefix(a, "--file") || strings.HasPrefix(a, "--remove") {
			w.each[i+1] = use{dir: both}
		}
	}
	if slices.Contains(args, "--remove-files") {
		w.rest = use{dir: both, folder: true, home: true}
		w.fill(len(args) + 1)
	}
}

// copying are programs whose last word, or the one behind -t, is where the
// others go.
var copying = programSet("cp mv ln install rsync scp ditto gcp gmv gln ginstall")

// copiesFolders says whether an option makes cp copy folders.
func copiesFolders(a string) bool {
	return a == "--recursive" || a == "--archive" || len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a, "rRa")
}

// copy: the sources are read, the target is written, and what is moved or
// linked to is as good as written.
func (w *wordUses) copy(words []string) {
	w.known = true
	name := strings.TrimPrefix(w.name, "g")
	source := use{dir: reads, home: true}
	switch {
	case name == "mv":
		source = use{dir: both, folder: true, home: true, gone: true}
	case name == "ln":
		source = use{dir: both, folder: true} // another name for it is another way to it
	case slices.ContainsFunc(words, func(a string) bool { return strings.HasPrefix(a, "--remove-source") }):
		source = use{dir: both, folder: true, home: true}
	}
	w.rest = source
	w.fill(len(words))
	w.into = len(words) - 1
	for i, a := range words[1:] {
		long, value := strings.HasPrefix(a, "--t"), strings.Contains(a, "=")
		switch {
		case name == "rsync" || name == "scp":
		case long && !value, a == "-t":
			w.into = min(i+2, len(words)-1)
		case long, strings.HasPrefix(a, "-t"):
			w.each[i+1] = use{dir: writes, folder: true}
		}
	}
	target := use{dir: writes}
	plain := slices.ContainsFunc(words, func(a string) bool {
		return a == "-T" || a == "--no-target-directory" || strings.HasPrefix(a, "--del") || len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.Contains(a, "T") && name != "rsync"
	})
	// A folder that is not there yet takes the place of the target as it is.
	moves := (name == "mv" || name == "cp" && slices.ContainsFunc(words[1:], copiesFolders)) && !strings.HasSuffix(words[w.into], "/")
	if moves {
		target.folder = true
	}
	if name == "ln" || plain {
		target = use{dir: writes, folder: true, home: plain}
	}
	target.gone = name == "rsync" && slices.ContainsFunc(words, func(a string) bool { return strings.HasPrefix(a, "--del") })
	w.each[w.into] = target
}
