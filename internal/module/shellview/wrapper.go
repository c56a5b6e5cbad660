package shellview

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Wrapper is a program that runs the command in its arguments: the program of
// such a command is the one behind it.
type Wrapper struct {
	Program Names `json:"program"`
	// ValueFlags take the next word as their value.
	ValueFlags []string `json:"valueFlags"`
	// PositionalSkips is how many words stand between the flags and the command, as
	// the duration of timeout.
	PositionalSkips int `json:"positionalSkips"`
}

// Names is one name or several.
type Names []string

// UnmarshalJSONFrom reads a string or an array of strings.
func (n *Names) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '[' {
		var many []string
		err := json.UnmarshalDecode(dec, &many)
		*n = many
		return err
	}
	var one string
	if err := json.UnmarshalDecode(dec, &one); err != nil {
		return fmt.Errorf("a program is a name or a list of names: %w", err)
	}
	*n = Names{one}
	return nil
}

// Usual are the wrappers that a module sees through without naming any. What else
// carries a command (find -exec, ssh, eval) stands in a view beside the command
// that it carries.
var Usual = []Wrapper{
	{Program: Names{"command", "exec", "doas", "nohup", "setsid"}},
	{Program: Names{"sudo"}, ValueFlags: []string{"-u", "-g", "-h", "-p", "-C", "-T", "-r", "-t", "-U", "-D", "-R", "--user", "--group", "--host", "--prompt", "--chdir",
		"--chroot", "--close-from", "--command-timeout"}},
	{Program: Names{"env"}, ValueFlags: []string{"-u", "-C", "-S", "--unset", "--chdir", "--split-string"}},
	{Program: Names{"nice"}, ValueFlags: []string{"-n", "--adjustment"}},
	{Program: Names{"time"}, ValueFlags: []string{"-f", "-o", "--format", "--output"}},
	{Program: Names{"timeout"}, ValueFlags: []string{"-s", "-k", "--signal", "--kill-after"}, PositionalSkips: 1},
	{Program: Names{"stdbuf"}, ValueFlags: []string{"-i", "-o", "-e", "--input", "--output", "--error"}},
	{Program: Names{"xargs"}, ValueFlags: []string{"-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s", "--arg-file", "--delimiter", "--max-args",
		"--max-procs", "--max-chars"}}, // --replace, --eof and --max-lines take a value in their own word alone,
}

// effective is the index of the word that names the program behind all wrappers;
// that of the end where there is none.
func effective(words []Token, wrappers []Wrapper) int {
	i := 0
	for i < len(words) {
		if assignment(words[i].Text) && i > 0 {
			i++
			continue
		}
		name := path.Base(words[i].Text)
		at := slices.IndexFunc(wrappers, func(w Wrapper) bool { return slices.Contains(w.Program, name) })
		if at < 0 {
			break
		}
		i = behind(words, i+1, wrappers[at])
	}
	return i
}

// behind is the index of the command behind a wrapper's own words, which begin
// at i.
func behind(words []Token, i int, w Wrapper) int {
	skips := w.PositionalSkips
	for i < len(words) {
		text := words[i].Text
		switch {
		case text == "--" && skips > 0:
			i++
		case text == "--":
			return i + 1
		case assignment(text):
			i++
		case len(text) > 1 && text[0] == '-':
			if i++; slices.Contains(w.ValueFlags, text) {
				i++
			}
		case skips > 0:
			skips--
			i++
		default:
			return i
		}
	}
	return min(i, len(words))
}

// assignment says whether a word reads as NAME=value.
func assignment(text string) bool {
	name, _, found := strings.Cut(text, "=")
	if !found || name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}
