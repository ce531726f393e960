//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// onProcess are operations on a process of another user. None changes the process: each
// writes the present value.
func onProcess() []struct {
	name string
	run  func(pid int) protocol.Try
} {
	file := func(name string, flags int) func(pid int) protocol.Try {
		return func(pid int) protocol.Try {
			fd, err := unix.Open(fmt.Sprintf("/proc/%d/%s", pid, name), flags|unix.O_NONBLOCK, 0)
			if err != nil {
				return refused(err)
			}
			t := readFD(fd, nil)
			if name == "mem" {
				t = readMemory(pid, flags)
			}
			return t
		}
	}
	link := func(name string) func(pid int) protocol.Try {
		return func(pid int) protocol.Try {
			to, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", pid, name))
			if err != nil {
				return refused(err)
			}
			return reached("it is %s", to)
		}
	}
	return []struct {
		name string
		run  func(pid int) protocol.Try
	}{
		{"environ", file("environ", unix.O_RDONLY)},
		{"mem for reading", file("mem", unix.O_RDONLY)},
		{"mem for writing", file("mem", unix.O_RDWR)},
		{"maps", file("maps", unix.O_RDONLY)},
		{"auxv", file("auxv", unix.O_RDONLY)},
		{"syscall", file("syscall", unix.O_RDONLY)},
		{"root", link("root")},
		{"cwd", link("cwd")},
		{"exe", link("exe")},
		{"user namespace", link("ns/user")},
		{"fd", func(pid int) protocol.Try {
			ents, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
			if err != nil {
				return refused(err)
			}
			return reached("%d descriptors", len(ents))
		}},
		{"map_files", func(pid int) protocol.Try {
			ents, err := os.ReadDir(fmt.Sprintf("/proc/%d/map_files", pid))
			if err != nil {
				return refused(err)
			}
			return reached("%d mapped files", len(ents))
		}},
		{"oom_score_adj", func(pid int) protocol.Try {
			name := fmt.Sprintf("/proc/%d/oom_score_adj", pid)
			now, err := os.ReadFile(name)
			if err != nil {
				return refused(err)
			}
			return done(os.WriteFile(name, now, 0), "set to what it was")
		}},
		{"ptrace seize", func(pid int) protocol.Try {
			runtime.LockOSThread()
			return done(try0(syscall.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0)), "traced")
		}},
		{"process_vm_readv", vmReadv},
		{"process_vm_writev", vmWritev},
		{"pidfd_getfd", func(pid int) protocol.Try {
			p, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(p)
			last := refused(unix.EBADF)
			for n := range 64 {
				fd, err := unix.PidfdGetfd(p, n, 0)
				if err == nil {
					to, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
					unix.Close(fd)
					return reached("took descriptor %d: %s", n, to)
				}
				last = refused(err)
			}
			return last
		}},
		{"kcmp", func(pid int) protocol.Try {
			return done(try0(syscall.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(pid), 1, 0, 0, 0)), "compared")
		}},
		{"process_madvise", func(pid int) protocol.Try {
			p, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(p)
			iov := unix.Iovec{}
			return passed(try0(syscall.Syscall6(unix.SYS_PROCESS_MADVISE, uintptr(p), uintptr(unsafe.Pointer(&iov)), 1, unix.MADV_COLD, 0, 0)), unix.EINVAL)
		}},
		{"setns", func(pid int) protocol.Try {
			return each([]string{"mnt", "net", "uts", "ipc"}, func(ns string) protocol.Try {
				fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, ns), unix.O_RDONLY, 0)
				if err != nil {
					return refused(err)
				}
				defer unix.Close(fd)
				runtime.LockOSThread()
				return done(unix.Setns(fd, 0), "joined")
			})
		}},
		{"set its limits", func(pid int) protocol.Try {
			var lim unix.Rlimit
			if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &lim); err != nil {
				return refused(err)
			}
			return done(unix.Prlimit(pid, unix.RLIMIT_NOFILE, &lim, nil), "set to what it was")
		}},
	}
}

// readMemory reads a mapped page of the process.
func readMemory(pid, flags int) protocol.Try {
	addr, err := firstMap(pid)
	if err != nil {
		return refused(err)
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/mem", pid), flags, 0)
	if err != nil {
		return refused(err)
	}
	defer unix.Close(fd)
	buf := make([]byte, 16)
	if _, err := unix.Pread(fd, buf, int64(addr)); err != nil {
		return refused(err)
	}
	return reached("read its memory")
}

func firstMap(pid int) (uintptr, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		var from, to uintptr
		var perm string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &perm); err == nil && strings.HasPrefix(perm, "rw") {
			return from, nil
		}
	}
	return 0, unix.EFAULT
}

// vm reads, or writes back, 8 bytes. If the map cannot be read, it uses our own addresses,
// because the permission is checked first.
func vm(pid int, call func(local, remote []unix.Iovec) error) error {
	addr, err := firstMap(pid)
	if err != nil {
		addr = 0x400000
	}
	buf := make([]byte, 8)
	local := []unix.Iovec{{Base: &buf[0], Len: 8}}
	remote := make([]unix.Iovec, 1)
	*(*uintptr)(unsafe.Pointer(&remote[0].Base)) = addr
	remote[0].Len = 8
	return call(local, remote)
}

func vmRaw(nr uintptr, pid int, local, remote []unix.Iovec) error {
	return try0(syscall.Syscall6(nr, uintptr(pid), uintptr(unsafe.Pointer(&local[0])), 1, uintptr(unsafe.Pointer(&remote[0])), 1, 0))
}

func vmReadv(pid int) protocol.Try {
	return passed(vm(pid, func(l, r []unix.Iovec) error { return vmRaw(unix.SYS_PROCESS_VM_READV, pid, l, r) }), unix.EFAULT)
}

func vmWritev(pid int) protocol.Try {
	return passed(vm(pid, func(l, r []unix.Iovec) error {
		if err := vmRaw(unix.SYS_PROCESS_VM_READV, pid, l, r); err != nil {
			return err
		}
		return vmRaw(unix.SYS_PROCESS_VM_WRITEV, pid, l, r)
	}), unix.EFAULT)
}

// hostProcess is P01: the canary process, by its PID on the host.
func hostProcess() []probe {
	pid := func(b *protocol.Brief) int { return b.Canary.PID }
	ps := []probe{
		{"kill", func(b *protocol.Brief) protocol.Try { return ours(b, unix.Kill(pid(b), unix.SIGWINCH)) }},
		{"tgkill", func(b *protocol.Brief) protocol.Try { return ours(b, unix.Tgkill(pid(b), pid(b), unix.SIGWINCH)) }},
		{"pidfd_send_signal", func(b *protocol.Brief) protocol.Try {
			fd, err := unix.PidfdOpen(pid(b), 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			return ours(b, unix.PidfdSendSignal(fd, unix.SIGWINCH, nil, 0))
		}},
		{"kill the process group of everybody", func(*protocol.Brief) protocol.Try {
			if err := unix.Kill(-1, unix.SIGWINCH); err != nil {
				return refused(err)
			}
			return inside("sent to all that can be seen")
		}},
		{"see it in /proc", func(b *protocol.Brief) protocol.Try {
			for _, p := range processes() {
				data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p))
				if err == nil && strings.Contains(string(data), "canary") && strings.Contains(string(data), b.Marker) {
					return reached("saw process %d", p)
				}
			}
			return refused(unix.ESRCH)
		}},
		{"priority", func(b *protocol.Brief) protocol.Try {
			return ours(b, unix.Setpriority(unix.PRIO_PROCESS, pid(b), 0))
		}},
		{"affinity", func(b *protocol.Brief) protocol.Try {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(pid(b), &set); err != nil {
				return refused(err)
			}
			return ours(b, unix.SchedSetaffinity(pid(b), &set))
		}},
	}
	for _, o := range onProcess() {
		ps = append(ps, probe{o.name, func(b *protocol.Brief) protocol.Try {
			t := o.run(pid(b))
			if t.Outcome == protocol.Reached && !isCanary(b) {
				return inside("a process of our own has that number")
			}
			return t
		}})
	}
	return ps
}

// ours judges a call on the canary's PID, which inside may belong to another process.
func ours(b *protocol.Brief, err error) protocol.Try {
	if err != nil {
		return refused(err)
	}
	if !isCanary(b) {
		return inside("a process of our own has that number")
	}
	return reached("it was allowed")
}

func isCanary(b *protocol.Brief) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", b.Canary.PID))
	return err == nil && strings.Contains(string(data), "canary") && strings.Contains(string(data), b.Marker)
}

// helperProcess is P02: process 1 of the sandbox, and every other process there that is not
// ours. A supervisor without a filter would be a way out of ours.
func helperProcess() []probe {
	var ps []probe
	for _, o := range onProcess() {
		ps = append(ps,
			probe{"init: " + o.name, func(*protocol.Brief) protocol.Try { return o.run(1) }},
			probe{"others: " + o.name, func(*protocol.Brief) protocol.Try {
				return each(helpers(), func(pid int) protocol.Try {
					if pid == 1 {
						return refused(unix.EPERM)
					}
					return o.run(pid)
				})
			}})
	}
	return append(ps,
		probe{"kill init", func(*protocol.Brief) protocol.Try {
			// Signal 0 only checks the permission. init ignores the others.
			if err := unix.Kill(1, 0); err != nil {
				return refused(err)
			}
			return inside("init can be signalled, and it ignores it")
		}},
		probe{"stop the helpers", func(*protocol.Brief) protocol.Try {
			return each(helpers(), func(pid int) protocol.Try {
				if pid == 1 {
					return refused(unix.EPERM)
				}
				return done(unix.Kill(pid, 0), "could be killed")
			})
		}},
		probe{"steal a seccomp listener", func(*protocol.Brief) protocol.Try {
			return each(helpers(), func(pid int) protocol.Try {
				for _, n := range names(fmt.Sprintf("/proc/%d/fd", pid)) {
					to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, n))
					if strings.Contains(to, "seccomp") {
						return reached("process %d holds a listener at %s, in sight", pid, n)
					}
				}
				return refused(unix.EACCES)
			})
		}},
		probe{"own seccomp listener", func(*protocol.Brief) protocol.Try {
			runtime.LockOSThread()
			fd, err := listener(unix.SYS_GETPRIORITY)
			if err != nil {
				return refused(err)
			}
			unix.Close(fd)
			return inside("a listener over our own calls; C01 tries to use one")
		}},
		probe{"shed the filter", func(*protocol.Brief) protocol.Try {
			data, err := os.ReadFile("/proc/self/status")
			if err != nil {
				return refused(err)
			}
			if !strings.Contains(string(data), "NoNewPrivs:\t1") {
				return reached("privileges can be gained")
			}
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil {
				return refused(err)
			}
			return reached("privileges can be gained again")
		}},
	)
}

// helpers lists processes that the sandbox itself runs: neither this process nor its
// relatives.
func helpers() []int {
	var out []int
	for _, pid := range processes() {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(data), "attacker\x00P02") {
			continue
		}
		out = append(out, pid)
	}
	return out
}

// outlive is P21 and A23: daemons that try to survive.
func outlive() []probe {
	daemon := func(flags uintptr, session bool) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			self := "/proc/self/exe"
			if exe, err := os.Readlink(self); err == nil {
				self = exe
			}
			cmd := exec.Command(self, "idle")
			r, w, err := os.Pipe()
			if err != nil {
				return refused(err)
			}
			defer r.Close()
			// The daemon keeps the writing end, so its input never ends.
			cmd.Stdin = r
			cmd.ExtraFiles = []*os.File{w}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session, Cloneflags: flags}
			if err := cmd.Start(); err != nil {
				return refused(err)
			}
			return inside("a daemon runs")
		}
	}
	return []probe{
		{"own session", daemon(0, true)},
		{"in the background", daemon(0, false)},
		{"child of another parent", daemon(unix.CLONE_PARENT, true)},
		{"many", func(b *protocol.Brief) protocol.Try {
			for range 8 {
				if t := daemon(0, true)(b); t.Outcome != protocol.Inside {
					return t
				}
			}
			return inside("daemons run")
		}},
	}
}

// signalAgent is P36. The first technique leaves a refusal, which the host looks for afterwards. A
// signal that is taken and has no effect stays inside; if it has one, nobody reports.
func signalAgent() []probe {
	ps := []probe{{"what is refused first", func(b *protocol.Brief) protocol.Try {
		return done(write(unix.Open(b.Work+"/"+protocol.RefusedFirst, creat, 0o755)), "a hook of the repository")
	}}}
	for _, sig := range []unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGKILL} {
		ps = append(ps, probe{unix.SignalName(sig), func(b *protocol.Brief) protocol.Try {
			if b.Unconfined {
				return signalOther(sig)
			}
			return each(agentThreads(), func(tid int) protocol.Try { return sendAll(1, tid, sig) })
		}})
	}
	return ps
}

// agentThreads lists the threads of process 1, and low numbers that may be threads of it if it hides
// them. Numbers of our own threads are left out.
func agentThreads() []int {
	own := map[string]bool{}
	for _, n := range names("/proc/self/task") {
		own[n] = true
	}
	list := []int{1}
	for _, n := range names("/proc/1/task") {
		if tid, err := strconv.Atoi(n); err == nil && tid != 1 {
			list = append(list, tid)
		}
	}
	for tid := 2; len(list) == 1 && tid < 32; tid++ {
		if !own[strconv.Itoa(tid)] {
			list = append(list, tid)
		}
	}
	return list
}

// signalOther is for the run without a sandbox, where process 1 is not to be signalled.
func signalOther(sig unix.Signal) protocol.Try {
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		return absent("%v", err)
	}
	try := sendAll(cmd.Process.Pid, cmd.Process.Pid, sig)
	if try.Outcome != protocol.Inside {
		_ = cmd.Process.Kill()
	}
	if err := cmd.Wait(); err == nil || try.Outcome != protocol.Inside {
		return try
	}
	return reached("the process ended")
}

// sendAll sends a signal to a thread of a process by every call.
func sendAll(pid, tid int, sig unix.Signal) protocol.Try {
	var info [128]byte
	binary.NativeEndian.PutUint32(info[0:], uint32(sig))
	binary.NativeEndian.PutUint32(info[8:], ^uint32(0)) // SI_QUEUE
	at := uintptr(unsafe.Pointer(&info))
	calls := []error{
		unix.Tgkill(pid, tid, sig),
		try0(unix.Syscall(unix.SYS_TKILL, uintptr(tid), uintptr(sig), 0)),
		try0(unix.Syscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(pid), uintptr(tid), uintptr(sig), at, 0, 0)),
		try0(unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(tid), uintptr(sig), at)),
		unix.Kill(tid, sig),
	}
	for _, flags := range []int{0, unix.PIDFD_THREAD} {
		fd, err := unix.PidfdOpen(tid, flags)
		if err == nil {
			err = unix.PidfdSendSignal(fd, sig, nil, 0)
			unix.Close(fd)
		}
		calls = append(calls, err)
	}
	return each(calls, func(err error) protocol.Try {
		if err != nil {
			return refused(err)
		}
		return inside("sent")
	})
}
