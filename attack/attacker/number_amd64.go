//go:build linux

package main

import "golang.org/x/sys/unix"

// System calls of this architecture only.
const (
	sysModifyLDT = unix.SYS_MODIFY_LDT
	sysIOPerm    = unix.SYS_IOPERM
	sysIOPL      = unix.SYS_IOPL
)
