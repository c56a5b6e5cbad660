package claudecode

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/shell"
	"github.com/assent-dev/assent/pkg/client/paths"
)

// typed are the paths of the call as typed.
func (in Input) typed() []string {
	typed := paths.Typed(in.ToolInput)
	var glob struct {
		Pattern string `json:"pattern"`
	}
	if in.Tool == "Glob" && json.Unmarshal(in.ToolInput, &glob) == nil && glob.Pattern != "" {
		typed = append(typed, globRoot(glob.Pattern))
	}
	return typed
}

// words are the words of a shell command that may name files.
func (in Input) words() []string {
	var call struct {
		Command string `json:"command"`
	}
	if in.Tool != "Bash" || json.Unmarshal(in.ToolInput, &call) != nil {
		return nil
	}
	return shell.Touched(call.Command)
}

// globRoot is the folder where a pattern begins to search.
func globRoot(pattern string) string {
	i := strings.IndexAny(pattern, "*?[{!(+@")
	if i < 0 {
		return pattern
	}
	j := strings.LastIndexByte(pattern[:i], '/')
	switch {
	case j < 0:
		return "."
	case j == 0:
		return "/"
	default:
		return pattern[:j]
	}
}
