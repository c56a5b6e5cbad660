//go:build unix

package local

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// openNoFollow opens path itself, never what a link at its place points to.
func openNoFollow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// private refuses a file that is not this user's alone, or that lies in a
// folder where somebody else could put another in its place.
func private(path string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%w: %s has mode %04o: run `chmod 600 %s` if it is yours", ErrUntrusted, path, info.Mode().Perm(), path)
	}
	if err := owned(path, info); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	di, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("looking at %s: %w", dir, err)
	}
	if di.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: others may write in %s: run `chmod go-w %s`", ErrUntrusted, dir, dir)
	}
	return owned(dir, di)
}

func owned(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%w: cannot tell who owns %s", ErrUntrusted, path)
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to user %d, not to you", ErrUntrusted, path, st.Uid)
	}
	return nil
}
