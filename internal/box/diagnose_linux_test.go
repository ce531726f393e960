package box

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// The view from inside a container.
const (
	filtered   = "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1"
	unfiltered = "Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0"
	covered    = "30 29 0:27 / / rw - overlay overlay rw\n31 30 0:28 / /proc rw - proc proc rw\n32 31 0:28 /bus /proc/bus ro - proc proc rw"
	uncovered  = "30 29 0:27 / / rw - overlay overlay rw\n31 30 0:28 / /proc rw - proc proc rw\n32 31 0:40 / /proc/sys/fs/binfmt_misc rw - autofs a rw"
)

func host(files ...string) Surroundings {
	s := Surroundings{Trace: syscall.ESRCH, exe: "/usr/bin/paddock"}
	content := map[string]string{"/proc/self/status": unfiltered, "/proc/self/mountinfo": uncovered}
	for i := 0; i+1 < len(files); i += 2 {
		content[files[i]] = files[i+1]
	}
	s.Read = func(name string) string { return content[name] }
	return s
}

func podman(s Surroundings) Surroundings { s.pods = true; return s }

func rooted(s Surroundings) Surroundings { s.root = true; return s }

func TestAFailureIsToldWithItsRemedy(t *testing.T) {
	start := func(err error) error { return fmt.Errorf("start the box: %w", err) }
	told := func(text string) error { return &ToldError{text, paddock.Unsupported} }
	proc := told("build the file tree: mount /proc: fsmount proc: operation not permitted")
	const filter, paths, armor = "--security-opt seccomp=unconfined", "--security-opt systempaths=unconfined", "--security-opt apparmor=unconfined"
	for _, row := range []struct {
		name          string
		around        Surroundings
		err           error
		cause, remedy string // all of these words must occur
		not           string // must not occur
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
		{"a container of Podman's", podman(host("/proc/self/status", filtered, "/proc/self/mountinfo", covered)), start(syscall.EPERM), "not permitted", filter + " unmask=ALL", "systempaths"},
		{"a container of Podman's on SELinux", podman(host("/proc/self/mountinfo", covered, "/proc/self/attr/current", "system_u:system_r:container_t:s0:c1,c2")),
			proc, "covered", "unmask=ALL label=disable", "systempaths"},
		{"a container without a filter", host("/proc/self/mountinfo", covered), proc, "covered", paths, filter},
		{"a container with nothing but its root", rooted(host()), errors.New("open_tree : operation not permitted"), "CAP_SYS_ADMIN", "ordinary user --cap-add SYS_ADMIN", "--security-opt"},
		{"a filter that refuses keys", host("/proc/self/status", filtered), told("drop capabilities: join a new session keyring: operation not permitted"), "keyring", filter, paths},
		{"a service that may do little", host("/proc/self/status", filtered), start(syscall.EPERM), "not permitted", "SystemCallFilter", "covered"},
		{"programs in memory are not executed", host("/proc/sys/vm/memfd_noexec", "2"), errors.New("memfd_create: permission denied"), "memfd_noexec", "vm.memfd_noexec=1", ""},
		{"the same, in a jail", host("/proc/sys/kernel/yama/ptrace_scope", "3"), proc, "covered", "/proc", "ptrace"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := row.around.Diagnose(row.err, &Runtime{})
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

func TestWhatIsNoLackOfTheHostStaysAsItIs(t *testing.T) {
	for _, err := range []error{
		fmt.Errorf("mount /work: %w", paddock.NotFound), fmt.Errorf("the box was not ready in time: %w", paddock.Timeout),
		&ToldError{"build the file tree: mount /mnt: permission denied", paddock.Invalid},
	} {
		if got := impossible(err, &Runtime{}); !errors.Is(got, err) || got.Error() != err.Error() {
			t.Errorf("%v became %v", err, got)
		}
	}
	var missing *paddock.MissingError
	if err := impossible(fmt.Errorf("start the box: %w", syscall.EPERM), &Runtime{}); !errors.As(err, &missing) || missing.Finding.Remedy == "" {
		t.Errorf("%v", err)
	}
}

// This test's host lacks nothing that the others fake.
func TestWhatIsAroundThisProcessIsRead(t *testing.T) {
	s := Around()
	if s.root != (os.Geteuid() == 0) || s.exe == "" || !strings.Contains(s.Read("/proc/self/status"), "Seccomp:") || s.Read("/proc/none") != "" {
		t.Errorf("%+v", s)
	}
	if err := sys.TraceNobody(); err == nil {
		t.Error("there is a process of a number that there cannot be")
	}
}

func TestWhatForbidsEveryBoxIsToldBeforeAControlThatCanBeGivenUp(t *testing.T) {
	landlock := &paddock.MissingError{Finding: paddock.Finding{Control: paddock.ControlLandlock, Strength: paddock.Absent}}
	for _, row := range []struct {
		name   string
		around Surroundings
		err    error
		want   paddock.Control // empty is the error itself
		remedy string
	}{
		{"nothing is missing", host("/proc/sys/user/max_user_namespaces", "0"), nil, "", ""},
		{"a spec that makes no sense", host("/proc/sys/user/max_user_namespaces", "0"), paddock.Invalid, "", ""},
		{"Landlock alone", host("/proc/sys/user/max_user_namespaces", "15000"), landlock, "", ""},
		{"AppArmor, which may know the program", host("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"), landlock, "", ""},
		{"namespaces of all", rooted(host("/proc/sys/user/max_user_namespaces", "0")), landlock, paddock.ControlUserNS, "sysctl user.max_user_namespaces"},
		{"namespaces of users", host("/proc/sys/kernel/unprivileged_userns_clone", "0"), landlock, paddock.ControlUserNS, "sysctl kernel.unprivileged_userns_clone=1"},
		{"namespaces of users, and root asks", rooted(host("/proc/sys/kernel/unprivileged_userns_clone", "0")), landlock, "", ""},
	} {
		got := row.around.Foremost(row.err)
		var missing *paddock.MissingError
		switch {
		case row.want == "" && !errors.Is(got, row.err):
			t.Errorf("%s: %v", row.name, got)
		case row.want != "" && (!errors.As(got, &missing) || missing.Finding.Control != row.want || !strings.Contains(missing.Finding.Remedy, row.remedy)):
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

func TestATrialThatWasLateSaysNothingOfTheHost(t *testing.T) {
	d := &Driver{tier: Tier{Runtime: &Runtime{}}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		ctx  context.Context
		err  error
		late paddock.Kind // Internal is none
	}{
		{t.Context(), fmt.Errorf("the box was not ready in time: %w", paddock.Timeout), paddock.Timeout},
		{t.Context(), &ToldError{"run a first command: connect to the agent: context deadline exceeded", paddock.Internal}, paddock.Timeout},
		{t.Context(), &ToldError{"run a first command: the agent's answer: read unix @->@: i/o timeout", paddock.Internal}, paddock.Timeout},
		{ended, fmt.Errorf("start the box: %w", syscall.EPERM), paddock.Canceled},
		{t.Context(), fmt.Errorf("start the box: %w", syscall.EPERM), paddock.Internal},
		{t.Context(), &paddock.MissingError{Finding: paddock.Finding{Cause: "x"}}, paddock.Internal},
	} {
		failed, err := d.failure(row.ctx, row.err)
		if (err == nil) != (row.late == paddock.Internal) || (failed == nil) != (err != nil) || err != nil && paddock.KindOf(err) != row.late {
			t.Errorf("%v: %+v, %v", row.err, failed, err)
		}
	}
}
