package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Quota returns a number of /proc/sys, such as "fs/inotify/max_user_instances".
func Quota(name string) (int64, error) {
	data, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/sys/%s: %w", name, err)
	}
	return n, nil
}

// SetUserQuota sets a quota of the calling process's user namespace: name is a file of /proc/sys/user.
// The process needs CAP_SYS_RESOURCE in the namespace. A quota that the kernel does not have is no
// error.
func SetUserQuota(name string, n int64) error {
	f, err := os.OpenFile("/proc/sys/user/"+name, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(strconv.AppendInt(nil, n, 10))
	return errors.Join(err, f.Close())
}

// DropResource takes CAP_SYS_RESOURCE from all threads of this process, and from everything that they
// start.
func DropResource() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	const bit = uint32(1) << unix.CAP_SYS_RESOURCE
	data[0].Effective &^= bit
	data[0].Permitted &^= bit
	data[0].Inheritable &^= bit // the ambient set follows
	return allThreadsCapset(&capHeader{version: unix.LINUX_CAPABILITY_VERSION_3}, &data)
}

// AsCreator calls f on a thread whose effective user is uid, with the capabilities of the caller, who
// must be root. A user namespace that f makes belongs to uid, and the kernel counts what is used in it
// as uid's.
//
// The calling goroutine must be locked to a thread that ends with it, because the thread may be unable to
// become root again. No other thread's user changes. If this process's own user namespace has no such
// user, f is called as root, and cannot map the user either.
func AsCreator(uid int, f func() error) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	// The saved user stays root, which is the way back. Without a change of the real user, the
	// kernel keeps the permitted set.
	if err := effectiveUser(uid); errors.Is(err, unix.EINVAL) {
		return f()
	} else if err != nil {
		return err
	}
	err := unix.Capset(&hdr, &data[0])
	if err != nil {
		err = fmt.Errorf("capset: %w", err)
	} else {
		err = f()
	}
	if back := effectiveUser(0); back != nil {
		return errors.Join(err, fmt.Errorf("the thread still has the sandbox's user: %w", back))
	}
	return err
}

// effectiveUser changes the effective user of the calling thread alone.
func effectiveUser(uid int) error {
	const same = ^uintptr(0)
	if _, _, e := syscall.RawSyscall(unix.SYS_SETRESUID, same, uintptr(uid), same); e != 0 {
		return fmt.Errorf("setresuid: %w", e)
	}
	return nil
}
