package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
)

// changeAll makes changes of all kinds, which the file server must permit.
const changeAll = `
set -e
echo x > b; mkdir d; mv b d/c; chmod 600 d/c; ln d/c d/e; ln -s c d/l; mkfifo d/f; touch -d 2001-01-01 d/c
truncate -s 100 d/e; echo y >> d/e; cp d/e d/g; fallocate -l 9000 d/g; sync d/g; [ "$(readlink d/l)" = c ]; [ -w d/g ]
[ "$(stat -c %s d/c)" = 102 ]; ls -l d > /dev/null; df d > /dev/null; mv d n; rm n/*; rmdir n; cat kept`

// startBox starts a machine, and returns its init process after commands have changed
// files.
func startBox(t *testing.T) int {
	t.Helper()
	microvmtest.Need(t)
	if err := microvmtest.Build(); err != nil {
		t.Fatal(err)
	}
	guest, err := microvmtest.Guest()
	if err != nil {
		t.Fatal(err)
	}
	d, err := microvm.New(microvm.Options{State: t.TempDir(), Data: microvmtest.Data(), Environ: os.Environ(), Guest: guest})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	weak := weakHere(t, d)
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "kept"), []byte("changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	sb, err := d.Create(t.Context(), paddock.Spec{Ephemeral: true, AllowMissing: weak, Mounts: []paddock.Mount{{Source: work, Target: work, Write: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	var out strings.Builder
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", "exec 2>&1;" + changeAll}, Dir: work, Output: paddock.Output{Stdout: &out}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 || out.String() != "changed\n" {
		t.Errorf("commands end with %+v, %v, and say %q", exit, err, out.String())
	}
	for _, pid := range children(t, os.Getpid()) {
		if strings.HasPrefix(argv0(pid), Argv0) {
			return pid
		}
	}
	t.Fatal("the box has no init")
	return 0
}

// weakHere returns the controls that are weak on this host.
func weakHere(t *testing.T, d paddock.Driver) (weak []paddock.Control) {
	t.Helper()
	info, err := d.Info(t.Context(), paddock.Auto)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range info.Controls {
		if f.Strength == paddock.Weak {
			weak = append(weak, f.Control)
		}
	}
	return weak
}

func argv0(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	name, _, _ := strings.Cut(string(data), "\x00")
	return name
}

// children lists the children of a process.
func children(t *testing.T, pid int) (list []int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(tasks) == 0 {
		t.Skipf("this kernel does not list children: %v", err)
	}
	for _, task := range tasks {
		data, _ := os.ReadFile(task)
		for word := range strings.FieldsSeq(string(data)) {
			n, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, n)
		}
	}
	return list
}

// status returns the fields of /proc/PID/status.
func status(t *testing.T, pid int) map[string]string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, ":")
		fields[key] = strings.TrimSpace(value)
	}
	return fields
}

// This measures, for a working box, what a compromised QEMU or file server could do.
func TestWhatRunsAMachineIsBehindWalls(t *testing.T) {
	init := startBox(t)
	seen := 0
	for _, pid := range children(t, init) {
		name, files := "QEMU", false
		if argv0(pid) == argvFiles {
			name, files = "the server of files", true
		}
		seen++
		s := status(t, pid)
		none := []string{"CapInh", "CapPrm", "CapEff", "CapAmb"}
		filters := 3 // the box's; the broker's or the policy's; its own
		if !files {
			none = append(none, "CapBnd")
		}
		for _, set := range none {
			if strings.Trim(s[set], "0") != "" {
				t.Errorf("%s has capabilities: %s %s", name, set, s[set])
			}
		}
		if s["NoNewPrivs"] != "1" || s["Seccomp"] != "2" {
			t.Errorf("%s may gain privileges (%s), or has no filter (%s)", name, s["NoNewPrivs"], s["Seccomp"])
		}
		if n, err := strconv.Atoi(s["Seccomp_filters"]); err == nil && n < filters {
			t.Errorf("%s has %d filters, and not %d", name, n, filters)
		}
		root := fmt.Sprintf("/proc/%d/root", pid)
		for _, hidden := range []string{"proc/self", "proc/1", "state/guard", "state/paddock.control", "engine", "program", "dev/null"} {
			if _, err := os.Lstat(filepath.Join(root, hidden)); err == nil {
				t.Errorf("%s sees /%s", name, hidden)
			}
		}
		checkDescriptors(t, pid, name, files)
		if !files {
			checkMounts(t, pid)
		}
	}
	if seen != 2 {
		t.Errorf("%d processes run the machine, and not 2", seen)
	}
}

// checkDescriptors checks that a process has only the descriptors that it needs.
func checkDescriptors(t *testing.T, pid int, name string, files bool) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // closed meanwhile
		}
		info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, e.Name()))
		if err != nil {
			continue
		}
		var flags int64
		for line := range strings.Lines(string(info)) {
			if value, ok := strings.CutPrefix(line, "flags:"); ok {
				flags, _ = strconv.ParseInt(strings.TrimSpace(value), 8, 64)
			}
		}
		reads := flags&syscall.O_ACCMODE == syscall.O_RDONLY
		usual := []string{"/dev/null", "anon_inode:[eventpoll]", "anon_inode:[eventfd]", "anon_inode:[signalfd]"}
		switch {
		case slices.Contains(usual, to), strings.HasPrefix(to, "socket:"), strings.HasPrefix(to, "pipe:"):
		case to == "/dev/kvm" || strings.HasPrefix(to, "anon_inode:kvm-"):
			if files {
				t.Errorf("%s has %s", name, to)
			}
		case files && reads && strings.HasPrefix(to, "/root"):
		case !files && reads && filepath.Base(to) == templateRAM:
		default:
			t.Errorf("%s has %s (flags %o)", name, to, flags)
		}
	}
}

// templateRAM is the name of a template's memory.
const templateRAM = "memory"

// checkMounts checks that QEMU sees no writable mount.
func checkMounts(t *testing.T, pid int) {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		options := strings.Split(fields[5], ",")
		for _, want := range []string{"ro", "nosuid", "nodev"} {
			if !slices.Contains(options, want) {
				t.Errorf("QEMU has a mount that is not %s: %s", want, line)
			}
		}
	}
}
