package vfs

import (
	"io/fs"
	"os"
	"syscall"
)

// device gives the file system that a file is on.
func device(i fs.FileInfo) uint64 {
	if st, ok := i.Sys().(*syscall.Stat_t); ok {
		return st.Dev
	}
	return 0
}

// real refuses a file of a file system whose files are the kernel's words about
// whoever reads them, or about the machine: they are not what a directory that
// is mounted is meant to give.
func real(f *os.File) error {
	var st syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &st); err != nil {
		return err
	}
	switch uint32(st.Type) {
	case 0x9fa0, // proc
		0x62656572,           // sysfs
		0x27e0eb, 0x63677270, // cgroup, both
		0x64626720, 0x74726163, // debugfs, tracefs
		0x73636673, 0x62656570, // securityfs, configfs
		0xcafe4a11,             // bpf
		0xde5e81e4, 0x6165676c, // efivarfs, pstore
		0x42494e4d, 0x6e736673, // binfmt_misc, namespaces
		0xf97cff8c, 0x43415d53, // SELinux, Smack
		0x1cd1, 0x19800202: // terminals, message queues
		return syscall.EACCES
	}
	return nil
}
