package policy

import (
	"path"
	"strings"
)

// aliased are the readings of a path under the other names that systems have for
// their files, which are no links that anybody could make or resolve by text:
// /proc/self/root is /, /proc/self/cwd the current directory, and so for each
// process; on macOS /System/Volumes/Data is /, and /.vol names files by number.
func (p *place) aliased(typed string) []pathReading {
	if p.windows {
		return nil
	}
	if rest, ok := cutHome(typed); ok {
		typed = p.home + "/" + rest
	}
	if strings.HasPrefix(typed, "/") {
		return p.alias(typed)
	}
	var out []pathReading
	for _, base := range p.bases {
		if odd := base + "/"; strings.HasPrefix(odd, "/proc/") || strings.HasPrefix(odd, "/dev/") || p.fold || speaksOfProc(typed) {
			out = append(out, p.alias(odd+typed)...)
		}
	}
	return out
}

// speaksOfProc says, fast, whether a relative path may go through such a folder.
func speaksOfProc(typed string) bool {
	return strings.Contains(typed, "proc/") || strings.Contains(typed, "dev/") || strings.HasPrefix(typed, "fd/")
}

// maxAliasParts bounds the parts of a path that are read one by one; of a longer
// one nobody says where it leads.
const maxAliasParts = 256

// alias is where an absolute path leads by such names, nothing where it has
// none. A link is followed before "..", so the parts are read one by one.
func (p *place) alias(whole string) []pathReading {
	lower := strings.ToLower(whole)
	if !strings.Contains(lower, "proc") && !strings.Contains(lower, "dev/fd") && !(p.fold && (strings.Contains(lower, "volumes") || strings.Contains(lower, ".vol"))) {
		return nil
	}
	if strings.Count(whole, "/") > maxAliasParts {
		return []pathReading{p.reading("", "")}
	}
	at, found := "/", false
	for _, part := range strings.Split(whole, "/") {
		if at = path.Join(at, part); part == "" || part == "." || part == ".." {
			continue
		}
		if at == "/dev/fd" {
			at = "/proc/self/fd" // and behind it ".." is the process: /dev/fd/../cwd
		}
		parts := strings.Split(at, "/")[1:]
		switch n := len(parts); {
		case p.fold && strings.EqualFold(at, "/System/Volumes/Data"):
			at, found = "/", true
		case p.fold && strings.EqualFold(at, "/.vol"):
			return []pathReading{p.reading("", "")}
		case parts[0] != "proc" || n != 3 && !(n == 5 && parts[2] == "task"):
		case parts[n-1] == "root":
			at, found = "/", true
		case parts[n-1] == "cwd":
			if (parts[1] != "self" && parts[1] != "thread-self") || len(p.bases) != 1 {
				return []pathReading{p.reading("", "")}
			}
			at, found = p.bases[0], true
		case parts[n-1] == "fd" && strings.Count(path.Clean(whole), "/") > n+1:
			return []pathReading{p.reading("", "")} // a folder that is open
		}
	}
	if !found {
		return nil
	}
	return []pathReading{p.reading(at, "")}
}
