package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// search is a command that shows what is in files that its words do not name.
type search struct {
	// dirs are where it looks, globs what it looks at; without any, at all.
	dirs, globs []string
	// input: none are named, so that it reads what it is fed, if anything.
	input bool
}

// searchers says which short and long options of the searching programs take
// the next word, and which of them narrow the search.
var searchers = map[string]struct{ short, long, globs string }{
	"grep": {"efmABCdD", " --regexp --file --max-count --context --include --exclude --exclude-dir --after-context --before-context --directories --color --label ", " --include "},
	"rg": {"efgtTmABCEjMrd", " --regexp --file --glob --iglob --type --type-not --max-count --context --after-context --before-context --encoding --replace " +
		"--sort --sortr --max-depth --max-filesize --max-columns --threads --color --colors --ignore-file --pre-glob --engine ", " -g --glob --iglob "},
	"git": {"efABCmO", " --max-depth --threads ", ""},
	"ag":  {"ABCGmp", " --ignore --depth --file-search-regex ", ""},
}

// searchOf reads a command as a search; ok is false where it is none.
func searchOf(words []string) (s search, ok bool) {
	if len(words) == 0 {
		return s, false
	}
	name, args := strings.ToLower(path.Base(words[0])), words[1:]
	switch name {
	case "grep", "ggrep", "egrep", "fgrep", "zgrep", "bzgrep", "xzgrep":
		if !recursive(args) {
			return s, false
		}
		name = "grep"
	case "rgrep":
		name = "grep"
	case "rg":
		if slices.Contains(args, "--files") || slices.Contains(args, "--type-list") {
			return s, false
		}
	case "ag", "ack", "ug", "ugrep":
		name = "ag"
	case "git":
		return gitSearch(words)
	default:
		return s, false
	}
	if namesOnly(args, searchers[name].short) {
		return s, false
	}
	return searching(name, args), true
}

// namesOnly says whether an option makes a search show the names of files, and
// nothing of what is in them. valued are the short options that take the rest
// of their word.
func namesOnly(args []string, valued string) bool {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return false
		case a == "--files-with-matches" || a == "--files-without-match":
			return true
		case len(a) < 2 || a[0] != '-' || a[1] == '-':
			continue
		}
		own := a[1:]
		if at := strings.IndexAny(own, valued); at >= 0 {
			if at == len(own)-1 {
				i++ // its value is the next word
			}
			own = own[:at]
		}
		if strings.Contains(own, "l") {
			return true
		}
	}
	return false
}

// recursive says whether grep's options make it look into directories.
func recursive(args []string) bool {
	for i, a := range args {
		if strings.HasPrefix(a, "--") {
			name, value, _ := strings.Cut(a, "=")
			if len(name) > 3 && (strings.HasPrefix("--recursive", name) || strings.HasPrefix("--dereference-recursive", name) ||
				strings.HasPrefix("--directories", name) && (value == "" || strings.HasPrefix("recurse", value))) {
				return true
			}
			continue
		}
		if len(a) < 2 || a[0] != '-' {
			continue
		}
		for _, c := range a[1:] {
			if c == 'r' || c == 'R' || c == 'd' && (strings.HasSuffix(a, "recurse") || i+1 < len(args) && args[i+1] == "recurse") {
				return true
			}
			if strings.ContainsRune("efmABCD", c) {
				break
			}
		}
	}
	return false
}

// searching reads the arguments of a program that searches.
func searching(name string, args []string) search {
	g := searchers[name]
	var s search
	var operands []string
	given := false // the expression stands behind an option
	for i := 0; i < len(args); i++ {
		a := args[i]
		option, value, inline := strings.Cut(a, "=")
		switch {
		case a == "--":
			operands = append(operands, args[i+1:]...)
			i = len(args)
			continue
		case len(a) < 2 || a[0] != '-':
			operands = append(operands, a)
			continue
		case a[1] != '-':
			at := strings.IndexAny(a[1:], g.short)
			if at < 0 {
				continue
			}
			option, value, inline = "-"+a[1+at:2+at], a[2+at:], len(a) > 2+at
		case !strings.Contains(g.long, " "+option+" "):
			continue
		}
		if !inline {
			if i++; i < len(args) {
				value = args[i]
			}
		}
		switch {
		case strings.Contains(g.globs, " "+option+" "):
			s.globs = append(s.globs, value)
		case name == "rg" && (option == "-t" || option == "--type"):
			s.globs = append(s.globs, typeGlob(value))
		case option == "-e" || option == "-f" || option == "--regexp" || option == "--file":
			given = true
		}
	}
	if !given && len(operands) > 0 {
		operands = operands[1:]
	}
	if s.dirs = operands; len(operands) == 0 {
		s.dirs, s.input = []string{"."}, name == "rg" || name == "ag"
	}
	return s
}

// gitSearch reads a git command that shows content by path specifications.
func gitSearch(words []string) (s search, ok bool) {
	words = (&shell.Unit{Words: words}).Subcommand()
	if len(words) < 2 || path.Base(words[0]) != "git" {
		return s, false
	}
	args := words[2:]
	switch words[1] {
	case "grep":
		s = searching("git", args)
		if slices.Contains(s.dirs, ".") && len(s.dirs) == 1 {
			return s, true
		}
		specs := s.dirs
		s.dirs = []string{"."}
		for _, d := range specs {
			s.globs = append(s.globs, pathspec(d))
		}
		return s, true
	case "diff", "log", "show", "whatchanged", "format-patch", "stash":
		if words[1] == "diff" && slices.Contains(args, "--no-index") {
			s.dirs = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") })
			return s, true
		}
		for _, a := range args {
			if !strings.HasPrefix(a, "-") && (strings.ContainsAny(a, "*?[") || strings.HasPrefix(a, ":(")) {
				s.globs = append(s.globs, pathspec(a))
			}
		}
		s.dirs = []string{"."}
		return s, len(s.globs) > 0
	}
	return s, false
}

// pathspec is git's specification of paths as a glob, without its magic.
func pathspec(spec string) string {
	if magic, rest, ok := strings.Cut(spec, ")"); ok && strings.HasPrefix(magic, ":(") {
		if strings.Contains(magic, "exclude") || strings.Contains(magic, "icase") || strings.Contains(magic, "attr") {
			return "*"
		}
		spec = rest
	} else if rest, ok := strings.CutPrefix(spec, ":/"); ok {
		spec = rest
	} else if strings.HasPrefix(spec, ":") {
		return "*"
	}
	globbed := strings.ContainsAny(spec, "*?[\\")
	if file(spec) {
		return "/" + spec // from here, and no deeper
	}
	if allOfOneSource(spec) {
		return spec
	}
	spec += "*" // a directory, and what is in it
	if !globbed {
		return "/" + spec
	}
	return spec
}

// searched adds an entry where a command could show files that path rules deny
// or ask about, though none of its words names them.
func (e *evaluation) searched(at *place, u *shell.Unit, unit int) {
	s, ok := searchOf(u.Words)
	if !ok || s.input && u.Fed {
		return
	}
	if !slices.ContainsFunc(s.globs, func(g string) bool { return !strings.HasPrefix(g, "!") }) {
		s.globs = []string{"*"}
	}
	if len(s.dirs)*len(s.globs) > maxReported {
		s.dirs, s.globs = []string{".", "/"}, []string{"*"} // too many to compare one by one
	}
	for _, dir := range s.dirs {
		if file(dir) {
			continue // ruled on as the path that it is
		}
		for _, g := range s.globs {
			if !strings.HasPrefix(g, "!") {
				e.selects(at, dir, g, reads, unit)
			}
		}
	}
}

// fileEndings are those of names that are hardly a directory's.
var fileEndings = strings.Fields("c cc cfg conf cpp cs css csv go h hpp html ini java js json jsonc jsx kt lock log lua md mjs mod php pl proto py rb rs " +
	"scss sh sql sum svelte swift toml ts tsx txt vue xml yaml yml")

// file says whether a word is taken for one file and no directory.
func file(word string) bool {
	ending := strings.TrimPrefix(path.Ext(word), ".")
	return !strings.ContainsAny(word, "*?[{") && slices.Contains(fileEndings, ending) && path.Base(word) != "."+ending
}

// typeGlobs are the types of files that searching tools know by a name.
var typeGlobs = map[string]string{
	"go": "*.go", "py": "*.{py,pyi}", "python": "*.{py,pyi}", "js": "*.{js,jsx,mjs,cjs,vue}", "ts": "*.{ts,tsx,mts,cts}", "rust": "*.rs", "java": "*.java",
	"c": "*.{c,h}", "cpp": "*.{cpp,cc,cxx,hpp,hh,h}", "md": "*.{md,markdown}", "markdown": "*.{md,markdown}", "css": "*.css", "html": "*.{html,htm}",
	"json": "*.json", "yaml": "*.{yaml,yml}", "toml": "*.toml", "ruby": "*.rb", "php": "*.php", "swift": "*.swift", "kotlin": "*.{kt,kts}", "sql": "*.sql",
}

// typeGlob is the glob of a type; an unknown one may be anything.
func typeGlob(name string) string {
	if g, ok := typeGlobs[name]; ok {
		return g
	}
	return "*"
}
