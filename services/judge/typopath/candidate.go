package typopath

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/pkg/link"
	"github.com/assent-dev/assent/pkg/protocol"
	"github.com/assent-dev/assent/services/judge/brief"
)

// maxCandidates bounds the paths of one ask that are looked at.
const maxCandidates = 64

// surfaces are the spellings of the one surface this link speaks about; the
// directed forms stand for the same crossing.
var surfaces = []string{"external_directory", "external_directory_read", "external_directory_write"}

// fileTools are the tools whose path argument is the path of the call.
var fileTools = []string{"read", "write", "edit", "multiedit", "multi_edit", "notebookedit", "notebook_edit", "apply_patch", "glob", "grep", "find", "ls", "list"}

func leavesProject(entries []protocol.Entry) bool {
	return slices.ContainsFunc(entries, isExternal)
}

func isExternal(e protocol.Entry) bool { return slices.Contains(surfaces, e.Surface) }

// candidates are the paths by which the call leaves the project, the spelling
// of a file tool's own argument first. A bash command's external paths are open
// entries already; its text is never searched here.
func candidates(r link.Request) []string {
	var paths []string
	add := func(p string) {
		if len(paths) < maxCandidates && fit(p) && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	if slices.Contains(fileTools, strings.ToLower(r.Ask.Tool.Name)) {
		arg := pathArgument(r.Ask.Tool)
		add(arg)
		for _, p := range r.Ask.Paths {
			if p.Raw == arg {
				add(p.Resolved)
			}
		}
	}
	for _, e := range r.Asks {
		if isExternal(e) {
			add(e.Value)
		}
	}
	return paths
}

// fit refuses what is no path to look at: too long to match, or with something
// in it that must not leave for a model.
func fit(p string) bool {
	return p != "" && len(p) <= protocol.MaxPath && !brief.SecretShaped(p)
}

// pathArgument is the path in a file tool's input, as the agents spell it; ""
// when there is none or it is no text.
func pathArgument(t protocol.Tool) string {
	var in struct {
		Path         any `json:"path"`
		FilePath     any `json:"file_path"`
		FilePathJS   any `json:"filePath"`
		NotebookPath any `json:"notebook_path"`
	}
	if json.Unmarshal(t.Input, &in) != nil {
		return ""
	}
	for _, v := range []any{in.FilePath, in.Path, in.FilePathJS, in.NotebookPath} {
		if s, ok := v.(string); ok && s != "" {
			return s
		}
	}
	return ""
}
