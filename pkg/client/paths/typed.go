package paths

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Typed returns the paths in a tool's input as they are typed: the arguments
// that hold paths in the file tools of the known agents, and in those of MCP
// servers that follow the custom.
func Typed(input jsontext.Value) []string {
	var args struct {
		FilePath     jsontext.Value `json:"file_path"`
		NotebookPath jsontext.Value `json:"notebook_path"`
		Path         jsontext.Value `json:"path"`
		Paths        jsontext.Value `json:"paths"`
	}
	if json.Unmarshal(input, &args) != nil {
		return nil
	}
	return slices.Concat(texts(args.FilePath), texts(args.NotebookPath), texts(args.Path), texts(args.Paths))
}

// texts is a string, or the strings of a list; anything else is no path.
func texts(v jsontext.Value) []string {
	var one string
	var many []jsontext.Value
	switch {
	case v.Kind() == '"' && json.Unmarshal(v, &one) == nil && one != "":
		return []string{one}
	case v.Kind() == '[' && json.Unmarshal(v, &many) == nil:
		var out []string
		for _, item := range many {
			if item.Kind() == '"' {
				out = append(out, texts(item)...)
			}
		}
		return out
	default:
		return nil
	}
}
