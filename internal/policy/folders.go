package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// folderWord rules a word that may be a folder of which the command takes more
// than its name.
func (e *evaluation) folderWord(at *place, u *shell.Unit, program, word string, dir direction, unit int) {
	whole := copying[program] || wholeFolder[program] || program == "wget"
	if !whole && !takesFolders(program, u) {
		return
	}
	if word == "." && program == "git" {
		return // "git init ." makes nothing but .git
	}
	if word == "." && program == "tar" && slices.ContainsFunc(u.Words, func(w string) bool { return strings.HasPrefix(w, "-C") || strings.HasPrefix(w, "--d") }) {
		return // the folder behind that option is looked at
	}
	e.folderOf(at, word, dir, !whole || removing[program], !whole && program != "git", unit)
}

// folderless are programs that take a folder for its name, or whose files in a
// folder are ruled on elsewhere.
var folderless = programSet("find fd fdfind tree source . bash sh zsh dash command which type rmdir mkdir touch ag ack ug ugrep rgrep git cargo")

// takesFolders says whether a program of which nothing else is known may take a
// folder with all that is in it.
func takesFolders(program string, u *shell.Unit) bool {
	switch {
	case program == "git":
		words := u.Subcommand()
		return len(words) > 1 && slices.Contains([]string{"clone", "init", "worktree", "submodule", "format-patch"}, words[1])
	case program == "diff":
		return slices.ContainsFunc(u.Words, func(w string) bool {
			return strings.HasPrefix(w, "--rec") || len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.Contains(w, "r")
		})
	case changesAll(program, u.Words):
		return true
	}
	return !readers[program] && !namers[program] && !writers[program] && !printers[program] && !talking[program] && !folderless[program]
}

// folderOf rules what lies in a folder that a command copies into, out of,
// changes or removes as a whole: "cp f ~/.ssh" writes what "~/.ssh/*" speaks of.
// path: only what is written as a path is taken for a folder.
func (e *evaluation) folderOf(at *place, word string, dir direction, holds, path bool, unit int) {
	if len(word) > maxWord {
		return
	}
	for _, p := range pieces(word) {
		if path && !looksLikePath(p) {
			continue
		}
		if e.folders++; e.folders > maxFolderWords {
			e.longWord(word, dir, unit) // too many to look at one by one
			return
		}
		if p == "." || p == "./" {
			if dir&reads != 0 && !path {
				e.above(at, ".", dir, unit)
			}
			continue
		}
		if p != ".." && strings.HasSuffix(p, "/.") {
			p = strings.TrimSuffix(p, ".")
		}
		if p = strings.TrimSuffix(p, "/"); p == "" {
			p = "/"
		}
		e.bare(at, strings.TrimSuffix(p, "/")+"/*", dir, unit)
		if dir&reads != 0 || holds {
			e.above(at, p, dir, unit)
		}
	}
}

// maxFolderWords bounds the words of one text that are looked at as folders.
const maxFolderWords = 512

// maxCopied bounds the files whose copies one text is asked about.
const maxCopied = 256

// copiedInto rules the files that a copy into a folder makes there: "cp x/key
// secret" writes secret/key.
func (e *evaluation) copiedInto(at *place, u *shell.Unit, unit int) {
	uses := usesOf(u)
	if uses.into <= 0 || uses.into >= len(u.Words) {
		return
	}
	folder := u.Words[uses.into]
	if _, value, ok := strings.Cut(folder, "="); ok && strings.HasPrefix(folder, "--") {
		folder = value
	}
	if len(folder) > maxWord || remotePlace(folder) {
		return
	}
	if e.copied == nil {
		e.copied = map[seenWord]bool{}
	}
	seen := e.copied
	for k, w := range u.Words {
		if k == 0 || k == uses.into || strings.HasPrefix(w, "-") || len(w) > maxWord {
			continue
		}
		name := copiedName(w)
		key := seenWord{folder + "\x00" + w, strings.Join(append(u.Elsewhere, u.Dir), "\x00"), u.Lost, writes}
		if seen[key] {
			continue
		}
		if seen[key] = true; len(seen) > maxCopied {
			e.longWord(folder, writes, unit) // too many to look at one by one
			return
		}
		if name == "" || strings.HasSuffix(w, "/") && uses.name == "rsync" {
			e.above(at, folder, writes, unit)
			continue
		}
		if wordKind(u, k) != shell.Fixed {
			continue // asked about as a word that nobody knows
		}
		target := strings.TrimSuffix(folder, "/") + "/" + name
		e.placed(at, target, unit)
		e.placed(at, target+"/*", unit)
		if uses.name != "ln" {
			e.above(at, target, writes, unit)
		}
	}
}

// placed is bare for a file that is made if the target of a copy is a folder: a
// rule on a name alone, as "*.env", says nothing of "cp a.env b" that it does not
// say of its words.
func (e *evaluation) placed(at *place, target string, unit int) {
	for _, r := range at.readings(target) {
		found := e.s.directed(surfacePath, at.home, r.values(target), writes)
		if found != nil && found.action != Allow && !strings.HasPrefix(found.pattern.text, "*") && strings.Contains(found.pattern.text, "/") {
			e.bare(at, target, writes, unit)
			return
		}
	}
}

// remotePlace says whether a word of scp or rsync is a place on another host.
func remotePlace(word string) bool {
	before, _, ok := strings.Cut(word, ":")
	return ok && !strings.Contains(before, "/") && !drive(word)
}

// copiedName is the name that a copied file keeps, "" for what brings along all
// that is in a folder.
func copiedName(word string) string {
	if _, there, ok := strings.Cut(word, ":"); ok && remotePlace(word) {
		word = there
	}
	name := path.Base(strings.ReplaceAll(word, `\`, "/"))
	if name == "." || name == ".." || name == "/" {
		return ""
	}
	return name
}

// downloads are the names of the files that a download makes without being told
// them: what the URL ends with, or all of its path. many: there are more than are
// looked at.
func downloads(program string, words []string) (out []string, many bool) {
	switch program {
	case "wget":
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--output-d") || wgetNames(w) }) {
			return nil, false
		}
	case "curl":
		if !slices.ContainsFunc(words, curlKeepsName) {
			return nil, false
		}
	default:
		return nil, false
	}
	folder := ""
	for i, w := range words {
		for _, option := range []string{"--output-dir", "--directory-prefix", "-P"} {
			if value, ok := strings.CutPrefix(w, option); ok && (program == "wget" || option == "--output-dir") {
				if value = strings.TrimPrefix(value, "="); value == "" && i+1 < len(words) {
					value = words[i+1]
				}
				folder = strings.TrimSuffix(value, "/") + "/"
			}
		}
	}
	for _, w := range words[1:] {
		_, rest, ok := strings.Cut(w, "://")
		if !ok {
			rest = w
		}
		if rest, _, _ = strings.Cut(rest, "?"); program == "curl" || rest == w {
			rest, _, _ = strings.Cut(rest, "#")
		}
		_, file, found := strings.Cut(rest, "/")
		if !found || file == "" || strings.HasPrefix(w, "-") || strings.ContainsAny(w, " \t\n") {
			continue
		}
		if len(out) >= maxCopied {
			return out, true
		}
		out = append(out, folder+file, folder+path.Base(file))
	}
	return out, false
}

// wgetNames says whether an option of wget names the file.
func wgetNames(w string) bool {
	return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "O")
}

// curlKeepsName says whether an option of curl keeps the name of the URL.
func curlKeepsName(w string) bool {
	if strings.HasPrefix(w, "--") {
		return strings.HasPrefix(w, "--remote-name")
	}
	return len(w) > 1 && w[0] == '-' && strings.Contains(w, "O")
}

// above asks about a folder that has what a rule denies by its place somewhere
// below, as ~ has "~/.ssh/*".
func (e *evaluation) above(at *place, word string, dir direction, unit int) {
	if e.places == nil {
		e.places = e.s.deniedPlaces(&e.place)
	}
	if len(e.places) == 0 {
		return
	}
	for _, reading := range at.readings(word) {
		if reading.abs == "" {
			continue
		}
		front := strings.TrimSuffix(reading.abs, "/") + "/"
		// What begins with a text stands in one piece behind it in a sorted list.
		if k, same := slices.BinarySearch(e.places, front); same || k < len(e.places) && strings.HasPrefix(e.places[k], front) {
			entry := floor(surfacePath, word, "holds-denied", "files that a rule denies lie in this folder; name what you mean")
			entry.Unit = unit
			e.add(entry)
			return
		}
	}
}

// deniedPlaces are the folders, each with a slash at its end, and files of which
// rules deny something by its place, sorted; never nil.
func (s *Snapshot) deniedPlaces(p *place) []string {
	out := []string{}
	for _, surface := range []string{surfacePath, forms[surfacePath][0], forms[surfacePath][1]} {
		for _, r := range s.rules.of(surface) {
			if r.action != Deny {
				continue
			}
			if place := p.placeIn(r.pattern.text); place != "" {
				out = append(out, place)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// placeIn is the fixed front of a pattern that says where a file lies, "" for
// one that only says what it is called.
func (p *place) placeIn(text string) string {
	if rest, ok := strings.CutPrefix(text, "~/"); ok && p.home != "" {
		text = p.home + "/" + rest
	}
	front := text
	if i := strings.IndexAny(text, "*?"); i >= 0 {
		front = text[:i]
	}
	switch {
	case front == "" || front == "/":
		return ""
	case strings.HasPrefix(front, "/"):
		return front
	case p.cwd != "" && strings.Contains(text, "/"):
		return strings.TrimSuffix(p.cwd, "/") + "/" + strings.TrimPrefix(front, "./")
	}
	return ""
}

// anywhere asks about a relative path of a command that runs nobody knows where,
// if there is a place where it is one that a rule denies: "popd; cat id_rsa". A
// word that may be a subcommand or a number is passed over, but behind programs
// that take files.
func (e *evaluation) anywhere(at *place, program, word string, dir direction, unit int) {
	files := readers[program] || writers[program] || copying[program]
	switch {
	case len(at.bases) > 0 || at.cwd == "" || program == "cd" || program == "pushd" || namers[program] || printers[program]:
		return
	case word == "" || strings.HasPrefix(word, "-") || rootedWord(word) || !files && !strings.ContainsAny(word, "./_-") || len(word) > maxWord:
		return
	}
	tail := path.Clean(word)
	for strings.HasPrefix(tail, "../") {
		tail = tail[3:]
	}
	tail = "*/" + tail
	for i, surface := range []string{surfacePath, forms[surfacePath][0], forms[surfacePath][1]} {
		if i > 0 && dir&(reads<<(i-1)) == 0 {
			continue
		}
		for _, r := range e.s.rules.of(surface) {
			text := r.pattern.text
			if rest, ok := strings.CutPrefix(text, "~/"); ok && at.home != "" {
				text = at.home + "/" + rest
			}
			if r.action != Deny || r.pattern.w.any() {
				continue
			}
			if e.effort += (len(text) + 1) * (len(tail) + 1); e.effort > maxEffort || overlap(text, tail) {
				entry := floor(surfacePath, word, "unknown-directory", "nobody can tell where this command runs, and there it may name a file that a rule denies")
				entry.Unit = unit
				e.add(entry)
				return
			}
		}
	}
}

// rootedWord says whether a path means the same wherever the shell stands.
func rootedWord(word string) bool {
	return strings.HasPrefix(word, "/") || word == "~" || strings.HasPrefix(word, "~/") || strings.HasPrefix(word, "$HOME") || strings.HasPrefix(word, "${HOME}")
}

// gitElsewhere rules the words behind "git -C DIR" as seen from there.
func (e *evaluation) gitElsewhere(at *place, u *shell.Unit, ways []direction, unit int) {
	there, gone := *at, false
	for i := 1; i < len(u.Words); i++ {
		switch {
		case u.Words[i] == "-C" && i+1 < len(u.Words) && !u.IsProse(i+1):
			i++
			there, gone = there.at(u.Words[i], wordKind(u, i) == shell.Unknown && !homeWord(u.Words[i])), true
		case gone && len(u.Words[i]) <= maxWord && !u.IsProse(i):
			e.bare(&there, u.Words[i], ways[i], unit)
			if _, file, ok := strings.Cut(u.Words[i], ":"); ok && !isURL(u.Words[i]) {
				e.bare(&there, file, ways[i], unit)
			}
		}
	}
}
