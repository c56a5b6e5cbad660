// Package paths fixes the paths of a call on the agent's own host, where its
// symbolic links are: a gate elsewhere can only read the text. Start at Resolve.
package paths

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Resolve says for each typed path where it leads from cwd. A path may stand in
// the result twice, with the two places where programs find it. cwd itself is
// there if it is reached by a link: relative paths then lie elsewhere than they
// seem to. home stands for "~". It reads the file system, and never fails: what
// does not exist is taken as it is written.
func Resolve(cwd, home string, typed []string) []protocol.Path {
	var out []protocol.Path
	add := func(p protocol.Path) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if at := follow(cwd); at != filepath.Clean(cwd) {
		add(protocol.Path{Raw: cwd, Resolved: at})
	}
	for _, raw := range typed {
		for _, resolved := range resolve(cwd, home, raw) {
			add(protocol.Path{Raw: raw, Resolved: resolved})
		}
	}
	for _, alias := range aliases(cwd, home, typed) {
		add(alias)
	}
	return out
}

// aliases are other names of cwd, or of a folder in it, by which typed reach
// into it: of cwd itself, as what counts as inside of it is its host's to say.
func aliases(cwd, home string, typed []string) []protocol.Path {
	here := follow(cwd)
	var out []protocol.Path
	for _, raw := range typed {
		lexical := filepath.Clean(absolute(cwd, home, raw))
		if !filepath.IsAbs(lexical) || below(lexical, filepath.Clean(cwd)) || below(lexical, here) || !below(follow(lexical), here) {
			continue
		}
		for at := filepath.Dir(lexical); at != filepath.Dir(at) && below(follow(at), here); at = filepath.Dir(at) {
			if !below(follow(filepath.Dir(at)), here) {
				out = append(out, protocol.Path{Raw: cwd, Resolved: at})
			}
		}
	}
	return out
}

// below says whether a clean path is dir or lies in it.
func below(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]) || strings.HasSuffix(dir, string(filepath.Separator)))
}

// resolve says where raw leads: as the system reads it, links before "..", and,
// where that differs, as a program that tidies the text first reads it. Some
// agents do the latter, what they start the former.
func resolve(cwd, home, raw string) []string {
	abs := absolute(cwd, home, raw)
	out := []string{follow(abs)}
	if tidy := follow(filepath.Clean(abs)); tidy != out[0] {
		out = append(out, tidy)
	}
	return out
}

// absolute joins without tidying: "link/.." is not "." when link leads away.
func absolute(cwd, home, raw string) string {
	switch {
	case raw == "~" && home != "":
		return home
	case strings.HasPrefix(raw, "~/") && home != "":
		return home + raw[1:]
	case filepath.IsAbs(raw):
		return raw
	default:
		return cwd + string(filepath.Separator) + raw
	}
}

// maxLinks is how many symbolic links a path may lead through; Linux follows 40.
const maxLinks = 64

// follow resolves the symbolic links of an absolute path as far as it exists;
// what does not exist is added as it stands.
func follow(abs string) string {
	links := maxLinks
	for {
		at, whole := walk(abs, &links)
		// Once ".." is collapsed, what lies beyond something missing may exist
		// again, and be a link. The one budget ends links that lead into their own
		// missing part.
		if whole || at == abs || links <= 0 {
			return at
		}
		abs = at
	}
}

// walk follows links from the root down. It stops, with the rest added and
// tidied, at what does not exist, and says whether ".." stood in that rest.
func walk(abs string, links *int) (at string, whole bool) {
	root := filepath.VolumeName(abs) + string(filepath.Separator)
	rest := parts(abs[len(filepath.VolumeName(abs)):])
	for at = root; len(rest) > 0; {
		next := rest[0]
		rest = rest[1:]
		if next == ".." {
			at = filepath.Dir(at)
			continue
		}
		next = filepath.Join(at, next)
		target, state := look(next)
		switch {
		case state == solid:
			at = next
		case state == link && *links > 0:
			*links--
			if filepath.IsAbs(target) {
				at = root
			}
			rest = append(parts(target), rest...)
		default:
			tidy := filepath.Join(append([]string{next}, rest...)...)
			*links--
			return tidy, !slices.Contains(rest, "..")
		}
	}
	return at, true
}

type state int

const (
	absent state = iota
	solid
	link
)

func look(path string) (target string, s state) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", absent
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return "", solid
	}
	if target, err = os.Readlink(path); err != nil {
		return "", absent
	}
	return target, link
}

// parts splits a path; "." and empty parts say nothing.
func parts(path string) []string {
	all := strings.FieldsFunc(path, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
	return slices.DeleteFunc(all, func(p string) bool { return p == "." })
}

// Links returns those of words that a symbolic link leads elsewhere than they
// say, with where they lead. Of a command's words an adapter need tell no more:
// what a plain name says is what it is.
func Links(cwd, home string, words []string) []protocol.Path {
	var out []protocol.Path
	for _, raw := range words {
		tidy := filepath.Clean(absolute(cwd, home, raw))
		for _, resolved := range resolve(cwd, home, raw) {
			// Below a cwd that is itself reached by a link everything leads
			// elsewhere, and Resolve says so of cwd.
			if resolved != tidy && resolved != filepath.Join(follow(cwd), strings.TrimPrefix(tidy, filepath.Clean(cwd))) {
				out = append(out, protocol.Path{Raw: raw, Resolved: resolved})
			}
		}
	}
	return append(out, aliases(cwd, home, words)...)
}
