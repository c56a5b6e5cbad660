package shell

import (
	"slices"
	"strings"
)

// sedGrammar is sed without its options that hold a script.
var sedGrammar = grammar{flags: "nErszu", valued: "l", glued: "i", long: []string{
	"version", "help", "quiet", "silent", "regexp-extended", "separate", "null-data", "unbuffered", "in-place", "posix", "sandbox", "debug",
	"follow-symlinks", "line-length=",
}}

// sedRuns says whether a sed command could run a program, or read or write a
// file that only its script names.
func sedRuns(args []string) bool {
	var scripts, operands []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			operands = append(operands, args[i+1:]...)
			i = len(args)
		case len(a) < 2 || a[0] != '-':
			operands = append(operands, a)
		case strings.HasPrefix(a, "--expression="):
			scripts = append(scripts, a[len("--expression="):])
		case a == "--expression" || sedTakesScript(a):
			if i++; i == len(args) {
				return true
			}
			scripts = append(scripts, args[i])
		default:
			takes, _, odd := sedGrammar.option(a)
			if script, ok := strings.CutPrefix(a, "-e"); ok {
				scripts = append(scripts, script)
			} else if odd != "" {
				return true
			}
			if takes == valueNext {
				i++
			}
		}
	}
	if len(scripts) == 0 && len(operands) > 0 {
		scripts, operands = operands[:1], operands[1:]
		if scripts[0] == "" && len(operands) > 0 {
			scripts = operands[:1] // where -i takes the next word
		}
	}
	script := strings.Join(scripts, "\n")
	// Seds differ over whether a slash in brackets ends an expression.
	return !sedHarmless(script, false) || !sedHarmless(script, true)
}

// sedTakesScript says whether a word is a cluster whose last letter is e.
func sedTakesScript(a string) bool {
	body, ok := strings.CutSuffix(a, "e")
	if !ok || strings.HasPrefix(a, "--") {
		return false
	}
	return strings.Trim(body[1:], sedGrammar.flags) == ""
}

// sedHarmless says whether a script holds only commands that stay within sed's
// input and output. What it does not understand is not harmless.
func sedHarmless(script string, brackets bool) bool {
	s := sedScript{rest: script, brackets: brackets}
	for s.skip(" \t\n;"); s.rest != ""; s.skip(" \t\n;") {
		if !s.command() {
			return false
		}
	}
	return true
}

// sedScript is what is left of a script.
type sedScript struct {
	rest     string
	brackets bool
}

func (s *sedScript) skip(chars string) { s.rest = strings.TrimLeft(s.rest, chars) }

// until drops the rest up to the first of chars.
func (s *sedScript) until(chars string) {
	i := strings.IndexAny(s.rest, chars)
	if i < 0 {
		i = len(s.rest)
	}
	s.rest = s.rest[i:]
}

// command reads one command with its addresses.
func (s *sedScript) command() bool {
	if !s.address() {
		return false
	}
	if s.skip(" \t"); strings.HasPrefix(s.rest, ",") {
		s.rest = s.rest[1:]
		s.skip(" \t+~")
		if !s.address() {
			return false
		}
	}
	s.skip(" \t!")
	if s.rest == "" {
		return false
	}
	c := s.rest[0]
	s.rest = s.rest[1:]
	switch {
	case strings.IndexByte("{}dDgGhHnNpPxzF=", c) >= 0:
		return true
	case strings.IndexByte("qQlL", c) >= 0:
		s.skip(" \t0123456789")
		return true
	case strings.IndexByte(":btT", c) >= 0:
		// Seds differ over what ends a label; a blank does for some, and what
		// stands behind it is a command to them.
		s.skip(" \t")
		s.until(" \t;\n}")
		s.skip(" \t")
		return s.rest == "" || strings.IndexByte(";\n}", s.rest[0]) >= 0
	case c == '#':
		s.until("\n")
		return true
	case strings.IndexByte("aic", c) >= 0:
		return s.text()
	case c == 'y':
		return s.delimited(2, false)
	case c == 's':
		return s.delimited(2, s.brackets) && s.flags()
	}
	return false
}

// text reads the text of a, i and c, which goes on over escaped line ends.
func (s *sedScript) text() bool {
	for {
		i := strings.IndexByte(s.rest, '\n')
		if i < 0 {
			s.rest = ""
			return true
		}
		line := s.rest[:i]
		slashes := len(line) - len(strings.TrimRight(line, "\\"))
		if slashes > 1 {
			return false // is the line's end escaped, or the backslash?
		}
		more := slashes == 1
		if s.rest = s.rest[i+1:]; !more {
			return true
		}
	}
}

// flags reads the flags of s; "e" runs what was replaced, "w" writes it.
func (s *sedScript) flags() bool {
	s.skip("gpiImM0123456789")
	return s.rest == "" || strings.IndexByte(" \t\n;}#", s.rest[0]) >= 0
}

// address reads one address, if there is one.
func (s *sedScript) address() bool {
	s.skip(" \t")
	if s.rest == "" {
		return true
	}
	switch c := s.rest[0]; {
	case c >= '0' && c <= '9', c == '$':
		s.rest = s.rest[1:]
		s.skip("0123456789~")
		return true
	case c == '\\':
		s.rest = s.rest[1:]
		fallthrough
	case c == '/':
		if !s.delimited(1, s.brackets) {
			return false
		}
		s.skip("IM")
	}
	return true
}

// delimited reads parts behind a delimiter and closed by it. brackets: the
// first of them is an expression in whose brackets the delimiter is a letter.
func (s *sedScript) delimited(parts int, brackets bool) bool {
	if s.rest == "" || s.rest[0] == '\\' || s.rest[0] == '\n' || s.rest[0] >= 0x80 {
		return false
	}
	end, inside := s.rest[0], false
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case inside:
			inside = c != ']' || s.rest[i-1] == '[' || s.rest[i-1] == '^' && s.rest[i-2] == '['
		case c == '\\':
			i++
		case c == end:
			if parts--; parts == 0 {
				s.rest = s.rest[i+1:]
				return true
			}
			brackets = false
		case brackets && c == '[':
			inside = true
		}
	}
	return false
}

// sqliteGrammar is what sqlite3 takes that only shapes its output.
var sqliteGrammar = grammar{single: true, long: []string{
	"version", "help", "header", "noheader", "csv", "json", "column", "line", "list", "html", "quote", "table", "box", "markdown", "tabs", "ascii",
	"readonly", "batch", "bail", "echo", "stats", "safe", "separator=", "nullvalue=", "newline=",
}}

// sqliteRuns says whether a call of sqlite3 uses commands or functions that
// reach further than the database that it names.
func sqliteRuns(args []string) bool {
	operands, odd := sqliteGrammar.read(args)
	if odd != "" {
		return true
	}
	for _, sql := range operands[min(1, len(operands)):] {
		sql = strings.ToLower(sql)
		for _, far := range []string{"writefile", "readfile", "edit", "load_extension", "attach", "into"} {
			if strings.Contains(sql, far) && (far != "into" || strings.Contains(sql, "vacuum")) {
				return true
			}
		}
		for line := range strings.Lines(sql) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, ".") && !slices.Contains([]string{".schema", ".tables", ".indexes", ".databases", ".dump"}, strings.Fields(line)[0]) {
				return true
			}
		}
	}
	return false
}

// uniqWrites says whether uniq is given a second file, which it writes.
func uniqWrites(args []string) bool {
	files := 0
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
		case a == "-f" || a == "-s" || a == "-w":
			i++
		case len(a) < 2 || a[0] != '-' && a[0] != '+':
			files++
		}
	}
	return files > 1
}

// wordEvaluators are bash's own commands that take a word for the name of a
// variable, and run what stands in its index: a[$(x)].
var wordEvaluators = []string{"test", "[", "read", "unset", "declare", "typeset", "export", "local", "readonly", "let", "getopts", "wait", "mapfile",
	"readarray"}

// evaluates says whether one of bash's own commands would expand a literal
// word once more.
func evaluates(name string, args []string) bool {
	switch name {
	case "compgen", "complete", "bind":
		return slices.ContainsFunc(args, func(a string) bool {
			return strings.ContainsAny(a, "$`") || len(a) > 1 && a[0] == '-' && strings.ContainsAny(a, "CFWx")
		})
	}
	names := name != "test" && name != "[" || slices.Contains(args, "-v") || slices.Contains(args, "-R")
	return slices.Contains(wordEvaluators, name) && slices.ContainsFunc(args, func(a string) bool {
		return strings.Contains(a, "[") && strings.ContainsAny(a, "$`") || names && computedIndex(a)
	})
}

// computedIndex says whether a word is an element of an array whose index is
// computed: that of a[b] is the value of b, and of whatever that names.
func computedIndex(word string) bool {
	name, index, found := strings.Cut(word, "[")
	if !found || !validName(name) && !strings.HasPrefix(name, "-") {
		return false // "read -p 'go on? [y/N] '" names no variable
	}
	index, closed := strings.CutSuffix(index, "]")
	return !closed || index != "@" && index != "*" && !digits(index)
}
