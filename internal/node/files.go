package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// ensurePrivateDir makes dir if need be and refuses one that others may enter:
// whoever reads the keys in it can be anybody on this node.
func ensurePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w; choose a folder that you own, or mend its rights", ErrStoreAccess, err)
	}
	if err := checkPrivate(dir); err != nil {
		return err
	}
	// Asking beats finding out half-way: a read-only file system or a foreign
	// folder is told before anything was made in it.
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("%w: %s: %w; choose a folder that you own, or mend its rights", ErrStoreAccess, dir, err)
	}
	return nil
}

// checkPrivate refuses a file or folder that belongs to somebody else or that
// others may read or write.
func checkPrivate(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStoreAccess, err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%w: %s is a symbolic link; name the place itself", ErrExposed, path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%w: %s has mode %04o; run: chmod go-rwx %s", ErrExposed, path, info.Mode().Perm(), path)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to user %d and not to you (%d); use a store of your own", ErrExposed, path, st.Uid, os.Geteuid())
	}
	return nil
}

// readPrivate reads a file that only its owner may read. A missing file is
// fs.ErrNotExist.
func readPrivate(path string) ([]byte, error) {
	if _, err := os.Lstat(path); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStoreAccess, err)
	}
	if err := checkPrivate(path); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStoreAccess, err)
	}
	return b, nil
}

// WritePrivate puts b into path with mode 0600, whole or not at all, and on
// disk before it returns. Use it for credentials.
func WritePrivate(path string, b []byte) error {
	if err := replacePrivate(path, b, true); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// replacePrivate is WritePrivate without waiting for the folder, and without
// waiting for the disk at all unless sync: for what is made anew when lost.
func replacePrivate(path string, b []byte, sync bool) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStoreAccess, err)
	}
	defer os.Remove(tmp.Name()) // a leftover only when something failed
	_, err = tmp.Write(b)
	if err == nil && sync {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Chmod(0o600), tmp.Close())
	if err != nil {
		return fmt.Errorf("%w: writing %s: %w", ErrStoreAccess, path, err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("%w: %w", ErrStoreAccess, err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStoreAccess, err)
	}
	err = errors.Join(d.Sync(), d.Close())
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrStoreAccess, dir, err)
	}
	return nil
}
