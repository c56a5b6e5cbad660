//go:build unix

package project

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestAPipeIsNoPolicy: opening one that nobody writes would hold the call until
// the agent gives its hook up.
func TestAPipeIsNoPolicy(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{".git/config": origin, ".assent/": ""})
	if err := syscall.Mkfifo(filepath.Join(root, PolicyFile), 0o644); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := Find(root); done <- err }()
	select {
	case err := <-done:
		if !errors.Is(err, ErrPolicy) {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("still waiting")
	}
}
