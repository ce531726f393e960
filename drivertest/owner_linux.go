package drivertest

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// ownerOf returns the owner of a file on the host.
func ownerOf(t testing.TB, name string) (int, bool) {
	t.Helper()
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// holderOf describes who may do what with a directory of the host.
func holderOf(t testing.TB, name string) string {
	t.Helper()
	fi, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("no owner")
	}
	list := make([]byte, 4096)
	n, err := syscall.Listxattr(name, list)
	if err != nil && !errors.Is(err, syscall.ENOTSUP) {
		t.Fatal(err)
	}
	return fmt.Sprintf(" %v %d:%d %q", fi.Mode(), st.Uid, st.Gid, list[:max(n, 0)])
}

// foreignGroup gives a directory to a group in which no sandbox is, where the test may.
func foreignGroup(t testing.TB, name string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	if err := os.Chown(name, -1, 54321); err != nil {
		t.Fatal(err)
	}
}
