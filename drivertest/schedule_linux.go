package drivertest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// Policies of threads, and resource limits, as in Linux's headers uapi/linux/sched.h and asm-generic/resource.h.
const (
	schedFIFO, schedRR       = 1, 2
	limitNice, limitRealTime = 13, 14
)

// Urgent tests that a sandbox does not run before the programs of the host because its caller may, or
// does: by a real-time policy, or by the limits that let a process take one. Only root can have one
// by itself.
func Urgent(t *testing.T, open func(state string) (paddock.Driver, error)) {
	if os.Getuid() != 0 {
		t.Skip("only root can take a real-time policy")
	}
	for _, limit := range []int{limitRealTime, limitNice} {
		var was syscall.Rlimit
		if err := syscall.Getrlimit(limit, &was); err != nil {
			t.Fatal(err)
		}
		// Root in a container may not, and has the limit 0 already.
		if syscall.Setrlimit(limit, &syscall.Rlimit{Cur: 30, Max: 30}) == nil {
			t.Cleanup(func() {
				if err := syscall.Setrlimit(limit, &was); err != nil {
					t.Error(err)
				}
			})
		}
	}
	s := newSuite(t, Harness{New: open})
	weak := Weak(t, open) // makes a sandbox as well
	schedule(t, "--rr", 1)
	t.Cleanup(func() { schedule(t, "--other", 0) })
	before := urgent(t)
	b := s.own(t, func(spec *paddock.Spec) { spec.AllowMissing = weak })
	now := urgent(t)
	limits := b.must(t, "cat /proc/self/limits")
	schedule(t, "--other", 0)
	for id, name := range now {
		if _, ok := before[id]; !ok {
			t.Errorf("%s of the sandbox has a real-time policy", name)
		}
	}
	if s.enforces(paddock.ControlKernel) {
		return // limits are those of the sandbox's kernel
	}
	for _, what := range []string{"Max nice priority", "Max realtime priority"} {
		_, rest, _ := strings.Cut(limits, what)
		if f := strings.Fields(rest); len(f) < 2 || f[0] != "0" || f[1] != "0" {
			t.Errorf("%s of a command is %q", what, f[:min(2, len(f))])
		}
	}
}

// schedule gives each thread of this process a policy, which is an option of chrt. A thread that comes meanwhile
// has that of the one that made it. One that ends meanwhile makes chrt fail, so it is run until it succeeds thrice.
func schedule(t *testing.T, policy string, priority int) {
	t.Helper()
	for succeeded, tried := 0, 0; succeeded < 3; tried++ {
		out, err := exec.Command("chrt", "--all-tasks", policy, "--pid", strconv.Itoa(priority), strconv.Itoa(os.Getpid())).CombinedOutput()
		switch {
		case err == nil:
			succeeded++
		case tried == 20 || !bytes.Contains(out, []byte("No such process")):
			t.Fatalf("chrt: %v\n%s", err, out)
		}
	}
}

// urgent returns the names of threads in process namespaces of sandboxes that have a real-time policy.
func urgent(t *testing.T) map[string]string {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, thread := range found {
		stat, err := os.ReadFile(thread + "/stat")
		if err != nil {
			continue // it ended
		}
		// The policy is the 41st field. The second one is a name, which may hold anything but ends with the last bracket.
		_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
		fields := strings.Fields(rest)
		if len(fields) < 39 {
			t.Fatalf("%s/stat is %q", thread, stat)
		}
		if policy := fields[38]; policy != strconv.Itoa(schedFIFO) && policy != strconv.Itoa(schedRR) {
			continue
		}
		status, err := os.ReadFile(thread + "/status")
		_, inside, _ := strings.Cut(string(status), "\nNSpid:")
		inside, _, _ = strings.Cut(inside, "\n")
		if err != nil || len(strings.Fields(inside)) < 2 {
			continue // it ended, or is in no process namespace of a sandbox
		}
		name, _, _ := strings.Cut(string(status), "\n")
		names[thread] = name
	}
	return names
}
