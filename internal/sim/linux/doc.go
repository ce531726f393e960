// Package linux holds the numbers of Linux that the programs of a simulated
// computer see: errors, signals, file modes and the flags of open. They are
// the same on every system that the engine is compiled for; package syscall has
// those of the host.
package linux
