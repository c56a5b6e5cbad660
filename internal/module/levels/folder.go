package levels

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/assent-dev/assent/internal/module"
	"github.com/assent-dev/assent/pkg/protocol"
)

// lookEvery is how often a folder is looked at.
const lookEvery = time.Second

// maxFiles bounds how many files of a folder are looked at for change.
const maxFiles = 20_000

// Reader reads a folder of modules: bundle.Dir.
type Reader func(dir string, level module.Level) ([]module.Source, []module.Problem, error)

// Folder hands take the modules of a folder, at first and whenever a file below it
// changes, until ctx ends. A folder that is not there holds none; of one that
// cannot be read what was in force stays so, with the error among the problems.
func Folder(ctx context.Context, dir string, level module.Level, read Reader, take func([]module.Source, []module.Problem)) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var sources []module.Source
	for seen, first := uint64(0), true; ; first = false {
		// Looked at before it is read: what changes meanwhile is read again.
		if mark := markOf(dir); first || mark != seen {
			seen = mark
			now, problems, err := read(dir, level)
			if err == nil {
				sources = now
			} else {
				problems = []module.Problem{{Level: level, Message: protocol.Safe(fmt.Sprintf("%s cannot be read, and what was in force before stays so: %v", dir, err), 500, false)}}
			}
			take(sources, problems)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// markOf is another number when a file below dir has come, gone or changed.
func markOf(dir string) uint64 {
	h, files := fnv.New64a(), 0
	// What cannot be looked at is part of the mark too: the error is.
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if files++; files > maxFiles {
			return fs.SkipAll
		}
		fmt.Fprintf(h, "%s\x00%v\x00", path, err)
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			fmt.Fprintf(h, "%d %d %s\x00", info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
		return nil
	})
	return h.Sum64()
}
