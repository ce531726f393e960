package drivertest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// KilledInit tests a sandbox whose first process was killed on the host, which no command can
// do. The first process descends from this one and has the given name. The status must say
// what happened, and what was refused until then.
func KilledInit(t *testing.T, open func(state string) (paddock.Driver, error), name string) {
	s := newSuite(t, Harness{New: open, Base: paddock.Spec{AllowMissing: Weak(t, open)}})
	for what, ephemeral := range map[string]bool{"of its maker": true, "of a keeper": false} {
		t.Run(what, func(t *testing.T) {
			before := descendants(t, name)
			b := s.own(t, func(spec *paddock.Spec) {
				spec.Ephemeral = ephemeral
				spec.Mounts = append(spec.Mounts, paddock.Mount{Source: repository(t), Target: "/mnt/desk", Write: true})
			})
			b.attempt(t, "echo x > /mnt/desk/.git/hooks/pre-commit", "mkdir /mnt/desk/.vscode")
			mine := slices.DeleteFunc(descendants(t, name), func(pid int) bool { return slices.Contains(before, pid) })
			if len(mine) != 1 {
				t.Fatalf("the first processes are %v", mine)
			}
			if err := syscall.Kill(mine[0], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			until(t, "the status tells the end", func() bool {
				st, err := b.Status(bounded(t))
				if err != nil || st.State != paddock.Dead {
					return false
				}
				told := slices.ContainsFunc(st.Refused, func(r paddock.Refusal) bool {
					return strings.Contains(r.Target, ".git/hooks") && r.Rule != "" && r.Count > 0
				})
				if !strings.Contains(st.Reason, "signal 9") || !told && !s.absent(paddock.ControlProtected) {
					t.Errorf("%+v", st)
				}
				return true
			})
		})
	}
	t.Run("while it is removed", func(t *testing.T) {
		rounds := 20
		if s.info.Tier == paddock.MicroVM { // an emulated machine takes seconds to start, and the keeper is the same
			rounds = 3
		}
		for i := range rounds {
			before := descendants(t, name)
			b := s.own(t)
			for _, pid := range descendants(t, name) {
				if slices.Contains(before, pid) {
					continue
				}
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Duration(i*40/rounds) * time.Millisecond) // a different moment of its end
			if err := b.Remove(bounded(t)); err != nil {
				t.Error(err)
			}
			if left, err := filepath.Glob(filepath.Join(s.state, string(b.ID()), "*")); err != nil || len(left) > 0 {
				t.Errorf("round %d: %v, %v", i, left, err)
			}
		}
	})
}

// descendants returns the processes with a name that descend from this one.
func descendants(t *testing.T, name string) []int {
	t.Helper()
	return slices.DeleteFunc(named(t, name), func(pid int) bool {
		for pid > 1 && pid != os.Getpid() {
			pid = parent(pid)
		}
		return pid != os.Getpid()
	})
}

// named returns the processes of this machine with a name.
func named(t *testing.T, name string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if argv0, _, _ := strings.Cut(string(line), "\x00"); err == nil && argv0 == name {
			list = append(list, pid) // else it has ended, or is another one
		}
	}
	return list
}

// parent returns the parent of a process; 0 if the process is gone.
func parent(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	if fields := strings.Fields(rest); len(fields) > 1 {
		n, _ := strconv.Atoi(fields[1]) // else 0
		return n
	}
	return 0
}
