package seccomp

import (
	"slices"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Machine returns the filter for the process that runs a machine, on top of GuestKernel. It is
// installed before the program is executed, and process is its number. With reads the filter reports
// every opening of a file, else only an opening to write.
func Machine(process int, reads bool) ([]sys.Instruction, error) {
	return assemble(machineRules(process, reads), sys.Numbers())
}

// machineRules leave a process with the files that it was given. What it opens
// besides to read, its tree has; the listener gives it the rest.
func machineRules(process int, reads bool) []rule {
	eperm, eacces := errno(syscall.EPERM), errno(syscall.EACCES)
	rules := slices.Concat(wallRules(), engineRules(), []rule{
		{"its flags are in memory, where a filter cannot see; programs fall back to openat", []string{"openat2"}, nil, errno(syscall.ENOSYS)},
		{"a second listener could answer in place of ours", []string{"seccomp"}, []condition{anyBit(1, newListenerFlag)}, errno(syscall.EBUSY)},
		{"the listener lets one pass", []string{"execve"}, nil, actNotify},
		{"no program needs it", []string{"execveat"}, nil, eperm},
		{"all sockets that are needed are there", []string{"socket", "socketpair", "connect", "bind"}, nil, eperm},
		{"other processes of the box", []string{"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_open", "pidfd_getfd",
			"pidfd_send_signal", "tkill", "rt_sigqueueinfo"}, nil, eperm},
		{"signals for others than itself", []string{"kill", "tgkill", "rt_tgsigqueueinfo"}, []condition{isNot(0, uint32(process))}, eperm},
		{"a hole in memory that it goes on from would be a hole for all who do; it gives up its own pages when it thinks that there is one", []string{"fallocate"}, nil, errno(0)},
		{"it changes no file's name and no mode", []string{"creat", "mkdir", "mkdirat", "mknod", "mknodat", "rename", "renameat", "renameat2", "link", "linkat",
			"symlink", "symlinkat", "unlink", "unlinkat", "rmdir", "truncate", "chmod", "fchmod", "fchmodat", "fchmodat2"}, nil, eacces},
	})
	if reads {
		return append(rules, rule{"the listener has the files", []string{"open", "openat"}, nil, actNotify})
	}
	return append(rules,
		rule{"the listener has the files that can be written", []string{"open"}, []condition{anyBit(1, openChange)}, actNotify},
		rule{"the same", []string{"openat"}, []condition{anyBit(2, openChange)}, actNotify})
}
