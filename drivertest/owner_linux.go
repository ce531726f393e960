package drivertest

import (
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
