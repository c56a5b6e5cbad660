package module

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxFiles is how many descriptors a worker may have: its three, and those of
// the runtime's poller.
const maxFiles = 8

// maxStack bounds the stack of a goroutine in bytes: the language's own
// functions call back into scripts on it.
const maxStack = 64 << 20

// confine gives up what this process could do to its host: memory beyond what a
// module needs, files, other programs.
func confine(memory int64) error {
	size, err := addressSpace()
	if err != nil {
		return fmt.Errorf("confining the worker: %w", err)
	}
	if err := closeInherited(); err != nil {
		return fmt.Errorf("confining the worker: %w", err)
	}
	runtime.GOMAXPROCS(2)      // one for the script, one for the collector
	runtime.MemProfileRate = 0 // nobody looks into a worker
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(memory / 2)
	limits := []struct {
		what string
		of   int
		to   uint64
	}{
		{"memory", unix.RLIMIT_AS, size + uint64(memory)},
		{"open files", unix.RLIMIT_NOFILE, maxFiles},
		{"file size", unix.RLIMIT_FSIZE, 0},
		{"core", unix.RLIMIT_CORE, 0},
	}
	for _, l := range limits {
		if err := unix.Setrlimit(l.of, &unix.Rlimit{Cur: l.to, Max: l.to}); err != nil {
			return fmt.Errorf("confining the worker: limit of %s to %d: %w", l.what, l.to, err)
		}
	}
	return nil
}

// closeInherited closes what the process got from whoever started its engine, and
// the engine knows nothing of. What is left is the runtime's own: its poller, and
// the files that say how much processor time there is.
func closeInherited() error {
	const dir = "/proc/self/fd/"
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range list {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 {
			continue
		}
		to, err := os.Readlink(dir + entry.Name())
		if err != nil || strings.HasPrefix(to, "anon_inode:") || strings.HasPrefix(to, "/sys/fs/cgroup/") {
			continue // closed since, as the one that listed them, or the runtime's
		}
		if err := unix.Close(fd); err != nil {
			return fmt.Errorf("closing descriptor %d: %w", fd, err)
		}
	}
	return nil
}

// addressSpace is what the process has of it, in bytes.
func addressSpace() (uint64, error) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	pages, _, _ := bytes.Cut(b, []byte(" "))
	n, err := strconv.ParseUint(string(pages), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading /proc/self/statm: %w", err)
	}
	return n * uint64(os.Getpagesize()), nil
}
