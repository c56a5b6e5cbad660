package shell

import "strings"

// modifies returns the index of the command behind a modifier: a program that
// only passes it on, with all of its words up to there understood. 0 for every
// other command.
func modifies(words []word) int {
	if len(words) < 2 || !words[0].fixed() {
		return 0
	}
	read, ok := modifiers[programName(words[0].text)]
	if !ok {
		return 0
	}
	i := 1
	for i < len(words) {
		r := words[i]
		if !r.fixed() || r.pipe {
			return 0
		}
		if len(r.text) < 2 || r.text[0] != '-' {
			break
		}
		takes, ok := read.option(r.text)
		if !ok {
			return 0
		}
		i += takes
	}
	for range read.operands {
		if i >= len(words) || !words[i].fixed() || words[i].pipe || !duration(words[i].text) {
			return 0
		}
		i++
	}
	if i >= len(words) || !words[i].fixed() || words[i].pipe || strings.ContainsAny(words[i].text, "=") || strings.HasPrefix(words[i].text, "-") {
		return 0
	}
	return i
}

// modifier is how a modifier takes its options. Options that are not listed
// make it a carrier like any other.
type modifier struct {
	flags  []string // without a value
	valued []string // short ones that take the next word or the rest of theirs
	long   []string // long ones with their value behind "="
	// number: a dash and a number is an option.
	number   bool
	operands int
}

var modifiers = map[string]modifier{
	"timeout": {
		flags:  []string{"--foreground", "--preserve-status", "-v", "--verbose"},
		valued: []string{"-k", "-s"}, long: []string{"--kill-after=", "--signal="}, operands: 1,
	},
	"time":    {flags: []string{"-p", "-v"}},
	"nice":    {valued: []string{"-n"}, long: []string{"--adjustment="}, number: true},
	"nohup":   {},
	"env":     {},
	"command": {flags: []string{"-p"}},
}

// option says how many words an option takes; ok is false if it is not known.
func (m modifier) option(a string) (takes int, ok bool) {
	for _, f := range m.flags {
		if a == f {
			return 1, true
		}
	}
	for _, v := range m.valued {
		if a == v {
			return 2, true
		}
		if strings.HasPrefix(a, v) {
			return 1, true
		}
	}
	for _, l := range m.long {
		if strings.HasPrefix(a, l) {
			return 1, true
		}
	}
	return 1, m.number && digits(a[1:])
}

// duration says whether s is a number with the letter of a unit at most.
func duration(s string) bool {
	s = strings.TrimRight(s, "smhd")
	return s != "" && strings.Trim(s, "0123456789.") == ""
}
