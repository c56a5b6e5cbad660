package auditor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// windowSize is how many records, of both streams together, are known by heart.
// A message can come again only while it is not acknowledged, and the node's
// consumers hand out far fewer before they wait for an acknowledgement.
const windowSize = 32 << 10

// key tells one record from another. The time is part of it: a stream that was
// made anew counts from one again, and its records are not the old ones.
type key struct {
	stream string
	seq    uint64
	at     int64
}

func (r *Record) key() key { return key{stream: r.Stream, seq: r.Seq, at: r.At.UnixNano()} }

// window holds the newest keys, up to windowSize.
type window struct {
	have map[key]struct{}
	ring []key
	next int
}

func (w *window) has(k key) bool {
	_, ok := w.have[k]
	return ok
}

func (w *window) add(k key) {
	if w.have == nil {
		w.have = map[key]struct{}{}
	}
	if w.has(k) {
		return
	}
	if len(w.ring) < windowSize {
		w.ring = append(w.ring, k)
	} else {
		delete(w.have, w.ring[w.next])
		w.ring[w.next] = k
		w.next = (w.next + 1) % windowSize
	}
	w.have[k] = struct{}{}
}

const (
	filePrefix = "review-"
	fileSuffix = ".jsonl"
)

func (l *Files) path(num int) string {
	return filepath.Join(l.cfg.Dir, fmt.Sprintf("%s%08d%s", filePrefix, num, fileSuffix))
}

// files lists the numbers of the log's files, oldest first.
func (l *Files) files() ([]int, error) {
	entries, err := os.ReadDir(l.cfg.Dir)
	if err != nil {
		return nil, err
	}
	var nums []int
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), filePrefix)
		text, ok2 := strings.CutSuffix(text, fileSuffix)
		n, err := strconv.Atoi(text)
		if ok && ok2 && err == nil && n > 0 && len(text) >= 8 {
			nums = append(nums, n)
		}
	}
	slices.Sort(nums)
	return nums, nil
}

// recover opens the newest file for appending, its torn end cut off, and reads
// back what was written last.
func (l *Files) recover() error {
	nums, err := l.files()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	if len(nums) == 0 {
		return nil
	}
	newest := nums[len(nums)-1]
	if err := l.reopen(newest); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrFolder, l.path(newest), err)
	}
	return l.remember(nums)
}

func (l *Files) reopen(num int) error {
	path := l.path(num)
	good, size, err := wholeLines(path)
	if err != nil {
		return err
	}
	f, err := l.open(path)
	if err != nil {
		return err
	}
	l.f, l.num, l.size = f, num, good
	if good == size {
		return nil
	}
	l.cfg.Logger.Warn("cut off a torn line at the end of the review log; its record comes again", "file", path, "bytes", size-good)
	return l.cut()
}

// wholeLines returns up to where path holds lines that end, and its size. It
// reads backward in steps, for a last line may be long.
func wholeLines(path string) (good, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	size = info.Size()
	buf := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(0, end-int64(len(buf)))
		b := buf[:end-start]
		if _, err := f.ReadAt(b, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return start + int64(i) + 1, size, nil
		}
		end = start
	}
	return 0, size, nil
}

// remember fills the window from the newest files, as many as it takes.
func (l *Files) remember(nums []int) error {
	var parts [][]key
	for i, count := len(nums)-1, 0; i >= 0 && count < windowSize; i-- {
		keys, err := l.keysOf(l.path(nums[i]))
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFolder, err)
		}
		parts = append(parts, keys)
		count += len(keys)
	}
	for _, keys := range slices.Backward(parts) {
		for _, k := range keys {
			l.written.add(k)
		}
	}
	return nil
}

func (l *Files) keysOf(path string) ([]key, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var keys []key
	bad := 0
	for line := range bytes.Lines(b) {
		k, ok := keyOf(line)
		if !ok {
			bad++
			continue
		}
		keys = append(keys, k)
	}
	if bad > 0 {
		// It was damaged after it was synced. Nothing here is rewritten.
		l.cfg.Logger.Error("the review log holds lines that are no records: somebody or something changed the file", "file", path, "lines", bad)
	}
	return keys[max(0, len(keys)-windowSize):], nil
}

// keyOf reads the head of a line, up to the time, and no further.
func keyOf(line []byte) (key, bool) {
	var head struct {
		Stream string    `json:"stream"`
		Seq    uint64    `json:"seq"`
		At     time.Time `json:"at"`
	}
	// A broken record may hold what strict reading refuses.
	err := json.Unmarshal(line, &head, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil || head.Stream == "" || head.Seq == 0 || head.At.IsZero() {
		return key{}, false
	}
	return key{stream: head.Stream, seq: head.Seq, at: head.At.UnixNano()}, true
}
