package shell

import (
	"slices"
	"strings"
)

func isAwk(name string) bool { return slices.Contains(awks, name) }

var awks = []string{"awk", "gawk", "mawk", "nawk", "original-awk", "bwk"}

// awkRuns says whether an awk command can start a command, write a file, or
// read one that its words do not name.
func awkRuns(args []string) bool {
	file := false
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-F" || a == "-v":
			i++
		case strings.HasPrefix(a, "-F"), strings.HasPrefix(a, "-v"):
		case len(a) > 1 && a[0] == '-' && strings.IndexByte("fenNPcrSOsbMhVC", a[1]) < 0 && !slices.Contains(awkOptions, a):
			return true
		case awkReaches(a):
			return true
		case len(a) > 1 && a[0] == '-' && a[1] != '-':
			// The program may stand in a file, but not in what awk is fed.
			_, name, found := strings.Cut(a, "f")
			if file = file || found; found && stream(name) {
				return true
			}
		}
	}
	return file && slices.ContainsFunc(args, func(a string) bool { return stream(a) || strings.HasPrefix(a, "<(") })
}

// awkReaches says whether a program can reach further than its input and
// output. Indirect calls ("@f") reach system by a name that it puts together.
func awkReaches(program string) bool {
	if strings.Contains(program, "system") || strings.Contains(program, "getline") || strings.Contains(program, "ARGV") {
		return true
	}
	program, clear := awkWithoutStrings(program)
	program = strings.ReplaceAll(program, "||", "&&")
	if strings.ContainsAny(program, "|@") {
		return true
	}
	// A ">" compares, unless it stands behind a print.
	printing := false
	for i := 0; i < len(program); i++ {
		switch c := program[i]; {
		case clear && (c == ';' || c == '{' || c == '}' || c == '\n' && !awkGoesOn(program[:i])):
			printing = false
		case strings.HasPrefix(program[i:], "print"):
			printing = true
		case c == '>' && printing:
			return true
		}
	}
	return false
}

// awkGoesOn says whether a statement goes on in the next line: print "x",\n"y" > "f".
func awkGoesOn(line string) bool {
	line = strings.TrimRight(line, " \t\r\n")
	return line != "" && strings.IndexByte(",\\&|?:", line[len(line)-1]) >= 0
}

// awkWithoutStrings drops the strings of a program. Where it also holds what may
// be an expression or a comment, whose quotes are none, or quotes that no line
// closes, it is left as it is, and not clear: a sign may stand in a string.
func awkWithoutStrings(program string) (rest string, clear bool) {
	if strings.ContainsAny(program, "/#") {
		return program, false
	}
	var b strings.Builder
	for i := 0; i < len(program); i++ {
		if program[i] != '"' {
			b.WriteByte(program[i])
			continue
		}
		for i++; i < len(program) && program[i] != '"' && program[i] != '\n'; i++ {
			if program[i] == '\\' {
				i++
			}
		}
		if i >= len(program) || program[i] == '\n' {
			return program, false
		}
	}
	return b.String(), true
}

var awkOptions = []string{"--", "--version", "--help", "--posix", "--traditional", "--re-interval", "--csv", "--bignum"}
