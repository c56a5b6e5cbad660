package policy

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// readers are programs that only read the files in their arguments, but for
// those that writingOptions names.
var readers = programSet("cat head tail grep egrep fgrep zgrep wc diff cmp file stat ls cut nl tac rev base64 md5sum sha1sum " +
	"sha256sum sha512sum od hexdump strings comm join paste fold readlink realpath test [ cd pushd less more rg jq du zcat cksum fmt expand " +
	"sort shuf tree iconv sdiff unexpand tsort column look hd sum b2sum sha224sum sha384sum bzcat xzcat zstdcat lz4cat bzgrep xzgrep zdiff zcmp zless diff3")

// writingOptions are the options by which readers write a file after all:
// letters, also in a cluster, and how long ones begin. Whoever has one is not
// proven to read only.
var writingOptions = map[string]struct {
	short string
	long  []string
}{
	"sort":   {"oT", []string{"--o", "--t"}}, // -T: a folder for temporary files
	"shuf":   {"o", []string{"--o"}},
	"tree":   {"oR", []string{"--o"}}, // -R writes listings with -o's name
	"iconv":  {"o", []string{"--o"}},
	"sdiff":  {"o", []string{"--o"}},
	"base64": {"o", []string{"--o"}}, // on macOS
	"less":   {"oO", []string{"--l", "--L"}},
	"zless":  {"oO", []string{"--l", "--L"}},
	"file":   {"C", []string{"--c"}},
	"rg":     {"", []string{"--pre"}},
}

// onlyReads says whether a reader's words are proven to hold no option by which
// it writes. What a glob or the shell puts in their place could be one: of a
// file by the name -oout, sort makes an option.
func onlyReads(name string, u *shell.Unit) bool {
	o, ok := writingOptions[name]
	if !ok {
		return true
	}
	return !unknownOption(u) && !slices.ContainsFunc(u.Words[1:], func(w string) bool {
		return len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.ContainsAny(w, o.short) ||
			slices.ContainsFunc(o.long, func(long string) bool { return strings.HasPrefix(w, long) })
	})
}

// unknownOption says whether a word may turn out to be an option.
func unknownOption(u *shell.Unit) bool {
	for i, w := range u.Words {
		if i > 0 && w != "" && strings.ContainsAny(w[:1], "*?[{$`") && wordKind(u, i) != shell.Fixed {
			return true
		}
	}
	return false
}

// inputNumbers are the options of programs that take an input and then an
// output whose next word is a number. Only such words are no operands.
var inputNumbers = map[string]string{"uniq": "f s w", "xxd": "l s c g o"}

// oneInput says whether such a program has one operand, which it reads; what a
// second one names is written.
func oneInput(name string, u *shell.Unit) bool {
	numbers, ok := inputNumbers[name]
	if !ok {
		return false
	}
	operands := 0
	for i := 1; i < len(u.Words); i++ {
		w := u.Words[i]
		switch {
		case w == "--" || wordKind(u, i) != shell.Fixed:
			return false // any number of operands
		case len(w) == 2 && w[0] == '-' && strings.Contains(numbers, w[1:]):
			i++
		case len(w) < 2 || w[0] != '-':
			operands++
		}
	}
	return operands == 1
}

// findReads says whether find only names what it finds.
func findReads(u *shell.Unit) bool {
	return !unknownOption(u) && !slices.ContainsFunc(u.Words[1:], func(w string) bool {
		return slices.ContainsFunc([]string{"-delete", "-fprint", "-fls", "-exec", "-ok"}, func(deed string) bool { return strings.HasPrefix(w, deed) })
	})
}

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
func programOf(u *shell.Unit) string {
	name := u.Program()
	return name[strings.LastIndexAny(name, `/\`)+1:]
}

// wordDirections says of each word of a command which way a path in it is used.
// What is not known goes both ways.
func wordDirections(u *shell.Unit) []direction {
	out := make([]direction, len(u.Words))
	if len(out) == 0 {
		return out
	}
	name := programOf(u)
	dir := both
	switch {
	case readers[name] && onlyReads(name, u), oneInput(name, u), name == "find" && findReads(u), name == "sed" && !slices.ContainsFunc(u.Words[1:], inPlace), name == "git" && gitReads(u):
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
func gitReads(u *shell.Unit) bool {
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
