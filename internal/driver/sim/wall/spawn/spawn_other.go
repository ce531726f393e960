//go:build !linux

// Package spawn starts this program again as the process of a simulated
// computer, on Linux.
package spawn

// A Process is a child; there is none here.
type Process struct{ PID int }
