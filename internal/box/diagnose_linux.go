package box

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A failure is why a box cannot be made here, and what to do.
type failure struct {
	cause, remedy string
	kernel        bool // it is about a kernel of the box's own, and not about namespaces
}

// impossible turns the failure to make a box into what this host lacks, where
// that is known. Any other error stays as it is.
func impossible(err error, nested bool) error {
	if k := paddock.KindOf(err); k != paddock.Internal && k != paddock.Unsupported {
		return err
	}
	f := around(nested).diagnose(err)
	if f.remedy == "" {
		return err
	}
	control := paddock.ControlUserNS
	if f.kernel {
		control = paddock.ControlKernel
	}
	return &paddock.MissingError{Finding: paddock.Finding{Control: control, Strength: paddock.Absent, Cause: f.cause, Remedy: f.remedy}}
}

// surroundings are what a cause is looked for in: this host, and the container
// that this process may itself be in.
type surroundings struct {
	nested bool // the box was to have a kernel of its own
	root   bool
	admin  bool                     // CAP_SYS_ADMIN
	exe    string                   // this program
	trace  error                    // what the kernel answers who wants to trace nobody
	read   func(name string) string // a file of the kernel's, trimmed; empty where there is none
}

func around(nested bool) surroundings {
	exe, _ := os.Executable()
	effective, _, err := kernel.Capabilities()
	return surroundings{
		nested: nested, root: os.Geteuid() == 0, admin: err == nil && effective&kernel.CapSysAdmin != 0, exe: exe, trace: kernel.TraceNobody(),
		read: func(name string) string {
			data, _ := os.ReadFile(name)
			return strings.TrimSpace(string(data))
		},
	}
}

// diagnose finds the cause of a box that cannot be made, where it is known. What
// was told by the box has come as text.
func (s surroundings) diagnose(err error) *failure {
	said := err.Error()
	says := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(said, w) {
				return true
			}
		}
		return false
	}
	missing := errors.Is(err, syscall.ENOSYS) || says("function not implemented")
	refused := errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || says("operation not permitted", "permission denied")
	if f := s.switchedOff(says); f != nil {
		return f
	}
	switch {
	case says("built with cgo"):
		return &failure{kernel: true, cause: "this program was built with cgo, with which gVisor cannot give up its capabilities in time",
			remedy: "build it with CGO_ENABLED=0, as make build does"}
	case s.nested && says("gVisor") && !says("memory limit") && !errors.Is(s.trace, syscall.ESRCH):
		return &failure{kernel: true,
			cause:  fmt.Sprintf("a process may not trace one that it has made (ptrace: %v), by which gVisor takes system calls of commands (systrap)", s.trace),
			remedy: s.contained("allow ptrace in the system-call filter that this process is behind")}
	case missing && s.options() == "":
		return &failure{cause: "a system call that makes namespaces is not there (" + said + ")", remedy: "use Linux 5.12 or later"}
	case missing:
		return &failure{cause: "a system call that makes namespaces is not there (" + said + "); inside a container its system-call filter hides it",
			remedy: s.contained("use Linux 5.12 or later")}
	case says("mount /proc", "create proc") && refused:
		return &failure{cause: "a /proc of its own cannot be mounted, because this one is partly covered, as in a container (" + said + ")",
			remedy: s.contained("undo what is mounted below /proc")}
	case s.root && !s.admin && refused:
		return &failure{cause: "this process is root without CAP_SYS_ADMIN, as in a container (" + said + ")",
			remedy: s.contained("run paddock as an ordinary user")}
	case refused:
		return &failure{cause: said, remedy: s.contained("find what forbids it: a system-call filter (of a service: SystemCallFilter, RestrictNamespaces) or a security module")}
	case errors.Is(err, syscall.ENOSPC):
		return &failure{cause: "no more user namespaces can be made (user.max_user_namespaces is reached)",
			remedy: "raise it: sudo sysctl user.max_user_namespaces=15000"}
	}
	return &failure{cause: said}
}

// switchedOff are the settings of a host that forbid a box.
func (s surroundings) switchedOff(says func(words ...string) bool) *failure {
	switch {
	case s.read("/proc/sys/user/max_user_namespaces") == "0":
		return &failure{cause: "user namespaces are switched off (user.max_user_namespaces is 0)",
			remedy: "sudo sysctl user.max_user_namespaces=15000"}
	case s.read("/proc/sys/kernel/unprivileged_userns_clone") == "0" && !s.root:
		return &failure{cause: "this system forbids user namespaces to users (kernel.unprivileged_userns_clone is 0)",
			remedy: "sudo sysctl kernel.unprivileged_userns_clone=1"}
	case s.read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && !s.root:
		return &failure{cause: "AppArmor lets only known programs use user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)",
			remedy: fmt.Sprintf("allow this program: printf 'abi <abi/4.0>,\\nprofile paddock %s flags=(unconfined) {\\n  userns,\\n}\\n' | sudo tee /etc/apparmor.d/paddock && sudo apparmor_parser -r /etc/apparmor.d/paddock", s.exe)}
	case s.read("/proc/sys/vm/memfd_noexec") == "2" && says("memfd_create"):
		return &failure{cause: "programs in memory may not be executed (vm.memfd_noexec is 2)",
			remedy: "sudo sysctl vm.memfd_noexec=1"}
	case s.nested && s.read("/proc/sys/kernel/yama/ptrace_scope") == "3" && says("gVisor", "guard"):
		return &failure{kernel: true, cause: "no process may trace another one (kernel.yama.ptrace_scope is 3), by which gVisor takes system calls of commands (systrap)",
			remedy: "set kernel.yama.ptrace_scope to 2 or less where the system sets it (see /etc/sysctl.d), and restart the machine: 3 cannot be taken back"}
	}
	return nil
}

// contained says what to do inside a container, whose walls stand behind one
// another: a trial tells of the first one only, and so the remedy names all that are
// seen here. Where none is, it is otherwise.
func (s surroundings) contained(otherwise string) string {
	options := s.options()
	if options == "" {
		if s.root && !s.admin {
			return "run paddock as an ordinary user, or give this process CAP_SYS_ADMIN (a container: --cap-add SYS_ADMIN)"
		}
		return otherwise
	}
	remedy := "run the container with " + options
	if s.root && !s.admin {
		return remedy + ", and in it paddock as an ordinary user (--user 1000), or with --cap-add SYS_ADMIN too"
	}
	return remedy + "; outside of containers, " + otherwise
}

// options are those of a container that would take down the walls which are seen
// around this process, as Docker and Podman call them.
func (s surroundings) options() string {
	var list []string
	for line := range strings.Lines(s.read("/proc/self/status")) {
		if strings.TrimSpace(line) == "Seccomp:\t2" {
			list = append(list, "--security-opt seccomp=unconfined")
		}
	}
	for line := range strings.Lines(s.read("/proc/self/mountinfo")) {
		fields := strings.Fields(line)
		if len(fields) > 4 && strings.HasPrefix(fields[4], "/proc/") && fields[4] != "/proc/sys/fs/binfmt_misc" {
			list = append(list, "--security-opt systempaths=unconfined")
			break
		}
	}
	if label := s.read("/proc/self/attr/apparmor/current"); label != "" && label != "unconfined" {
		list = append(list, "--security-opt apparmor=unconfined")
	}
	return strings.Join(list, " ")
}
