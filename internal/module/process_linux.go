package module

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const workDir = "/"

// selfPath is the program that runs now, also where its file was replaced since.
func selfPath() (string, error) { return "/proc/self/exe", nil }

// bound makes a worker end with its engine, however that ends, and in no group
// that a terminal's signals reach.
func bound() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// cpuTime is the processor time that the process has had; -1 where nobody knows.
func (p *process) cpuTime() time.Duration {
	const wholeProcess = 2 // CPUCLOCK_SCHED, see clock_getcpuclockid(3)
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^p.cmd.Process.Pid<<3|wholeProcess), &t); err != nil {
		return -1
	}
	return time.Duration(t.Nano())
}
