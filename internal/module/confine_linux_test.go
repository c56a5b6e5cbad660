package module

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A worker has no environment, no file of its engine's, and lives in the root.
func TestAWorkerHasNothingOfItsEngines(t *testing.T) {
	t.Setenv("ASSENT_CREDS", "/secret")
	// As one that the engine itself has got from a careless parent.
	held, err := syscall.Open(os.Args[0], syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(held)
	p := worker1(t)
	proc := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	env, err := os.ReadFile(proc + "environ")
	if err != nil {
		t.Skip("no /proc here")
	}
	if len(env) != 0 {
		t.Errorf("environment: %q", env)
	}
	if cwd, _ := os.Readlink(proc + "cwd"); cwd != "/" {
		t.Errorf("directory: %s", cwd)
	}
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		to, _ := os.Readlink(filepath.Join(proc, "fd", fd.Name()))
		number, _ := strconv.Atoi(fd.Name())
		ours := number <= 2 && strings.HasPrefix(to, "pipe:")
		// The runtime's poller, and where it reads how much processor time there is.
		if !ours && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
			t.Errorf("descriptor %s is %s", fd.Name(), to)
		}
	}
	limits, err := os.ReadFile(proc + "limits")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Max file size             0 ", "Max core file size        0 ", "Max open files            8 "} {
		if !strings.Contains(string(limits), want) {
			t.Errorf("limits lack %q:\n%s", want, limits)
		}
	}
	if strings.Contains(string(limits), "Max address space         unlimited") {
		t.Error("its address space is unlimited")
	}
}
