package gvisor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
)

// containedVariable makes this program report, inside a container, what its drivers can do
// there.
const containedVariable = "PADDOCK_GVISOR_CONTAINED"

// A verdict is the report of a driver.
type verdict struct {
	Tier          paddock.Tier
	Available     bool
	Cause, Remedy string   // from Info, of the first absent control
	Ran           string   // output of a command
	Refused       string   // or the error instead, with its remedy
	Left          []string // left behind
}

// contained runs this program inside a container.
func contained() {
	for _, tier := range []paddock.Tier{paddock.Jail, paddock.GVisor} {
		v := verdict{Tier: tier}
		if err := v.find(); err != nil {
			v.Refused += " " + err.Error()
		}
		if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
			return
		}
	}
}

func (v *verdict) find() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	base, err := os.MkdirTemp("/tmp", "contained")
	if err != nil {
		return err
	}
	var d paddock.Driver
	if v.Tier == paddock.Jail {
		d, err = jail.New(jail.Options{State: base + "/state", Environ: os.Environ()})
	} else {
		d, err = gvisor.New(gvisor.Options{State: base + "/state", Data: base + "/data", Environ: os.Environ(), Audit: new(events)})
	}
	if err != nil {
		return err
	}
	info, err := d.Info(ctx, paddock.Auto)
	if err != nil {
		return err
	}
	v.Available = info.Available
	var weak []paddock.Control
	for _, f := range info.Controls {
		if f.Strength == paddock.Absent && v.Remedy == "" && !info.Available {
			v.Cause, v.Remedy = f.Cause, f.Remedy
		}
		if f.Strength == paddock.Weak {
			weak = append(weak, f.Control)
		}
	}
	// Most sandboxes have a workspace.
	work := filepath.Join("/work", string(v.Tier))
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	sb, err := d.Create(ctx, paddock.Spec{Ephemeral: true, AllowMissing: weak, Mounts: []paddock.Mount{{Source: work, Target: work, Write: true}}})
	if err != nil {
		v.Refused = err.Error()
	} else {
		var out bytes.Buffer
		p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"sh", "-c", "echo made >made && uname -r && cat made"}, Dir: work, Output: paddock.Output{Stdout: &out, Stderr: &out}})
		if err == nil {
			_, err = p.Wait(ctx)
		}
		v.Ran = out.String()
		if err := sb.Remove(ctx); err != nil {
			v.Left = append(v.Left, err.Error())
		}
		if err != nil {
			return err
		}
	}
	if err := d.Close(); err != nil {
		return err
	}
	found, _ := filepath.Glob(base + "/state/*")
	v.Left = append(v.Left, found...)
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if line, _ := os.ReadFile(name); bytes.HasPrefix(line, []byte("paddock-")) || bytes.HasPrefix(line, []byte("runsc")) {
			v.Left = append(v.Left, string(line))
		}
	}
	return os.RemoveAll(base)
}

// A wall is the set of restrictions of an ordinary container.
type wall struct {
	filter bool   // Docker's system-call filter
	paths  bool   // mounts over parts of /proc
	admin  bool   // CAP_SYS_ADMIN, which Docker does not give
	deny   string // another system call that is refused
	uid    int
}

// caps returns the capabilities that Docker gives.
func (w wall) caps() []string {
	list := []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID", "CAP_SETUID",
		"CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE"}
	if w.admin {
		list = append(list, "CAP_SYS_ADMIN")
	}
	return list
}

// seccomp denies every call that a box needs and that Docker's filter denies.
func (w wall) seccomp() *specs.LinuxSeccomp {
	eperm, enosys := uint(syscall.EPERM), uint(syscall.ENOSYS)
	refuse := func(names ...string) specs.LinuxSyscall {
		return specs.LinuxSyscall{Names: names, Action: specs.ActErrno, ErrnoRet: &eperm}
	}
	s := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow}
	if w.deny != "" {
		s.Syscalls = append(s.Syscalls, refuse(w.deny))
	}
	if !w.filter {
		if w.deny == "" {
			return nil
		}
		return s
	}
	s.Syscalls = append(s.Syscalls, refuse("add_key", "keyctl", "request_key", "userfaultfd", "io_uring_setup", "kexec_load", "init_module", "finit_module"))
	if w.admin { // Docker's filter depends on it
		return s
	}
	s.Syscalls = append(s.Syscalls,
		refuse("mount", "umount2", "unshare", "setns", "pivot_root", "fsopen", "fsconfig", "fsmount", "fspick", "open_tree",
			"move_mount", "mount_setattr", "bpf", "perf_event_open", "sethostname", "setdomainname", "quotactl", "open_by_handle_at"),
		specs.LinuxSyscall{Names: []string{"clone3"}, Action: specs.ActErrno, ErrnoRet: &enosys})
	for _, flag := range []uint64{syscall.CLONE_NEWUSER, syscall.CLONE_NEWNS, syscall.CLONE_NEWPID, syscall.CLONE_NEWNET, syscall.CLONE_NEWIPC, syscall.CLONE_NEWUTS} {
		rule := refuse("clone")
		rule.Args = []specs.LinuxSeccompArg{{Index: 0, Value: flag, ValueTwo: flag, Op: specs.OpMaskedEqual}}
		s.Syscalls = append(s.Syscalls, rule)
	}
	return s
}

// spec returns an ordinary container with these restrictions.
func (w wall) spec(program string) *specs.Spec {
	bind := func(from, to string) specs.Mount {
		return specs.Mount{Destination: to, Type: "bind", Source: from, Options: []string{"rbind", "ro"}}
	}
	memory := func(at, mode string) specs.Mount {
		return specs.Mount{Destination: at, Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=" + mode}}
	}
	s := &specs.Spec{
		Version: "1.0.0", Root: &specs.Root{Path: "rootfs"}, Hostname: "contained",
		Process: &specs.Process{
			Args: []string{"/test/program"}, Env: []string{"PATH=/usr/bin:/bin", "HOME=/tmp", containedVariable + "=1"}, Cwd: "/",
			User: specs.User{UID: uint32(w.uid), GID: uint32(w.uid)}, Capabilities: &specs.LinuxCapabilities{Bounding: w.caps()},
		},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"}, memory("/dev", "755"),
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"newinstance", "ptmxmode=0666"}},
			{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
			memory("/dev/shm", "1777"), memory("/tmp", "1777"), memory("/work", "1777"), memory("/run", "755"), memory("/var", "755"),
			bind("/usr", "/usr"), bind("/etc", "/etc"), bind(program, "/test"),
		},
		Linux: &specs.Linux{Seccomp: w.seccomp()},
	}
	if w.uid == 0 {
		s.Process.Capabilities.Effective, s.Process.Capabilities.Permitted = w.caps(), w.caps()
	}
	for _, kind := range []specs.LinuxNamespaceType{specs.PIDNamespace, specs.NetworkNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.MountNamespace, specs.CgroupNamespace} {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: kind})
	}
	if w.paths {
		s.Linux.MaskedPaths = []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi", "/sys/firmware"}
		s.Linux.ReadonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
	}
	return s
}

// inside returns the reports of the drivers in such a container.
func (w wall) inside(t *testing.T, crun string) map[paddock.Tier]verdict {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "contained") // reachable for the container's user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	for _, dir := range []string{"state", "program", "rootfs/usr", "rootfs/etc", "rootfs/proc", "rootfs/dev", "rootfs/sys", "rootfs/tmp", "rootfs/work", "rootfs/run", "rootfs/var", "rootfs/test"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+dir, filepath.Join(base, "rootfs", dir)); err != nil {
			t.Fatal(err)
		}
	}
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(base, "program/program"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(w.spec(filepath.Join(base, "program")))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, "config.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	// crun does not run if control groups v2 are mounted below v1. The mounts are private
	// to this process.
	script := `if [ -d /sys/fs/cgroup/unified ]; then umount /sys/fs/cgroup/unified; fi; exec "$@"`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", crun, "--root", filepath.Join(base, "state"), "--cgroup-manager=disabled", "run", "--bundle", base, filepath.Base(base))
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	found := map[paddock.Tier]verdict{}
	for dec := json.NewDecoder(&stdout); dec.More(); {
		var v verdict
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%v: %s", err, &stderr)
		}
		found[v.Tier] = v
	}
	return found
}

const (
	noFilter = "--security-opt seccomp=unconfined"
	allPaths = "--security-opt systempaths=unconfined"
	asUser   = "--user 1000"
)

// Each row is a container and what works or is missing in it. A missing control is reported
// with the Docker option that provides it.
func TestInAContainerItWorksOrSaysWhichOptionsItNeeds(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("to make a container of this kind takes root")
	}
	crun, err := exec.LookPath("crun")
	if err != nil {
		t.Skip("crun makes the containers: ./.ci/deps crun:crun")
	}
	for _, row := range []struct {
		name         string
		wall         wall
		jail, gvisor string // the reported options; empty if the tier works
	}{
		{"as it comes, root", wall{filter: true, paths: true}, noFilter + "|" + allPaths + "|" + asUser, noFilter + "|" + allPaths + "|" + asUser},
		{"as it comes, a user", wall{filter: true, paths: true, uid: 1000}, noFilter + "|" + allPaths, noFilter + "|" + allPaths},
		{"without its filter, a user", wall{paths: true, uid: 1000}, allPaths, allPaths},
		{"with its filter only, a user", wall{filter: true, uid: 1000}, noFilter, noFilter},
		{"without both, a user", wall{uid: 1000}, "", ""},
		{"without both, root", wall{}, "ordinary user", "ordinary user"},
		{"with a filter that refuses to trace, a user", wall{deny: "ptrace", uid: 1000}, "", "ptrace|systrap|" + noFilter},
		{"with one more capability, root", wall{filter: true, admin: true}, noFilter, ""},
		{"without both and with one more capability, root", wall{admin: true}, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			found := row.wall.inside(t, crun)
			for tier, want := range map[paddock.Tier]string{paddock.Jail: row.jail, paddock.GVisor: row.gvisor} {
				found[tier].check(t, want)
			}
		})
	}
}

func (v verdict) check(t *testing.T, want string) {
	t.Helper()
	if len(v.Left) > 0 {
		t.Errorf("%s: left behind: %q", v.Tier, v.Left)
	}
	if want == "" {
		if !v.Available || !strings.HasSuffix(v.Ran, "\nmade\n") {
			t.Errorf("%s does not work: %+v", v.Tier, v)
		}
		if own := strings.Contains(v.Ran, "gvisor"); own != (v.Tier == paddock.GVisor) {
			t.Errorf("%s runs on %q", v.Tier, v.Ran)
		}
		return
	}
	if v.Ran != "" {
		t.Errorf("%s works where %s was thought to be needed: %+v", v.Tier, want, v)
	}
	for option := range strings.SplitSeq(want, "|") {
		if !strings.Contains(v.Refused, option) {
			t.Errorf("%s: run says nothing of %s: %s", v.Tier, option, v.Refused)
		}
		if !v.Available && !strings.Contains(v.Cause+v.Remedy, option) {
			t.Errorf("%s: doctor says nothing of %s: %s; %s", v.Tier, option, v.Cause, v.Remedy)
		}
	}
	if testing.Verbose() {
		t.Log(fmt.Sprint(v.Tier, ": ", v.Refused))
	}
}
