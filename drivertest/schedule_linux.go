package drivertest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock"
)

// Urgent tests that a sandbox does not run before the programs of the host because its caller may, or
// does: by a real-time policy, or by the limits that let a process take one. Only root can have one
// by itself.
func Urgent(t *testing.T, open func(state string) (paddock.Driver, error)) {
	if os.Getuid() != 0 {
		t.Skip("only root can take a real-time policy")
	}
	for _, limit := range []int{unix.RLIMIT_RTPRIO, unix.RLIMIT_NICE} {
		var was unix.Rlimit
		if err := unix.Getrlimit(limit, &was); err != nil {
			t.Fatal(err)
		}
		// Root in a container may not, and has the limit 0 already.
		if syscall.Setrlimit(limit, &syscall.Rlimit{Cur: 30, Max: 30}) == nil {
			t.Cleanup(func() {
				if err := syscall.Setrlimit(limit, &syscall.Rlimit{Cur: was.Cur, Max: was.Max}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	s := newSuite(t, Harness{New: open})
	weak := Weak(t, open) // makes a sandbox as well
	schedule(t, unix.SchedAttr{Policy: unix.SCHED_RR, Priority: 1})
	t.Cleanup(func() { schedule(t, unix.SchedAttr{Policy: unix.SCHED_NORMAL}) })
	before := urgent(t)
	b := s.own(t, func(spec *paddock.Spec) { spec.AllowMissing = weak })
	now := urgent(t)
	limits := b.must(t, "cat /proc/self/limits")
	schedule(t, unix.SchedAttr{Policy: unix.SCHED_NORMAL})
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

// schedule gives each thread of this process a policy. A thread that comes meanwhile has that of the
// one that made it.
func schedule(t *testing.T, attr unix.SchedAttr) {
	t.Helper()
	attr.Size = unix.SizeofSchedAttr
	for range 3 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.SchedSetAttr(id, &attr, 0); err != nil && err != unix.ESRCH {
				t.Fatal(err)
			}
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
		id, err := strconv.Atoi(filepath.Base(thread))
		if err != nil {
			t.Fatal(err)
		}
		attr, err := unix.SchedGetAttr(id, 0)
		if err != nil || attr.Policy != unix.SCHED_FIFO && attr.Policy != unix.SCHED_RR {
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
