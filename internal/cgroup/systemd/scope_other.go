//go:build !linux

package systemd

import "github.com/paddock-sandbox/paddock"

// Socket returns no path: this system has no systemd.
func Socket(int, string) string { return "" }

// Scope fails: this system has no systemd.
func Scope(string) error { return paddock.Unsupported }
