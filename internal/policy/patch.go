package policy

import "strings"

// patchMarks are the lines of a patch, as Codex and OpenCode write them, that
// name a file.
var patchMarks = []struct {
	mark string
	dir  direction
}{
	{"*** Add File:", writes},
	{"*** Delete File:", writes},
	{"*** Update File:", both},
	{"*** Move to:", writes},
	{"+++ ", both},
	{"--- ", both},
	{"rename to ", writes},
	{"rename from ", both},
	{"copy to ", writes},
	{"copy from ", reads},
}

// patchedFiles are the files that the patch in a call's arguments changes; ok
// is false where a text in it is no patch that could be read. except are
// arguments that hold paths themselves.
func patchedFiles(args map[string]any, except []string) (found []typedPath, ok bool) {
	var texts []string
	rest := withoutKeys(args, append([]string{"workdir", "description"}, except...)...)
	if !textsUnder(rest, true, func(string) bool { return true }, 0, &texts) {
		return nil, false
	}
	ok = true
	for _, t := range texts {
		files := filesOfPatch(t)
		if len(files) == 0 && strings.ContainsAny(t, "\n*") {
			ok = false
		}
		found = append(found, files...)
	}
	return found, ok
}

// filesOfPatch are the files that a patch names.
func filesOfPatch(text string) []typedPath {
	var out []typedPath
	unified := !strings.Contains(text, "*** Begin Patch")
	for line := range strings.Lines(text) {
		// Readers of patches forgive blanks around a mark.
		line = strings.Trim(line, " \t\r\n")
		for _, m := range patchMarks {
			name, found := strings.CutPrefix(line, m.mark)
			if !found || !unified && !strings.HasPrefix(m.mark, "***") {
				continue
			}
			name, _, _ = strings.Cut(strings.TrimSpace(name), "\t")
			if name == "" || name == "/dev/null" {
				break
			}
			out = append(out, typedPath{name, m.dir})
			if below, ok := strings.CutPrefix(name, "b/"); ok && unified {
				out = append(out, typedPath{below, m.dir})
			} else if below, ok := strings.CutPrefix(name, "a/"); ok && unified {
				out = append(out, typedPath{below, m.dir})
			}
			break
		}
	}
	return out
}
