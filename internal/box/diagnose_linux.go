package box

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A Failure is the reason why a box cannot be made here, and the remedy.
type Failure struct {
	Cause, Remedy string
	Control       paddock.Control // that is missing; empty means namespaces
}

// Impossible converts the failure to make a box to the feature that this host lacks, if
// that is known. It returns other errors, and nil, unchanged.
func (b *Box) Impossible(err error) error { return impossible(err, b.plan.Runtime) }

func impossible(err error, r *Runtime) error {
	if err == nil {
		return nil
	}
	if k := paddock.KindOf(err); k != paddock.Internal && k != paddock.Unsupported {
		return err
	}
	f := Around().Diagnose(err, r)
	if f.Remedy == "" {
		return err
	}
	return &paddock.MissingError{Finding: f.finding()}
}

// Surroundings describe this host, and the container in which this process may be, for the
// search for a cause.
type Surroundings struct {
	root  bool
	admin bool                     // CAP_SYS_ADMIN
	exe   string                   // this program
	pods  bool                     // the container is Podman's
	Trace error                    // the kernel's answer to a ptrace call on no process
	Read  func(name string) string // a kernel file, trimmed; empty if it is missing
}

// Around returns the surroundings of this process.
func Around() Surroundings {
	exe, _ := os.Executable()
	effective, _, err := sys.Capabilities()
	_, pods := os.Lstat("/run/.containerenv")
	return Surroundings{
		root: os.Geteuid() == 0, admin: err == nil && effective&sys.CapSysAdmin != 0, exe: exe, pods: pods == nil, Trace: sys.TraceNobody(),
		Read: func(name string) string {
			data, _ := os.ReadFile(name)
			return strings.TrimSpace(string(data))
		},
	}
}

// Diagnose returns the cause why a box cannot be made, if it is known. Errors of the box
// arrive as text.
func (s Surroundings) Diagnose(err error, r *Runtime) *Failure {
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
	if r.Diagnose != nil {
		if f := r.Diagnose(&s, says); f != nil {
			return f
		}
	}
	switch {
	case missing && s.options() == "":
		return &Failure{Cause: "a system call that makes namespaces is not there (" + said + ")", Remedy: "use Linux 5.12 or later"}
	case missing:
		return &Failure{Cause: "a system call that makes namespaces is not there (" + said + "); inside a container its system-call filter hides it",
			Remedy: s.Contained("use Linux 5.12 or later")}
	case says("mount /proc", "create proc") && refused:
		return &Failure{Cause: "a /proc of its own cannot be mounted, because this one is partly covered, as in a container (" + said + ")",
			Remedy: s.Contained("undo what is mounted below /proc")}
	case s.root && !s.admin && refused:
		return &Failure{Cause: "this process is root without CAP_SYS_ADMIN, as in a container (" + said + ")",
			Remedy: s.Contained("run paddock as an ordinary user")}
	case refused:
		return &Failure{Cause: said, Remedy: s.Contained("find what forbids it: a system-call filter (of a service: SystemCallFilter, RestrictNamespaces) or a security module")}
	case errors.Is(err, syscall.ENOSPC):
		return &Failure{Cause: "no more user namespaces can be made (user.max_user_namespaces is reached)",
			Remedy: "raise it: sudo sysctl user.max_user_namespaces=15000"}
	}
	return &Failure{Cause: said}
}

// Foremost returns err, or in its place the error to report first if err is about a missing control:
// a setting of the host that forbids every box comes before a control that a caller may give up.
func (s Surroundings) Foremost(err error) error {
	var missing *paddock.MissingError
	if !errors.As(err, &missing) {
		return err
	}
	if f := s.namespacesOff(); f != nil {
		return &paddock.MissingError{Finding: f.finding()}
	}
	return err
}

// finding returns the control that is missing.
func (f *Failure) finding() paddock.Finding {
	return paddock.Finding{Control: cmp.Or(f.Control, paddock.ControlUserNS), Strength: paddock.Absent, Cause: f.Cause, Remedy: f.Remedy}
}

// namespacesOff checks settings of the host that forbid every box.
func (s Surroundings) namespacesOff() *Failure {
	switch {
	case s.Read("/proc/sys/user/max_user_namespaces") == "0":
		return &Failure{Cause: "user namespaces are switched off (user.max_user_namespaces is 0)",
			Remedy: "sudo sysctl user.max_user_namespaces=15000"}
	case s.Read("/proc/sys/kernel/unprivileged_userns_clone") == "0" && !s.root:
		return &Failure{Cause: "this system forbids user namespaces to users (kernel.unprivileged_userns_clone is 0)",
			Remedy: "sudo sysctl kernel.unprivileged_userns_clone=1"}
	}
	return nil
}

// switchedOff checks settings of the host that forbid boxes. Some of them exempt the programs that
// they name.
func (s Surroundings) switchedOff(says func(words ...string) bool) *Failure {
	if f := s.namespacesOff(); f != nil {
		return f
	}
	switch {
	case s.Read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && !s.root:
		return &Failure{Cause: "AppArmor lets only known programs use user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)",
			Remedy: fmt.Sprintf("allow this program: printf 'abi <abi/4.0>,\\nprofile paddock %s flags=(unconfined) {\\n  userns,\\n}\\n' | sudo tee /etc/apparmor.d/paddock && sudo apparmor_parser -r /etc/apparmor.d/paddock", s.exe)}
	case s.Read("/proc/sys/vm/memfd_noexec") == "2" && says("memfd_create"):
		return &Failure{Cause: "programs in memory may not be executed (vm.memfd_noexec is 2)",
			Remedy: "sudo sysctl vm.memfd_noexec=1"}
	}
	return nil
}

// Contained returns the remedy inside a container. A container may have several
// restrictions that prevent boxes, and a trial only finds the first one. So the remedy
// names all that are visible here. If there are none, it returns otherwise.
func (s Surroundings) Contained(otherwise string) string {
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

// options returns the options of a container, as Docker and Podman name them, that would
// remove the restrictions which are visible from this process.
func (s Surroundings) options() string {
	var list []string
	for line := range strings.Lines(s.Read("/proc/self/status")) {
		if strings.TrimSpace(line) == "Seccomp:\t2" {
			list = append(list, "--security-opt seccomp=unconfined")
		}
	}
	for line := range strings.Lines(s.Read("/proc/self/mountinfo")) {
		fields := strings.Fields(line)
		if len(fields) > 4 && strings.HasPrefix(fields[4], "/proc/") && fields[4] != "/proc/sys/fs/binfmt_misc" {
			paths := "--security-opt systempaths=unconfined"
			if s.pods {
				paths = "--security-opt unmask=ALL"
			}
			list = append(list, paths)
			break
		}
	}
	// SELinux lets processes of this type mount nothing.
	if strings.Contains(s.Read("/proc/self/attr/current"), ":container_t:") {
		list = append(list, "--security-opt label=disable")
	}
	if label := s.Read("/proc/self/attr/apparmor/current"); label != "" && label != "unconfined" {
		list = append(list, "--security-opt apparmor=unconfined")
	}
	return strings.Join(list, " ")
}
