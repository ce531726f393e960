package seccomp

import (
	"slices"
	"syscall"
)

// Actions of a filter, as linux/seccomp.h has them.
const (
	actAllow  = 0x7fff0000
	actNotify = 0x7fc00000
	actErrno  = 0x00050000
	actKill   = 0x80000000
)

func errno(e syscall.Errno) uint32 { return actErrno | uint32(e) }

// A condition is about the low 32 bits of one argument; every argument that
// the table looks at is an int to the kernel.
type condition struct {
	arg   int
	mask  uint32 // applied first; 0 is all bits
	not   bool   // true where the masked value is not among values
	value []uint32
}

// any holds where one of the bits is set.
func anyBit(arg int, bits uint32) condition {
	return condition{arg: arg, mask: bits, not: true, value: []uint32{0}}
}

func is(arg int, values ...uint32) condition    { return condition{arg: arg, value: values} }
func isNot(arg int, values ...uint32) condition { return condition{arg: arg, not: true, value: values} }

// A rule answers calls by name, where all conditions hold.
type rule struct {
	why    string
	calls  []string
	when   []condition
	action uint32
}

const (
	setIDBits = 0o6000
	// The namespace flags that clone(2) and unshare(2) take; the time
	// namespace's bit means something else to clone.
	newNamespaces   = 0x7e020000
	newTimeNS       = 0x80
	openCreate      = syscall.O_CREAT
	openTmpfile     = 0o20000000
	openChange      = syscall.O_WRONLY | syscall.O_RDWR | syscall.O_CREAT | syscall.O_TRUNC | openTmpfile
	newListenerFlag = 0x8
	setModeFilter   = 1  // SECCOMP_SET_MODE_FILTER
	setSeccomp      = 22 // PR_SET_SECCOMP
	seccompFilter   = 2  // SECCOMP_MODE_FILTER
	setSignal       = 10 // F_SETSIG
	// Commands of fcntl that act on a file for other processes too.
	setLease      = 1024
	notifyOf      = 1026 // F_NOTIFY
	setDelegation = 1040 // F_SETDELEG
	setLock       = 6    // F_SETLK
	setLockWait   = 7    // F_SETLKW

	setOpenLock     = 37 // F_OFD_SETLK
	setOpenLockWait = 38 // F_OFD_SETLKW
)

// baseRules holds for the agent in a jail and everything it starts.
func baseRules() []rule { return slices.Concat(wallRules(), kernelRules()) }

// insideRules holds for commands on a kernel of the box's own. They are few: that
// kernel refuses by itself what needs a capability, which no command has where
// there are no new namespaces, and lacks most of what the host's is closed
// against; and gVisor runs the whole filter for every number there is, in each
// fork.
func insideRules() []rule {
	return slices.Concat(namespaceRules(), setIDRules(), []rule{ringRule(),
		{"what a machine's kernel has and gVisor has not, and no command needs", []string{"quotactl", "quotactl_fd", "userfaultfd", "modify_ldt", "keyctl", "add_key", "request_key",
			"bpf", "perf_event_open", "fanotify_init"}, nil, errno(syscall.EPERM)}}, ownRules())
}

// jailRules hold for commands on the host's kernel, on top of guestRules.
func jailRules() []rule {
	return []rule{
		{"a socket that is bound in a mount must not be listened on before the host cannot reach it", []string{"listen"}, nil, actNotify},
		{"the broker makes a pair that cannot be sent anywhere by name", []string{"socketpair"}, []condition{datagramPair}, actNotify},
		{"others wait for what is locked", []string{"flock"}, nil, actNotify},
		{"a watch tells what others do with a file", []string{"inotify_add_watch"}, nil, actNotify},
		{"compiled filters have one bound for the whole machine, and nobody is charged for them, so they are counted", []string{"seccomp"},
			[]condition{is(0, setModeFilter), {arg: 1, mask: newListenerFlag, value: []uint32{0}}}, actNotify},
		{"the same, by the older call", []string{"prctl"}, []condition{is(0, setSeccomp), is(1, seccompFilter)}, actNotify},
		{"they tell the size of the machine, by which programs choose their own", []string{"sysinfo", "sched_getaffinity"}, nil, actNotify},
		{"the kernel charges nobody for what waits in them, so they are counted", []string{"socket"}, []condition{is(0, syscall.AF_NETLINK)}, actNotify},
		{"the same, for what is not sent yet; and the machine has a number of connections that nobody has open", []string{"socket"},
			[]condition{is(0, syscall.AF_INET, syscall.AF_INET6), {arg: 1, mask: 0xf, value: []uint32{syscall.SOCK_DGRAM, syscall.SOCK_STREAM}}}, actNotify},
		{"the kernel charges nobody for memberships of groups, so they are counted; it bounds those of IPv4 for each socket", []string{"setsockopt"},
			[]condition{is(1, syscall.IPPROTO_IPV6), is(2, syscall.IPV6_JOIN_GROUP, 42, 46 /* MCAST_JOIN_… */)}, actNotify},
	}
}

// datagramPair is of a pair of datagram sockets.
var datagramPair = condition{arg: 1, mask: 0xf, value: []uint32{syscall.SOCK_DGRAM}}

// supervisorRules hold for a guest kernel and its supervisor, on top of kernelRules.
func supervisorRules() []rule {
	return []rule{{"a datagram socket can be sent anywhere by name, past connect", []string{"socketpair"}, []condition{datagramPair}, errno(syscall.EPROTONOSUPPORT)}}
}

// engineRules hold for the processes of a kernel of the box's own. It has locks and watches of its own for
// its commands, which no lock or watch on the host stands for.
func engineRules() []rule {
	return []rule{
		{"others on the host wait for what is locked", []string{"flock"}, nil, errno(syscall.ENOLCK)},
		{"the same", []string{"fcntl"}, []condition{is(1, setLock, setLockWait, setOpenLock, setOpenLockWait)}, errno(syscall.ENOLCK)},
		{"a watch tells what others do with a file", []string{"inotify_add_watch"}, nil, errno(syscall.EPERM)},
	}
}

// ringRule holds everywhere: what has set-id bits could be made past setIDRules.
func ringRule() rule {
	return rule{"does system calls that no filter sees", []string{"io_uring_setup", "io_uring_enter", "io_uring_register"}, nil, errno(syscall.ENOSYS)}
}

// wallRules keep the box's walls as they are.
func wallRules() []rule {
	eperm := errno(syscall.EPERM)
	return append(namespaceRules(),
		rule{"mounts are the box's walls", []string{"mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick",
			"open_tree", "open_tree_attr", "move_mount", "mount_setattr", "swapon", "swapoff", "quotactl", "quotactl_fd"}, nil, eperm},
		rule{"limits of another process: of the agent above all", []string{"prlimit64"}, []condition{isNot(0, 0)}, eperm})
}

func namespaceRules() []rule {
	eperm, enosys := errno(syscall.EPERM), errno(syscall.ENOSYS)
	return []rule{
		{"new namespaces give capabilities over themselves, and with them most kernel bugs",
			[]string{"clone"}, []condition{anyBit(0, newNamespaces)}, eperm},
		{"the same, by unshare", []string{"unshare"}, []condition{anyBit(0, newNamespaces|newTimeNS)}, eperm},
		{"its flags are in memory, where a filter cannot see; programs fall back to clone", []string{"clone3"}, nil, enosys},
		{"entering other namespaces", []string{"setns"}, nil, eperm},
	}
}

// setIDRules keep commands from making a program that is somebody else's where it
// is executed later.
func setIDRules() []rule {
	eperm := errno(syscall.EPERM)
	return []rule{
		{"set-id bits outlive the box in a workspace", []string{"chmod", "fchmod"}, []condition{anyBit(1, setIDBits)}, eperm},
		{"set-id bits", []string{"fchmodat", "fchmodat2", "mknodat"}, []condition{anyBit(2, setIDBits)}, eperm},
		{"set-id bits", []string{"creat", "mknod"}, []condition{anyBit(1, setIDBits)}, eperm},
		{"set-id bits", []string{"open"}, []condition{anyBit(1, openCreate|openTmpfile), anyBit(2, setIDBits)}, eperm},
		{"set-id bits", []string{"openat"}, []condition{anyBit(2, openCreate|openTmpfile), anyBit(3, setIDBits)}, eperm},
	}
}

// ownRules are about what gVisor does otherwise than the host's kernel.
func ownRules() []rule {
	return []rule{
		{"gVisor lets user 0 have any process sent any signal, when a file is ready; SIGIO, which is left, the agent outlives", []string{"fcntl"},
			[]condition{is(1, setSignal)}, errno(syscall.EPERM)},
		{"gVisor asks for no right before it has looked at the arguments", []string{"fsconfig"}, nil, errno(syscall.EPERM)},
	}
}

// kernelRules holds also for a kernel of the box's own, which builds walls of
// its own out of namespaces and mounts when it starts.
func kernelRules() []rule {
	eperm, enosys := errno(syscall.EPERM), errno(syscall.ENOSYS)
	rules := []rule{
		{"keys are not all in a namespace", []string{"keyctl", "add_key", "request_key"}, nil, eperm},
		{"large kernel interfaces with a history", []string{"bpf", "perf_event_open", "userfaultfd", "lookup_dcookie", "fanotify_init",
			"kcmp", "move_pages", "migrate_pages", "mbind", "vhangup", "modify_ldt", "uselib", "sysfs", "ustat", "_sysctl", "nfsservctl"}, nil, eperm},
		ringRule(),
		{"the number of these contexts is one for the whole machine; programs fall back to threads",
			[]string{"io_setup", "io_destroy", "io_submit", "io_cancel", "io_getevents", "io_pgetevents"}, nil, enosys},
		{"whoever opens a leased file waits, also on the host; signals about a directory tell what the host does in it", []string{"fcntl"},
			[]condition{is(1, setLease, notifyOf, setDelegation)}, errno(syscall.EINVAL)},
		{"file handles name files without a path", []string{"open_by_handle_at", "name_to_handle_at"}, nil, eperm},
		{"the machine", []string{"reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "create_module",
			"query_module", "get_kernel_syms", "acct", "iopl", "ioperm", "syslog", "sethostname", "setdomainname"}, nil, eperm},
		{"the machine's clock", []string{"settimeofday", "clock_settime", "clock_adjtime", "adjtimex"}, nil, eperm},
		{"only the personalities that debuggers and old programs use", []string{"personality"},
			[]condition{isNot(0, 0, 0x8, 0x20000, 0x20008, 0x40000, 0xffffffff)}, eperm},
		{"only these kinds of sockets: no vsock, packet, alg, xdp, can, bluetooth, …", []string{"socket"},
			[]condition{isNot(0, syscall.AF_UNIX, syscall.AF_INET, syscall.AF_INET6, syscall.AF_NETLINK)}, errno(syscall.EAFNOSUPPORT)},
		{"netlink is for routes and addresses only", []string{"socket"},
			[]condition{is(0, syscall.AF_NETLINK), isNot(2, syscall.NETLINK_ROUTE)}, errno(syscall.EPROTONOSUPPORT)},
		{"raw sockets", []string{"socket"}, []condition{is(0, syscall.AF_INET, syscall.AF_INET6),
			{arg: 1, mask: 0xf, value: []uint32{syscall.SOCK_RAW, syscall.SOCK_PACKET}}}, eperm},
		{"a datagram socket can be sent anywhere by name, past connect", []string{"socket"},
			[]condition{is(0, syscall.AF_UNIX), {arg: 1, mask: 0xf, value: []uint32{syscall.SOCK_DGRAM, syscall.SOCK_RAW}}}, errno(syscall.EPROTONOSUPPORT)},
		{"for another kind the kernel starts modprobe, twice for each call and as root, which loads modules or does nothing", []string{"socket"},
			[]condition{is(0, syscall.AF_INET, syscall.AF_INET6), {arg: 1, mask: 0xf, not: true, value: []uint32{syscall.SOCK_STREAM, syscall.SOCK_DGRAM}}}, errno(syscall.ESOCKTNOSUPPORT)},
		{"the same, for another protocol than TCP", []string{"socket"}, []condition{is(0, syscall.AF_INET, syscall.AF_INET6),
			{arg: 1, mask: 0xf, value: []uint32{syscall.SOCK_STREAM}}, isNot(2, 0, syscall.IPPROTO_TCP)}, errno(syscall.EPROTONOSUPPORT)},
		{"the same, for another than UDP and ping", []string{"socket"}, []condition{is(0, syscall.AF_INET),
			{arg: 1, mask: 0xf, value: []uint32{syscall.SOCK_DGRAM}}, isNot(2, 0, syscall.IPPROTO_UDP, syscall.IPPROTO_ICMP)}, errno(syscall.EPROTONOSUPPORT)},
		{"the same, of IPv6", []string{"socket"}, []condition{is(0, syscall.AF_INET6),
			{arg: 1, mask: 0xf, value: []uint32{syscall.SOCK_DGRAM}}, isNot(2, 0, syscall.IPPROTO_UDP, syscall.IPPROTO_ICMPV6)}, errno(syscall.EPROTONOSUPPORT)},
		{"the same, for bridges and VLANs", []string{"ioctl"},
			[]condition{is(1, 0x8940, 0x8941, 0x89a0, 0x89a1 /* SIOC…BR */, 0x8982, 0x8983 /* SIOC…VLAN */)}, errno(syscall.ENOPKG)},
		{"the same, for line disciplines of terminals", []string{"ioctl"}, []condition{is(1, 0x5423 /* TIOCSETD */)}, eperm},
		{"the same, for algorithms by which TCP signs, also of a name that is chosen", []string{"setsockopt"},
			[]condition{is(1, syscall.IPPROTO_TCP), is(2, 14, 32 /* TCP_MD5SIG… */, 38, 39, 40, 41, 42, 43 /* TCP_AO… */)}, errno(syscall.ENOPROTOOPT)},
		{"the first and the last socket with such an option have the kernel rewrite its code, which stops every processor", []string{"setsockopt"},
			[]condition{is(1, syscall.IPPROTO_UDP, 136 /* UDPLITE, which is the same to a socket of UDP */), is(2, 100, 104 /* UDP_ENCAP, UDP_GRO */)}, errno(syscall.ENOPROTOOPT)},
		{"labels of IPv6 flows have one bound for the whole machine", []string{"setsockopt"},
			[]condition{is(1, syscall.IPPROTO_IPV6), is(2, 32 /* IPV6_FLOWLABEL_MGR */)}, errno(syscall.ENOPROTOOPT)},
		{"compiled filters of sockets have one bound for the whole machine, and nobody is charged for them", []string{"setsockopt"},
			[]condition{is(1, syscall.SOL_SOCKET), is(2, 26, 50, 51, 52 /* SO_ATTACH… */)}, eperm},
		{"huge pages are a supply of the whole machine, which the memory limit does not count", []string{"mmap"}, []condition{anyBit(3, 0x40000 /* MAP_HUGETLB */)}, errno(syscall.ENOMEM)},
		{"the same", []string{"memfd_create"}, []condition{anyBit(1, 0x4 /* MFD_HUGETLB */)}, errno(syscall.ENOMEM)},
		{"the same", []string{"shmget"}, []condition{anyBit(2, 0o4000 /* SHM_HUGETLB */)}, errno(syscall.ENOMEM)},
		{"while there is such memory, the machine cannot hibernate", []string{"memfd_secret"}, nil, enosys},
		{"what is taken out of memory, the host has to read from its disk again; and whether it did tells what it uses", []string{"fadvise64"},
			[]condition{is(3, 4 /* POSIX_FADV_DONTNEED */)}, errno(0)},
		{"the same, for files of the caller's own", []string{"madvise"}, []condition{is(2, 20, 21 /* MADV_COLD, MADV_PAGEOUT */)}, errno(syscall.EINVAL)},
		{"the same, by a newer call", []string{"process_madvise"}, nil, eperm},
		{"whether a file is in memory tells what the host uses", []string{"cachestat"}, nil, enosys},
		{"the same, by a read that waits for nothing or leaves no trace, and by what later kernels may have", []string{"preadv2"},
			[]condition{anyBit(5, ^uint32(0x37) /* all but RWF_HIPRI, DSYNC, SYNC, APPEND, NOAPPEND */)}, errno(syscall.EOPNOTSUPP)},
		{"they write what all of the host has not written yet, outside of the box's limits; fsync does it for a file", []string{"sync", "syncfs"}, nil, errno(0)},
		{"whether a page could be merged tells what is in memory of the host and of neighbours", []string{"madvise"}, []condition{is(2, 12 /* MADV_MERGEABLE */)}, errno(syscall.EINVAL)},
		{"the same, for all memory of a process (67); and options of a later kernel than Linux 6.15, which nobody has looked at", []string{"prctl"},
			[]condition{anyBit(0, ^uint32(63)), isNot(0, 64, 65, 66, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 0x41555856, 0x53564d41, 0x59616d61 /* PR_GET_AUXV, PR_SET_VMA, PR_SET_PTRACER */)}, errno(syscall.EINVAL)},
		{"a group of tasks that shares no core makes others wait for cores", []string{"prctl"}, []condition{is(0, 62 /* PR_SCHED_CORE */)}, errno(syscall.EINVAL)},
		{"a datagram socket can be sent anywhere by name, also of a pair", []string{"socketpair"},
			[]condition{is(0, syscall.AF_UNIX), {arg: 1, mask: 0xf, value: []uint32{syscall.SOCK_RAW}}}, errno(syscall.EPROTONOSUPPORT)},
		{"pairs are of Unix sockets", []string{"socketpair"}, []condition{isNot(0, syscall.AF_UNIX)}, errno(syscall.EAFNOSUPPORT)},
		{"btrfs, bcachefs and OCFS2 make directory entries by ioctl, where neither Landlock nor a filter of names sees them", []string{"ioctl"},
			[]condition{{arg: 1, mask: 0xff00, value: []uint32{0x9400, 0xbc00, 0x6f00}}, isNot(1, 0x40049409 /* FICLONE */, 0x4020940d /* FICLONERANGE */, 0xc0189436 /* FIDEDUPERANGE */)}, errno(syscall.ENOTTY)},
		{"an access list in an attribute changes the mode of a file", []string{"setxattr", "lsetxattr", "fsetxattr", "setxattrat",
			"removexattr", "lremovexattr", "fremovexattr", "removexattrat"}, nil, errno(syscall.EOPNOTSUPP)},
		{"the same, by a newer call", []string{"file_setattr"}, nil, enosys},
		{"typing into the terminal of somebody else", []string{"ioctl"}, []condition{is(1, 0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */)}, eperm},
	}
	return append(rules, setIDRules()...)
}

// guestRules holds for what the agent starts, on top of baseRules; with trees
// the broker decides about changes of files too.
func guestRules(trees bool) []rule {
	rules := []rule{
		{"its flags are in memory, where a filter cannot see; programs fall back to openat", []string{"openat2"}, nil, errno(syscall.ENOSYS)},
		{"a second listener could answer in place of ours", []string{"seccomp"}, []condition{anyBit(1, newListenerFlag)}, errno(syscall.EBUSY)},
		{"a socket file outside the box's own directories belongs to a program of the host", []string{"connect", "bind"}, nil, actNotify},
	}
	if trees {
		rules = append(rules,
			rule{"changes below a tree are done by the broker", []string{"open"}, []condition{anyBit(1, openChange)}, actNotify},
			rule{"the same", []string{"openat"}, []condition{anyBit(2, openChange)}, actNotify},
			rule{"the same", []string{"creat", "mkdir", "mkdirat", "mknod", "mknodat", "rename", "renameat", "renameat2", "link", "linkat",
				"symlink", "symlinkat", "unlink", "unlinkat", "rmdir", "truncate"}, nil, actNotify},
			rule{"Landlock does not know modes, so every change of one is the broker's", []string{"chmod", "fchmod", "fchmodat", "fchmodat2"}, nil, actNotify},
			rule{"nor owners: a group of the host's that is taken from a directory is shut out of it", []string{"chown", "fchown", "lchown", "fchownat"}, nil, actNotify})
	}
	return rules
}
