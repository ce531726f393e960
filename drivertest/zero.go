package drivertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func zeroPromises() []group {
	return []group{{walls: []paddock.Control{paddock.ControlNetwork, paddock.ControlNetNS}, promises: []promise{
		{"a zero spec has no network: no interface but its own loopback, or one that leads nowhere, and no way out", zeroNetwork},
	}}, {walls: []paddock.Control{paddock.ControlMountNS}, promises: []promise{
		{"a zero spec sees no home, no temporary file and no state of the host", zeroFiles},
	}}, {walls: []paddock.Control{paddock.ControlReadOnly}, promises: []promise{
		{"a zero spec can write nothing of the host", zeroWrites},
	}}, {walls: []paddock.Control{paddock.ControlPIDNS}, promises: []promise{
		{"a zero spec sees no process of the host, nor its environment", zeroProcesses},
	}}, {walls: []paddock.Control{paddock.ControlIdentity}, promises: []promise{
		{"no command runs as the host kernel's root", zeroIdentity},
	}}, {walls: []paddock.Control{paddock.ControlCapabilities, paddock.ControlNoNewPrivs}, promises: []promise{
		{"no command has a capability, or can get one", zeroCapabilities},
	}}, {walls: []paddock.Control{paddock.ControlDescriptors}, promises: []promise{
		{"a command inherits its three streams and no other descriptor", zeroDescriptors},
	}}}
}

// zeroNetwork tries only addresses that are reserved for documentation.
func zeroNetwork(t *testing.T, s *suite) {
	b := s.box(t)
	// A sandbox with its own kernel may be reached over an interface of its own, if that
	// leads nowhere else.
	carried := s.enforces(paddock.ControlKernel)
	for i, line := range strings.Split(strings.TrimSpace(b.must(t, "cat /proc/net/dev")), "\n") {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), ":"); i >= 2 && name != "lo" && !carried {
			t.Errorf("there is an interface %q", name)
		}
	}
	if !s.info.Can(paddock.CanPrograms) {
		return // the suite has no program to try with; the tests of the tier try the tier's own
	}
	probe := b.helper(t)
	for _, to := range [][2]string{
		{"tcp", "192.0.2.1:80"}, {"udp", "192.0.2.1:53"}, {"tcp", "[2001:db8::1]:80"}, {"tcp", "host.example.invalid:80"},
	} {
		r := b.run(t, paddock.Cmd{Args: []string{probe, "connect", to[0], to[1]}})
		if r.exit.Code == 0 {
			t.Errorf("%s %s: %s", to[0], to[1], r.out)
		}
		if strings.Contains(r.err, "i/o timeout") {
			t.Errorf("%s %s is not refused at once: %s", to[0], to[1], r.err)
		}
	}
}

func zeroFiles(t *testing.T, s *suite) {
	b := s.box(t)
	secret, text := s.hostSecret(t)
	for _, name := range []string{secret, filepath.Dir(secret), s.state} {
		if b.exists(t, name) {
			t.Errorf("%s is there", name)
		}
		if r := b.sh(t, `ls -d "$1"`, name); r.exit.Code == 0 {
			t.Errorf("commands see %s", name)
		}
	}
	if r := b.sh(t, `grep -rs "$1" /tmp /var/tmp /run 2>/dev/null`, text); strings.Contains(r.out, text) {
		t.Errorf("the host's secret is found: %q", clip(r.out))
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return // the caller has no home to look at
	}
	// Directories of toolchains may be visible. Files of the user may not.
	entries, err := os.ReadDir(home)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := filepath.Join(home, e.Name())
		if strings.HasPrefix(e.Name(), ".") && e.Type().IsRegular() || e.Name() == ".ssh" || e.Name() == ".aws" || e.Name() == ".gnupg" || e.Name() == ".docker" {
			theirs, errHost := os.ReadFile(name)
			r := b.sh(t, `cat "$1"`, name)
			if r.exit.Code == 0 && errHost == nil && len(theirs) > 0 && r.out == string(theirs) {
				t.Errorf("the host's %s is readable", name)
			}
		}
	}
}

func zeroWrites(t *testing.T, s *suite) {
	b := s.box(t)
	name := s.name + "-planted"
	for _, dir := range []string{"/", "/etc", "/usr", "/usr/bin", "/usr/local/bin", "/var", "/opt", "/boot", "/proc/sys/kernel", "/sys", "/dev/shm", "/tmp", "/var/tmp", "/run", "/home", "/root"} {
		b.sh(t, `echo planted > "$1/$2"`, dir, name)
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("a file was made in the host's %s", dir)
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
}

func zeroProcesses(t *testing.T, s *suite) {
	marker := fmt.Sprintf("86399.%d", os.Getpid())
	host := exec.Command("sleep", marker)
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = host.Process.Kill() // a process of this test; Wait returns the signal as an error
		_ = host.Wait()
	}()
	b := s.box(t)
	got := b.sh(t, `cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n'`).out
	if strings.Contains(got, marker) {
		t.Error("a process of the host is seen")
	}
	if strings.Contains(got, secret) {
		t.Error("the environment of a process of the host, or of the sandbox's own first process, is seen")
	}
	if r := b.sh(t, `kill -0 "$1"`, strconv.Itoa(host.Process.Pid)); r.exit.Code == 0 {
		if r := b.sh(t, `tr '\0' ' ' < "/proc/$1/cmdline"`, strconv.Itoa(host.Process.Pid)); strings.Contains(r.out, marker) {
			t.Error("a process of the host can be signalled")
		}
	}
}

// zeroIdentity looks for the command among the host's processes. If it is not among them,
// another kernel runs it, and no user of the host does.
func zeroIdentity(t *testing.T, s *suite) {
	b := s.box(t)
	marker := fmt.Sprintf("86398.%d", os.Getpid())
	p := b.start(t, paddock.Cmd{Args: []string{"sleep", marker}})
	defer kill(t, p)
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range names {
		args, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || string(args) != "sleep\x00"+marker+"\x00" {
			continue
		}
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != "Uid:" && fields[0] != "Gid:" && fields[0] != "Groups:" {
				continue
			}
			for _, id := range fields[1:] {
				if id == "0" {
					t.Errorf("on the host it has %q", strings.TrimSpace(line))
				}
			}
		}
	}
}

func zeroCapabilities(t *testing.T, s *suite) {
	b := s.box(t)
	got := b.must(t, "cat /proc/self/status")
	for line := range strings.Lines(got) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		switch name {
		case "CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd":
			if strings.Trim(value, "0") != "" {
				t.Errorf("%s is %s", name, value)
			}
		case "NoNewPrivs":
			if value != "1" {
				t.Errorf("NoNewPrivs is %s", value)
			}
		}
	}
}

func zeroDescriptors(t *testing.T, s *suite) {
	b := s.box(t)
	r := b.run(t, paddock.Cmd{Args: []string{"ls", "/proc/self/fd"}})
	// ls itself may open the directory.
	if got := strings.Fields(r.out); len(got) < 3 || len(got) > 4 || got[0] != "0" || got[1] != "1" || got[2] != "2" {
		t.Errorf("%q", got)
	}
}
