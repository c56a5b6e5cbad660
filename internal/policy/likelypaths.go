package policy

import "strings"

// likelyParts are parts of names, in lower case, under which a tool that nobody
// here knows may take a file: target_file, AbsolutePath, image_path, save_to.
var likelyParts = []string{"path", "file", "dir", "folder", "uri", "url", "href", "link", "document", "attachment", "image", "output", "input", "save", "local", "location"}

func likelyKey(key string) bool {
	key = strings.ToLower(key)
	if pathKeys[key] {
		return false
	}
	for _, part := range likelyParts {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}

// likelyPaths rules texts that may be paths by the names that they have: one
// that is written from the root, the home or a parent as the path it is, and any
// other where a rule speaks of it.
func (e *evaluation) likelyPaths(args map[string]any) {
	var texts []string
	if !textsUnder(args, false, likelyKey, 0, &texts) {
		e.add(floor(e.tool, "", "unknown-input", "the call's input is too large to find all paths in it"))
	}
	for _, text := range texts {
		if isURL(text) || strings.Contains(text, "\n") && !strings.HasPrefix(text, "/") {
			continue
		}
		for _, p := range fromURL(text) {
			if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~/") || strings.HasPrefix(p, "../") || isFileURL(text) {
				e.crossing(p, both, 0)
				continue
			}
			e.bare(&e.place, p, both, 0)
			e.protect(&e.place, p, both)
		}
	}
}
