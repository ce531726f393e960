package sys

import "golang.org/x/sys/unix"

// Arch is the number by which filters know this architecture, and X32 the bit
// that marks calls of the x32 ABI (0 where there is none).
const (
	Arch = unix.AUDIT_ARCH_X86_64
	X32  = 0x40000000

	sysRenameat = unix.SYS_RENAMEAT
)

func oldNumbers() map[string]uint32 {
	return map[string]uint32{
		"_sysctl": unix.SYS__SYSCTL, "chmod": unix.SYS_CHMOD, "chown": unix.SYS_CHOWN, "creat": unix.SYS_CREAT, "create_module": unix.SYS_CREATE_MODULE,
		"get_kernel_syms": unix.SYS_GET_KERNEL_SYMS, "ioperm": unix.SYS_IOPERM, "iopl": unix.SYS_IOPL, "lchown": unix.SYS_LCHOWN, "link": unix.SYS_LINK,
		"mkdir": unix.SYS_MKDIR, "mknod": unix.SYS_MKNOD, "modify_ldt": unix.SYS_MODIFY_LDT, "open": unix.SYS_OPEN,
		"query_module": unix.SYS_QUERY_MODULE, "rename": unix.SYS_RENAME, "rmdir": unix.SYS_RMDIR, "symlink": unix.SYS_SYMLINK,
		"sysfs": unix.SYS_SYSFS, "unlink": unix.SYS_UNLINK, "uselib": unix.SYS_USELIB, "ustat": unix.SYS_USTAT,
	}
}
