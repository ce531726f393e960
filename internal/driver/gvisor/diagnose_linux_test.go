package gvisor

import (
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
)

// around returns a host with these files, on which tracing a process fails with trace.
func around(trace error, files ...string) box.Surroundings {
	content := map[string]string{
		"/proc/self/status":    "Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0",
		"/proc/self/mountinfo": "31 30 0:28 / /proc rw - proc proc rw",
	}
	for i := 0; i+1 < len(files); i += 2 {
		content[files[i]] = files[i+1]
	}
	return box.Surroundings{Trace: trace, Read: func(name string) string { return content[name] }}
}

func TestAGVisorThatDoesNotStartIsToldWithItsRemedy(t *testing.T) {
	told := func(text string) error { return &box.ToldError{Text: text, Kind: paddock.Unsupported} }
	gvisor := told("start the kernel: create gVisor's processes: cannot create sandbox: waiting for sandbox to start: EOF")
	const filtered = "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1"
	for _, row := range []struct {
		name          string
		around        box.Surroundings
		err           error
		cause, remedy string // words that must appear
		not           string // word that must not appear
	}{
		{"no systrap: nobody traces", around(syscall.ESRCH, "/proc/sys/kernel/yama/ptrace_scope", "3"), gvisor, "ptrace_scope is 3 systrap", "sysctl.d restart", ""},
		{"no systrap: a filter refuses it", around(syscall.EPERM, "/proc/self/status", filtered), gvisor, "ptrace: operation not permitted systrap", "--security-opt seccomp=unconfined", ""},
		{"a program with C in it", around(syscall.ESRCH), told("start the kernel: this program was built with cgo, with which gVisor cannot run; build it with CGO_ENABLED=0"), "cgo", "CGO_ENABLED=0", ""},
		{"something of gVisor's that nobody knows", around(syscall.ESRCH), gvisor, "waiting for sandbox", "", "ptrace"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := row.around.Diagnose(row.err, Runtime())
			for _, w := range strings.Fields(row.cause) {
				if !strings.Contains(f.Cause, w) {
					t.Errorf("cause: %q says nothing of %q", f.Cause, w)
				}
			}
			for _, w := range strings.Fields(row.remedy) {
				if !strings.Contains(f.Remedy, w) {
					t.Errorf("remedy: %q says nothing of %q", f.Remedy, w)
				}
			}
			if row.not != "" && strings.Contains(f.Cause+f.Remedy, row.not) {
				t.Errorf("%q; %q: what has %q to do with it?", f.Cause, f.Remedy, row.not)
			}
			if row.remedy == "" && f.Remedy != "" {
				t.Errorf("a remedy for nobody knows what: %q", f.Remedy)
			}
		})
	}
}
