// Package linux holds the numbers of Linux that a simulated computer's programs
// see: errors, signals, file modes and the flags of open. They are the same on
// every host; package syscall has the host's.
package linux
