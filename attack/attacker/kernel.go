//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// kernelPrograms is P12.
func kernelPrograms() []probe {
	return []probe{
		{"bpf map", func(*protocol.Brief) protocol.Try {
			attr := [16]uint32{2, 4, 8, 1} // array, key 4, value 8, one entry
			fd, err := tryFD(syscall.Syscall(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr)))
			return closeTry(fd, err, "made a map")
		}},
		{"bpf program", func(*protocol.Brief) protocol.Try {
			insns := []uint64{0xb7, 0x95} // r0 = 0; exit
			license := []byte("GPL\x00")
			var attr struct {
				typ, count     uint32
				insns, license uint64
				rest           [12]uint64
			}
			attr.typ, attr.count = 1, 2
			attr.insns = uint64(uintptr(unsafe.Pointer(&insns[0])))
			attr.license = uint64(uintptr(unsafe.Pointer(&license[0])))
			fd, err := tryFD(syscall.Syscall(unix.SYS_BPF, 5, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr)))
			return closeTry(fd, err, "loaded a program")
		}},
		{"perf software event", perfEvent(unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK, 0, -1)},
		{"perf hardware event", perfEvent(unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES, 0, -1)},
		{"perf of everything", perfEvent(unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK, -1, 0)},
		{"userfaultfd", func(*protocol.Brief) protocol.Try {
			fd, err := tryFD(syscall.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0))
			return closeTry(fd, err, "made one")
		}},
		{"userfaultfd of user mode", func(*protocol.Brief) protocol.Try {
			fd, err := tryFD(syscall.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1, 0, 0))
			return closeTry(fd, err, "made one")
		}},
		{"/dev/userfaultfd", func(*protocol.Brief) protocol.Try {
			fd, err := unix.Open("/dev/userfaultfd", unix.O_RDWR, 0)
			return closeTry(fd, err, "opened")
		}},
		{"fanotify", func(*protocol.Brief) protocol.Try {
			fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT, unix.O_RDONLY)
			return closeTry(fd, err, "watches everything")
		}},
		{"fanotify without privilege", func(*protocol.Brief) protocol.Try {
			fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_FID, unix.O_RDONLY)
			if err != nil {
				return refused(err)
			}
			unix.Close(fd)
			return inside("may watch what it can see")
		}},
		{"modify_ldt", func(*protocol.Brief) protocol.Try {
			if sysModifyLDT < 0 {
				return absent("this architecture has none")
			}
			desc := [4]uint32{0, 0, 0xfffff, 0x51}
			return done(try0(syscall.Syscall(uintptr(sysModifyLDT), 1, uintptr(unsafe.Pointer(&desc)), unsafe.Sizeof(desc))), "changed the segment table")
		}},
		{"personality without randomisation", func(*protocol.Brief) protocol.Try {
			_, _, e := syscall.Syscall(unix.SYS_PERSONALITY, 0x0040000, 0, 0)
			if e != 0 {
				return refused(e)
			}
			return inside("our own address space only")
		}},
		{"lookup_dcookie and friends", func(*protocol.Brief) protocol.Try {
			return each([]uintptr{unix.SYS_VHANGUP, unix.SYS_ACCT}, func(nr uintptr) protocol.Try {
				if nr == unix.SYS_ACCT {
					p, _ := unix.BytePtrFromString("/nonexistent/acct")
					return passed(try0(syscall.Syscall(nr, uintptr(unsafe.Pointer(p)), 0, 0)), unix.ENOENT)
				}
				return refused(unix.EPERM) // not tried, because vhangup would end a terminal
			})
		}},
		{"move_pages of init", func(*protocol.Brief) protocol.Try {
			return done(try0(syscall.Syscall6(unix.SYS_MOVE_PAGES, 1, 0, 0, 0, 0, 0)), "it was allowed")
		}},
	}
}

func perfEvent(typ uint32, config uint64, pid, cpu int) func(*protocol.Brief) protocol.Try {
	return func(*protocol.Brief) protocol.Try {
		fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{Type: typ, Config: config, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}, pid, cpu, -1, 0)
		return closeTry(fd, err, "opened an event")
	}
}

// rewrite opens a kernel file for writing and writes its present content.
func rewrite(name string) protocol.Try {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return refused(err)
	}
	defer unix.Close(fd)
	now, err := os.ReadFile(name)
	if err != nil || len(now) == 0 {
		return reached("opened for writing")
	}
	if _, err := unix.Write(fd, now); err != nil {
		return refused(err)
	}
	return reached("wrote the value that it had")
}

// openOnly opens for writing without writing, because any value would do harm.
func openOnly(name string) protocol.Try {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	return closeTry(fd, err, "opened for writing")
}

// kernelKnobs is P17.
func kernelKnobs() []probe {
	var ps []probe
	for _, n := range []string{
		"kernel/core_pattern", "kernel/modprobe", "kernel/hotplug", "kernel/sysrq", "kernel/panic", "kernel/hostname", "kernel/domainname",
		"kernel/randomize_va_space", "kernel/yama/ptrace_scope", "kernel/unprivileged_bpf_disabled", "kernel/threads-max", "kernel/ns_last_pid",
		"kernel/usermodehelper/bset", "fs/binfmt_misc/register", "fs/suid_dumpable", "fs/protected_symlinks", "fs/file-max",
		"net/ipv4/ip_forward", "vm/overcommit_memory", "vm/drop_caches", "user/max_user_namespaces",
	} {
		ps = append(ps, probe{n, func(*protocol.Brief) protocol.Try {
			name := "/proc/sys/" + n
			if n == "vm/drop_caches" || n == "fs/binfmt_misc/register" {
				return openOnly(name)
			}
			t := rewrite(name)
			if t.Outcome == protocol.Reached && strings.HasPrefix(n, "net/") {
				return inside("a setting of our own network")
			}
			return t
		}})
	}
	for _, n := range []string{"/proc/sysrq-trigger", "/proc/acpi/wakeup", "/proc/mtrr", "/proc/timer_list", "/proc/latency_stats"} {
		ps = append(ps, probe{n, func(*protocol.Brief) protocol.Try { return openOnly(n) }})
	}
	return append(ps, probe{"interrupt affinity", func(*protocol.Brief) protocol.Try {
		return each(append([]string{"/proc/irq/default_smp_affinity"}, head(glob("/proc/irq/*/smp_affinity"), 4)...), openOnly)
	}}, probe{"bus devices", func(*protocol.Brief) protocol.Try {
		files := head(glob("/proc/bus/pci/*/*"), 4)
		if len(files) == 0 {
			return refused(unix.ENOENT)
		}
		return each(files, openOnly)
	}}, probe{"make it writable first", func(*protocol.Brief) protocol.Try {
		if err := unix.Mount("/proc/sys", "/proc/sys", "", unix.MS_BIND, ""); err == nil {
			defer unix.Unmount("/proc/sys", unix.MNT_DETACH)
		}
		if err := unix.Mount("", "/proc/sys", "", unix.MS_REMOUNT|unix.MS_BIND, ""); err != nil {
			return refused(err)
		}
		return rewrite("/proc/sys/kernel/core_pattern")
	}})
}

func glob(pat string) []string {
	m, _ := filepath.Glob(pat)
	return m
}

func head(s []string, n int) []string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// cgroupEscape is P18.
func cgroupEscape() []probe {
	var ps []probe
	roots := []string{"/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/rdma", "/sys/fs/cgroup/devices"}
	for _, file := range []string{"release_agent", "notify_on_release", "cgroup.procs", "memory.limit_in_bytes", "pids.max", "devices.allow"} {
		ps = append(ps, probe{file, func(*protocol.Brief) protocol.Try {
			var files []string
			for _, r := range roots {
				files = append(files, r+"/"+file)
			}
			return each(files, openOnly)
		}})
	}
	return append(ps,
		probe{"make a group", func(b *protocol.Brief) protocol.Try {
			return each(roots, func(r string) protocol.Try {
				p := r + "/" + b.Marker
				if err := unix.Mkdir(p, 0o755); err != nil {
					return refused(err)
				}
				_ = unix.Rmdir(p)
				return reached("made a control group")
			})
		}},
		probe{"mount cgroup", func(b *protocol.Brief) protocol.Try {
			err := unix.Mount("cgroup", b.Work+"/mnt", "cgroup", 0, "rdma")
			_ = unix.Unmount(b.Work+"/mnt", unix.MNT_DETACH)
			return passed(err, unix.EINVAL, unix.EBUSY, unix.ENODEV, unix.ENOENT)
		}},
		probe{"uevent_helper", func(*protocol.Brief) protocol.Try { return openOnly("/sys/kernel/uevent_helper") }},
		probe{"write in /sys", func(*protocol.Brief) protocol.Try {
			return each([]string{"/sys/power/state", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/profiling", "/sys/block/vda/queue/scheduler", "/sys/devices/system/cpu/cpu1/online", "/sys/class/net/lo/mtu", "/sys/module/kernel/parameters/panic"}, openOnly)
		}},
		probe{"debugfs", func(*protocol.Brief) protocol.Try {
			return each([]string{"/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf", "/sys/kernel/security"}, func(d string) protocol.Try {
				ents, err := os.ReadDir(d)
				if err != nil {
					return refused(err)
				}
				if len(ents) == 0 {
					return inside("empty")
				}
				return reached("listed %d names", len(ents))
			})
		}},
	)
}

// systemCalls is P20. The arguments make each call fail after the permission check, so that
// it sets nothing.
func systemCalls() []probe {
	return []probe{
		{"sethostname", func(b *protocol.Brief) protocol.Try {
			now, err := os.Hostname()
			if err != nil {
				return refused(err)
			}
			return done(unix.Sethostname([]byte(now)), "set the name that it had")
		}},
		{"setdomainname", func(*protocol.Brief) protocol.Try {
			var u unix.Utsname
			if err := unix.Uname(&u); err != nil {
				return refused(err)
			}
			return done(unix.Setdomainname(u.Domainname[:bytes.IndexByte(u.Domainname[:], 0)]), "set the name that it had")
		}},
		{"settimeofday", func(*protocol.Brief) protocol.Try {
			tz := [2]int32{16 * 60, 0} // out of range, which is checked last
			return passed(try0(syscall.Syscall(unix.SYS_SETTIMEOFDAY, 0, uintptr(unsafe.Pointer(&tz)), 0)), unix.EINVAL)
		}},
		{"adjtimex", func(*protocol.Brief) protocol.Try {
			tx := unix.Timex{Modes: unix.ADJ_TICK} // tick 0 is out of range
			_, err := unix.Adjtimex(&tx)
			return passed(err, unix.EINVAL)
		}},
		{"clock_adjtime", func(*protocol.Brief) protocol.Try {
			tx := unix.Timex{Modes: unix.ADJ_TICK}
			_, err := unix.ClockAdjtime(unix.CLOCK_REALTIME, &tx)
			return passed(err, unix.EINVAL)
		}},
		{"reboot", func(*protocol.Brief) protocol.Try {
			return passed(try0(syscall.Syscall6(unix.SYS_REBOOT, 0xdead, 0xdead, 0, 0, 0, 0)), unix.EINVAL)
		}},
		{"kexec_load", func(*protocol.Brief) protocol.Try {
			return passed(try0(syscall.Syscall6(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0xffffffff, 0, 0)), unix.EINVAL)
		}},
		{"init_module", func(*protocol.Brief) protocol.Try {
			p := []byte{0}
			return passed(try0(syscall.Syscall(unix.SYS_INIT_MODULE, uintptr(unsafe.Pointer(&p[0])), 0, uintptr(unsafe.Pointer(&p[0])))), unix.ENOEXEC, unix.EFAULT, unix.EINVAL)
		}},
		{"finit_module", func(*protocol.Brief) protocol.Try {
			p := []byte{0}
			return passed(try0(syscall.Syscall(unix.SYS_FINIT_MODULE, ^uintptr(0), uintptr(unsafe.Pointer(&p[0])), 0)), unix.EBADF)
		}},
		{"delete_module", func(*protocol.Brief) protocol.Try {
			p, _ := unix.BytePtrFromString("nonexistent")
			return passed(try0(syscall.Syscall(unix.SYS_DELETE_MODULE, uintptr(unsafe.Pointer(p)), 0, 0)), unix.ENOENT)
		}},
		{"ioperm", func(*protocol.Brief) protocol.Try {
			if sysIOPerm < 0 {
				return absent("this architecture has none")
			}
			return done(try0(syscall.Syscall(uintptr(sysIOPerm), 0x80, 1, 1)), "may use ports of the hardware")
		}},
		{"iopl", func(*protocol.Brief) protocol.Try {
			if sysIOPL < 0 {
				return absent("this architecture has none")
			}
			return done(try0(syscall.Syscall(uintptr(sysIOPL), 3, 0, 0)), "may use ports of the hardware")
		}},
		{"real-time priority", func(*protocol.Brief) protocol.Try {
			param := int32(50)
			return done(try0(syscall.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, 1, uintptr(unsafe.Pointer(&param)))), "runs before everything else")
		}},
		{"negative nice", func(*protocol.Brief) protocol.Try {
			return done(unix.Setpriority(unix.PRIO_PROCESS, 0, -10), "runs before others")
		}},
		{"raise limits", func(*protocol.Brief) protocol.Try {
			const msgQueue = 12 // a finite limit of little importance
			var lim unix.Rlimit
			if err := unix.Getrlimit(msgQueue, &lim); err != nil {
				return refused(err)
			}
			lim.Max++
			return done(unix.Setrlimit(msgQueue, &lim), "raised a hard limit")
		}},
		{"become another user", func(*protocol.Brief) protocol.Try {
			return each([]int{1, 65534}, func(uid int) protocol.Try {
				if uid == os.Getuid() {
					return refused(unix.EPERM)
				}
				return done(try0(syscall.RawSyscall(unix.SYS_SETUID, uintptr(uid), 0, 0)), "became another user")
			})
		}},
		{"become root", func(*protocol.Brief) protocol.Try {
			if err := try0(syscall.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0)); err != nil {
				return refused(err)
			}
			// Root in a sandbox without capabilities has no privileges.
			if caps := capabilities(); strings.Trim(caps, "0") == "" {
				return inside("uid 0 without a capability")
			}
			return reached("root with capabilities")
		}},
		{"change groups", func(*protocol.Brief) protocol.Try {
			return done(try0(syscall.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)), "dropped groups")
		}},
		{"capabilities", func(*protocol.Brief) protocol.Try {
			if caps := capabilities(); strings.Trim(caps, "0") != "" {
				return reached("has capabilities %s", caps)
			}
			return protocol.Try{Outcome: protocol.Denied, Errno: "none", Detail: "every set is empty"}
		}},
	}
}

// capabilities returns the effective and permitted sets in the kernel's format.
func capabilities() string {
	data, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return "unknown"
	}
	out := ""
	for line := range strings.Lines(string(data)) {
		for _, k := range []string{"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"} {
			if v, ok := strings.CutPrefix(line, k); ok {
				out += strings.TrimSpace(v)
			}
		}
	}
	return out
}

// hostSecrets is P24.
func hostSecrets() []probe {
	var ps []probe
	for _, n := range []string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh/ssh_host_ed25519_key", "/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/dev/mem", "/proc/iomem", "/proc/slabinfo", "/proc/pagetypeinfo", "/proc/vmallocinfo", "/proc/keys", "/proc/sched_debug", "/sys/kernel/notes", "/proc/1/environ", "/var/lib/systemd/random-seed", "/sys/firmware/dmi/tables/DMI", "/etc/machine-id"} {
		ps = append(ps, probe{n, func(*protocol.Brief) protocol.Try {
			t := readName(n)
			if t.Outcome != protocol.Reached {
				return t
			}
			switch {
			case len(strings.TrimSpace(t.Loot)) == 0:
				return inside("there and empty")
			case n == "/proc/iomem" && !strings.Contains(strings.ReplaceAll(t.Loot, "00000000-00000000", ""), "-ffff") && strings.Contains(t.Loot, "00000000-00000000"):
				return inside("addresses are masked")
			case n == "/sys/kernel/notes" || n == "/etc/machine-id" || n == "/proc/keys":
				// Names that identify the machine are not secret here.
				return inside("readable: %d bytes that name the machine or our own keys", len(t.Loot))
			}
			t.Loot = "" // do not log the machine's own secrets
			return t
		}})
	}
	return append(ps,
		probe{"addresses of the kernel", func(*protocol.Brief) protocol.Try {
			data, err := os.ReadFile("/proc/kallsyms")
			if err != nil {
				return refused(err)
			}
			for line := range strings.Lines(string(data)) {
				if addr, _, ok := strings.Cut(line, " "); ok && strings.Trim(addr, "0") != "" {
					return reached("kernel addresses are readable")
				}
			}
			return protocol.Try{Outcome: protocol.Denied, Errno: "masked", Detail: "all addresses are zero"}
		}},
		probe{"home of another user", func(b *protocol.Brief) protocol.Try { return readName(b.Other) }},
		probe{"key in the home", func(b *protocol.Brief) protocol.Try { return readName(b.Secret) }},
		probe{"homes", func(*protocol.Brief) protocol.Try {
			return each([]string{"/root/.bashrc", "/root/.ssh", "/root/.profile"}, func(p string) protocol.Try {
				fd, err := unix.Open(p, unix.O_RDONLY, 0)
				return closeTry(fd, err, "opened")
			})
		}},
	)
}

// sideChannels is P30.
func sideChannels() []probe {
	return []probe{
		{"kernel log", func(*protocol.Brief) protocol.Try {
			buf := make([]byte, 64)
			n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, buf)
			if err != nil {
				return refused(err)
			}
			return reached("read %d bytes of the kernel log", n)
		}},
		{"channel: processor and topology", func(*protocol.Brief) protocol.Try {
			return each([]string{"/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu/online", "/proc/loadavg", "/proc/stat"}, func(p string) protocol.Try {
				fd, err := unix.Open(p, unix.O_RDONLY, 0)
				return closeTry(fd, err, "opened")
			})
		}},
		{"channel: time stamp counter", func(*protocol.Brief) protocol.Try {
			var ts unix.Timespec
			if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &ts); err != nil {
				return refused(err)
			}
			return reached("a clock of nanoseconds")
		}},
		{"energy counters", func(*protocol.Brief) protocol.Try {
			files := glob("/sys/class/powercap/*/energy_uj")
			if len(files) == 0 {
				return refused(unix.ENOENT)
			}
			return each(files, readName)
		}},
		{"page map", func(*protocol.Brief) protocol.Try {
			data := make([]byte, 8)
			f, err := os.Open("/proc/self/pagemap")
			if err != nil {
				return refused(err)
			}
			defer f.Close()
			addr := int64(uintptr(unsafe.Pointer(&data[0]))) / int64(os.Getpagesize()) * 8
			data[0] = 1
			if _, err := f.ReadAt(data, addr); err != nil {
				return refused(err)
			}
			if data[0]|data[1]|data[2]|data[3] != 0 {
				return reached("physical addresses are readable")
			}
			return protocol.Try{Outcome: protocol.Denied, Errno: "masked", Detail: "physical addresses are zero"}
		}},
	}
}
