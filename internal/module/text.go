package module

import "github.com/assent-dev/assent/pkg/protocol"

// line is foreign text as one line of at most n bytes without control
// characters: what a module says reaches terminals and logs.
func line(s string, n int) string { return protocol.Safe(s, n, false) }

// clip is line, for texts of our own that quote a foreign one.
func clip(s string, n int) string { return line(s, n) }
