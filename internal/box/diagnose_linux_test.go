package box

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/kernel"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// What a container looks like from its inside.
const (
	filtered   = "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1"
	unfiltered = "Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0"
	covered    = "30 29 0:27 / / rw - overlay overlay rw\n31 30 0:28 / /proc rw - proc proc rw\n32 31 0:28 /bus /proc/bus ro - proc proc rw"
	uncovered  = "30 29 0:27 / / rw - overlay overlay rw\n31 30 0:28 / /proc rw - proc proc rw\n32 31 0:40 / /proc/sys/fs/binfmt_misc rw - autofs a rw"
)

func host(files ...string) surroundings {
	s := surroundings{trace: syscall.ESRCH, exe: "/usr/bin/paddock"}
	content := map[string]string{"/proc/self/status": unfiltered, "/proc/self/mountinfo": uncovered}
	for i := 0; i+1 < len(files); i += 2 {
		content[files[i]] = files[i+1]
	}
	s.read = func(name string) string { return content[name] }
	return s
}

func rooted(s surroundings) surroundings { s.root = true; return s }
func nested(s surroundings) surroundings { s.nested = true; return s }
func untraced(s surroundings) surroundings {
	s.trace = syscall.EPERM
	return s
}

func TestAFailureIsToldWithItsRemedy(t *testing.T) {
	start := func(err error) error { return fmt.Errorf("start the box: %w", err) }
	told := func(text string) error { return &toldError{text, paddock.Unsupported} }
	gvisor := told("start the kernel: create gVisor's processes: cannot create sandbox: waiting for sandbox to start: EOF")
	proc := told("build the file tree: mount /proc: fsmount proc: operation not permitted")
	const filter, paths, armor = "--security-opt seccomp=unconfined", "--security-opt systempaths=unconfined", "--security-opt apparmor=unconfined"
	for _, row := range []struct {
		name          string
		around        surroundings
		err           error
		cause, remedy string // each word of which is to be there
		not           string // which is not
	}{
		{"no user namespaces at all", host("/proc/sys/user/max_user_namespaces", "0"), start(syscall.ENOSPC), "max_user_namespaces is 0", "sysctl user.max_user_namespaces=15000", ""},
		{"none for users", host("/proc/sys/kernel/unprivileged_userns_clone", "0"), start(syscall.EPERM), "unprivileged_userns_clone", "sysctl kernel.unprivileged_userns_clone=1", ""},
		{"none for users, and root asks", rooted(host("/proc/sys/kernel/unprivileged_userns_clone", "0")), start(syscall.EPERM), "CAP_SYS_ADMIN", "ordinary user", "unprivileged_userns_clone"},
		{"none for programs that AppArmor does not know", host("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"), start(syscall.EACCES), "AppArmor", "/usr/bin/paddock apparmor_parser", ""},
		{"too many", host(), start(syscall.ENOSPC), "max_user_namespaces is reached", "raise it", ""},
		{"an old kernel", host(), start(syscall.ENOSYS), "is not there", "Linux 5.12", "--security-opt"},
		{"a container", host("/proc/self/status", filtered, "/proc/self/mountinfo", covered), start(syscall.ENOSYS), "container", filter + " " + paths, "SYS_ADMIN"},
		{"a container with AppArmor, as root", rooted(host("/proc/self/status", filtered, "/proc/self/mountinfo", covered, "/proc/self/attr/apparmor/current", "docker-default (enforce)")),
			start(syscall.EPERM), "CAP_SYS_ADMIN", filter + " " + paths + " " + armor + " --user 1000 SYS_ADMIN", ""},
		{"a container without a filter", host("/proc/self/mountinfo", covered), proc, "covered", paths, filter},
		{"a container with nothing but its root", rooted(host()), errors.New("open_tree : operation not permitted"), "CAP_SYS_ADMIN", "ordinary user --cap-add SYS_ADMIN", "--security-opt"},
		{"a filter that refuses keys", host("/proc/self/status", filtered), told("drop capabilities: join a new session keyring: operation not permitted"), "keyring", filter, paths},
		{"a service that may do little", host("/proc/self/status", filtered), start(syscall.EPERM), "not permitted", "SystemCallFilter", "covered"},
		{"programs in memory are not executed", host("/proc/sys/vm/memfd_noexec", "2"), errors.New("memfd_create: permission denied"), "memfd_noexec", "vm.memfd_noexec=1", ""},
		{"no systrap: nobody traces", nested(host("/proc/sys/kernel/yama/ptrace_scope", "3")), gvisor, "ptrace_scope is 3 systrap", "sysctl.d restart", ""},
		{"the same, in a jail", host("/proc/sys/kernel/yama/ptrace_scope", "3"), proc, "covered", "/proc", "ptrace"},
		{"no systrap: a filter refuses it", nested(untraced(host("/proc/self/status", filtered))), gvisor, "ptrace: operation not permitted systrap", filter, ""},
		{"a program with C in it", nested(host()), told("start the kernel: this program was built with cgo, with which gVisor cannot run; build it with CGO_ENABLED=0"), "cgo", "CGO_ENABLED=0", ""},
		{"something of gVisor's that nobody knows", nested(host()), gvisor, "waiting for sandbox", "", "ptrace"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := row.around.diagnose(row.err)
			for _, w := range strings.Fields(row.cause) {
				if !strings.Contains(f.cause, w) {
					t.Errorf("cause: %q says nothing of %q", f.cause, w)
				}
			}
			for _, w := range strings.Fields(row.remedy) {
				if !strings.Contains(f.remedy, w) {
					t.Errorf("remedy: %q says nothing of %q", f.remedy, w)
				}
			}
			if row.not != "" && strings.Contains(f.cause+f.remedy, row.not) {
				t.Errorf("%q; %q: what has %q to do with it?", f.cause, f.remedy, row.not)
			}
			if row.remedy == "" && f.remedy != "" {
				t.Errorf("a remedy for nobody knows what: %q", f.remedy)
			}
		})
	}
}

func TestWhatIsNoLackOfTheHostStaysAsItIs(t *testing.T) {
	for _, err := range []error{
		fmt.Errorf("mount /work: %w", paddock.NotFound), fmt.Errorf("the box was not ready in time: %w", paddock.Timeout),
		&toldError{"build the file tree: mount /mnt: permission denied", paddock.Invalid},
	} {
		if got := impossible(err, true); !errors.Is(got, err) || got.Error() != err.Error() {
			t.Errorf("%v became %v", err, got)
		}
	}
	var missing *paddock.MissingError
	if err := impossible(fmt.Errorf("start the box: %w", syscall.EPERM), false); !errors.As(err, &missing) || missing.Finding.Remedy == "" {
		t.Errorf("%v", err)
	}
}

// This test's own host is none that lacks what the others fake.
func TestWhatIsAroundThisProcessIsRead(t *testing.T) {
	s := around(false)
	if s.root != (os.Geteuid() == 0) || s.exe == "" || !strings.Contains(s.read("/proc/self/status"), "Seccomp:") || s.read("/proc/none") != "" {
		t.Errorf("%+v", s)
	}
	if err := kernel.TraceNobody(); err == nil {
		t.Error("there is a process of a number that there cannot be")
	}
}

// Without a cache everything works, and takes longer: doctor is where that is told.
func TestAProgramThatCannotBeKeptIsTold(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for cache, told := range map[string]bool{dir + "/cache": false, dir + "/file/cache": true} {
		d, err := New(Options{Tier: paddock.GVisor, State: dir + "/state", Data: dir + "/data", Cache: cache, Kernel: &Kernel{Name: "none", Program: program.Embedded("kernel", []byte("a program"))}})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range d.controls(nil) {
			if f.Control == paddock.ControlKernel && strings.Contains(f.How, cache) != told {
				t.Errorf("%s: %q", cache, f.How)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
