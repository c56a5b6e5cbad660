package shell

import (
	"slices"
	"strings"
	"testing"
)

// TestACommandBehindAnOptionThatTakesNoWord: what another program runs is found
// though an option in front of it could be taken for one that takes a value, or
// the text for a shell stands behind the operands.
func TestACommandBehindAnOptionThatTakesNoWord(t *testing.T) {
	t.Parallel()
	for text, found := range map[string]bool{
		"xargs --replace git push":               true,
		"xargs --max-lines git push":             true,
		"xargs --eof git push":                   true,
		"xargs --replace={} git push":            true,
		"xargs --max-args 1 git push":            true,
		"flock /tmp/l git push":                  true,
		"flock /tmp/l -c 'git push'":             true,
		"flock -w 5 /tmp/l --command 'git push'": true,
		"su root -c 'git push'":                  true,
		"su - root --command='git push'":         true,
		"su -c 'git push' root":                  true,
		"runuser -u x -- git push":               true,
		"script -c 'git push' /dev/null":         true,
		"script /dev/null -c 'git push'":         true,
		"xargs -n 1 echo git push":               false,
		"flock /tmp/l -c 'git status'":           false,
		"su root -c 'git status'":                false,
		"grep -c 'git push' f":                   false,
	} {
		got := slices.ContainsFunc(Read(text).Units, func(u Unit) bool {
			return len(u.Words) >= 2 && u.Words[0] == "git" && u.Words[1] == "push"
		})
		if got != found {
			t.Errorf("%s: found %v, want %v", text, got, found)
		}
	}
}

// TestWhatAShellIsHandedLeavesItsWordsAlone: a second text for it is not written
// over the words behind the first.
func TestWhatAShellIsHandedLeavesItsWordsAlone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"bash -c true rm -C x", "sh -c true a b --command=c", "su -c true root b -c x", "bash -c true a <<< b"} {
		u := Read(text).Units[0]
		want, _, _ := strings.Cut(text, " <<<")
		if got := strings.Join(u.Words, " "); got != want {
			t.Errorf("%s: its words are %q", text, got)
		}
	}
}
