//go:build race

package policy

// raced: the race detector makes everything ten times as slow.
const raced = true
