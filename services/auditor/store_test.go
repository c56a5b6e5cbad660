package auditor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/node/nodetest"
	"github.com/assent-dev/assent/pkg/protocol"
)

// TestFilesHoldsWhatWasWritten: one line a record, in the order of writing,
// private to its owner.
func TestFilesHoldsWhatWasWritten(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	l := openFiles(t, FilesConfig{Dir: dir})
	appendAll(t, l, 3, sample(1, 3)...)
	appendAll(t, l, 1, sample(4, 4)...)
	wantSeqs(t, dir, 1, 2, 3, 4)
	for path, want := range map[string]fs.FileMode{dir: 0o700, l.path(1): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %04o, want %04o", path, got, want)
		}
	}
}

// TestFilesWritesARecordOnce: however a record comes again, also over a restart
// and a rotation, it is not written again; a record that only looks alike is.
func TestFilesWritesARecordOnce(t *testing.T) {
	t.Parallel()
	one := sample(1, 1)[0]
	anew := one
	anew.At = one.At.Add(time.Hour)
	other := one
	other.Stream, other.Kind = protocol.StreamReview, KindReview
	rows := []struct {
		name    string
		first   []Record
		again   []Record
		written int
	}{
		{"the same batch", sample(1, 5), sample(1, 5), 0},
		{"a part of it", sample(1, 5), sample(2, 3), 0},
		{"one batch that holds it twice", nil, []Record{one, one}, 1},
		{"new ones among known ones", sample(1, 5), sample(4, 7), 2},
		{"the same place in the other stream", []Record{one}, []Record{other}, 1},
		{"the same place in a stream that was made anew", []Record{one}, []Record{anew}, 1},
		{"one that came late, behind newer ones", sample(2, 5), []Record{one}, 1},
	}
	for _, row := range rows {
		for _, how := range []string{"at once", "after a restart", "after a rotation"} {
			t.Run(row.name+" "+how, func(t *testing.T) {
				t.Parallel()
				cfg := FilesConfig{Dir: newDir(t)}
				if how == "after a rotation" {
					cfg.MaxBytes = 1
				}
				l := openFiles(t, cfg)
				appendAll(t, l, len(row.first), row.first...)
				if how == "after a restart" {
					closeFiles(t, l)
					l = openFiles(t, cfg)
				}
				appendAll(t, l, row.written, row.again...)
				if got := len(readSeqs(t, cfg.Dir)); got != len(row.first)+row.written {
					t.Errorf("the log holds %d lines, want %d", got, len(row.first)+row.written)
				}
			})
		}
	}
}

// TestFilesRepairsATornEnd: whatever a crash left after the last whole line is
// cut, nothing before it, and its record is written when it comes again.
func TestFilesRepairsATornEnd(t *testing.T) {
	t.Parallel()
	line, err := sample(3, 3)[0].AppendLine(nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name string
		torn []byte
	}{
		{"nothing", nil},
		{"one byte", line[:1]},
		{"half a line", line[:len(line)/2]},
		{"a line without its end", line[:len(line)-1]},
		{"zeros", make([]byte, 4096)},
		{"more than one read", bytes.Repeat([]byte("x"), 200<<10)},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			l := openFiles(t, FilesConfig{Dir: dir})
			appendAll(t, l, 2, sample(1, 2)...)
			closeFiles(t, l)
			addTo(t, l.path(1), row.torn)

			l = openFiles(t, FilesConfig{Dir: dir})
			wantSeqs(t, dir, 1, 2)
			appendAll(t, l, 1, sample(2, 3)...)
			wantSeqs(t, dir, 1, 2, 3)
		})
	}
	t.Run("a file that is torn from its first byte", func(t *testing.T) {
		t.Parallel()
		dir := newDir(t)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		addTo(t, filepath.Join(dir, "review-00000007.jsonl"), line[:20])
		appendAll(t, openFiles(t, FilesConfig{Dir: dir}), 1, sample(3, 3)...)
		wantSeqs(t, dir, 3)
	})
}

// TestFilesLeavesDamageAlone: a line in the middle that is no record is the
// trace of something; it is neither removed nor in the way.
func TestFilesLeavesDamageAlone(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	l := openFiles(t, FilesConfig{Dir: dir})
	appendAll(t, l, 1, sample(1, 1)...)
	closeFiles(t, l)
	addTo(t, l.path(1), []byte("not a record\n"))
	l = openFiles(t, FilesConfig{Dir: dir})
	appendAll(t, l, 1, sample(1, 2)...)
	b, err := os.ReadFile(l.path(1))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 3 || lines[1] != "not a record" {
		t.Errorf("the log holds %q", lines)
	}
}

// TestFilesRotates: a new file when the size is reached, names that sort, the
// oldest removed and the newest kept.
func TestFilesRotates(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	l := openFiles(t, FilesConfig{Dir: dir, MaxBytes: 1200, Keep: 3})
	for i := 1; i <= 40; i++ {
		appendAll(t, l, 1, sample(i, i)...)
	}
	names := logNames(t, dir)
	if len(names) != 3 || !slices.IsSorted(names) {
		t.Fatalf("files %v, want three that sort", names)
	}
	seqs := readSeqs(t, dir)
	if seqs[len(seqs)-1] != 40 || !slices.IsSorted(seqs) || len(seqs) < 6 {
		t.Errorf("the files hold %v, want the newest up to 40 in order", seqs)
	}
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() > 1200 {
			t.Errorf("%s: %v %v, want at most 1200 bytes", name, info, err)
		}
	}
}

func TestFilesKeepsAllWhenTold(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	l := openFiles(t, FilesConfig{Dir: dir, MaxBytes: 1, Keep: -1})
	for i := 1; i <= 70; i++ {
		appendAll(t, l, 1, sample(i, i)...)
	}
	if n := len(logNames(t, dir)); n != 70 {
		t.Errorf("%d files, want 70", n)
	}
}

// TestFilesAfterAFailedWrite: whatever goes wrong at any step of a write, the
// error says that nothing is written, and the same batch goes in whole, once,
// when the disk works again.
func TestFilesAfterAFailedWrite(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name string
		bad  failing
	}{
		{"the disk is full at once", failing{write: syscall.ENOSPC}},
		{"the disk is full half-way", failing{write: syscall.ENOSPC, part: 100}},
		{"a short write without an error", failing{part: 100, short: true}},
		{"the sync fails", failing{sync: syscall.EIO}},
		{"the disk is full half-way, and cutting fails", failing{write: syscall.ENOSPC, part: 100, cut: syscall.EIO}},
		{"the sync fails, and cutting fails", failing{sync: syscall.EIO, cut: syscall.EIO}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			l := openFiles(t, FilesConfig{Dir: dir})
			appendAll(t, l, 2, sample(1, 2)...)
			bad := row.bad
			bad.file = l.f
			l.f = &bad
			for range 3 {
				if n, err := l.Append(sample(2, 5)); !errors.Is(err, ErrWrite) || n != 0 {
					t.Fatalf("Append: %d, %v, want 0 and ErrWrite", n, err)
				}
			}
			bad.heal()
			appendAll(t, l, 3, sample(2, 5)...)
			wantSeqs(t, dir, 1, 2, 3, 4, 5)
		})
	}
}

// TestFilesNoticesThatItsFileIsGone: writing on into a file without a name
// would lose what is acknowledged.
func TestFilesNoticesThatItsFileIsGone(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(string) error{
		"removed": os.Remove,
		"renamed": func(p string) error { return os.Rename(p, p+".old") },
		"replaced": func(p string) error {
			return errors.Join(os.Rename(p, p+".old"), os.WriteFile(p, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			l := openFiles(t, FilesConfig{Dir: dir})
			appendAll(t, l, 1, sample(1, 1)...)
			if err := take(l.path(1)); err != nil {
				t.Fatal(err)
			}
			appendAll(t, l, 1, sample(2, 2)...)
			wantSeqs(t, dir, 2)
		})
	}
}

func TestOpenFilesRefuses(t *testing.T) {
	t.Parallel()
	t.Run("a folder that another auditor writes into", func(t *testing.T) {
		t.Parallel()
		dir := newDir(t)
		openFiles(t, FilesConfig{Dir: dir})
		if _, err := OpenFiles(FilesConfig{Dir: dir}); !errors.Is(err, ErrInUse) {
			t.Errorf("OpenFiles: %v, want ErrInUse", err)
		}
	})
	t.Run("a folder that others may read", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFiles(FilesConfig{Dir: dir}); !errors.Is(err, ErrFolder) {
			t.Errorf("OpenFiles: %v, want ErrFolder", err)
		}
	})
	t.Run("a file in the folder's place", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "file")
		addTo(t, path, []byte("x"))
		if _, err := OpenFiles(FilesConfig{Dir: path}); !errors.Is(err, ErrFolder) {
			t.Errorf("OpenFiles: %v, want ErrFolder", err)
		}
	})
}

func TestFilesIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	l := openFiles(t, FilesConfig{Dir: dir, MaxBytes: 4000, Keep: -1})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 1; i <= 25; i++ {
				if _, err := l.Append(sample(w*100+i, w*100+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(readSeqs(t, dir)); n != 200 {
		t.Errorf("%d lines, want 200", n)
	}
}

// TestWindowForgetsTheOldest: the memory is bounded, and its newest part whole.
func TestWindowForgetsTheOldest(t *testing.T) {
	t.Parallel()
	var w window
	const extra = 100
	for i := range windowSize + extra {
		w.add(key{seq: uint64(i + 1)})
		w.add(key{seq: uint64(i + 1)})
	}
	if len(w.have) != windowSize || len(w.ring) != windowSize {
		t.Fatalf("the window holds %d and %d keys, want %d", len(w.have), len(w.ring), windowSize)
	}
	for i := range windowSize + extra {
		if got, want := w.has(key{seq: uint64(i + 1)}), i >= extra; got != want {
			t.Fatalf("has(%d) = %v, want %v", i+1, got, want)
		}
	}
}

// failing is a file on a disk that does not do as it is told.
type failing struct {
	file
	write, sync, cut error
	part             int
	short            bool
}

func (f *failing) heal() { f.write, f.sync, f.cut, f.part, f.short = nil, nil, nil, 0, false }

func (f *failing) Write(b []byte) (int, error) {
	if f.write == nil && !f.short {
		return f.file.Write(b)
	}
	n, _ := f.file.Write(b[:min(f.part, len(b))])
	return n, f.write
}

func (f *failing) Sync() error {
	if f.sync != nil {
		return f.sync
	}
	return f.file.Sync()
}

func (f *failing) Truncate(n int64) error {
	if f.cut != nil {
		return f.cut
	}
	return f.file.Truncate(n)
}

func newDir(t *testing.T) string { return filepath.Join(t.TempDir(), "review") }

func openFiles(t *testing.T, cfg FilesConfig) *Files {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = nodetest.Logger(t)
	}
	l, err := OpenFiles(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func closeFiles(t *testing.T, l *Files) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func appendAll(t *testing.T, l *Files, want int, records ...Record) {
	t.Helper()
	n, err := l.Append(records)
	if err != nil {
		t.Fatal(err)
	}
	if n != want {
		t.Fatalf("Append wrote %d records, want %d", n, want)
	}
}

// sample are sound records with the sequences from to to.
func sample(from, to int) []Record {
	var out []Record
	for seq := from; seq <= to; seq++ {
		out = append(out, Record{
			Ask: "01JD0000000000000000000000", Kind: KindDecision, Stream: protocol.StreamDecisions, Seq: uint64(seq),
			At:      time.Date(2026, 1, 2, 3, 4, 5, seq, time.UTC),
			Subject: "assent.v1.main.decision.01JD0000000000000000000000.a1.bash.allow",
			Record:  fmt.Appendf(nil, `{"v":1,"n":%d}`, seq),
		})
	}
	return out
}

func addTo(t *testing.T, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, werr := f.Write(b)
	if err := errors.Join(werr, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func logNames(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "review-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	return names
}

// readSeqs reads every line of the log with a reader of its own, and fails when
// one is no whole line of JSON.
func readSeqs(t *testing.T, dir string) []uint64 {
	t.Helper()
	var seqs []uint64
	for _, rec := range readLines(t, dir) {
		seqs = append(seqs, rec.Seq)
	}
	return seqs
}

func wantSeqs(t *testing.T, dir string, want ...uint64) {
	t.Helper()
	if got := readSeqs(t, dir); !slices.Equal(got, want) {
		t.Errorf("the log holds %v, want %v", got, want)
	}
}
