//go:build !linux

package drivertest

import "testing"

// Held counts what a driver can hold on any system: goroutines.
func Held(t testing.TB, state, name string) Counts {
	t.Helper()
	return Counts{"goroutine": goroutines()}
}

// pss is not known here.
func pss(state, name string) (int64, bool) { return 0, false }

// rss is not known here.
func rss() int64 { return 0 }
