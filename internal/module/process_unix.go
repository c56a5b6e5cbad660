//go:build unix && !linux

package module

import (
	"os"
	"syscall"
	"time"
)

const workDir = "/"

func selfPath() (string, error) { return os.Executable() }

// bound keeps a terminal's signals from a worker. It ends when its standard
// input does, which is when its engine ends.
func bound() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// cpuTime is not known here: the bound by the clock holds alone.
func (p *process) cpuTime() time.Duration { return -1 }
