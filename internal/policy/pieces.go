package policy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// maxWord bounds a word that is ruled as a path, in bytes. Systems open no path
// as long, but programs shorten "/./" and "/../" before they ask for it.
const maxWord = 16384

// tooLong says whether a word that may be a path is too long to be ruled as one.
func tooLong(word string) bool { return len(word) > maxWord && strings.Contains(word, "/") }

// longWord asks about a word that is too long to be looked at: to pass it over
// would let "./././…/.env" through.
func (e *evaluation) longWord(word string, dir direction, unit int) {
	if e.s.opensAll(surfacePath, dir) && e.s.opensAll(surfaceExternal, dir) {
		return
	}
	entry := floor(surfacePath, word, "too-long-word", "this word is too long to be looked at, and it may be the path of a file that rules speak of")
	entry.Unit = unit
	e.add(entry)
}

// network are URLs that lead to no file here.
var network = regexp.MustCompile(`^(?i)(git\+)?(https?|ftps?|sftp|ssh|git|s3|gs|gcs|az|postgres(ql)?|mysql|mariadb|mongodb(\+srv)?|redis|rediss|amqps?|nats|tls|wss?|tcp|udp|unix|docker|oci|ldaps?|smtps?|imaps?|grpcs?|mqtts?|jdbc|chrome|about|npm|package|bun|codecommit|rsync|svn)://[^/]`)

// isURL says whether a word is a URL of the network. A folder may be called
// "a:", and then "a://../.env" is a file: what is no known scheme, or climbs, is
// a path too.
func isURL(word string) bool {
	return strings.Contains(word, "://") && network.MatchString(word) && !strings.Contains(word, "/..") && !strings.Contains(word, "../")
}

// pieces are the parts of a word that may be a path of their own: the value of
// --option=FILE or if=FILE, of -oFILE and @FILE, the path of file:FILE.
func pieces(word string) []string {
	if word == "" {
		return nil
	}
	if whole(word) {
		return []string{word}
	}
	if isFileURL(word) {
		return append(fromURL(word), word)
	}
	if isURL(word) {
		return nil
	}
	out := []string{word}
	add := func(s string) {
		if s == "" || isURL(s) {
			return
		}
		out = append(out, s)
		if rest := strings.TrimPrefix(s, "@"); rest != s && rest != "" {
			out = append(out, rest)
		}
		if isFileURL(s) {
			out = append(out, fromURL(s)...)
		}
	}
	before, rest, valued := strings.Cut(word, "=")
	switch {
	case valued && isURL(rest):
		return nil
	case strings.HasPrefix(word, "-"):
		out = nil
		if len(word) > 2 && word[1] != '-' {
			add(word[2:])
		}
	}
	if valued && before != "" {
		add(rest)
	}
	if rest, ok := strings.CutPrefix(word, "@"); ok {
		add(rest)
	}
	return slices.Compact(out)
}

// whole says, fast, that a word is one piece: nothing in it stands between parts
// or in front of one.
func whole(word string) bool {
	return word != "" && word[0] != '-' && !strings.ContainsAny(word, "=:@")
}

// maxCluster bounds the letters of a cluster of short options whose last one is
// taken to have its value glued to it.
const maxCluster = 5

// oneLetter are programs whose short options stand alone: what follows the first
// letter is its value, as in -Isrc/include.
var oneLetter = programSet("gcc g++ cc c++ clang clang++ ld ar javac java mvn swiftc rustc go find make gmake sed perl git")

// clustered are the values that may be glued to a cluster of short options, as
// in -so/etc/x: paths where they look like one, and names.
func clustered(program, word string) (paths, names []string) {
	if len(word) < 4 || word[0] != '-' || word[1] == '-' {
		return nil, nil
	}
	for i := 3; i < len(word) && i <= maxCluster+1; i++ {
		if c := word[i-1] | 0x20; c < 'a' || c > 'z' {
			if c := word[i-1]; c < '0' || c > '9' {
				break
			}
		}
		rest := word[i:]
		switch {
		case isURL(rest):
		case strings.ContainsAny(rest[:1], "/~.") && strings.Contains(rest, "/") && !oneLetter[program]:
			paths = append(paths, rest)
		default:
			names = append(names, rest)
		}
	}
	return paths, names
}

// fileInForm are the files that a word of curl names in its own way: x=@FILE,
// x=<FILE, name@FILE, with quotes, a type behind and more files after a comma.
func fileInForm(program, word string) []string {
	if program != "curl" || isURL(word) || manyFiles(word) {
		return nil
	}
	var out []string
	for i := range len(word) {
		if word[i] != '@' && word[i] != '<' || i+1 == len(word) {
			continue
		}
		rest, _, _ := strings.Cut(word[i+1:], ";")
		for _, one := range append(strings.Split(rest, ","), word[i+1:], rest) {
			if one = strings.Trim(one, "\"' "); one != "" {
				out = append(out, one)
			}
		}
	}
	// -w '%output{FILE}' writes to FILE, '%output{>>FILE}' appends.
	for rest := word; strings.Contains(rest, outputMark); {
		_, rest, _ = strings.Cut(rest, outputMark)
		file, _, _ := strings.Cut(rest, "}")
		out = append(out, strings.TrimLeft(file, "> "))
	}
	return out
}

const outputMark = "%output{"

// manyFiles says whether a word of curl names more files than are looked at.
func manyFiles(word string) bool {
	marks := strings.Count(word, "@") + strings.Count(word, "<") + strings.Count(word, outputMark)
	return marks > 16 || marks > 0 && strings.Count(word, ",") > 64
}

// glued rules the values that are glued to other text in a word.
func (e *evaluation) glued(at *place, u *shell.Unit, program, word string, dir direction, unit int) {
	if len(word) > maxWord {
		return // asked about as a whole
	}
	if program == "curl" && manyFiles(word) {
		e.longWord(word, dir, unit)
	}
	paths, names := clustered(program, word)
	for _, p := range append(paths, fileInForm(program, word)...) {
		e.shellWord(at, p, dir, unit)
	}
	for _, name := range names {
		e.bare(at, name, dir, unit)
	}
	if program == "curl" && (strings.Contains(strings.ToLower(word), "file:") && strings.ContainsAny(word, "{}[]") || numberedName(word)) &&
		!(e.s.opensAll(surfacePath, dir) && e.s.opensAll(surfaceExternal, dir)) {
		entry := floor(surfacePath, word, "odd-path:curl-glob", "curl reads more files by this than it names; write the plain names")
		entry.Unit = unit
		e.add(entry)
	}
}

// numberedName says whether a word of curl may be a name of a file with a part of
// the URL in it: in -o '#1/x', #1 is what a glob of the URL selects.
func numberedName(word string) bool {
	at := strings.IndexByte(word, '#')
	return at >= 0 && at+1 < len(word) && word[at+1] >= '0' && word[at+1] <= '9' && !isURL(word) && !strings.ContainsAny(word, " \t\n")
}
