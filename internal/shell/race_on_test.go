//go:build race

package shell

// raced: the race detector makes everything ten times as slow.
const raced = true
