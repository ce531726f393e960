// Package sys wraps the Linux interfaces that Paddock uses and probes whether this machine has
// them. It makes no decisions.
//
// Only this package, attack/attacker and attack/internet import golang.org/x/sys/unix, and tests where
// they need a raw system call. The packages of attack need all system calls raw.
//
// Files named *_linux.go hold the implementations. Files named *_other.go return Unsupported, so that
// every package above compiles on every system.
package sys
