package auditor

import "errors"

// Sentinels of this package. An error that wraps one names in its text the
// cause and what to do about it.
var (
	// ErrFolder: the folder of the review log cannot be used.
	ErrFolder = errors.New("unusable review log folder")
	// ErrInUse: another process writes into the folder.
	ErrInUse = errors.New("another auditor writes there")
	// ErrWrite: records could not be written and synced. None of them may be
	// acknowledged; the same batch may be tried again.
	ErrWrite = errors.New("review log not written")
	// ErrRead: a stream could not be read.
	ErrRead = errors.New("record not read")
)
