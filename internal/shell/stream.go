package shell

import (
	"path"
	"strings"
)

// stream says whether a word names what a program is fed, in any of its
// spellings: //dev/stdin, ../../dev/stdin, and stdin where "cd /dev" was before.
func stream(word string) bool {
	if word == "" {
		return false
	}
	p := path.Clean(word)
	last := path.Base(p)
	return word == "-" || last == "stdin" || digits(last) || strings.HasPrefix(p, "/dev/") || strings.HasPrefix(p, "/proc/") ||
		strings.Contains("/"+p, "/dev/fd/") || strings.Contains("/"+p, "/proc/self/")
}

// streamed is stream for the value of an option too. A number there is a number.
func streamed(word string) bool {
	if strings.HasPrefix(word, "--") {
		_, word, _ = strings.Cut(word, "=")
	}
	return stream(word) && !digits(word)
}
