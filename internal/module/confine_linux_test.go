package module

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
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

// A worker that is in an endless call reads no end of its input; it ends with its
// engine's process all the same, be that killed.
func TestAWorkerDoesNotOutliveItsEngine(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], doomedCommand)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []string
	for lines := bufio.NewScanner(out); len(pids) < 1+reserve && lines.Scan(); {
		pids = append(pids, lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // says that it was killed
	if len(pids) != 1+reserve {
		t.Fatalf("the engine has the workers %v, want %d", pids, 1+reserve)
	}
	for _, pid := range pids {
		for end := time.Now().Add(10 * time.Second); runs(pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("worker %s goes on without its engine", pid)
			}
		}
	}
}

// runs says whether a process is there and is more than its own remains.
func runs(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	_, state, ok := strings.Cut(string(b), ") ")
	return err == nil && ok && state[0] != 'Z' && state[0] != 'X'
}
