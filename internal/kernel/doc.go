// Package kernel wraps the Linux interfaces that Paddock uses and probes whether this machine has
// them. Other packages use golang.org/x/sys/unix only through it, apart from those that link gVisor,
// and it makes no decisions.
//
// Files named *_linux.go hold the implementations. Files named *_other.go return Unsupported, so that
// every package above compiles on every system.
package kernel
