package seccomp

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// run runs a program as the kernel does, on one call. It refuses what the
// kernel would refuse to load.
func run(p []sys.Instruction, arch, nr uint32, args [6]uint64) (uint32, error) {
	var data [64]byte // struct seccomp_data
	binary.LittleEndian.PutUint32(data[0:], nr)
	binary.LittleEndian.PutUint32(data[4:], arch)
	for i, a := range args {
		binary.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	var acc uint32
	for at := 0; at < len(p); at++ {
		in := p[at]
		var yes bool
		switch in.Code {
		case opLoad:
			if in.K%4 != 0 || in.K > 60 {
				return 0, fmt.Errorf("instruction %d loads from %d", at, in.K)
			}
			acc = binary.LittleEndian.Uint32(data[in.K:])
			continue
		case opAnd:
			acc &= in.K
			continue
		case opReturn:
			return in.K, nil
		case opIfEq:
			yes = acc == in.K
		case opIfGe:
			yes = acc >= in.K
		default:
			return 0, fmt.Errorf("instruction %d is %#x", at, in.Code)
		}
		if yes {
			at += int(in.Jt)
		} else {
			at += int(in.Jf)
		}
	}
	return 0, fmt.Errorf("the program runs out of its end")
}

// loadable says what of a program the kernel would not load.
func loadable(p []sys.Instruction) error {
	for i, in := range p {
		if (in.Code == opIfEq || in.Code == opIfGe) && i+1+int(max(in.Jt, in.Jf)) >= len(p) {
			return fmt.Errorf("instruction %d jumps out of the program", i)
		}
	}
	if p[len(p)-1].Code != opReturn {
		return fmt.Errorf("the last instruction is no return")
	}
	return nil
}

func (c condition) holds(v uint32) bool {
	if c.mask != 0 {
		v &= c.mask
	}
	return slices.Contains(c.value, v) != c.not
}

// same tells whether two conditions on the low 16 bits of an argument are one.
func (c condition) same(d condition) bool {
	for v := range uint32(1 << 16) {
		if c.holds(v) != d.holds(v) {
			return false
		}
	}
	return c.mask < 1<<16 && d.mask < 1<<16
}

// meaning is what a table says about a call, read without making a program.
func meaning(rules []rule, call string, args [6]uint64) uint32 {
	for _, r := range rules {
		if !slices.Contains(r.calls, call) {
			continue
		}
		all := true
		for _, c := range r.when {
			all = all && c.holds(uint32(args[c.arg]))
		}
		if all {
			return r.action
		}
	}
	return actAllow
}

// A try is a call and what is to become of it.
type try struct {
	calls string
	args  [6]uint64
	want  uint32
}

func args(list ...uint64) (a [6]uint64) {
	copy(a[:], list)
	return a
}

const any64 = 0xdead_beef_0000_0000 // bits of an argument that the kernel does not look at

func baseTries() []try {
	eperm, enosys, notty := errno(syscall.EPERM), errno(syscall.ENOSYS), errno(syscall.ENOTTY)
	noFamily, noProtocol := errno(syscall.EAFNOSUPPORT), errno(syscall.EPROTONOSUPPORT)
	const (
		unixFamily, inet, inet6, netlink = 1, 2, 10, 16
		stream, dgram, raw, packet       = 1, 2, 3, 10
		flags                            = 0o2004000 // close-on-exec, non-blocking
		creat, tmpfile, write            = 0o100, 0o20200000, 1
	)
	tries := []try{
		{"setns mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick open_tree open_tree_attr move_mount mount_setattr " +
			"swapon swapoff quotactl quotactl_fd keyctl add_key request_key bpf perf_event_open userfaultfd lookup_dcookie fanotify_init " +
			"kcmp move_pages migrate_pages mbind vhangup modify_ldt uselib sysfs ustat _sysctl nfsservctl open_by_handle_at " +
			"name_to_handle_at reboot kexec_load kexec_file_load init_module finit_module delete_module create_module query_module " +
			"get_kernel_syms acct iopl ioperm syslog sethostname setdomainname settimeofday clock_settime clock_adjtime adjtimex", args(), eperm},
		{"clone3 io_uring_setup io_uring_enter io_uring_register file_setattr " +
			"io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents", args(), enosys},
		{"setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat", args(), errno(syscall.EOPNOTSUPP)},

		{"clone unshare", args(0), actAllow},
		{"clone", args(0x003d0f00 | 17), actAllow}, // a thread, a signal
		{"clone", args(0x80), actAllow},            // part of the signal, not the time namespace
		{"unshare", args(0x80), eperm},
		{"unshare", args(0x600), actAllow}, // files, directory

		{"personality", args(0x10000), eperm},
		{"personality", args(1), eperm},

		{"socket", args(netlink, raw|flags, 0), actAllow},
		{"socket", args(netlink, raw, 9), noProtocol}, // audit
		{"socket", args(inet, raw, 1), eperm},
		{"socket", args(inet6, raw|flags, 58), eperm},
		{"socket", args(inet, packet, 0), eperm},
		{"socket", args(inet, dgram, 17), actAllow},
		{"socket", args(inet6, stream, 6), actAllow},
		{"socket socketpair", args(unixFamily, stream), actAllow},
		{"socket socketpair", args(unixFamily, 5|flags), actAllow},
		{"socket", args(unixFamily, dgram), noProtocol},
		{"socket", args(unixFamily, dgram|flags), noProtocol},
		{"socketpair", args(unixFamily, dgram), actAllow}, // refused or reported by another table
		{"socket socketpair", args(unixFamily, raw), noProtocol},
		{"socket", args(inet, dgram, 0), actAllow},
		{"socket", args(inet, dgram, 1), actAllow}, // ping
		{"socket", args(inet6, dgram|flags, 58), actAllow},
		{"socket", args(inet, stream|flags, 0), actAllow},
		{"socket", args(inet, stream, 200), noProtocol},
		{"socket", args(inet6, stream, 132), noProtocol}, // SCTP
		{"socket", args(inet, stream, 17), noProtocol},   // UDP
		{"socket", args(inet, stream, 262), noProtocol},  // MPTCP
		{"socket", args(inet, dgram, 6), noProtocol},
		{"socket", args(inet, dgram, 58), noProtocol},
		{"socket", args(inet6, dgram, 1), noProtocol},
		{"socket", args(inet6, dgram|flags, 115), noProtocol}, // L2TP
		{"socket", args(inet, 4, 0), errno(syscall.ESOCKTNOSUPPORT)},
		{"socket", args(inet, 5, 132), errno(syscall.ESOCKTNOSUPPORT)},
		{"socket", args(inet6, 9, 0), errno(syscall.ESOCKTNOSUPPORT)},
		{"socket", args(unixFamily, stream, 1), actAllow},
		{"socket", args(inet, stream, 6), actAllow},
		{"socket", args(inet6, dgram, 0), actAllow},
		{"socket", args(inet6, dgram, 17), actAllow},
		{"socket", args(inet6, 6|flags, 33), errno(syscall.ESOCKTNOSUPPORT)}, // DCCP
		{"socketpair", args(inet, stream), noFamily},
		{"socketpair", args(netlink, raw), noFamily},

		{"ioctl", args(0, 0x40049409), actAllow},
		{"ioctl", args(0, 0x4020940d), actAllow},
		{"ioctl", args(0, 0xc0189436), actAllow},
		{"ioctl", args(0, 0x5401), actAllow},     // TCGETS
		{"ioctl", args(0, 0x5000940e), notty},    // BTRFS_IOC_SUBVOL_CREATE
		{"ioctl", args(0, 0x40049409+1), notty},  // near to FICLONE
		{"ioctl", args(0, 0x4008bc10), notty},    // bcachefs
		{"ioctl", args(0, 0x40206f04), notty},    // OCFS2_IOC_REFLINK
		{"ioctl", args(0, 0x5412, 0), eperm},     // TIOCSTI
		{"ioctl", args(0, 0x541c, 0), eperm},     // TIOCLINUX
		{"ioctl", args(0x5412, 0, 0), actAllow},  // a descriptor of that number
		{"ioctl", args(0, 0x5423, 0), eperm},     // TIOCSETD
		{"ioctl", args(0, 0x5424, 0), actAllow},  // TIOCGETD
		{"ioctl", args(0, 0x8910), actAllow},     // SIOCGIFNAME
		{"setsockopt", args(3, 1, 27), actAllow}, // SO_DETACH_FILTER
		{"setsockopt", args(3, 1, 2), actAllow},  // SO_REUSEADDR
		{"setsockopt", args(3, 0, 26), actAllow},
		{"setsockopt", args(26, 6, 1), actAllow}, // TCP_NODELAY
		{"setsockopt", args(3, 1, 14), actAllow},
		{"mmap", args(0, 4096, 3, 0x40022), errno(syscall.ENOMEM)},   // MAP_HUGETLB
		{"mmap", args(0x40000, 0x40000, 3, 0x20022, 5, 0), actAllow}, // MAP_STACK
		{"memfd_create", args(0, 4), errno(syscall.ENOMEM)},          // MFD_HUGETLB
		{"memfd_create", args(0, 4|1|0x54000000), errno(syscall.ENOMEM)},
		{"memfd_create", args(0, 0x1b), actAllow},
		{"shmget", args(0, 4096, 0o5600), errno(syscall.ENOMEM)}, // SHM_HUGETLB
		{"shmget", args(0, 4096, 0o1600), actAllow},
		{"memfd_secret cachestat", args(), enosys},
		{"sync syncfs", args(), errno(0)},
		{"fadvise64", args(3, 0, 0, 4), errno(0)},                         // POSIX_FADV_DONTNEED
		{"fadvise64", args(4, 4, 4, 3), actAllow},                         // POSIX_FADV_WILLNEED
		{"preadv2", args(3, 0, 1, 0, 0, 8), errno(syscall.EOPNOTSUPP)},    // RWF_NOWAIT
		{"preadv2", args(3, 0, 1, 0, 0, 0x80), errno(syscall.EOPNOTSUPP)}, // RWF_DONTCACHE
		{"preadv2", args(8, 8, 8, 8, 8, 0x37), actAllow},
		{"madvise", args(0, 4096, 12), errno(syscall.EINVAL)}, // MADV_MERGEABLE
		{"madvise", args(12, 4096, 4), actAllow},              // MADV_DONTNEED
		{"prctl", args(62), errno(syscall.EINVAL)},            // PR_SCHED_CORE
		{"prctl", args(67, 1), errno(syscall.EINVAL)},         // PR_SET_MEMORY_MERGE
		{"prctl", args(38, 1), actAllow},                      // PR_SET_NO_NEW_PRIVS
		{"fcntl", args(3, 1024, 0), errno(syscall.EINVAL)},    // F_SETLEASE
		{"fcntl", args(3, 1026, 4), errno(syscall.EINVAL)},    // F_NOTIFY
		{"fcntl", args(3, 1040, 0), errno(syscall.EINVAL)},    // F_SETDELEG
		{"fcntl", args(1024, 3, 1026), actAllow},
		{"fcntl", args(3, 1025), actAllow},        // F_GETLEASE
		{"fcntl", args(3, 1031, 1<<20), actAllow}, // F_SETPIPE_SZ
		{"fcntl", args(3, 6, 0), actAllow},        // F_SETLK
		{"prlimit64", args(0, 7), actAllow},
		{"prlimit64", args(1, 7), eperm},
		{"prlimit64", args(0xffffffff, 7), eperm},

		{"chmod fchmod", args(0, 0o1777), actAllow},
		{"fchmodat fchmodat2 mknodat", args(0, 0, 0o1777), actAllow},
		{"creat mknod", args(0, 0o1777), actAllow},
		{"open", args(0, write, 0o6000), actAllow}, // no file is made: the mode means nothing
		{"openat", args(0, 0, write, 0o6000), actAllow},
		{"open", args(0, write|creat, 0o1777), actAllow},
		{"openat", args(0, 0, write|creat, 0o1777), actAllow},

		{"read write execve seccomp connect openat2 rename", args(), actAllow},
	}
	for _, flag := range []uint64{0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000} {
		tries = append(tries, try{"clone unshare", args(flag), eperm})
	}
	for _, p := range []uint64{0, 8, 0x20000, 0x20008, 0x40000, 0xffffffff} {
		tries = append(tries, try{"personality", args(p), actAllow})
	}
	for family := range uint64(64) {
		switch family {
		case unixFamily, inet, inet6, netlink:
		default:
			tries = append(tries, try{"socket", args(family, stream), noFamily})
		}
	}
	for _, request := range []uint64{0x8940, 0x8941, 0x89a0, 0x89a1, 0x8982, 0x8983} { // of bridges and VLANs
		tries = append(tries, try{"ioctl", args(3, request), errno(syscall.ENOPKG)})
	}
	for _, option := range []uint64{14, 32, 38, 39, 40, 41, 42, 43} { // TCP_MD5SIG, TCP_AO
		tries = append(tries, try{"setsockopt", args(3, 6, option), errno(syscall.ENOPROTOOPT)})
	}
	for _, option := range []uint64{100, 104} { // UDP_ENCAP, UDP_GRO
		tries = append(tries, try{"setsockopt", args(3, 17, option), errno(syscall.ENOPROTOOPT)}, try{"setsockopt", args(3, 136, option), errno(syscall.ENOPROTOOPT)},
			try{"setsockopt", args(17, 0, option), actAllow})
	}
	tries = append(tries, try{"setsockopt", args(3, 17, 103), actAllow}) // UDP_SEGMENT
	for _, option := range []uint64{26, 50, 51, 52} {                    // SO_ATTACH
		tries = append(tries, try{"setsockopt", args(3, 1, option), eperm})
	}
	tries = append(tries,
		try{"setsockopt", args(3, 41, 32), errno(syscall.ENOPROTOOPT)}, // IPV6_FLOWLABEL_MGR
		try{"setsockopt", args(3, 58, 32), actAllow},                   // of ICMPv6
		try{"process_madvise", args(3, 0, 0, 21), eperm},
		try{"setsockopt", args(3, 41, 26), actAllow},          // IPV6_V6ONLY
		try{"setsockopt", args(3, 0, 32), actAllow},           // IP_MULTICAST_IF
		try{"madvise", args(0, 0, 20), errno(syscall.EINVAL)}, // MADV_COLD
		try{"madvise", args(0, 0, 21), errno(syscall.EINVAL)}, // MADV_PAGEOUT
		try{"madvise", args(0, 0, 4), actAllow})               // MADV_DONTNEED
	for option := uint64(60); option < 90; option++ {
		switch {
		case option == 62, option == 67, option > 77:
			tries = append(tries, try{"prctl", args(option), errno(syscall.EINVAL)})
		default:
			tries = append(tries, try{"prctl", args(option), actAllow})
		}
	}
	for _, option := range []uint64{0x41555856, 0x53564d41, 0x59616d61} { // PR_GET_AUXV, PR_SET_VMA, PR_SET_PTRACER
		tries = append(tries, try{"prctl", args(option), actAllow})
	}
	for bit := uint64(128); bit < 1<<32; bit <<= 1 {
		tries = append(tries, try{"prctl", args(bit), errno(syscall.EINVAL)})
	}
	for bit := uint64(1); bit < 1<<32; bit <<= 1 { // flags of preadv2
		if bit&0x37 == 0 {
			tries = append(tries, try{"preadv2", args(3, 0, 1, 0, 0, bit), errno(syscall.EOPNOTSUPP)})
		}
	}
	for _, bit := range []uint64{0o4000, 0o2000} {
		tries = append(tries,
			try{"chmod fchmod creat mknod", args(0, bit|0o755), eperm},
			try{"fchmodat fchmodat2 mknodat", args(0, 0, bit|0o755), eperm},
			try{"open", args(0, write|creat, bit|0o755), eperm},
			try{"open", args(0, write|tmpfile, bit|0o755), eperm},
			try{"openat", args(0, 0, write|creat, bit|0o755), eperm},
			try{"openat", args(0, 0, write|tmpfile, bit|0o755), eperm})
	}
	return tries
}

// insideTries are those of calls that are refused inside too, which is then for
// the same arguments.
func insideTries() []try {
	var tries []try
	for _, try := range baseTries() {
		var calls []string
		for call := range strings.FieldsSeq(try.calls) {
			// Both tables have rules about fcntl, but other ones.
			if call != "fcntl" && slices.ContainsFunc(insideRules(), func(r rule) bool { return slices.Contains(r.calls, call) }) {
				calls = append(calls, call)
			}
		}
		try.calls = strings.Join(calls, " ")
		tries = append(tries, try)
	}
	return append(tries,
		try{"fcntl", args(3, 10, 9), errno(syscall.EPERM)},
		try{"fcntl", args(3, 8, 1), actAllow},
		try{"fcntl", args(3, 11, 0), actAllow},
		try{"mount setxattr syslog", args(), actAllow})
}

func jailTries() []try {
	const unixFamily, inet, inet6, netlink = 1, 2, 10, 16
	return []try{
		{"flock inotify_add_watch listen sysinfo sched_getaffinity", args(), actNotify},
		{"seccomp", args(1, 0), actNotify},
		{"seccomp", args(1, 0x11), actNotify},
		{"seccomp", args(1, 0x8|0x10), actAllow}, // the rule of commands refuses it
		{"seccomp", args(0, 0), actAllow},        // strict
		{"seccomp", args(2, 1), actAllow},        // a question
		{"prctl", args(22, 2), actNotify},
		{"prctl", args(22, 1), actAllow},
		{"prctl", args(15, 2), actAllow}, // a name
		{"socket", args(netlink, 2), actNotify},
		{"socket", args(netlink, 3|0o2004000), actNotify},
		{"socket", args(inet, 2), actNotify},
		{"socket", args(inet6, 2|0o2004000, 17), actNotify},
		{"socket", args(inet, 1), actNotify},
		{"socket", args(inet6, 1|0o2004000, 6), actNotify},
		{"socket", args(unixFamily, 1), actAllow},
		{"socket", args(inet, 5), actAllow},
		{"socket", args(inet, 6), actAllow},
		{"socket", args(inet, 10), actAllow},
		{"socket", args(unixFamily, 2), actAllow},
		{"setsockopt", args(3, 41, 20), actNotify}, // IPV6_JOIN_GROUP
		{"setsockopt", args(3, 41, 42), actNotify}, // MCAST_JOIN_GROUP
		{"setsockopt", args(3, 41, 46), actNotify}, // MCAST_JOIN_SOURCE_GROUP
		{"setsockopt", args(3, 41, 21), actAllow},  // IPV6_LEAVE_GROUP
		{"setsockopt", args(3, 0, 42), actAllow},   // IPv4
		{"socketpair", args(unixFamily, 2), actNotify},
		{"socketpair", args(unixFamily, 2|0o2004000), actNotify},
		{"socketpair", args(unixFamily, 1), actAllow},
		{"socketpair", args(unixFamily, 5|0o2004000), actAllow},
		{"read write", args(), actAllow},
	}
}

func supervisorTries() []try {
	const unixFamily = 1
	return []try{
		{"socketpair", args(unixFamily, 2), errno(syscall.EPROTONOSUPPORT)},
		{"socketpair", args(unixFamily, 2|0o2004000), errno(syscall.EPROTONOSUPPORT)},
		{"socketpair", args(unixFamily, 1), actAllow},
		{"socketpair", args(unixFamily, 5|0o2004000), actAllow},
		{"read write", args(), actAllow},
	}
}

// engineTries are those of a kernel of the box's own.
func engineTries() []try {
	var tries []try
	for _, lock := range []uint64{6, 7, 37, 38} {
		tries = append(tries, try{"fcntl", args(3, lock), errno(syscall.ENOLCK)})
	}
	for _, other := range []uint64{0, 3, 4, 5, 8, 36, 1030} {
		tries = append(tries, try{"fcntl", args(6, other), actAllow}) // also of descriptor 6
	}
	return append(tries,
		try{"flock", args(), errno(syscall.ENOLCK)},
		try{"inotify_add_watch", args(), errno(syscall.EPERM)},
		try{"read write", args(), actAllow})
}

func guestTries(trees bool) []try {
	tries := []try{
		{"openat2", args(), errno(syscall.ENOSYS)},
		{"seccomp", args(1, 0), actAllow},
		{"seccomp", args(1, 0x1|0x10), actAllow},
		{"seccomp", args(1, 0x8), errno(syscall.EBUSY)},
		{"seccomp", args(1, 0x8|0x10), errno(syscall.EBUSY)},
		{"seccomp", args(0x8, 0), actAllow},
		{"connect bind", args(), actNotify},
		{"open", args(), actAllow},
		{"openat", args(), actAllow},
	}
	want := uint32(actAllow)
	if trees {
		want = actNotify
	}
	for _, flag := range []uint64{1, 2, 0o100, 0o1000, 0o20000000} {
		tries = append(tries, try{"open", args(0, flag), want}, try{"openat", args(0, 0, flag), want})
	}
	return append(tries,
		try{"open", args(1, 0o2200000), actAllow}, // a directory, close-on-exec
		try{"openat", args(1, 1, 0o2200000), actAllow},
		try{"creat mkdir mkdirat mknod mknodat rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat rmdir truncate", args(), want},
		try{"chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat", args(), want})
}

// machineTries are those of a machine's process, number 77.
func machineTries(reads bool) []try {
	eperm, eacces := errno(syscall.EPERM), errno(syscall.EACCES)
	var tries []try
	for _, try := range baseTries() { // the walls
		var calls []string
		for call := range strings.FieldsSeq(try.calls) {
			if slices.ContainsFunc(wallRules(), func(r rule) bool { return slices.Contains(r.calls, call) }) {
				calls = append(calls, call)
			}
		}
		try.calls = strings.Join(calls, " ")
		tries = append(tries, try)
	}
	want := uint32(actAllow)
	if reads {
		want = actNotify
	}
	for _, flag := range []uint64{1, 2, 0o100, 0o1000, 0o20000000} {
		tries = append(tries, try{"open", args(0, flag), actNotify}, try{"openat", args(0, 0, flag), actNotify})
	}
	return append(append(tries, engineTries()...),
		try{"open", args(1, 0o2200000), want},
		try{"openat", args(1, 1, 0o2200000), want},
		try{"openat2", args(), errno(syscall.ENOSYS)},
		try{"seccomp", args(1, 0x8|0x10), errno(syscall.EBUSY)},
		try{"seccomp", args(0x8, 0x1), actAllow},
		try{"execve", args(), actNotify},
		try{"execveat socket socketpair connect bind ptrace process_vm_readv process_vm_writev process_madvise pidfd_open pidfd_getfd " +
			"pidfd_send_signal tkill rt_sigqueueinfo", args(77), eperm},
		try{"kill tgkill rt_tgsigqueueinfo", args(77, 9), actAllow},
		try{"kill tgkill rt_tgsigqueueinfo", args(1, 77), eperm},
		try{"kill", args(0xffffffff, 9), eperm},
		try{"creat mkdir mkdirat mknod mknodat rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat rmdir truncate", args(), eacces},
		try{"chmod fchmod fchmodat fchmodat2", args(), eacces},
		try{"fallocate", args(5, 3), errno(0)},
		try{"read write ioctl", args(), actAllow})
}

// A table is one that is in use, with all that is tried on it.
type table struct {
	rules []rule
	tries []try
}

func tables() map[string]table {
	return map[string]table{
		"base":        {baseRules(), baseTries()},
		"inside":      {insideRules(), insideTries()},
		"jail":        {jailRules(), jailTries()},
		"engine":      {engineRules(), engineTries()},
		"supervisor":  {supervisorRules(), supervisorTries()},
		"guest":       {guestRules(false), guestTries(false)},
		"guest trees": {guestRules(true), guestTries(true)},

		"machine":       {machineRules(77, false), machineTries(false)},
		"machine reads": {machineRules(77, true), machineTries(true)},
	}
}

// others are calls that no table names.
func others() map[string]uint32 {
	return map[string]uint32{"read": syscall.SYS_READ, "write": syscall.SYS_WRITE, "execve": syscall.SYS_EXECVE}
}

// number of a call, also one that no table names.
func number(call string) (uint32, bool) {
	if nr, ok := others()[call]; ok {
		return nr, true
	}
	nr, ok := sys.Numbers()[call]
	return nr, ok
}

// high gives arguments with every bit set that the kernel does not look at.
func high(a [6]uint64) [6]uint64 {
	for i := range a {
		a[i] |= any64
	}
	return a
}

func TestEveryRuleAnswersAsItSays(t *testing.T) {
	for name, table := range tables() {
		t.Run(name, func(t *testing.T) {
			p, err := assemble(table.rules, sys.Numbers())
			if err != nil {
				t.Fatal(err)
			}
			if err := loadable(p); err != nil {
				t.Fatal(err)
			}
			for _, try := range table.tries {
				for call := range strings.FieldsSeq(try.calls) {
					nr, ok := number(call)
					if !ok {
						if runtime.GOARCH == "amd64" {
							t.Errorf("%s has no number", call)
						}
						continue
					}
					for _, a := range [][6]uint64{try.args, high(try.args)} {
						if got, err := run(p, sys.Arch, nr, a); err != nil || got != try.want {
							t.Errorf("%s %#x: %#x, %v, want %#x", call, a, got, err, try.want)
						}
						if sys.X32 != 0 {
							if got, err := run(p, sys.Arch, nr|sys.X32, a); err != nil || got != errno(syscall.ENOSYS) {
								t.Errorf("%s %#x of x32: %#x, %v", call, a, got, err)
							}
						}
						for _, arch := range []uint32{0, 0x40000003 /* i386 */, 0x40000028 /* ARM */, sys.Arch ^ 1, sys.Arch ^ 0x80000000} {
							if got, err := run(p, arch, nr, a); err != nil || got != actKill {
								t.Errorf("%s %#x of architecture %#x: %#x, %v", call, a, arch, got, err)
							}
						}
					}
				}
			}
		})
	}
}

func TestEveryCallOfTheRulesHasANumber(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other architectures lack the old calls")
	}
	for name, table := range tables() {
		for _, r := range table.rules {
			for _, call := range r.calls {
				if _, ok := sys.Numbers()[call]; !ok {
					t.Errorf("%s: rule %q names %s, which has no number, so it does nothing", name, r.why, call)
				}
			}
		}
	}
}

// A change is a table with one thing taken out of it.
type change struct {
	what  string
	rules []rule
}

// changes takes each row, call, condition, value and bit out of rules in turn.
func changes(rules []rule) []change {
	var all []change
	for i, r := range rules {
		with := func(what string, r rule) {
			list := slices.Clone(rules)
			list[i] = r
			all = append(all, change{fmt.Sprintf("row %d (%s) without %s", i, r.why, what), list})
		}
		var here []string // calls that this architecture has
		for _, c := range r.calls {
			if _, ok := sys.Numbers()[c]; ok {
				here = append(here, c)
			}
		}
		if len(here) == 0 {
			continue
		}
		with("anything", rule{why: r.why})
		for _, c := range here {
			less := r
			less.calls = slices.DeleteFunc(slices.Clone(r.calls), func(o string) bool { return o == c })
			with("call "+c, less)
		}
		for j, c := range r.when {
			less := r
			less.when = slices.Delete(slices.Clone(r.when), j, j+1)
			with(fmt.Sprintf("condition %d", j), less)
			put := func(what string, c condition) {
				less := r
				less.when = slices.Clone(r.when)
				less.when[j] = c
				with(what, less)
			}
			for k, v := range c.value {
				if len(c.value) > 1 {
					few := c
					few.value = slices.Delete(slices.Clone(c.value), k, k+1)
					put(fmt.Sprintf("value %#x", v), few)
				}
			}
			for rest := c.mask; rest != 0; rest &= rest - 1 {
				bit := uint32(1) << bits.TrailingZeros32(rest)
				few := c
				few.mask &^= bit
				// A bit that no value has makes the condition hold more often: that
				// a call is refused too much shows elsewhere.
				strict := !c.not && !slices.ContainsFunc(c.value, func(v uint32) bool { return v&bit != 0 })
				if !strict && !c.same(few) {
					put(fmt.Sprintf("bit %#x of the mask", bit), few)
				}
			}
		}
	}
	return all
}

// Whoever adds a row, a call, a condition, a value or a bit must try it above:
// without a try, taking it out again would change nothing that is seen here.
func TestEverythingInTheRulesIsTried(t *testing.T) {
	for name, table := range tables() {
		for _, c := range changes(table.rules) {
			seen := slices.ContainsFunc(table.tries, func(try try) bool {
				for call := range strings.FieldsSeq(try.calls) {
					if _, ok := number(call); ok && meaning(c.rules, call, try.args) != try.want {
						return true
					}
				}
				return false
			})
			if !seen {
				t.Errorf("%s: %s answers every try as before", name, c.what)
			}
		}
	}
}

// The kernel takes the strictest answer of all filters: the smallest as a
// signed number.
func TestTheBrokerIsNotAskedForWhatIsRefused(t *testing.T) {
	base, err := assemble(baseRules(), sys.Numbers())
	if err != nil {
		t.Fatal(err)
	}
	above, err := assemble(guestRules(true), sys.Numbers())
	if err != nil {
		t.Fatal(err)
	}
	for call, a := range map[string][6]uint64{"fchmod": args(0, 0o4755), "fchmodat": args(0, 0, 0o2755), "openat": args(0, 0, 0o101, 0o4755)} {
		nr := sys.Numbers()[call]
		first, err1 := run(base, sys.Arch, nr, a)
		second, err2 := run(above, sys.Arch, nr, a)
		if err1 != nil || err2 != nil || min(int32(first), int32(second)) != int32(errno(syscall.EPERM)) {
			t.Errorf("%s: %#x and %#x, %v, %v", call, first, second, err1, err2)
		}
	}
}

// wide makes a rule of so many calls, conditions and values, and their numbers.
func wide(calls, conditions, values int, not bool) (rule, map[string]uint32) {
	r := rule{why: "wide", action: errno(syscall.EPERM)}
	numbers := map[string]uint32{"other": 9999}
	for i := range calls {
		name := fmt.Sprint("call", i)
		r.calls = append(r.calls, name)
		numbers[name] = uint32(i)
	}
	for i := range conditions {
		c := condition{arg: i % 6, not: not}
		for v := range values {
			c.value = append(c.value, uint32(v))
		}
		r.when = append(r.when, c)
	}
	return r, numbers
}

func TestNoJumpIsLongerThanItCanBe(t *testing.T) {
	assembled, refused := 0, 0
	for _, calls := range []int{1, 2, 253, 254, 255, 256, 257, 511, 512} {
		for _, shape := range [][2]int{{0, 0}, {1, 1}, {1, 249}, {1, 250}, {1, 251}, {1, 252}, {1, 253}, {1, 254}, {1, 255}, {1, 256}, {1, 257}, {1, 511},
			{2, 100}, {2, 124}, {2, 125}, {2, 126}, {2, 127}, {2, 128}, {6, 40}, {6, 41}, {6, 42}, {6, 43}} {
			for _, not := range []bool{false, true} {
				r, numbers := wide(calls, shape[0], shape[1], not)
				rules := []rule{r, {why: "next", calls: []string{"other"}, action: actNotify}}
				p, err := assemble(rules, numbers)
				if err != nil {
					refused++
					continue
				}
				assembled++
				agree(t, rules, numbers, p, shape[1])
			}
		}
	}
	if assembled == 0 || refused == 0 {
		t.Errorf("%d tables made a program and %d were refused", assembled, refused)
	}
}

// agree checks that a program says what its table says, at all the edges.
func agree(t *testing.T, rules []rule, numbers map[string]uint32, p []sys.Instruction, values int) {
	t.Helper()
	if err := loadable(p); err != nil {
		t.Fatal(err)
	}
	var tried [][6]uint64
	for _, v := range []int{0, 1, values - 1, values, values + 1} {
		for odd := range 6 {
			a := [6]uint64{}
			for i := range a {
				a[i] = uint64(max(v, 0))
			}
			tried = append(tried, a)
			a[odd] = uint64(values + 7)
			tried = append(tried, a)
		}
	}
	for call, nr := range numbers {
		for _, a := range tried {
			want := meaning(rules, call, a)
			if got, err := run(p, sys.Arch, nr, a); err != nil || got != want {
				t.Fatalf("%d calls, %d conditions, %d values: %s %#x: %#x, %v, want %#x",
					len(rules[0].calls), len(rules[0].when), values, call, a, got, err, want)
			}
		}
	}
}

func TestAProgramMeansItsTable(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	numbers := map[string]uint32{"a": 0, "b": 1, "c": 2, "d": 300, "e": 0x3fffffff}
	names := []string{"a", "b", "c", "d", "e", "unknown"}
	for range 2000 {
		var rules []rule
		for range 1 + rnd.IntN(6) {
			r := rule{why: "random", calls: names[rnd.IntN(3) : 3+rnd.IntN(4)], action: errno(syscall.Errno(1 + rnd.IntN(100)))}
			for range rnd.IntN(4) {
				c := condition{arg: rnd.IntN(6), not: rnd.IntN(2) == 0, mask: uint32(rnd.IntN(8))}
				for range 1 + rnd.IntN(4) {
					c.value = append(c.value, uint32(rnd.IntN(8)))
				}
				r.when = append(r.when, c)
			}
			rules = append(rules, r)
		}
		p, err := assemble(rules, numbers)
		if err != nil {
			t.Fatal(err)
		}
		if err := loadable(p); err != nil {
			t.Fatal(err)
		}
		for call, nr := range numbers {
			var a [6]uint64
			for i := range a {
				a[i] = uint64(rnd.IntN(8)) | uint64(rnd.Uint32())<<32
			}
			want := meaning(rules, call, a)
			if got, err := run(p, sys.Arch, nr, a); err != nil || got != want {
				t.Fatalf("%+v: %s %#x: %#x, %v, want %#x", rules, call, a, got, err, want)
			}
		}
	}
}

func TestATableThatMakesNoSenseIsRefused(t *testing.T) {
	numbers := map[string]uint32{"a": 0}
	for what, rules := range map[string][]rule{
		"nothing":                     nil,
		"unknown calls only":          {{why: "x", calls: []string{"b"}}},
		"a condition without a value": {{why: "x", calls: []string{"a"}, when: []condition{{}}}},
		"more than the kernel takes":  slices.Repeat([]rule{{why: "x", calls: []string{"a"}}}, 2100),
	} {
		if _, err := assemble(rules, numbers); err == nil {
			t.Errorf("%s makes a program", what)
		}
	}
}
