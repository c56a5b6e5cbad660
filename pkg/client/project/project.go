// Package project finds the project that a folder belongs to, on the agent's own
// host, and the policy that the project has of its own. Start at Find.
package project

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/assent-dev/assent/pkg/protocol"
)

// What a project has of its own stands below its root.
const (
	PolicyFile = ".assent/policy.jsonc"
	// ModuleFolder holds the project's permission modules.
	ModuleFolder = ".assent/permissions"
)

// ErrPolicy: the project's own policy is there and cannot be used. Whoever asks
// must not ask as if there were none.
var ErrPolicy = errors.New("the project's own policy cannot be used")

// maxUp bounds how many folders upwards a project is looked for.
const maxUp = 128

// Project is a project as its host knows it. The zero value is none.
type Project struct {
	// ID is the project's name wherever it lies: "github.com/acme/shop", or the
	// root where there is no such name.
	ID string
	// Root is the project's folder, absolute, links followed.
	Root string
	// Policy is the text of the project's own policy; HasPolicy says whether
	// there is one.
	Policy    string
	HasPolicy bool
	// Modules are the project's permission modules, bundled, as whoever asks has put
	// them here: Find does not look into them.
	Modules []protocol.ProjectModule
}

// Own is what the project has of its own, as client.ProjectOwn takes it; ok is
// false where that is nothing.
func (p Project) Own() (policy string, modules []protocol.ProjectModule, ok bool) {
	if p.HasPolicy {
		return p.Policy, p.Modules, true
	}
	return protocol.NoProjectPolicy, p.Modules, len(p.Modules) > 0
}

// Facts is the project as an ask states it.
func (p Project) Facts() protocol.Project {
	out := protocol.Project{ID: p.ID, Root: p.Root}
	if policy, modules, ok := p.Own(); ok {
		out.Digest = protocol.ProjectDigest(policy, modules...)
	}
	return out
}

// Find returns the project of an absolute folder. It reads the file system and
// runs nothing. Errors wrap ErrPolicy.
func Find(dir string) (Project, error) {
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		at = filepath.Clean(dir) // a folder of another machine, or one that went
	}
	root, repository := rootOf(at)
	if root == "" {
		return Project{}, nil
	}
	p := Project{ID: root, Root: root}
	if repository {
		if id := remoteID(filepath.Join(root, ".git")); id != "" {
			p.ID = id
		}
	}
	p.Policy, p.HasPolicy, err = readPolicy(root)
	if err != nil {
		return Project{}, fmt.Errorf("%w: %s: %w", ErrPolicy, filepath.Join(root, PolicyFile), err)
	}
	return p, nil
}

// rootOf is the root of the project that dir lies in, "" for none. A repository
// counts before a file: one in a folder of it that an agent made must not take
// the place of the repository's own.
func rootOf(dir string) (root string, repository bool) {
	found := ""
	for range maxUp {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir, true
		}
		if found == "" && hasOwn(dir) {
			found = dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return found, false
}

// hasOwn says whether a folder has what only a project has.
func hasOwn(dir string) bool {
	for _, name := range []string{PolicyFile, ModuleFolder} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// readPolicy reads the project's own policy. The root is opened first: no link
// leads out of it, or an agent could have a file read that it must not read
// itself, and hear of it in an error.
func readPolicy(dir string) (text string, there bool, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", false, plain(err)
	}
	defer root.Close()
	// A pipe would keep whoever opens it waiting.
	f, err := root.OpenFile(PolicyFile, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		if _, err := root.Lstat(PolicyFile); err == nil {
			return "", false, errors.New("it is a link that leads nowhere")
		}
		return "", false, nil
	}
	if err != nil {
		return "", false, plain(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", false, errors.New("it is no plain file")
	}
	b, err := io.ReadAll(io.LimitReader(f, protocol.MaxProjectPolicy+1))
	switch {
	case err != nil:
		return "", false, plain(err)
	case len(b) > protocol.MaxProjectPolicy:
		return "", false, fmt.Errorf("it is larger than %d bytes", protocol.MaxProjectPolicy)
	case !utf8.Valid(b):
		return "", false, errors.New("it is not UTF-8")
	}
	return string(b), true, nil
}

// plain drops the path that an error repeats.
func plain(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// valid says whether an id can name a layer of the policy.
func valid(id string) bool {
	return id != "" && len(id) <= protocol.MaxName && utf8.ValidString(id) &&
		!strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r == 0x7f || r == utf8.RuneError })
}
