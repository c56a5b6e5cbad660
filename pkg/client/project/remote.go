package project

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// maxConfig bounds how much of a git configuration is read, in bytes.
const maxConfig = 256 << 10

// remoteID is where the remote "origin" of a repository leads, as
// "github.com/acme/shop"; "" where it has none that names a host. git is the
// repository's .git, a folder or the file that stands for one.
func remoteID(git string) string {
	config, err := readSome(filepath.Join(configDir(git), "config"))
	if err != nil {
		return ""
	}
	return idOf(originURL(config))
}

// configDir is the folder that holds the configuration: of a worktree it is that
// of the repository that it belongs to.
func configDir(git string) string {
	if info, err := os.Stat(git); err != nil || info.IsDir() {
		return git
	}
	text, err := readSome(git)
	dir, ok := strings.CutPrefix(firstLine(text), "gitdir: ")
	if err != nil || !ok {
		return git
	}
	dir = from(filepath.Dir(git), dir)
	if common, err := readSome(filepath.Join(dir, "commondir")); err == nil {
		return from(dir, firstLine(common))
	}
	return dir
}

func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSuffix(line, "\r")
}

func readSome(path string) (string, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", os.ErrNotExist // a pipe would keep us waiting
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig))
	return string(b), err
}

// originURL is the first url of the remote "origin" in a git configuration.
func originURL(config string) string {
	in := false
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			in = strings.HasPrefix(line, `[remote "origin"]`)
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if in && ok && strings.EqualFold(strings.TrimSpace(key), "url") {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

// idOf is the host and path of a remote: what all its clones have in common,
// whoever made them and by which way. It never holds a password.
func idOf(remote string) string {
	host, path := hostAndPath(remote)
	path = strings.Trim(strings.TrimSuffix(strings.Trim(path, "/"), ".git"), "/")
	id := strings.ToLower(host) + "/" + path
	if host == "" || path == "" || !valid(id) {
		return ""
	}
	return id
}

func hostAndPath(remote string) (host, path string) {
	if strings.Contains(remote, "://") {
		u, err := url.Parse(remote)
		if err != nil {
			return "", ""
		}
		return u.Hostname(), u.Path
	}
	// git@github.com:acme/shop.git; a slash before the colon makes it a path.
	at, path, ok := strings.Cut(remote, ":")
	if !ok || strings.Contains(at, "/") || len(at) < 2 {
		return "", ""
	}
	return at[strings.LastIndexByte(at, '@')+1:], path
}
