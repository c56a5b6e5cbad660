package bundle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/assent-dev/assent/pkg/protocol"
)

// Bounds of what is read for one module.
const (
	maxFile  = 1 << 20 // bytes of one file
	maxTotal = 8 << 20 // bytes of all of them
	maxFiles = 2000
	maxLine  = 400 // bytes of a message
)

// folder is what the modules in it may be made of. Paths in it are relative, with
// forward slashes. Safe for concurrent use: the bundler reads files in parallel.
type folder struct {
	dir  string // as named by the caller, absolute
	real string // without links
	root *os.Root
	// packages: modules in it may import what its node_modules holds.
	packages bool

	mu    sync.Mutex
	files int
	bytes int
}

func open(dir string, packages bool) (*folder, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of modules: %w", err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of modules: %w", err)
	}
	return &folder{dir: dir, real: real, root: root, packages: packages}, nil
}

func (f *folder) close() { _ = f.root.Close() }

// errOutside is a link that leads out of the folder.
var errOutside = errors.New("it is a link to a place outside the folder of the module")

// settle is the path of a file without links in it: a package behind a link
// resolves its own imports from where it really lies. ok is false if there is no
// such file.
func (f *folder) settle(name string) (settled string, ok bool, err error) {
	if !fs.ValidPath(name) {
		return "", false, nil
	}
	real, err := filepath.EvalSymlinks(filepath.Join(f.real, filepath.FromSlash(name)))
	switch {
	case missing(err), errors.Is(err, syscall.ENOTDIR):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("%s: %w", quote(name), plain(err))
	}
	rel, err := filepath.Rel(f.real, real)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false, errOutside
	}
	info, err := f.root.Stat(rel)
	if err != nil || !info.Mode().IsRegular() {
		return "", false, nil
	}
	return filepath.ToSlash(rel), true, nil
}

// read reads a regular file of the folder.
func (f *folder) read(name string) (string, error) {
	if err := f.spend(1, 0); err != nil {
		return "", err
	}
	// Not to wait where somebody put a pipe in the place of a file.
	file, err := f.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", quote(name), plain(err))
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file", quote(name))
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s cannot be read: %w", quote(name), plain(err))
	case len(text) > maxFile:
		return "", fmt.Errorf("%s is larger than %d bytes", quote(name), maxFile)
	}
	return string(text), f.spend(0, len(text))
}

// spend counts what is read for one module.
func (f *folder) spend(files, bytes int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files, f.bytes = f.files+files, f.bytes+bytes
	switch {
	case f.files > maxFiles:
		return fmt.Errorf("the module consists of more than %d files", maxFiles)
	case f.bytes > maxTotal:
		return fmt.Errorf("the module's files have more than %d bytes", maxTotal)
	}
	return nil
}

// renew lets the next module use what one may.
func (f *folder) renew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files, f.bytes = 0, 0
}

// plain is the cause of an error without the path in it, which would be one of
// this machine.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func quote(s string) string { return strconv.Quote(protocol.Safe(s, 120, false)) }

// oneLine is a message that is safe to show.
func oneLine(s string) string {
	return protocol.Safe(strings.Join(strings.Fields(s), " "), maxLine, false)
}
