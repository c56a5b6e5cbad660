//go:build !linux

package module

import (
	"runtime"
	"runtime/debug"
)

// confine bounds what the runtime itself can bound. The address-space limit and
// the other limits of a worker are Linux's.
func confine(memory int64) error {
	runtime.GOMAXPROCS(2)
	debug.SetMaxStack(64 << 20)
	debug.SetMemoryLimit(memory / 2)
	return nil
}
