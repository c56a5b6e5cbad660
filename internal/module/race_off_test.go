//go:build !race

package module

import "time"

// callTime is that of engines whose tests are about something else: a worker that
// has just begun is slow.
const callTime = 30 * time.Millisecond

// mib is what scripts take for a MiB.
const mib = 1 << 20
