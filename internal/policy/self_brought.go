package policy

import (
	"slices"
	"strings"
)

// brought rules commands that write files which no word names: out of an
// archive, or as a patch says. Over the project they may bring any agent's
// settings along, as "cp -r x/. ." does.
func (t *selfText) brought(at *place, i int, words []string, uses wordUses) {
	folder, brings := unpacks(uses.name, words[1:])
	if uses.patches {
		files := filesOfPatch(t.cmd.Text)
		for _, f := range files {
			t.guard(at, f.text, use{dir: f.dir}, i)
		}
		if len(files) == 0 || !t.cmd.Units[i].Fed {
			folder, brings = patches(uses.name, t.cmd.Units[i].Subcommand())
		}
	}
	if brings {
		t.guard(at, folder, use{dir: writes, folder: true, home: true}, i)
		t.overProject(at, folder, i)
	}
}

// unpacking is how a program that takes files out of an archive is told so.
type unpacking struct {
	// folder are the options that name the folder to unpack into; operands of
	// which the archive is one are counted with archive.
	folder, valued []string
	archive        int
}

var unpackers = map[string]unpacking{
	"tar": {folder: []string{"-C", "--directory"}, valued: []string{"-f", "--file"}}, "bsdtar": {folder: []string{"-C", "--directory"}, valued: []string{"-f", "--file"}},
	"unzip": {folder: []string{"-d"}, valued: []string{"-x", "-P"}, archive: 1},
	"cpio":  {folder: []string{"-D", "--directory"}, valued: []string{"-I", "-F", "-E", "-H"}},
	"7z":    {folder: []string{"-o"}, archive: 2}, "7za": {folder: []string{"-o"}, archive: 2}, "7zr": {folder: []string{"-o"}, archive: 2},
	"pax": {valued: []string{"-f", "-s"}}, "jar": {folder: []string{"-C"}, valued: []string{"-f", "--file"}},
}

// unpacks says whether a command takes all that is in an archive, and where to.
// Members that it names are words like others.
func unpacks(name string, args []string) (folder string, ok bool) {
	p, known := unpackers[name]
	if !known || !extracts(name, args) {
		return "", false
	}
	folder, operands := ".", 0
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch option := optionIn(a, p.folder); {
		case option != "":
			if folder = strings.TrimPrefix(strings.TrimPrefix(a, option), "="); folder == "" && i+1 < len(args) {
				i++
				folder = args[i]
			}
		case slices.Contains(p.valued, a):
			i++
		case i == 0 && (name == "tar" || name == "bsdtar" || name == "jar"):
			if strings.Contains(a, "f") && !strings.HasPrefix(a, "--") && (!strings.HasPrefix(a, "-") || strings.HasSuffix(a, "f")) {
				i++ // its value
			}
		case strings.HasPrefix(a, "-"):
			if strings.HasSuffix(a, "f") && !strings.HasPrefix(a, "--") {
				i++ // -xvf FILE
			}
		default:
			operands++
		}
	}
	return folder, operands <= p.archive
}

// optionIn is the option of a list that a word begins with, "" for none.
func optionIn(word string, options []string) string {
	for _, o := range options {
		if word == o || strings.HasPrefix(word, o+"=") || len(o) == 2 && strings.HasPrefix(word, o) && !strings.HasPrefix(word, "--") {
			return o
		}
	}
	return ""
}

// extracts says whether the words make a program of unpackers unpack.
func extracts(name string, args []string) bool {
	letters := func(a, of string) bool {
		return len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a, of)
	}
	has := func(of string) bool { return slices.ContainsFunc(args, func(a string) bool { return letters(a, of) }) }
	switch name {
	case "unzip":
		return !has("lvtZzpc")
	case "7z", "7za", "7zr":
		return slices.Contains(args, "x") || slices.Contains(args, "e")
	case "cpio":
		return has("i") && !has("t") || slices.Contains(args, "--extract")
	case "pax":
		return has("r")
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") && strings.Contains(args[0], "x") {
		return true // the old style: tar xzf FILE
	}
	return slices.ContainsFunc(args, func(a string) bool {
		return a == "--extract" || a == "--get" || letters(a, "x") && !strings.HasPrefix(a, "-C") && !strings.HasPrefix(a, "-X") && !strings.HasPrefix(a, "-f")
	})
}

// patches says whether a command applies a patch that is not in the text, and
// where. Told of one file, or of a folder below, it stays there.
func patches(name string, words []string) (folder string, ok bool) {
	args := words[1:]
	if name == "git" {
		if len(words) < 2 {
			return "", false
		}
		for _, a := range words[2:] {
			for _, harmless := range []string{"--check", "--stat", "--numstat", "--summary", "--directory", "--include", "--cached", "--abort", "--quit", "--skip"} {
				if a == harmless || strings.HasPrefix(a, harmless+"=") {
					return "", false
				}
			}
		}
		return ".", true
	}
	if name != "patch" {
		return "", false
	}
	folder = "."
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--dry-run" || a == "-C" || a == "--check" || a == "--version" || a == "--help":
			return "", false
		case (a == "-d" || a == "--directory") && i+1 < len(args):
			i++
			folder = args[i]
		case slices.Contains([]string{"-i", "-p", "-F", "-D", "-B", "-b", "-o", "-r", "-V", "-Y", "-z", "-g"}, a):
			i++
		case !strings.HasPrefix(a, "-"):
			return "", false // the file to be changed
		}
	}
	return folder, true
}
