package policy

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/shell"
)

// selfShell adds what the built-in rules say of a shell text: of the paths that
// its commands use, and of the commands themselves.
func (e *evaluation) selfShell(cmd shell.Command) {
	t := selfText{evaluation: e, cmd: cmd}
	for i := range cmd.Units {
		t.command(i)
		t.paths(i)
	}
	t.flowing()
}

// selfText is one shell text under the built-in rules.
type selfText struct {
	*evaluation
	cmd shell.Command
	// flow is how the text uses words that the shell computes: what a variable
	// or a pipe hands on.
	flow use
	// passed are values that may be handed on so.
	passed []string
}

// looking are programs that only show what their words name, beside those of
// readers.
var looking = programSet("bat batcat jless glow cloc tokei scc md5 shasum sum b2sum cksum find fd fdfind exa eza lsd dirname basename " +
	"shellcheck yamllint jsonlint actionlint source . type which whereis command man help ag ack ug ugrep rgrep bzgrep xzgrep ggrep awk gawk mawk nawk")

// talking are programs whose words are no paths at all.
var talking = programSet("echo printf : true false expr sleep exit return shift date uname whoami id pwd kill pkill killall pgrep pidof alias unalias export local declare readonly typeset set unset")

// wholeFolder are programs that take a folder with all that is in it.
var wholeFolder = programSet("rm mv tar zip rsync shred 7z 7za unzip bsdtar cpio ditto srm trash trash-put rclone restic borg")

// paths rules the words and redirections of one command.
func (t *selfText) paths(i int) {
	u := &t.cmd.Units[i]
	at := t.place
	if u.Dir != "" || u.Lost {
		at = t.place.at(u.Dir, u.Lost)
	}
	for _, r := range u.Redirects {
		how := use{}
		if r.Read {
			how.dir |= reads
		}
		if r.Write {
			how.dir |= writes
		}
		t.word(&at, r.Target, how, i, !r.Literal)
		if !r.Literal && !homeWord(r.Target) {
			t.flow = t.flow.with(how)
		}
	}
	for _, a := range u.Assigns {
		_, value, _ := strings.Cut(a, "=")
		t.passed = append(t.passed, value)
	}
	if len(u.Words) == 0 || t.plain(&at, u) {
		return
	}
	t.words(&at, i, t.own(i))
	if u.Lost {
		for _, dir := range t.folders(i) {
			at = t.place.at(dir, false)
			t.words(&at, i, t.own(i))
		}
	}
}

// plain says, fast, that none of a command's words can be meant by a built-in
// rule. It is for all those commands of which that holds.
func (t *selfText) plain(at *place, u *shell.Unit) bool {
	name := usedName(u)
	if u.Lost || len(t.s.self.own) > 0 || len(at.links) > 0 || len(at.resolved) > 0 || wide[name] || talking[name] ||
		slices.ContainsFunc(at.bases, func(base string) bool { return marked(base, at.fold) }) {
		return false
	}
	for k, w := range u.Words[1:] {
		if u.Kind(k+1) != shell.Fixed || name == "git" && bringers[w] || marked(w, at.fold) || strings.ContainsAny(w, "=:@,{\"'") || len(w) > 2 && w[0] == '-' && w[1] != '-' && strings.ContainsAny(w, "./") {
			return false
		}
	}
	return true
}

// wide are programs of which more counts than the words that they are given.
var wide = programSet("rm mv cp ln install rsync scp ditto tar bsdtar zip shred 7z 7za unzip cpio srm trash trash-put rclone restic borg find fd fdfind chmod chown " +
	"chgrp setfacl chattr patch apply_patch grep egrep fgrep rg ag ack ug ugrep rgrep zgrep bzgrep xzgrep ggrep gcp gmv gln ginstall xargs parallel")

// maxFolders bounds the folders tried for a command that runs nobody knows where.
const maxFolders = 8

// folders are what commands in front of one name that may be folders: one of
// them may be where it runs.
func (t *selfText) folders(i int) []string {
	var out []string
	for _, u := range t.cmd.Units[:i] {
		for k, w := range u.Words {
			if k > 0 && len(out) < maxFolders && marked(w, t.place.fold) && !slices.Contains(out, w) && !isText(w, false) {
				out = append(out, w)
			}
		}
	}
	return out
}

// with is both uses together.
func (u use) with(other use) use {
	return use{u.dir | other.dir, u.folder || other.folder, u.home || other.home, u.gone || other.gone}
}

// own are the words of a command without those of the command that it carries,
// which is ruled by itself.
func (t *selfText) own(i int) []string {
	words := t.cmd.Units[i].Words
	n := len(words)
	for _, inner := range t.cmd.Units[i+1:] {
		if inner.Via == "" {
			break
		}
		if k := len(words) - len(inner.Words); k > 0 && k < n && slices.Equal(words[k:], inner.Words) {
			n = k
		}
	}
	return words[:n]
}

// words rules the words of one command.
func (t *selfText) words(at *place, i int, words []string) {
	u := &t.cmd.Units[i]
	uses := usesOf(u)
	if talking[uses.name] {
		t.passed = append(t.passed, words[1:]...)
		return
	}
	carries := i+1 < len(t.cmd.Units) && t.cmd.Units[i+1].Via != ""
	for k, w := range words {
		if k == 0 || u.IsProse(k) || isText(w, uses.known && !carries) || carries && strings.ContainsAny(w, " \t") {
			continue
		}
		how := uses.of(k)
		if u.Kind(k) == shell.Unknown && !homeWord(w) {
			t.flow = t.flow.with(how)
		}
		t.partial(at, u, k, how, i)
		paths, names := clustered(uses.name, w)
		for _, p := range slices.Concat(pieces(w), paths, names, fileInForm(uses.name, w)) {
			t.word(at, p, how, i, u.Kind(k) == shell.Glob)
			if before, after, ok := strings.Cut(p, ":"); ok && !drive(p) && !strings.HasPrefix(after, "//") {
				t.word(at, before, how, i, false)
				t.word(at, after, how, i, false)
			}
		}
	}
	if u.Via == "xargs" || u.Via == "parallel" {
		t.flow = t.flow.with(uses.rest)
	}
	if uses.into >= 0 {
		t.into(at, i, words, uses)
	}
	if uses.here {
		t.guard(at, ".", uses.rest, i)
	}
	names, many := downloads(uses.name, words)
	for _, name := range names {
		t.guard(at, name, use{dir: writes}, i)
	}
	if many {
		t.overProject(at, ".", i)
	}
	t.brought(at, i, words, uses)
}

func (t *selfText) word(at *place, p string, how use, unit int, glob bool) {
	if p == "" {
		return
	}
	t.guard(at, p, how, unit)
	if glob && strings.ContainsAny(p, "*?[(") {
		t.globGuard(at, p, how, unit)
	}
}

// isText says whether a word with blanks is rather prose or the text of another
// program than a path. known: the program is known to take paths.
func isText(word string, known bool) bool {
	if !strings.ContainsAny(word, " \t\n") {
		return false
	}
	if strings.Contains(word, "\n") {
		return true
	}
	return !known && !strings.HasPrefix(word, "/") && !strings.HasPrefix(word, "~/") && !strings.HasPrefix(word, ".")
}

// flowing rules values that variables and pipes hand on by what is done with
// words that nobody knows.
func (t *selfText) flowing() {
	t.piped()
	if t.flow.dir == 0 {
		return
	}
	for _, value := range slices.Concat(t.passed, t.cmd.Loose, t.cmd.Handed) {
		for _, p := range pieces(value) {
			if !isText(p, false) {
				t.word(&t.place, p, use{dir: t.flow.dir, folder: t.flow.folder}, 0, strings.ContainsAny(p, "*?["))
			}
		}
	}
}

// piped rules texts that are printed where a shell reads them.
func (t *selfText) piped() {
	at := slices.IndexFunc(t.cmd.Units, func(u shell.Unit) bool {
		return len(u.Words) > 0 && slices.Contains([]string{"sh", "bash", "zsh", "dash", "ksh", "fish"}, selfProgram(u.Words[0]))
	})
	if at < 0 {
		return
	}
	for _, text := range t.passed {
		if hasWord(text, "assent") && slices.ContainsFunc(shell.Read(text).Units, func(u shell.Unit) bool {
			return len(u.Words) > 0 && runsAssent(&u) && !harmlessAssent(&u)
		}) {
			t.deny(groupCommand, "assent *", at)
			return
		}
	}
}

// into rules the files that a copy into a folder makes there.
func (t *selfText) into(at *place, i int, words []string, uses wordUses) {
	u := &t.cmd.Units[i]
	folder := words[min(uses.into, len(words)-1)]
	if uses.name != "ln" && uses.of(uses.into).home && len(words) > 2 {
		t.overProject(at, folder, i) // cp -T x .
	}
	for k, w := range words {
		if k == 0 || k == uses.into || strings.HasPrefix(w, "-") {
			continue
		}
		name := copiedName(w)
		if name == "" || strings.HasSuffix(w, "/") && uses.name == "rsync" || u.Kind(k) != shell.Fixed && !homeWord(w) {
			// What comes there is not known.
			t.guard(at, folder, use{dir: writes, folder: true, home: true}, i)
			if u.Kind(k) == shell.Fixed || name == "" || u.Kind(k) == shell.Glob && selectsSettings(name) {
				t.overProject(at, folder, i)
			}
			continue
		}
		t.guard(at, strings.TrimSuffix(folder, "/")+"/"+name, use{dir: writes, folder: true}, i)
	}
}

// overProject asks about all that is in a folder being copied over the project:
// "cp -r x/. ." may bring any agent's settings along.
func (t *selfText) overProject(at *place, folder string, unit int) {
	group := groupIndex(groupProject)
	if t.s.self.lifted&(1<<group) != 0 {
		return
	}
	for _, r := range at.readings(folder) {
		if r.abs != "" && t.place.cwd != "" && above(foldText(r.abs), foldText(t.place.cwd)) {
			t.addSelf(BuiltinRule{groupProject, surfacePath + suffixWrite, ".", Ask, selfGroups[group].reason}, surfacePath, folder, unit)
			return
		}
	}
}
