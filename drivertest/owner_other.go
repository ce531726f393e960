//go:build !linux

package drivertest

import "testing"

// ownerOf is unknown on this system.
func ownerOf(testing.TB, string) (int, bool) { return 0, false }
