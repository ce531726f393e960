package sys

import (
	"maps"
	"sync"

	"golang.org/x/sys/unix"
)

// An Instruction is one instruction of a system-call filter.
type Instruction = unix.SockFilter

// Numbers returns the numbers of the system calls that filters mention, by name, for this
// architecture. It lacks calls that this architecture does not have (open, mkdir, …).
func Numbers() map[string]uint32 { return numbers() }

var numbers = sync.OnceValue(func() map[string]uint32 {
	n := map[string]uint32{
		"acct": unix.SYS_ACCT, "add_key": unix.SYS_ADD_KEY, "adjtimex": unix.SYS_ADJTIMEX, "bind": unix.SYS_BIND, "bpf": unix.SYS_BPF,
		"chroot": unix.SYS_CHROOT, "clock_adjtime": unix.SYS_CLOCK_ADJTIME, "clock_settime": unix.SYS_CLOCK_SETTIME,
		"clone": unix.SYS_CLONE, "clone3": unix.SYS_CLONE3, "connect": unix.SYS_CONNECT, "delete_module": unix.SYS_DELETE_MODULE,
		"fallocate": unix.SYS_FALLOCATE, "fanotify_init": unix.SYS_FANOTIFY_INIT, "fchmod": unix.SYS_FCHMOD, "fchmodat": unix.SYS_FCHMODAT, "fchmodat2": unix.SYS_FCHMODAT2,
		"fchown": unix.SYS_FCHOWN, "fchownat": unix.SYS_FCHOWNAT,
		"finit_module": unix.SYS_FINIT_MODULE, "flock": unix.SYS_FLOCK, "inotify_add_watch": unix.SYS_INOTIFY_ADD_WATCH,
		"fsconfig": unix.SYS_FSCONFIG, "fsmount": unix.SYS_FSMOUNT, "fsopen": unix.SYS_FSOPEN,
		"fspick": unix.SYS_FSPICK, "init_module": unix.SYS_INIT_MODULE, "io_cancel": unix.SYS_IO_CANCEL, "io_destroy": unix.SYS_IO_DESTROY,
		"io_getevents": unix.SYS_IO_GETEVENTS, "io_pgetevents": unix.SYS_IO_PGETEVENTS, "io_setup": unix.SYS_IO_SETUP, "io_submit": unix.SYS_IO_SUBMIT, "io_uring_enter": unix.SYS_IO_URING_ENTER,
		"io_uring_register": unix.SYS_IO_URING_REGISTER, "io_uring_setup": unix.SYS_IO_URING_SETUP, "ioctl": unix.SYS_IOCTL,
		"kcmp": unix.SYS_KCMP, "fcntl": unix.SYS_FCNTL, "kexec_file_load": unix.SYS_KEXEC_FILE_LOAD, "kexec_load": unix.SYS_KEXEC_LOAD, "keyctl": unix.SYS_KEYCTL,
		"linkat": unix.SYS_LINKAT, "listen": unix.SYS_LISTEN, "listmount": unix.SYS_LISTMOUNT, "lookup_dcookie": unix.SYS_LOOKUP_DCOOKIE, "mbind": unix.SYS_MBIND,
		"migrate_pages": unix.SYS_MIGRATE_PAGES, "mkdirat": unix.SYS_MKDIRAT, "mknodat": unix.SYS_MKNODAT, "mount": unix.SYS_MOUNT,
		"mount_setattr": unix.SYS_MOUNT_SETATTR, "move_mount": unix.SYS_MOVE_MOUNT, "move_pages": unix.SYS_MOVE_PAGES,
		"name_to_handle_at": unix.SYS_NAME_TO_HANDLE_AT, "nfsservctl": unix.SYS_NFSSERVCTL, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT,
		"open_tree": unix.SYS_OPEN_TREE, "open_tree_attr": 467, "openat": unix.SYS_OPENAT, "openat2": unix.SYS_OPENAT2,
		"prlimit64": unix.SYS_PRLIMIT64, "perf_event_open": unix.SYS_PERF_EVENT_OPEN, "personality": unix.SYS_PERSONALITY, "pivot_root": unix.SYS_PIVOT_ROOT,
		"quotactl": unix.SYS_QUOTACTL, "quotactl_fd": unix.SYS_QUOTACTL_FD, "reboot": unix.SYS_REBOOT,
		"renameat": sysRenameat, "renameat2": unix.SYS_RENAMEAT2, "request_key": unix.SYS_REQUEST_KEY, "seccomp": unix.SYS_SECCOMP,
		"setdomainname": unix.SYS_SETDOMAINNAME, "sethostname": unix.SYS_SETHOSTNAME, "setns": unix.SYS_SETNS,
		"settimeofday": unix.SYS_SETTIMEOFDAY, "socket": unix.SYS_SOCKET, "socketpair": unix.SYS_SOCKETPAIR, "statmount": unix.SYS_STATMOUNT,
		"swapoff": unix.SYS_SWAPOFF, "swapon": unix.SYS_SWAPON, "sync": unix.SYS_SYNC, "syncfs": unix.SYS_SYNCFS, "symlinkat": unix.SYS_SYMLINKAT, "syslog": unix.SYS_SYSLOG,
		"truncate": unix.SYS_TRUNCATE, "umount2": unix.SYS_UMOUNT2, "unlinkat": unix.SYS_UNLINKAT, "unshare": unix.SYS_UNSHARE,
		"setxattr": unix.SYS_SETXATTR, "lsetxattr": unix.SYS_LSETXATTR, "fsetxattr": unix.SYS_FSETXATTR, "setxattrat": 463,
		"removexattr": unix.SYS_REMOVEXATTR, "lremovexattr": unix.SYS_LREMOVEXATTR, "fremovexattr": unix.SYS_FREMOVEXATTR, "removexattrat": 466,
		"execve": unix.SYS_EXECVE, "execveat": unix.SYS_EXECVEAT, "kill": unix.SYS_KILL, "pidfd_getfd": unix.SYS_PIDFD_GETFD,
		"pidfd_open": unix.SYS_PIDFD_OPEN, "pidfd_send_signal": unix.SYS_PIDFD_SEND_SIGNAL, "process_madvise": unix.SYS_PROCESS_MADVISE,
		"process_vm_readv": unix.SYS_PROCESS_VM_READV, "process_vm_writev": unix.SYS_PROCESS_VM_WRITEV, "ptrace": unix.SYS_PTRACE,
		"rt_sigqueueinfo": unix.SYS_RT_SIGQUEUEINFO, "rt_tgsigqueueinfo": unix.SYS_RT_TGSIGQUEUEINFO, "tgkill": unix.SYS_TGKILL, "tkill": unix.SYS_TKILL,
		"cachestat": unix.SYS_CACHESTAT, "fadvise64": unix.SYS_FADVISE64, "madvise": unix.SYS_MADVISE, "memfd_create": unix.SYS_MEMFD_CREATE,
		"memfd_secret": unix.SYS_MEMFD_SECRET, "mmap": unix.SYS_MMAP, "prctl": unix.SYS_PRCTL, "preadv2": unix.SYS_PREADV2,
		"sched_getaffinity": unix.SYS_SCHED_GETAFFINITY, "setsockopt": unix.SYS_SETSOCKOPT, "sysinfo": unix.SYS_SYSINFO, "shmget": unix.SYS_SHMGET,
		"file_setattr": 469, "userfaultfd": unix.SYS_USERFAULTFD, "vhangup": unix.SYS_VHANGUP,
	}
	maps.Copy(n, oldNumbers())
	return n
})
