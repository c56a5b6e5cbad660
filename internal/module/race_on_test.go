//go:build race

package module

import "time"

// callTime is that of engines whose tests are about something else. The race
// detector makes everything ten times as slow, in workers too.
const callTime = 300 * time.Millisecond

// mib is what scripts take for a MiB: the race detector takes several times as many
// addresses for itself.
const mib = 1 << 17
