//go:build race

package module

import "time"

// callTime is that of engines whose tests are about something else. The race
// detector makes everything ten times as slow, in workers too.
const callTime = 300 * time.Millisecond
