//go:build !linux

package drivertest

import "testing"

// Held lists what a driver can hold on any system: goroutines.
func Held(t testing.TB, state, name string) Counts {
	t.Helper()
	return Counts{"goroutine": goroutines()}
}

// pss is unknown on this system.
func pss(state, name string) (int64, bool) { return 0, false }

// rss is unknown on this system.
func rss() int64 { return 0 }
