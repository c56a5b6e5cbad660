package shell

import (
	"slices"
	"strings"
)

func isMake(name string) bool {
	name = programName(name)
	return name == "make" || name == "gmake"
}

// makeTakes says whether a variable of make may be set to a value, by a word or
// in its environment.
func makeTakes(name, value string) bool {
	return slices.Contains(makeNames, name) && plainValue(value) && !strings.HasPrefix(value, "-")
}

// makeNames are variables of make that hold no program: all others may, as CC
// and RM do.
var makeNames = strings.Fields(`V VERBOSE VERSION QUIET DEBUG RELEASE TAG PORT CI GOOS GOARCH`)

// makeDoor is the word by which make is handed a program: a variable, or a
// makefile in its input.
func makeDoor(args []string) string {
	for i, a := range args {
		name, value, assigns := strings.Cut(a, "=")
		switch {
		case strings.HasPrefix(a, "--"):
			for _, l := range []string{"--file", "--makefile"} {
				if len(name) > 2 && strings.HasPrefix(l, name) && (stream(value) || !assigns && i+1 < len(args) && stream(args[i+1])) {
					return l
				}
			}
		case len(a) > 1 && a[0] == '-':
			if file, found := makefile(a); found && (stream(file) || file == "" && i+1 < len(args) && (stream(args[i+1]) || strings.HasPrefix(args[i+1], "<("))) {
				return "-f"
			}
		}
		if assigns && !strings.HasPrefix(a, "-") && !makeTakes(name, value) {
			return "NAME="
		}
	}
	return ""
}

// makefile is the value of -f in a cluster of options.
func makefile(a string) (file string, found bool) {
	for i := 1; i < len(a); i++ {
		switch {
		case a[i] == 'f':
			return a[i+1:], true
		case strings.IndexByte("CIjloW", a[i]) >= 0:
			return "", false
		}
	}
	return "", false
}
