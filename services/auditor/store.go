package auditor

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Log is where records are written. Reading is apart: see Reader.
type Log interface {
	// Append writes the records that it does not hold yet, and returns when
	// they are on disk, with how many it wrote. On an error that wraps ErrWrite
	// it may be called again with the same batch.
	Append(batch []Record) (written int, err error)
}

// Defaults of FilesConfig.
const (
	DefaultMaxBytes = 64 << 20
	DefaultKeep     = 64
)

// FilesConfig says where and how Files writes.
type FilesConfig struct {
	// Dir is the folder; it is made with mode 0700.
	Dir string
	// MaxBytes is the size at which a new file is begun; default
	// DefaultMaxBytes. One batch is never split, so a file may end up larger.
	MaxBytes int64
	// Keep is how many files stay; older ones are removed. Default DefaultKeep,
	// negative for all.
	Keep int
	// Logger takes what was repaired or removed; default slog.Default.
	Logger *slog.Logger
}

// file is what Files needs of an open file; tests put a failing one in place.
type file interface {
	Write([]byte) (int, error)
	Sync() error
	Truncate(int64) error
	Stat() (fs.FileInfo, error)
	Close() error
}

// Files is the review log in a folder. It is safe for concurrent use, and holds
// the folder's lock until Close.
type Files struct {
	cfg  FilesConfig
	lock *os.File
	open func(path string) (file, error)

	mu   sync.Mutex
	f    file
	num  int
	size int64 // up to here the current file holds whole, synced lines
	// dirty: something may lie beyond size, which a failed write left there.
	dirty   bool
	written window
	buf     []byte
}

// OpenFiles opens the folder, repairs what a crash left and finds out what was
// written before. Errors wrap ErrFolder or ErrInUse.
func OpenFiles(cfg FilesConfig) (*Files, error) {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	if cfg.Keep == 0 {
		cfg.Keep = DefaultKeep
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	l := &Files{cfg: cfg, open: openAppend}
	if err := l.takeFolder(); err != nil {
		return nil, err
	}
	if err := l.recover(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Files) takeFolder() error {
	dir := l.cfg.Dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w: choose another, or mend its rights", ErrFolder, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	// What agents asked for is in these files; the folder may have been there
	// before, made by somebody with another idea of who reads it.
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%w: %s has mode %04o, others may read it: run `chmod 700 %s`", ErrFolder, dir, info.Mode().Perm(), dir)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w: choose another, or mend its rights", ErrFolder, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("%w: %s: stop it, or name another folder", ErrInUse, dir), f.Close())
	}
	l.lock = f
	return nil
}

// Append implements Log.
func (l *Files) Append(batch []Record) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh := l.fresh(batch)
	if len(fresh) == 0 {
		return 0, nil
	}
	l.buf = l.buf[:0]
	for i := range fresh {
		var err error
		if l.buf, err = fresh[i].AppendLine(l.buf); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrWrite, err)
		}
	}
	if err := l.ready(int64(len(l.buf))); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrWrite, err)
	}
	if err := l.write(l.buf); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrWrite, err)
	}
	for i := range fresh {
		l.written.add(fresh[i].key())
	}
	return len(fresh), nil
}

// fresh leaves out what is written, also when the batch itself holds a record
// twice.
func (l *Files) fresh(batch []Record) []Record {
	fresh, here := make([]Record, 0, len(batch)), map[key]bool{}
	for _, r := range batch {
		if k := r.key(); !l.written.has(k) && !here[k] {
			here[k] = true
			fresh = append(fresh, r)
		}
	}
	return fresh
}

// ready makes the current file fit to take n more bytes.
func (l *Files) ready(n int64) error {
	if l.f != nil && l.gone() {
		// Somebody moved or removed the file. What goes into it now is lost with
		// its last name.
		l.cfg.Logger.Error("the review log's current file is gone; beginning a new one", "file", l.path(l.num))
		return l.next()
	}
	if l.f == nil {
		return l.next()
	}
	if l.dirty {
		if err := l.cut(); err != nil {
			return err
		}
	}
	if l.size > 0 && l.size+n > l.cfg.MaxBytes {
		return l.next()
	}
	return nil
}

// write puts whole lines on disk, or leaves the file marked dirty.
func (l *Files) write(b []byte) error {
	l.dirty = true
	n, err := l.f.Write(b)
	if err == nil && n < len(b) {
		err = fmt.Errorf("wrote %d of %d bytes", n, len(b))
	}
	if err == nil {
		err = l.f.Sync()
	}
	if err != nil {
		// The cut gives a full disk its room back at once; if it fails too, the
		// next attempt begins with it.
		return errors.Join(err, l.cut())
	}
	l.size += int64(len(b))
	l.dirty = false
	return nil
}

// cut removes what a failed write left behind the last whole line. After a
// failed sync the system may have dropped pages that it now calls clean, so
// only what was synced before counts.
func (l *Files) cut() error {
	if err := l.f.Truncate(l.size); err != nil {
		return fmt.Errorf("cutting a torn end: %w", err)
	}
	if err := l.f.Sync(); err != nil {
		return fmt.Errorf("cutting a torn end: %w", err)
	}
	l.dirty = false
	return nil
}

// next begins a new file and removes those that are too many.
func (l *Files) next() error {
	num := l.num + 1
	f, err := l.open(l.path(num))
	if err != nil {
		return err
	}
	if err := syncDir(l.cfg.Dir); err != nil {
		return errors.Join(err, f.Close())
	}
	if l.f != nil {
		if err := l.f.Close(); err != nil {
			l.cfg.Logger.Warn("closing a full review log file", "error", err)
		}
	}
	l.f, l.num, l.size, l.dirty = f, num, 0, false
	l.prune()
	return nil
}

func (l *Files) prune() {
	nums, err := l.files()
	if err != nil || l.cfg.Keep < 0 {
		return
	}
	for len(nums) > l.cfg.Keep {
		path := l.path(nums[0])
		if err := os.Remove(path); err != nil {
			l.cfg.Logger.Warn("an old review log file stays", "error", err)
			return
		}
		l.cfg.Logger.Info("removed the oldest review log file", "file", path, "keep", l.cfg.Keep)
		nums = nums[1:]
	}
}

// gone says whether the current path names another file than the open one.
func (l *Files) gone() bool {
	open, err := l.f.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(l.path(l.num))
	return err != nil || !os.SameFile(open, named)
}

// Close lets go of the folder. Append must not be called after it.
func (l *Files) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	if l.f != nil {
		errs = append(errs, l.f.Close())
		l.f = nil
	}
	return errors.Join(append(errs, l.lock.Close())...)
}

func openAppend(path string) (file, error) {
	// O_EXCL is not asked for: a crash may have left the file, empty.
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// syncDir makes the names in dir durable: a synced file without a name is lost.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
