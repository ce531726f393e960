package sys

import (
	"errors"
	"fmt"
	"os"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// LandlockABI returns the version of Landlock that this kernel enforces, or 0 if it has none.
func LandlockABI() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

const (
	landlockRead  = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	landlockWrite = ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeChar |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeBlock | ll.AccessFSMakeSym | ll.AccessFSRefer
	landlockFile = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev // what a rule on a file may hold
)

// LandlockThread restricts the calling thread, and everything that it starts from now on. All files
// may be read and executed, but changed only below writable. Nothing can be mounted. On Linux 6.12
// and later, signals and abstract sockets cannot reach processes outside the restriction. Other
// threads of the process are not restricted. The thread must have no_new_privs, and the kernel
// Landlock version 3.
func LandlockThread(writable []string) error {
	abi := LandlockABI()
	handled := uint64(landlockRead | landlockWrite)
	attr := ll.RulesetAttr{}
	if abi >= 5 {
		handled |= ll.AccessFSIoctlDev
	}
	if abi >= 6 {
		attr.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	attr.HandledAccessFS = handled
	ruleset, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return fmt.Errorf("landlock_create_ruleset: %w", err)
	}
	defer unix.Close(ruleset)
	if err := landlockAllow(ruleset, landlockRead, "/"); err != nil {
		return err
	}
	for _, path := range writable {
		if err := landlockAllow(ruleset, handled, path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := ll.LandlockRestrictSelf(ruleset, 0); err != nil {
		return fmt.Errorf("landlock_restrict_self: %w", err)
	}
	return nil
}

// landlockSockets restricts the calling thread: of all changes to files, it may only make socket files
// below an open directory.
func landlockSockets(dir int) error {
	ruleset, err := ll.LandlockCreateRuleset(&ll.RulesetAttr{HandledAccessFS: landlockWrite}, 0)
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	if err := ll.LandlockAddPathBeneathRule(ruleset, &ll.PathBeneathAttr{AllowedAccess: ll.AccessFSMakeSock, ParentFd: dir}, 0); err != nil {
		return err
	}
	return ll.LandlockRestrictSelf(ruleset, 0)
}

func landlockAllow(ruleset int, rights uint64, path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "landlock", Path: path, Err: err}
	}
	return landlockRule(ruleset, rights, fd, path)
}

// landlockReal is landlockAllow for a path that leads through no link: one that
// took its place meanwhile would open what it leads to.
func landlockReal(ruleset int, rights uint64, path string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return &os.PathError{Op: "landlock", Path: path, Err: err}
	}
	return landlockRule(ruleset, rights, fd, path)
}

// landlockRule adds a rule, and closes fd.
func landlockRule(ruleset int, rights uint64, fd int, path string) error {
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "landlock", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= landlockFile
	}
	if err := ll.LandlockAddPathBeneathRule(ruleset, &ll.PathBeneathAttr{AllowedAccess: rights, ParentFd: fd}, 0); err != nil {
		return &os.PathError{Op: "landlock_add_rule", Path: path, Err: err}
	}
	return nil
}
