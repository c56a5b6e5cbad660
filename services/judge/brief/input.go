package brief

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/pkg/protocol"
)

// maxNotShown bounds the names of arguments that are listed as not shown.
const maxNotShown = 32

// commandKeys are the arguments in which shell tools keep what they run. A
// tool that has two of them says two things, and is not read.
var commandKeys = []string{"command", "cmd", "chars"}

// shownKeys are the arguments that say what a tool works on and where; all
// others may hold the content of a file, a secret, or the agent's own plea
// ("description", "justification", "reason"), and are named only.
var shownKeys = []string{
	"path", "paths", "file_path", "filePath", "absolute_path", "notebook_path", "dir_path", "directory",
	"workdir", "working_directory", "glob", "include", "include_pattern", "pattern", "url", "uri",
}

// fitName is a name of an argument that is no sentence.
var fitName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,39}$`)

// input is what is shown of a tool's input.
type input struct {
	command string
	argv    []string
	shown   map[string][]string
	left    []string
	unnamed int
}

// Command is the text that tool t hands to a shell, "" where it hands over none
// or in a form that is not one text. It is the agent's own, unmasked.
func Command(t protocol.Tool) string {
	in, err := readInput(t)
	if err != nil {
		return ""
	}
	return in.command
}

func readInput(t protocol.Tool) (input, error) {
	in := input{shown: map[string][]string{}}
	if len(t.Input) == 0 || t.Input.Kind() == 'n' {
		return in, nil
	}
	var args map[string]jsontext.Value
	if err := json.Unmarshal(t.Input, &args); err != nil {
		return in, fmt.Errorf("%w: tool input: %w", ErrUnreadable, err)
	}
	commands := 0
	for _, name := range slices.Sorted(maps.Keys(args)) {
		texts, one := texts(args[name])
		switch {
		case slices.Contains(commandKeys, name) && one:
			in.command = texts[0]
			commands++
		case slices.Contains(commandKeys, name) && texts != nil:
			in.argv = texts
			commands++
		case texts != nil && slices.Contains(shownKeys, name):
			in.shown[name] = texts
		default:
			in.leave(name)
		}
	}
	if commands > 1 {
		return in, fmt.Errorf("%w: the tool's input holds two commands", ErrUnreadable)
	}
	return in, nil
}

// leave lists an argument that is not shown. Its name is the agent's choice
// too: one that is no plain word is counted and not shown.
func (in *input) leave(name string) {
	if !fitName.MatchString(name) || SecretShaped(name) || len(in.left) == maxNotShown {
		in.unnamed++
		return
	}
	in.left = append(in.left, name)
}

// texts are v's texts: one for a text, several for a list of them, nil for
// anything else.
func texts(v jsontext.Value) (list []string, one bool) {
	var s string
	if v.Kind() == '"' && json.Unmarshal(v, &s) == nil {
		return []string{s}, true
	}
	if v.Kind() != '[' {
		return nil, false
	}
	var raw []jsontext.Value
	if json.Unmarshal(v, &raw) != nil {
		return nil, false
	}
	for _, e := range raw {
		var s string
		if e.Kind() != '"' || json.Unmarshal(e, &s) != nil {
			return nil, false
		}
		list = append(list, s)
	}
	return list, false
}
