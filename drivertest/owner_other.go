//go:build !linux

package drivertest

import (
	"os"
	"testing"
)

// ownerOf is unknown on this system.
func ownerOf(testing.TB, string) (int, bool) { return 0, false }

// holderOf describes who may do what with a directory of the host.
func holderOf(t testing.TB, name string) string {
	t.Helper()
	fi, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return " " + fi.Mode().String()
}

// foreignGroup changes nothing on this system.
func foreignGroup(testing.TB, string) {}
