package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockFile is an advisory lock that dies with its process, so that a crash
// leaves nothing to clean up. It holds the pid of its owner for error texts.
type lockFile struct{ f *os.File }

// lock takes path's lock, waiting up to wait for another holder to let go.
// ErrStoreInUse names the process that holds it.
func lock(path string, wait time.Duration) (*lockFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStoreAccess, err)
	}
	for deadline := time.Now().Add(wait); ; time.Sleep(10 * time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || !time.Now().Before(deadline) {
			defer f.Close()
			return nil, lockRefused(f, err)
		}
	}
	if err := writePid(f); err != nil {
		f.Close()
		return nil, err
	}
	return &lockFile{f: f}, nil
}

func lockRefused(f *os.File, err error) error {
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("%w: locking %s: %w", ErrStoreAccess, f.Name(), err)
	}
	owner := "another process"
	if pid := readPid(f); pid != "" {
		owner = "process " + pid
	}
	return fmt.Errorf("%w by %s (%s); stop it, or use another store", ErrStoreInUse, owner, f.Name())
}

func writePid(f *os.File) error {
	err := f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStoreAccess, err)
	}
	return nil
}

func readPid(f *os.File) string {
	b := make([]byte, 32)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	pid := strings.TrimSpace(string(b[:n]))
	if strings.Trim(pid, "0123456789") != "" {
		return ""
	}
	return pid
}

// held says whether some process holds path's lock now.
func held(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return errors.Is(err, unix.EWOULDBLOCK)
	}
	return false
}

func (l *lockFile) release() error {
	// Closing lets go of the lock. The file stays: removing it would let two
	// processes lock two different files of the same name.
	return l.f.Close()
}

// InUse says whether a node runs on the store at this moment, in any process.
func InUse(store string) bool { return held(filepath.Join(store, lockName)) }
