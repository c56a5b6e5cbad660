//go:build !unix

package module

import (
	"os"
	"syscall"
	"time"
)

const workDir = ""

func selfPath() (string, error) { return os.Executable() }

func bound() *syscall.SysProcAttr { return nil }

// cpuTime is not known here: the bound by the clock holds alone.
func (p *process) cpuTime() time.Duration { return -1 }
